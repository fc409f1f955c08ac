"""The project's settings as an operator meets them: in a process of its own, from the environment alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from config.database import database_from_url
from config.dotenv import ensure_secret_key
from tests.support.processes import run_process

KEY = "Zm9yLXRlc3RzLW9ubHktMDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6"
PROJECT: dict[str, str | None] = {
    **dict.fromkeys(["ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "LOG_FORMAT", "LOG_LEVEL", "STATIC_ROOT", "TIME_ZONE"]),
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "ENV_FILE": "",
}


def run(*arguments: str, expect: int = 0, environment: Mapping[str, str | None] | None = None) -> str:
    with run_process([sys.executable, *arguments], environment={**PROJECT, **(environment or {})}) as child:
        assert child.wait(60) == expect, child.output
        return child.output


def read(expression: str, **environment: str) -> object:
    """The value of an expression over the settings, by way of JSON."""
    code = f"import json; from django.conf import settings; print(json.dumps({expression}))"
    return json.loads(run("-c", code, environment={"SECRET_KEY": KEY, **environment}).splitlines()[-1])


def test_without_a_secret_key_the_error_says_what_to_do() -> None:
    said = run("manage.py", "check", expect=1)
    assert "SECRET_KEY is not set. Run `python manage.py quickstart` once" in said


def test_the_deployment_check_is_content_behind_https(tmp_path: Path) -> None:
    environment = {"SECRET_KEY": KEY, "HTTPS": "1", "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3"}
    run("manage.py", "check", "--deploy", "--fail-level", "WARNING", environment=environment)


def test_the_deployment_check_complains_without_https() -> None:
    run("manage.py", "check", "--deploy", "--fail-level", "WARNING", expect=1, environment={"SECRET_KEY": KEY})


def test_what_is_not_set_is_safe_and_local() -> None:
    assert read("[settings.DEBUG, settings.ALLOWED_HOSTS, settings.USE_TZ, settings.TIME_ZONE]") == [
        False,
        ["localhost", "127.0.0.1", "[::1]"],
        True,
        "UTC",
    ]


def test_the_embedded_database_waits_for_its_turn_and_survives_a_power_cut(tmp_path: Path) -> None:
    expected = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
    assert read("settings.DATABASES['default']['OPTIONS']") == expected
    assert read("settings.DATABASES['default']['OPTIONS']", DATABASE_URL=f"sqlite:///{tmp_path}/x") == expected
    code = (
        "import django; django.setup(); from django.db import connection as c; k = c.cursor()\n"
        "for name in ('journal_mode', 'synchronous', 'busy_timeout'): print(k.execute(f'PRAGMA {name}').fetchone()[0])"
    )
    url = f"sqlite:///{tmp_path}/y.sqlite3"
    assert run("-c", code, environment={"SECRET_KEY": KEY, "DATABASE_URL": url}).split() == ["wal", "2", "20000"]


def test_a_relative_sqlite_file_does_not_depend_on_where_a_process_starts() -> None:
    assert database_from_url("sqlite:///data/jobs.db", base_dir=Path("/srv/app"))["NAME"] == "/srv/app/data/jobs.db"
    assert database_from_url("sqlite:////data/jobs.db", base_dir=Path("/srv/app"))["NAME"] == "/data/jobs.db"


def test_postgresql_connections_are_kept_and_checked() -> None:
    database = database_from_url("postgres://me:secret@db:5433/work", base_dir=Path("/"))
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert (database["HOST"], database["PORT"], database["NAME"]) == ("db", 5433, "work")
    assert (database["CONN_MAX_AGE"], database["CONN_HEALTH_CHECKS"]) == (60, True)


def test_the_env_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    env_file = tmp_path / "env"
    env_file.write_text("TIME_ZONE=Europe/Vienna\nLANGUAGE_CODE=de\n")
    settings = read("[settings.TIME_ZONE, settings.LANGUAGE_CODE]", ENV_FILE=str(env_file), LANGUAGE_CODE="fr")
    assert settings == ["Europe/Vienna", "fr"]


def test_the_admin_has_its_style_sheet_with_debug_off_and_nothing_collected() -> None:
    code = (
        "import django; django.setup(); from django.test import Client\n"
        "print(Client(SERVER_NAME='localhost').get('/static/admin/css/base.css').status_code)"
    )
    assert run("-c", code, environment={"SECRET_KEY": KEY}).split()[-1] == "200"


@pytest.mark.parametrize("level", ["INFO", "ERROR"])
def test_log_lines_can_be_json_and_have_a_level(level: str) -> None:
    code = (
        "import django; django.setup(); import logging; log = logging.getLogger('jobs.engine')\n"
        "log.info('claimed %s', 3, extra={'job': 7})\n"
        "try: 1 / 0\nexcept ZeroDivisionError: log.exception('failed')"
    )
    said = run("-c", code, environment={"SECRET_KEY": KEY, "LOG_FORMAT": "json", "LOG_LEVEL": level})
    lines = [json.loads(line) for line in said.splitlines()]
    assert [line["message"] for line in lines] == {"INFO": ["claimed 3", "failed"], "ERROR": ["failed"]}[level]
    assert "ZeroDivisionError" in lines[-1]["traceback"]
    if level == "INFO":
        assert (lines[0]["job"], lines[0]["level"], lines[0]["logger"]) == (7, "INFO", "jobs.engine")


def test_the_first_start_writes_a_secret_key_for_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SECRET_KEY", raising=False)
    env_file = tmp_path / ".env"
    assert ensure_secret_key(env_file)
    assert env_file.stat().st_mode & 0o777 == 0o600
    first = env_file.read_text()
    assert len(first) > 60
    assert not ensure_secret_key(env_file)
    assert env_file.read_text() == first


def test_a_secret_key_is_added_to_what_the_env_file_says_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SECRET_KEY", raising=False)
    env_file = tmp_path / ".env"
    env_file.write_text("DEBUG=1")
    assert ensure_secret_key(env_file)
    assert env_file.read_text().startswith("DEBUG=1\nSECRET_KEY=")
    monkeypatch.setenv("SECRET_KEY", KEY)
    assert not ensure_secret_key(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("DATABASE_URL", "nonsense", "DATABASE_URL is no address: give postgres://"),
        ("DATABASE_URL", "mysql://u:secret@h/n", "DATABASE_URL starts with mysql://: give postgres://"),
        ("DATABASE_URL", "postgres://u:secret@h:port/n", "DATABASE_URL cannot be read: "),
        ("DEBUG", "maybe", "DEBUG='maybe': give 1 or 0"),
        ("HTTPS", "2", "HTTPS='2': give 1 or 0"),
        ("LOG_FORMAT", "jason", "LOG_FORMAT='jason': give one of lines, json"),
        ("LOG_LEVEL", "loud", "LOG_LEVEL='loud': give one of INFO, "),
    ],
)
def test_a_value_that_means_nothing_is_refused_in_one_line(variable: str, value: str, said: str) -> None:
    (line,) = run("manage.py", "runscheduler", expect=1, environment={"SECRET_KEY": KEY, variable: value}).splitlines()
    assert line.startswith(f"ImproperlyConfigured: {said}")
    assert "secret" not in line


@pytest.mark.parametrize(("value", "means"), [("1", True), ("True", True), ("0", False), ("off", False), ("", False)])
def test_a_flag_is_on_or_off(value: str, means: bool) -> None:
    assert read("settings.DEBUG", DEBUG=value) is means
