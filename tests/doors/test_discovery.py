"""Tasks are found in each installed app's `tasks.py`; one that fails hurts only its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project

NAMES = """
    import django; django.setup()
    from jobs.domain.registry import registry
    print("names:", *registry.names())
"""
GOOD = "from jobs import job\n\n@job\ndef work(): ...\n"


def names(project: Project) -> list[str]:
    (line,) = [line for line in project.python(NAMES).splitlines() if line.startswith("names:")]
    return line.split()[1:]


def test_every_installed_app_is_looked_at_wherever_it_stands_in_the_list(tmp_path: Path) -> None:
    files = {"one/tasks.py": GOOD, "two/tasks/__init__.py": GOOD, "three/models.py": ""}
    assert names(Project(tmp_path, ["one", "jobs", "two", "three"], files)) == ["one.tasks.work", "two.tasks.work"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("raise ValueError('no such file')", "ValueError: no such file"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("def f(:", "SyntaxError"),
        ("from jobs import job; job(priority=1000)(print)", "InvalidOption: priority=1000"),
    ],
)
def test_a_module_that_fails_hurts_only_its_own_tasks_and_shows_in_the_check(
    tmp_path: Path, line: str, error: str
) -> None:
    project = Project(tmp_path, ["bad", "jobs", "good"], {"bad/tasks.py": f"{line}\n", "good/tasks.py": GOOD})
    assert names(project) == ["good.tasks.work"]
    said = project.manage("check", expect=1)
    assert f"(jobs.E004) bad.tasks cannot be imported, so its tasks are unknown: {error}" in said
