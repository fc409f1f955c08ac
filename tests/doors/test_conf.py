"""`JOBS`: one dict, checked key by key, read when it is needed."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from pytest_django import Settings

from jobs.conf import KEYS, jobs_settings
from jobs.domain.status import Status
from jobs.scheduler import engine_options

DEFAULTS: dict[str, Any] = {
    "DATABASE": "default",
    "QUEUES": ("default",),
    "MAX_ARGUMENT_BYTES": 262_144,
    "THREADS": 8,
    "ASYNC": 100,
    "PROCESSES": os.cpu_count() or 1,
    "LEASE": 60.0,
    "RENEW": 20.0,
    "POLL": 5.0,
    "GRACE": 25.0,
    "CANCEL_GRACE": 10.0,
    "CLAIM_AHEAD": 0.03,
    "TASK_NOT_FOUND_AFTER": 600.0,
    "RETENTION": {
        Status.COMPLETED: timedelta(days=7),
        Status.CANCELLED: timedelta(days=7),
        Status.FAILED: timedelta(days=30),
        Status.TIMED_OUT: timedelta(days=30),
    },
    "HISTORY_LIMIT": None,
}
SECONDS = ("LEASE", "RENEW", "POLL", "GRACE", "CANCEL_GRACE", "CLAIM_AHEAD", "TASK_NOT_FOUND_AFTER")
COUNTS = ("MAX_ARGUMENT_BYTES", "THREADS", "ASYNC", "PROCESSES", "HISTORY_LIMIT")


def read(settings: Settings, **given: Any) -> Any:
    """The only given setting as it is kept."""
    settings.JOBS = given
    return getattr(jobs_settings(), next(iter(given)))


def test_a_project_that_says_nothing_gets_every_default(settings: Settings) -> None:
    settings.JOBS = {}
    assert {key: getattr(jobs_settings(), key) for key in KEYS} == DEFAULTS


@pytest.mark.parametrize("key", [*SECONDS])
def test_durations_are_seconds_or_timedeltas(settings: Settings, key: str) -> None:
    settings.JOBS = {"LEASE": 100, "RENEW": 1, key: 40}
    assert getattr(jobs_settings(), key) == 40.0
    settings.JOBS = {"LEASE": 100, "RENEW": 1, key: timedelta(seconds=40, microseconds=500_000)}
    assert getattr(jobs_settings(), key) == 40.5


@pytest.mark.parametrize("key", SECONDS)
@pytest.mark.parametrize("wrong", [-1, "20", None, True, float("nan"), float("inf"), [1]])
def test_a_duration_that_is_none_is_refused_by_its_name(settings: Settings, key: str, wrong: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"JOBS\['{key}'\]"):
        read(settings, **{key: wrong})


@pytest.mark.parametrize("key", ["LEASE", "RENEW", "POLL"])
def test_what_must_take_time_cannot_be_zero(settings: Settings, key: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"JOBS\['{key}'\]=0: give more than 0 seconds"):
        read(settings, **{key: 0})


@pytest.mark.parametrize("key", ["GRACE", "CANCEL_GRACE", "CLAIM_AHEAD", "TASK_NOT_FOUND_AFTER"])
def test_what_may_be_no_time_can_be_zero(settings: Settings, key: str) -> None:
    assert read(settings, **{key: 0}) == 0.0


@pytest.mark.parametrize("key", COUNTS)
@pytest.mark.parametrize("wrong", [-1, "8", 1.5, True, [1]])
def test_a_count_that_is_none_is_refused_by_its_name(settings: Settings, key: str, wrong: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"JOBS\['{key}'\]=.*: give a whole number from 1"):
        read(settings, **{key: wrong})


@pytest.mark.parametrize("key", ["THREADS", "ASYNC", "PROCESSES"])
def test_an_execution_may_have_no_slots(settings: Settings, key: str) -> None:
    assert read(settings, **{key: 0}) == 0


def test_queues_are_a_list_of_names(settings: Settings) -> None:
    assert read(settings, QUEUES=["mail", "default", "mail"]) == ("mail", "default")
    for wrong in ("mail", [], None, {"mail": 1}, [1], ["q" * 65], [""], ["a\nb"]):
        with pytest.raises(ImproperlyConfigured, match=r"JOBS\['QUEUES'\]"):
            read(settings, QUEUES=wrong)


def test_the_database_is_one_that_the_project_has(settings: Settings) -> None:
    for wrong in ("nowhere", None, ["default"]):
        with pytest.raises(ImproperlyConfigured, match=r"JOBS\['DATABASE'\]=.*: give an alias of DATABASES \(default"):
            read(settings, DATABASE=wrong)


def test_retention_changes_what_it_names_and_none_keeps_for_ever(settings: Settings) -> None:
    kept = read(settings, RETENTION={"completed": 1, "failed": None, "cancelled": timedelta(hours=1), "timed_out": 0.5})
    assert kept == {
        Status.COMPLETED: timedelta(days=1),
        Status.CANCELLED: timedelta(hours=1),
        Status.TIMED_OUT: timedelta(hours=12),
    }
    assert read(settings, RETENTION={}) == DEFAULTS["RETENTION"]
    assert read(settings, RETENTION={Status.COMPLETED: 2})[Status.COMPLETED] == timedelta(days=2)


@pytest.mark.parametrize(
    "wrong",
    [
        5,
        None,
        "completed",
        [1],
        {"running": 1},
        {"completed": -1},
        {"completed": "7"},
        {"completed": True},
        {"completed": [1]},
        {"completed": float("nan")},
        {"completed": 1e12},
        {"completed": 10**400},
    ],
)
def test_a_retention_that_is_none_is_refused_in_words(settings: Settings, wrong: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"JOBS\['RETENTION'\].*: (give|at most)"):
        read(settings, RETENTION=wrong)


def test_an_unknown_key_is_an_error_that_suggests_the_right_one(settings: Settings) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"JOBS has no setting 'LEASES'\. Did you mean 'LEASE'\?"):
        read(settings, LEASES=1)
    with pytest.raises(ImproperlyConfigured, match=r"JOBS has no setting 'X'\. It knows DATABASE, QUEUES, "):
        read(settings, X=1)


def test_jobs_must_be_a_dict(settings: Settings) -> None:
    settings.JOBS = [("LEASE", 60)]
    with pytest.raises(ImproperlyConfigured, match="JOBS must be a dict"):
        jobs_settings()


@pytest.mark.parametrize(("lease", "renew"), [(60, 31), (20, 20), (1, 60)])
def test_a_lease_must_outlast_a_failed_renewal(settings: Settings, lease: int, renew: int) -> None:
    settings.JOBS = {"LEASE": lease, "RENEW": renew}
    with pytest.raises(ImproperlyConfigured, match=rf"JOBS\['RENEW'\] is {renew} s: at most half of JOBS\['LEASE'\]"):
        jobs_settings()
    settings.JOBS = {"LEASE": lease, "RENEW": lease / 2}
    renewal = jobs_settings().RENEW
    assert renewal == lease / 2


def test_overridden_settings_are_honoured_and_end_with_their_block() -> None:
    before = jobs_settings()
    with override_settings(JOBS={"POLL": 1}):
        assert jobs_settings().POLL == 1.0
        with override_settings(JOBS={"POLL": 2}):
            assert jobs_settings().POLL == 2.0
        assert jobs_settings().POLL == 1.0
    assert jobs_settings() == before


def test_settings_are_read_once_until_they_change(settings: Settings) -> None:
    assert jobs_settings() is jobs_settings()


def test_every_setting_of_the_engine_reaches_it(settings: Settings) -> None:
    settings.JOBS = {
        "QUEUES": ["mail"],
        "THREADS": 1,
        "ASYNC": 2,
        "PROCESSES": 0,
        "LEASE": 9,
        "RENEW": 3,
        "POLL": 0.5,
        "GRACE": 4,
        "CANCEL_GRACE": 6,
        "CLAIM_AHEAD": 0,
        "TASK_NOT_FOUND_AFTER": 7,
        "RETENTION": {"completed": 1},
        "HISTORY_LIMIT": 5,
    }
    options = engine_options()
    assert dict(options.queues) == {"mail": None}
    assert {str(execution): slots for execution, slots in options.slots.items()} == {
        "thread": 1,
        "async": 2,
        "process": 0,
    }
    assert (options.lease, options.renew, options.poll, options.grace) == (9, 3, 0.5, 4)
    assert (options.cancel_grace, options.claim_ahead, options.task_not_found_after) == (6, 0, 7)
    assert (options.keep[Status.COMPLETED], options.history_limit) == (timedelta(days=1), 5)


def test_a_wrong_key_of_the_retention_is_named(settings: Settings) -> None:
    settings.JOBS = {"RETENTION": {"completed": 1, "done": 3}}
    with pytest.raises(
        ImproperlyConfigured, match=r"JOBS\['RETENTION'\] has a key 'done': give keys among completed, "
    ):
        jobs_settings()
