"""The quickstart from start to end: prepare the database, submit the load, run it, stop."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TextIO

from django.core.management import call_command
from django.db import DatabaseError, connection, connections

from config.demo.load import submit_load, surprises
from config.demo.quickstart import account, ownership, summary
from config.demo.quickstart.live_line import LiveLine, logs_above
from config.demo.quickstart.servers import BackgroundServer, file_server, site
from config.demo.quickstart.stop_request import StopRequest, stop_on_signals
from config.demo.tasks import DATA
from jobs import Scheduler

GRACE = 5.0
LOOK_EVERY = 0.25
GIVE_UP_AFTER = 900.0
"""Seconds that `--drain` waits for a load that takes some fifteen."""
SITE_PATHS = ("/demo/ping/", "/demo/orders/", "/admin/login/", "/static/admin/css/base.css", "/demo/ping/?again")


def show(out: TextIO, *, port: int, drain: bool, load: bool = True, quiet_logs: bool = True) -> int:
    """The exit code: 0 done or stopped, 1 a job of the load did not end as it ought to, 128 + n a drain that was
    stopped by signal n. Raises Refused before the database was touched."""
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        server = file_server(DATA) if drain else site(port)
        stack.callback(server.stop)
        ownership.refuse_foreign_database()
        line = LiveLine(out)
        if quiet_logs:
            stack.enter_context(logs_above(line))
        _prepare(line)
        return _run(line, server, stop, drain=drain, load=load)


def _prepare(line: LiveLine) -> None:
    line.say(f"Database: {ownership.described()}")
    ownership.mark_database()
    call_command("migrate", interactive=False, verbosity=0)
    password = account.ensure_admin()
    if password is None:
        line.say(
            f"Admin user: {account.USERNAME}, with the password it has. "
            f"To set another: python manage.py changepassword {account.USERNAME}"
        )
    else:
        line.say(f"Admin user: {account.USERNAME}   password: {password}   (shown only this once)")


def _run(line: LiveLine, server: BackgroundServer, stop: StopRequest, *, drain: bool, load: bool) -> int:
    if stop.asked():
        return stop.exit_code if drain else 0
    server.start()
    scheduler = Scheduler(name="quickstart", process_ends=True)
    try:
        scheduler.start()
        older = summary.unfinished(summary.counts())
        job_ids = submit_load(_urls(server, drain=drain)) if load else []
        if load:
            line.say(f"Sample load: {summary.counted(len(job_ids), 'job')} submitted")
        if older:
            line.say(f"From before: {summary.counted(older, 'job')} not done yet")
        if not drain:
            line.say(f"Orders to place, each with two jobs: {server.url}/demo/orders/")
            line.say(f"Admin: {server.url}/admin/   (Ctrl-C stops)")
        done = not load or _watch_load(line, job_ids, scheduler, stop, give_up_after=GIVE_UP_AFTER if drain else None)
        if done and job_ids:
            line.end(summary.one_line(summary.counts(job_ids), job_ids))
            line.say("\n".join(["", *summary.table(job_ids), ""]))
            for surprise in surprises(job_ids):
                line.say(f"Not as it ought to be: {surprise}")
        if not drain:
            _watch_all(line, scheduler, stop)
    finally:
        _stop(line, scheduler, stop)
    if not drain:
        return 0 if stop.asked() else 1
    if not done:
        return stop.exit_code or 1
    left = summary.unfinished(summary.counts())
    if left:
        older_jobs = f"{summary.counted(left, 'older job')} {'is' if left == 1 else 'are'} not done yet"
        line.say(f"{older_jobs}. To go on with them: python manage.py quickstart --no-load")
    return 1 if surprises(job_ids) else 0


def _urls(server: BackgroundServer, *, drain: bool) -> list[str]:
    paths = [f"/{path.name}" for path in sorted(DATA.glob("*.csv"))] if drain else SITE_PATHS
    return [server.url + path for path in paths]


def _watch_load(
    line: LiveLine, job_ids: Sequence[int], scheduler: Scheduler, stop: StopRequest, *, give_up_after: float | None
) -> bool:
    """Whether all of these jobs have ended."""
    give_up_at = None if give_up_after is None else time.monotonic() + give_up_after
    while not scheduler.dead_loops and not stop.asked():
        by_status = _look(line, job_ids)
        if by_status is not None and not summary.unfinished(by_status):
            return True
        if give_up_at is not None and time.monotonic() > give_up_at:
            line.say(f"Given up after {give_up_after:g} s: {', '.join(surprises(job_ids))}")
            return False
        stop.wait(LOOK_EVERY)
    return False


def _watch_all(line: LiveLine, scheduler: Scheduler, stop: StopRequest) -> None:
    """Until somebody stops it: the state of all jobs, read again when one of them has moved."""
    moved = threading.Event()
    moved.set()
    scheduler.add_listener(lambda move: moved.set())
    while not scheduler.dead_loops and not stop.asked():
        if moved.is_set():
            moved.clear()
            if _look(line, None) is None:
                moved.set()
        stop.wait(LOOK_EVERY)


def _look(line: LiveLine, job_ids: Sequence[int] | None) -> Counter[str] | None:
    """The jobs by status, shown; None when the database does not answer, which is said and survived."""
    try:
        by_status = summary.counts(job_ids)
        line.show(summary.one_line(by_status, job_ids))
    except DatabaseError as error:
        line.show(f"the database does not answer: {' '.join(str(error).split())}")
        connection.close()
        return None
    return by_status


def _stop(line: LiveLine, scheduler: Scheduler, stop: StopRequest) -> None:
    if scheduler.dead_loops:
        line.say(f"The scheduler is broken ({', '.join(scheduler.dead_loops)} ended): see the errors above.")
    line.end()
    if stop.asked():
        line.say(f"Stopping: running jobs get {GRACE:g} s to end (Ctrl-C again: none).")
    # In a thread of its own, so that a second signal is heard here meanwhile.
    stopping = threading.Thread(target=_stop_scheduler, args=(scheduler,), name="quickstart-stop")
    stopping.start()
    while stopping.is_alive():
        if stop.urgent():
            scheduler.hurry()
        stopping.join(0.1)
    if stop.asked():
        with suppress(DatabaseError):
            left = summary.unfinished(summary.counts())
            waits = f"{summary.counted(left, 'job')} {'waits' if left == 1 else 'wait'} for the next start."
            line.say(f"Stopped. {waits if left else 'No job is left waiting.'}")


def _stop_scheduler(scheduler: Scheduler) -> None:
    try:
        scheduler.stop(timeout=GRACE)
    finally:
        connections.close_all()
