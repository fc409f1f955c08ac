"""The statements that write a group of outcomes, over one list of records named `closing`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.domain.closing import Closing
from jobs.domain.status import TERMINAL, WAITING, Status
from jobs.models.guard import legal_from
from jobs.store.database import Database

# Every status an outcome leads to, checked against the table when this module is loaded.
for _target in (*TERMINAL, Status.RETRY_WAIT, Status.PENDING, Status.SCHEDULED):
    RUNNING = legal_from(Status.RUNNING, to=_target)

_WHO = {"attempt_id": "bigint", "job_id": "bigint"}
_HOW = {
    "outcome": "text",
    "reason": "text",
    "started_at": "timestamptz",
    "lingers": "bool",
    "done": "float8",
    "total": "float8",
    "said": "text",
}
_WHERE_TO = {
    "status": "text",
    "waits": "bool",
    "ends": "bool",
    "cause": "text",
    "delay_seconds": "float8",
    "failures": "int",
    "losses": "int",
    "snoozes": "int",
    "interruptions": "int",
    "execution": "text",
    "started_at": "timestamptz",
}
_FAILURE = {
    "task": "text",
    "exception_class": "text",
    "causes": "text",
    "module": "text",
    "function": "text",
    "message": "text",
    "traceback": "text",
}
COLUMNS = {**_WHO, **_HOW, **_WHERE_TO, "result": "text", **_FAILURE, "log": "text"}


@dataclass(frozen=True, slots=True)
class Step:
    """One writing statement. `{closing}` in it is where the records come from; it reads only `columns` of them."""

    name: str
    sql: str
    columns: dict[str, str]


def record_of(closing: Closing) -> dict[str, Any]:
    """Without what is null, zero or false: most outcomes are plain, and what is left out is neither sent nor read."""
    given: dict[str, Any] = {
        "attempt_id": closing.attempt_id,
        "job_id": closing.job_id,
        "outcome": closing.outcome,
        "status": closing.status,
        "started_at": closing.started_at,
    }
    given["ends" if closing.status in TERMINAL else "waits"] = True
    if closing.status is Status.COMPLETED and closing.result is not None:
        given["result"] = closing.result
    if closing.status is not Status.COMPLETED or closing.reason or closing.lingers:
        given |= {
            "waits": closing.status in WAITING,
            "reason": closing.reason[:200],
            "cause": closing.reason[:200],
            "delay_seconds": closing.delay_seconds,
            "failures": closing.failures,
            "losses": closing.losses,
            "snoozes": closing.snoozes,
            "interruptions": closing.interruptions,
            "execution": closing.execution,
            "lingers": closing.lingers,
        }
    if closing.failure is not None:
        given |= {
            "task": closing.task,
            "exception_class": closing.failure.exception_class[:200],
            "causes": json.dumps(list(closing.failure.causes)),
            "module": closing.failure.module[:200],
            "function": closing.failure.function[:200],
            "message": closing.failure.message,
            "traceback": closing.failure.traceback,
        }
    if closing.progress is not None:
        given |= {"done": closing.progress.done, "total": closing.progress.total, "said": closing.progress.message}
    if closing.log:
        given["log"] = json.dumps([[round(x.at_seconds, 3), x.level, x.logger, x.message] for x in closing.log])
    return given


def present_in(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The columns that some record has: reading one, and keeping a copy of it in every expression, costs as much as
    if it were full."""
    names = set().union(*records)
    return {name: kind for name, kind in COLUMNS.items() if name in names}


def completed(source: str, present: Mapping[str, str]) -> str:
    """A FROM item named `closing` with all columns: null where `source` has none."""
    absent = [f"CAST(NULL AS {kind}) AS {name}" for name, kind in COLUMNS.items() if name not in present]
    return f"(SELECT {', '.join(['source.*', *absent])} FROM {source} AS source) AS closing"


def final_sql(db: Database, present: Mapping[str, str], owner: str) -> str:
    """Common table expressions that end in `final`: the records whose attempt is open and whose job runs, with
    `cancels`: it was to wait, but somebody asked it to stop. Locks attempts, then jobs, each in id order, skipping
    held ones; the arrays are complete before the first row is locked.

    The conditions are in a form that no partial index answers: an old snapshot keeps the dead entries of the small
    indexes over running rows, and reading those costs more with every job that ends. Nothing is joined to another
    expression: the planner takes them for single rows, and would compare each with each.
    """
    waits = "waits" if "waits" in present else "false"
    return f"""
        closing AS {db.materialized} (SELECT * FROM {db.records("closing", present)}),
        attempt AS {db.materialized} (
            SELECT id, job_id FROM jobs_attempt
            WHERE id {db.among("SELECT attempt_id FROM closing")} AND {db.not_by_index("outcome = 'running'")} {owner}
            ORDER BY id {db.lock}
        ),
        job AS {db.materialized} (
            SELECT id, cancel_requested_at IS NOT NULL AS cancelled FROM jobs_job
            WHERE id {db.among("SELECT job_id FROM attempt")} AND {db.not_by_index(f"status IN {RUNNING}")}
            ORDER BY id {db.lock}
        ),
        final AS {db.materialized} (
            SELECT closing.*,
                   {waits} AND {db.found_in("job_id", "SELECT id FROM job WHERE cancelled")} AS cancels
            FROM closing
            WHERE {db.found_in("attempt_id", "SELECT id FROM attempt")}
              AND {db.found_in("job_id", "SELECT id FROM job")}
        )
    """


def steps(db: Database, closings: Sequence[Closing]) -> Iterator[Step]:
    """In the order in which they are written. The one named `moved` wants a RETURNING."""
    yield Step("closed", _close_attempts(db), {**_WHO, **_HOW})
    yield Step("moved", _move_jobs(db), {**_WHO, **_WHERE_TO, "cancels": "bool"})
    cold: tuple[tuple[Callable[[Closing], object], str, str, dict[str, str]], ...] = (
        (lambda one: one.result, "results", _insert_results(db), {"result": "text"}),
        (lambda one: one.failure, "failed", _insert_failures(db), _FAILURE),
        (lambda one: one.log, "logged", _insert_logs(db), {"log": "text"}),
    )
    for wanted, name, sql, columns in cold:
        if any(wanted(one) for one in closings):
            yield Step(name, sql, {**_WHO, **columns})


def _close_attempts(db: Database) -> str:
    return f"""
        UPDATE jobs_attempt SET outcome = closing.outcome, reason = COALESCE(closing.reason, ''),
               -- never before its start, also when the clock was put back
               ended_at = CASE WHEN COALESCE(jobs_attempt.started_at, closing.started_at) > {db.now}
                               THEN COALESCE(jobs_attempt.started_at, closing.started_at) ELSE {db.now} END,
               started_at = COALESCE(jobs_attempt.started_at, closing.started_at),
               progress_done = COALESCE(closing.done, progress_done),
               progress_total = CASE WHEN closing.done IS NULL THEN progress_total ELSE closing.total END,
               progress_message = COALESCE(closing.said, progress_message),
               lingering_until = CASE WHEN closing.lingers THEN {db.later("%(linger)s")} END
        FROM {{closing}}
        WHERE jobs_attempt.id = closing.attempt_id AND {db.not_by_index("jobs_attempt.outcome = 'running'")}
    """


def _move_jobs(db: Database) -> str:
    ends = "(closing.ends OR closing.cancels)"
    return f"""
        UPDATE jobs_job SET status = CASE WHEN closing.cancels THEN 'cancelled' ELSE closing.status END,
               status_changed_at = {db.now}, unknown_since = NULL,
               ended_at = CASE WHEN {ends} THEN {db.now} END,
               unique_slot = CASE WHEN {ends} THEN NULL ELSE jobs_job.unique_slot END,
               cause = CASE WHEN {ends} AND jobs_job.cause = '' THEN COALESCE(closing.cause, '')
                            ELSE jobs_job.cause END,
               run_at = CASE WHEN closing.delay_seconds IS NULL OR closing.cancels THEN jobs_job.run_at
                             ELSE {db.later("closing.delay_seconds")} END,
               failures = jobs_job.failures + COALESCE(closing.failures, 0),
               losses = jobs_job.losses + COALESCE(closing.losses, 0),
               snoozes = jobs_job.snoozes + COALESCE(closing.snoozes, 0),
               interruptions = jobs_job.interruptions + COALESCE(closing.interruptions, 0),
               execution = CASE WHEN closing.execution IS NULL OR closing.cancels THEN jobs_job.execution
                                ELSE closing.execution END,
               started_at = COALESCE(jobs_job.started_at, closing.started_at)
        FROM {{closing}}
        WHERE jobs_job.id = closing.job_id AND {db.not_by_index(f"jobs_job.status IN {RUNNING}")}
    """


def _insert_results(db: Database) -> str:
    return f"""
        INSERT INTO jobs_result (job_id, value) SELECT closing.job_id, CAST(closing.result AS {db.json_type})
        FROM {{closing}} WHERE closing.result IS NOT NULL
    """


def _insert_failures(db: Database) -> str:
    names = ", ".join(_FAILURE)
    values = names.replace("causes", f"CAST(causes AS {db.json_type})")
    return f"""
        INSERT INTO jobs_failure (attempt_id, job_id, {names}, failed_at)
        SELECT attempt_id, job_id, {values}, {db.now} FROM {{closing}} WHERE exception_class IS NOT NULL
    """


def _insert_logs(db: Database) -> str:
    return f"""
        INSERT INTO jobs_attemptlog (attempt_id, lines) SELECT attempt_id, CAST(closing.log AS {db.json_type})
        FROM {{closing}} WHERE closing.log IS NOT NULL
    """
