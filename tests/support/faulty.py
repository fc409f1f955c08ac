"""Tasks that harm what is around them: their process, their connection, the scheduler's own threads."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from django.db import connections, transaction

from jobs import Context, RetryPolicy, job
from jobs.conf import jobs_settings
from jobs.models import Job
from tests.support.models import Effect


def _note(context: Context, label: str) -> None:
    alias = jobs_settings().DATABASE
    Effect.objects.using(alias).create(label=label, job_id=context.job_id, attempt=context.attempt, pid=os.getpid())


@job(takes_context=True)
def kill_own_process(context: Context) -> None:
    """Every time: the worker's process at first, then the child that it is alone in."""
    _note(context, "poison")
    os.kill(os.getpid(), signal.SIGKILL)


@job(takes_context=True, execution="process")
def pkill_own_process(context: Context) -> None:
    _note(context, "poison")
    os.kill(os.getpid(), signal.SIGKILL)


@job(takes_context=True, execution="process")
def pexit_own_process(context: Context, code: int) -> None:
    os._exit(code)


@job(takes_context=True, at_most_once=True, retry=RetryPolicy(max_retries=3, base_delay=0))
def once(context: Context, label: str, how: str = "return", folder: str = "") -> str:
    _note(context, label)
    match how:
        case "raise" if context.attempt == 1:
            raise ValueError("its outcome is known")
        case "stay":
            while not Path(folder, "open").exists():
                time.sleep(0.02)
    return "done"


@job(takes_context=True)
def outlive(context: Context, how: str, folder: str, label: str = "outlive") -> str:
    """Its first attempt ends when the door is open, as told; each later one at once."""
    _note(context, label)
    while context.attempt == 1 and not Path(folder, "open").exists():
        time.sleep(0.02)
    if context.attempt == 1 and how == "fail":
        raise ValueError("too late")
    return f"attempt {context.attempt}"


@job
def change_session(statement: str, alias: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)


@job
def change_session_raw(statement: str, alias: str) -> None:
    """Through the driver, past Django."""
    connections[alias].ensure_connection()
    raw: Any = connections[alias].connection
    raw.execute(statement)


@job
def begin_raw(alias: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT count(*) FROM support_effect")


@job
def close_inside_atomic(alias: str) -> None:
    with transaction.atomic(using=alias):
        Effect.objects.using(alias).create(label="lost")
        connections[alias].close()


@job
def swallow_an_error(alias: str) -> None:
    with transaction.atomic(using=alias):
        Effect.objects.using(alias).create(label="before the error")
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT * FROM there_is_no_such_table")
        except Exception:
            return


@job
def session(alias: str) -> dict[str, Any]:
    """What the probe finds."""
    shown = {}
    with connections[alias].cursor() as cursor:
        if connections[alias].vendor == "postgresql":
            for name in (
                "statement_timeout",
                "search_path",
                "TimeZone",
                "default_transaction_read_only",
                "lock_timeout",
            ):
                cursor.execute(f"SHOW {name}")
                shown[name] = cursor.fetchone()[0]
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
            shown["advisory locks"] = cursor.fetchone()[0]
        else:
            cursor.execute("PRAGMA query_only")
            shown["query_only"] = cursor.fetchone()[0]
    Effect.objects.using(alias).create(label="probe")
    return shown


@job(takes_context=True)
def lock_own_row(context: Context, folder: str, alias: str) -> str:
    with transaction.atomic(using=alias):
        list(Job.objects.using(alias).select_for_update().filter(pk=context.job_id))
        Path(folder, "locked").touch()
        while not Path(folder, "open").exists():
            time.sleep(0.02)
    return "unlocked"


def _strike(name: str) -> None:
    for thread in threading.enumerate():
        if thread.name == name and thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


@job
def kill_thread(name: str) -> None:
    """End one of the scheduler's own threads, as a bug would."""
    _strike(name)


@job
def kill_thread_for_good(name: str) -> None:
    """Again and again: a loop survives what hits it at its work, and dies of what hits it asleep."""
    assert threading.current_thread().name != name
    give_up_at = time.monotonic() + 20.0
    while time.monotonic() < give_up_at and name in [thread.name for thread in threading.enumerate()]:
        _strike(name)
        time.sleep(0.05)


@job
def count_effects(alias: str) -> int:
    return int(Effect.objects.using(alias).count())


@job
async def acount_effects(alias: str) -> int:
    return int(await Effect.objects.using(alias).acount())


@job
def backend(alias: str) -> int:
    """The server process behind this slot's connection."""
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def _exit(attempt: int, exception: BaseException) -> float:
    raise SystemExit(1)


@job(timeout=0.1, retry=RetryPolicy(max_retries=2, backoff=_exit))
def exit_in_backoff(folder: str) -> None:
    while not Path(folder, "open").exists():
        time.sleep(0.02)


@job(takes_context=True)
def stay_twice(context: Context, folder: str) -> int:
    """Each attempt stays until its own door is open."""
    _note(context, "stay")
    while not Path(folder, f"open-{context.attempt}").exists():
        time.sleep(0.02)
    return context.attempt
