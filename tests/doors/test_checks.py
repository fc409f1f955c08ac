"""System checks: what would make jobs fail later is said at start."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.core.management import call_command
from django.db import connections
from pytest_django import Settings

from jobs import discovery

# From Django 6.1 on its own checks of models open the database.
pytestmark = pytest.mark.django_db


def said() -> list[CheckMessage]:
    return [message for message in run_checks() if str(message.id).startswith("jobs.")]


def ids() -> list[str]:
    return [str(message.id) for message in said()]


def test_the_project_itself_is_clean() -> None:
    call_command("check", fail_level="WARNING")
    assert run_checks() == []


def test_without_time_zones_it_is_an_error(settings: Settings) -> None:
    settings.USE_TZ = False
    assert ids() == ["jobs.E001"]
    assert "USE_TZ = True" in said()[0].msg


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ({"LEASES": 1}, "Did you mean 'LEASE'?"),
        ({"RETENTION": 5}, "JOBS['RETENTION']=5"),
        ({"DATABASE": "nowhere"}, "give an alias of DATABASES"),
        (7, "JOBS must be a dict"),
    ],
)
def test_a_wrong_setting_is_an_error_in_its_own_words(settings: Settings, jobs: Any, words: str) -> None:
    settings.JOBS = jobs
    assert ids() == ["jobs.E002"]
    assert words in said()[0].msg


@pytest.mark.parametrize("vendor", ["mysql", "oracle"])
def test_another_database_vendor_is_an_error(monkeypatch: pytest.MonkeyPatch, vendor: str) -> None:
    monkeypatch.setattr(connections["default"], "vendor", vendor)
    assert ids() == ["jobs.E003"]
    assert said()[0].msg == f"jobs does not run on {vendor} (database 'default')."
    assert "PostgreSQL or SQLite" in str(said()[0].hint)


def test_a_task_module_that_failed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(discovery.failed, "shop.tasks", "ValueError: no such file")
    assert ids() == ["jobs.E004"]
    assert said()[0].msg == "shop.tasks cannot be imported, so its tasks are unknown: ValueError: no such file"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["jobs.W001"]),
        ({"transaction_mode": "DEFERRED"}, ["jobs.W001"]),
        ({"transaction_mode": None}, ["jobs.W001"]),
        ({"transaction_mode": "immediate"}, []),
        ({"transaction_mode": "EXCLUSIVE"}, []),
    ],
)
def test_sqlite_with_stock_options_gets_a_warning_that_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], expected: list[str]
) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "OPTIONS", options)
    assert ids() == expected
    if expected:
        hint = str(said()[0].hint)
        assert hint.startswith('DATABASES["default"]["OPTIONS"] = ')
        assert "'transaction_mode': 'IMMEDIATE'" in hint


def test_the_warning_is_about_the_database_that_holds_the_jobs(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    if "postgres" not in settings.DATABASES:
        pytest.skip("no PostgreSQL")
    monkeypatch.setitem(connections["default"].settings_dict, "OPTIONS", {})
    settings.JOBS = {"DATABASE": "postgres"}
    assert ids() == []
