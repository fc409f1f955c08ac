"""The wheel in a project fresh from `django-admin startproject`: what a newcomer has after five minutes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ground import ROOT
from tests.support.processes import run_process

# The README's section "In your own project" has these blocks word by word; `test_readme.py` compares.
SETTINGS_LINE = '"jobs",'
TASKS = """\
from jobs import job


@job
def add(a: int, b: int) -> int:
    return a + b
"""
MIGRATE = "python manage.py migrate"
ENQUEUE = """\
from myapp.tasks import add

add.enqueue(1, 2)
"""
RUN = "python manage.py runscheduler"


@dataclass(frozen=True)
class Site:
    """A project in a virtual environment that has the wheel, and nothing else of this repository."""

    python: Path
    directory: Path

    def run(self, *arguments: str, expect: int = 0) -> str:
        environment = {"PYTHONPATH": None, "PATH": f"{self.python.parent}:{os.environ['PATH']}"}
        with run_process([str(self.python), *arguments], environment=environment, cwd=self.directory) as child:
            assert child.wait(90) == expect, child.output
            return child.output

    def manage(self, *arguments: str, expect: int = 0) -> str:
        return self.run("manage.py", *arguments, expect=expect)

    def shell(self, code: str) -> str:
        return self.manage("shell", "-c", code)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir"]
    call(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(directory), str(ROOT))
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    directory = tmp_path_factory.mktemp("site")
    call(sys.executable, "-m", "venv", "--without-pip", str(directory / "venv"))
    python = directory / "venv" / "bin" / "python"
    packages = Path(call(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # Its dependencies are those of this run: nothing is downloaded.
    (packages / "of_this_run.pth").write_text(sysconfig.get_path("purelib") + "\n")
    call(
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        str(wheel),
    )
    call(str(python), "-m", "django", "startproject", "mysite", cwd=directory)
    made = Site(python, directory / "mysite")
    made.manage("startapp", "myapp")
    settings = made.directory / "mysite" / "settings.py"
    listed = "INSTALLED_APPS = [\n"
    text = settings.read_text()
    assert listed in text
    settings.write_text(text.replace(listed, f'{listed}    {SETTINGS_LINE}\n    "myapp",\n'))
    (made.directory / "myapp" / "tasks.py").write_text(TASKS)
    made.run(*MIGRATE.split()[1:])
    return made


def call(*command: str, cwd: Path = ROOT) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_has_all_of_the_app_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    roots = {name.split("/")[0] for name in names}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"jobs"}
    assert len(roots) == 2
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "jobs").rglob("*")
        if path.is_file() and "docs" not in path.parts and "__pycache__" not in path.parts
    }
    templates = {
        f"jobs/templates/{path.relative_to(ROOT / 'templates').as_posix()}"
        for path in (ROOT / "templates").rglob("*.*")
        if path.is_file() and path.name != ".gitkeep"
    }
    assert modules <= set(names)
    assert templates <= set(names)
    assert templates, "the admin has templates"
    assert {"jobs/py.typed", "jobs/migrations/0001_initial.py", "jobs/static/jobs/admin.css"} <= set(names)
    assert not [name for name in names if "/docs/" in name or "__pycache__" in name or name.endswith(".sqlite3")]


def test_the_wheel_says_what_it_needs(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
    lines = archive.read(metadata).decode().splitlines()
    needs = {line.split(": ")[1].split(">")[0].lower() for line in lines if line.startswith("Requires-Dist: ")}
    assert needs == {"django", "croniter", "pebble", "psycopg[binary]", "typing-extensions", "tzdata"}
    assert "Requires-Python: >=3.10" in lines


def test_the_project_runs_the_installed_app_and_no_copy(site: Site) -> None:
    home = site.shell("import jobs; print(jobs.__file__)").splitlines()[-1]
    assert Path(home).is_relative_to(site.directory.parent / "venv")


def test_a_newcomer_completes_a_job(site: Site) -> None:
    site.shell(ENQUEUE)
    said = site.run(*RUN.split()[1:], "--drain", "--processes", "1")
    # A fresh project configures no logging, and is told all the same.
    assert "runs and reclaims jobs of queues default; slots: 8 thread" in said
    assert read(site) == [["myapp.tasks.add", "completed", 3]]


def test_stock_sqlite_is_correct_and_the_check_says_what_to_set(site: Site) -> None:
    said = site.manage("check")
    assert "(jobs.W001)" in said
    assert "'transaction_mode': 'IMMEDIATE'" in said
    code = """
from concurrent.futures import ThreadPoolExecutor
from django.db import OperationalError, connections
from myapp.tasks import add
def submit(n):
    while True:
        try: return add.using(unique_key=f"key-{n % 25}").enqueue(n, n).created
        except OperationalError: pass  # a busy machine, and Django's stock timeout of 5 seconds
        finally: connections.close_all()
with ThreadPoolExecutor(4) as pool: print("created:", sum(pool.map(submit, range(100))))
"""
    assert "created: 25" in site.shell(code)
    before = len(read(site))
    drains = ["runscheduler", "--drain", "--processes", "0"]
    environment = {"PYTHONPATH": None}
    commands = [[str(site.python), "manage.py", *drains, "--name", name] for name in ("one", "two")]
    with (
        run_process(commands[0], environment=environment, cwd=site.directory) as one,
        run_process(commands[1], environment=environment, cwd=site.directory) as two,
    ):
        assert [one.wait(90), two.wait(90)] == [0, 0], one.output + two.output
    rows = read(site)
    assert len(rows) == before
    assert {status for _, status, _ in rows} == {"completed"}


def test_the_admin_finds_its_templates_in_the_wheel(site: Site) -> None:
    code = """
from django.contrib.auth.models import User
from django.test import Client
User.objects.create_superuser("boss", password="x")
client = Client(SERVER_NAME="localhost"); client.force_login(User.objects.get())
from jobs.models import Job
from django.urls import reverse
pages = [reverse("admin:jobs_job_changelist"), reverse("admin:jobs_job_submit")]
pages += [reverse("admin:jobs_job_change", args=[Job.objects.first().pk])]
print([client.get(page).status_code for page in pages])
"""
    assert site.shell(code).splitlines()[-1] == "[200, 200, 200]"


def test_nothing_is_left_to_migrate(site: Site) -> None:
    assert "No changes detected" in site.manage("makemigrations", "--check", "--dry-run")


def read(site: Site) -> list[list[object]]:
    code = (
        "import json; from jobs.models import Job\n"
        "print(json.dumps([[job.task, job.status, job.result] for job in Job.objects.order_by('id')]))"
    )
    rows: list[list[object]] = json.loads(site.shell(code).splitlines()[-1])
    return rows
