"""Tasks that vanished, were renamed or cannot be imported, beside good ones, and two releases side by side."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.databases import fresh_database
from tests.support.processes import ChildProcess
from tests.support.project import Project
from tests.support.schedulers import STARTED
from tests.support.waiting import wait_until

KINDS = pytest.mark.parametrize("kind", ["sqlite", "postgres"])
SETTINGS = """
from config.database import database_from_url
from pathlib import Path
DATABASES = {{"default": database_from_url({url!r}, base_dir=Path("."))}}
JOBS = {{"POLL": 0.3, "TASK_NOT_FOUND_AFTER": {patience}}}
"""
GOOD = """
from jobs import job

@job
def work() -> str:
    return "done"

@job
async def awork() -> str:
    return "done"

@job(execution="process")
def pwork() -> str:
    return "done"
"""
BROKEN = {
    "raises/tasks.py": "raise RuntimeError('no such setting')",
    "imports/tasks.py": "import no_such_module_anywhere",
    "leaves/tasks.py": "import sys\nsys.exit(3)",
    "spells/tasks.py": "def work(:\n    pass",
    "sleeps/tasks.py": "import time\ntime.sleep(2)\n" + GOOD,
}
MISSING = {
    "raises.tasks.work": "thread",
    "leaves.tasks.work": "async",
    "gone.tasks.work": "process",
    "good.tasks.renamed": "thread",
    "__main__.work": "async",
    "os.system": "thread",
}
SUBMIT = """
import django; django.setup()
from jobs.domain.execution import Execution
from jobs.store.database import database
from jobs.store.submit import Submission, submit
arguments = '{{"args": [], "kwargs": {{}}}}'
submit(database("default"), [
    Submission(task, "default", Execution(execution), 0, arguments) for task, execution in {calls!r}
])
"""
TELL = """
import django, json; django.setup()
from jobs.models import Failure, Job
from jobs.store.database import database
from jobs.store.verify import verify
print(json.dumps({
    "jobs": [
        [job.task, job.status, job.attempts, job.losses, job.unknown_since is not None] for job in Job.objects.all()
    ],
    "failures": sorted(Failure.objects.values_list("exception_class", flat=True)),
    "broken": [one.promise for one in verify(database("default"), overdue_seconds=0.0)],
}))
"""


def project(folder: Path, url: str, files: dict[str, str], *, patience: float = 600.0) -> Project:
    apps = ["jobs", *dict.fromkeys(name.split("/")[0] for name in files)]
    return Project(folder, apps, {**files, "settings.py": SETTINGS.format(url=url, patience=patience)})


def told(one: Project) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(one.python(TELL).strip().splitlines()[-1])
    assert facts["broken"] == []
    return facts


def statuses(one: Project, *tasks: str) -> set[str]:
    return {status for task, status, *_ in told(one)["jobs"] if task in tasks or not tasks}


def stop(process: ChildProcess) -> None:
    process.send(signal.SIGTERM)
    assert process.wait() == 0, process.output


@KINDS
def test_good_jobs_run_beside_tasks_that_cannot_be_found_and_those_fail_visibly_in_the_end(
    kind: str, tmp_path: Path
) -> None:
    good = ("good.tasks.work", "good.tasks.awork", "good.tasks.pwork", "sleeps.tasks.work")
    models = dict(zip(good, ("thread", "async", "process", "thread"), strict=True))
    calls = [*MISSING.items(), *((name, models[name]) for name in good for _ in range(3))]
    files = {"good/tasks.py": GOOD, **BROKEN}
    with fresh_database(kind) as url:
        one = project(tmp_path / "one", url, files)
        one.python(SUBMIT.format(calls=calls))
        with one.running("runscheduler", "--processes=1", "--threads=2") as process:
            process.wait_for(STARTED, timeout=60)
            wait_until(lambda: statuses(one, *good) == {"completed"}, timeout=60, what="the good ones are done")
            wait_until(lambda: all(row[4] for row in told(one)["jobs"] if row[0] in MISSING), timeout=60)
            stop(process)
        for name in ("raises", "imports", "leaves", "spells"):
            assert f"{name}.tasks cannot be imported" in process.output
        rows = told(one)["jobs"]
        assert {tuple(row[1:4]) for row in rows if row[0] in MISSING} == {("pending", 0, 0)}
        # Nobody has known them for long enough.
        late = project(tmp_path / "late", url, files, patience=0.1)
        with late.running("runscheduler", "--processes=1", "--threads=2") as process:
            wait_until(lambda: "pending" not in statuses(late), timeout=60, what="all have ended")
            stop(process)
        facts = told(late)
        assert statuses(late, *MISSING) == {"failed"}
        assert facts["failures"] == ["jobs.TaskNotFound"] * len(MISSING)
        assert statuses(late, *good) == {"completed"}


@KINDS
def test_an_old_release_leaves_the_jobs_of_a_new_one_to_it_and_both_work_on(kind: str, tmp_path: Path) -> None:
    before = "from jobs import job\n\n@job\ndef kept():\n    return 'old'\n\n@job\ndef dropped():\n    return 'old'\n"
    after = "from jobs import job\n\n@job\ndef kept():\n    return 'new'\n\n@job\ndef added():\n    return 'new'\n"
    with fresh_database(kind) as url:
        old = project(tmp_path / "old", url, {"shop/tasks.py": before})
        new = project(tmp_path / "new", url, {"shop/tasks.py": after})
        calls = [(f"shop.tasks.{name}", "thread") for name in ("added", "dropped", "kept") for _ in range(10)]
        with old.running("runscheduler", "--processes=0") as first:
            first.wait_for(STARTED, timeout=60)
            old.python(SUBMIT.format(calls=calls))
            wait_until(lambda: statuses(old, "shop.tasks.kept", "shop.tasks.dropped") == {"completed"}, timeout=60)
            assert statuses(old, "shop.tasks.added") <= {"pending", "running"}
            with new.running("runscheduler", "--processes=0") as second:
                wait_until(lambda: statuses(new) == {"completed"}, timeout=60, what="the new one runs the rest")
                old.python(SUBMIT.format(calls=calls))
                wait_until(lambda: statuses(new) == {"completed"}, timeout=60, what="each what it knows")
                stop(second)
            stop(first)
        facts = told(new)
        assert facts["failures"] == []
        assert {tuple(row[1:4]) for row in facts["jobs"]} == {("completed", 1, 0)}
