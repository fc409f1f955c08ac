"""`import jobs` is possible at any time: its names load what they need when they are first used."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from tests.support.project import Project

MODELS = """
    from django.db import models
    from jobs import AsyncJob, BlockingJob, CpuBoundJob, NonRetryableError, Priority, RetryPolicy, enqueue_many, job

    @job(queue="default", priority=Priority.HIGH, retry=RetryPolicy(max_retries=1))
    def archive(order_id: int) -> None: ...

    class Digest(CpuBoundJob):
        def run_sync(self, path: str) -> str: ...

    class Order(models.Model):
        name = models.CharField(max_length=10)
"""
CHECK = """
    import django; django.setup()
    from jobs.domain.registry import registry
    print(*registry.names())
"""


@pytest.mark.parametrize("apps", [["shop", "jobs"], ["jobs", "shop"]])
def test_an_apps_models_may_declare_tasks_while_apps_are_loading(tmp_path: Path, apps: list[str]) -> None:
    project = Project(tmp_path, apps, {"shop/models.py": MODELS})
    assert project.python(CHECK).split() == ["shop.models.Digest", "shop.models.archive"]


@pytest.mark.parametrize(
    ("file", "name"), [("shop/__init__.py", "shop.archive"), ("shop/apps.py", "shop.apps.archive")]
)
def test_an_app_may_declare_tasks_before_any_app_is_loaded(tmp_path: Path, file: str, name: str) -> None:
    config = "from django.apps import AppConfig\nclass Shop(AppConfig):\n    name = 'shop'\n"
    task = "from jobs import job\n@job\ndef archive(): ...\n"
    project = Project(tmp_path, ["shop", "jobs"], {"shop/apps.py": config, file: task + config * ("apps" in file)})
    assert project.python(CHECK).split() == [name]


def test_importing_the_package_imports_no_models_and_needs_no_settings(tmp_path: Path) -> None:
    code = """
        import os, sys
        del os.environ["DJANGO_SETTINGS_MODULE"]
        import jobs
        print([name for name in sys.modules if name.startswith("jobs.") or name.startswith("django")])
        from jobs import job, Context, RetryPolicy, Priority, Snooze
        job(name="print", queue="mail", retry=RetryPolicy(max_retries=1))(print)
        print([name for name in sys.modules if name.startswith("jobs.models")])
    """
    assert Project(tmp_path, ["jobs"], {}).python(code).split() == ["[]", "[]"]


def test_every_public_name_can_be_imported() -> None:
    assert len(jobs.__all__) == len(set(jobs.__all__)) > 30
    for name in jobs.__all__:
        assert getattr(jobs, name).__name__ == name or name == "JobOrId"


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'jobs' has no attribute 'enque'"):
        jobs.enque  # type: ignore[attr-defined]  # noqa: B018
