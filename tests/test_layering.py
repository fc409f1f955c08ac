"""The direction of imports: doors -> engine -> store -> models -> domain, and never up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("domain", "models", "store", "engine")  # lowest first; all the rest of `jobs` is doors
DOORS = len(LAYERS)
NAMES = (*LAYERS, "doors")
# Migrations are the tables' history.
PLACES = {**{name: height for height, name in enumerate(LAYERS)}, "migrations": LAYERS.index("models")}
SETTINGS = ("django.conf", "config", "jobs.conf")
NOT_FOR_DOMAIN = ("django.apps", "django.contrib", "django.core", "django.db", "django.test")


def layer(module: str) -> int:
    parts = module.split(".")
    return PLACES.get(parts[1], DOORS) if len(parts) > 1 else DOORS


def imported_modules(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each module that is imported anywhere in the source, also inside functions and by name."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(level=0, module=str(module), names=names):
                # `from jobs import store` names a layer only in its second half.
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.ImportFrom():
                yield node.lineno, "."
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__" | "import_string")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield node.lineno, module


def is_within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def violations(module: str, source: str) -> list[str]:
    """What in the source of `module` (a dotted name) points up or reaches where its layer may not."""
    here = layer(module)
    found = []
    for line, imported in imported_modules(source):
        complaint = ""
        if imported == ".":
            complaint = "imports are absolute"
        elif is_within(imported, ("tests",)) or (is_within(imported, ("config",)) and here == DOORS):
            complaint = f"the app knows nothing of {imported.partition('.')[0]}"
        elif here < DOORS and is_within(imported, SETTINGS):
            complaint = "only doors read settings"
        elif here == 0 and is_within(imported, NOT_FOR_DOMAIN):
            complaint = "the domain has no models, no database, no settings"
        elif is_within(imported, ("jobs",)) and layer(imported) > here:
            complaint = f"{NAMES[here]} may not import {NAMES[layer(imported)]}"
        if complaint:
            found.append(f"{module}:{line} imports {imported}: {complaint}")
    return found


def test_no_import_of_the_app_points_up() -> None:
    files = sorted((ROOT / "jobs").rglob("*.py"))
    assert len(files) > 10
    found = []
    for file in files:
        parts = file.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)
        found += violations(module, file.read_text(encoding="utf-8"))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jobs.domain.retry", "from django.db import models"),
        ("jobs.domain.retry", "import django.db.models"),
        ("jobs.domain.retry", "from jobs.models.job import Job"),
        ("jobs.domain.retry", "def f():\n    from jobs.store import claim"),
        ("jobs.models.job", "from jobs import store"),
        ("jobs.models.job", "from django.conf import settings"),
        ("jobs.migrations.0001_initial", "import jobs.store.submit"),
        ("jobs.store.claim", "from jobs.engine.dispatcher import Dispatcher"),
        ("jobs.store.claim", "from jobs import conf"),
        ("jobs.store", "from jobs.api import enqueue"),
        ("jobs.engine.executors.thread", "from jobs.admin.job import JobAdmin"),
        ("jobs.engine.executors.thread", "import jobs"),
        ("jobs.engine.executors.thread", "from django import conf"),
        ("jobs.engine.executors.thread", "import importlib\nimportlib.import_module('jobs.api')"),
        ("jobs.engine.recorder", "from . import dispatcher"),
        ("jobs.api", "from config.demo import tasks"),
        ("jobs.testing", "from tests.support.models import Effect"),
    ],
)
def test_an_import_that_points_up_is_found(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jobs.domain.retry", "from jobs.domain.errors import InvalidOption"),
        ("jobs.domain.retry", "from django.utils.translation import gettext_lazy"),
        ("jobs.models.job", "from jobs.domain.status import Status\nfrom django.db import models"),
        ("jobs.migrations.0001_initial", "import jobs.models.guard"),
        ("jobs.store.claim", "from jobs.models import Job\nfrom jobs.store.promote import promote"),
        ("jobs.engine.dispatcher", "from jobs.store import claim\nfrom jobs.domain.claim import Claim"),
        ("jobs.conf", "from django.conf import settings"),
        ("jobs.management.commands.runscheduler", "from jobs.engine.scheduler import Scheduler\nimport jobs.conf"),
        ("jobs.__init__", "from jobs.api import enqueue"),
    ],
)
def test_an_import_that_points_down_or_sideways_is_allowed(module: str, source: str) -> None:
    assert violations(module, source) == []
