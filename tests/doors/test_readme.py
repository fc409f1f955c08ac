"""What the README and the design page say is true of the tree."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from typing import Any

import pytest
from django.core.management import get_commands
from django.dispatch import Signal

from config.database import SQLITE_OPTIONS
from jobs import signals
from jobs.conf import KEYS
from jobs.domain import options
from jobs.domain.failure import MESSAGE_BYTES, TRACEBACK_BYTES
from jobs.domain.outcome import MAX_RESULT_BYTES
from jobs.domain.status import LEGAL_MOVES, Status
from jobs.management.commands import runscheduler
from jobs.models import Attempt, Failure, Job, Occurrence, Payload, Result, Schedule
from tests.support.ground import ROOT
from tests.support.markdown import DESIGN, README, anchors, blocks, code_in, inline_code, links, read, section, table

PAGES = (README, DESIGN)
EXAMPLES = [block.text for block in blocks(README, "python") if not block.file]
QUOTES = [block for block in blocks(README, "python") if block.file]


def resolve(dotted: str) -> Any:
    """The module or attribute of that name. Raises AttributeError."""
    found: Any = import_module("jobs")
    path = "jobs"
    for name in dotted.split(".")[1:]:
        path = f"{path}.{name}"
        if not hasattr(found, name):
            try:
                import_module(path)
            except ModuleNotFoundError:
                raise AttributeError(f"there is no {path}") from None
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_python_example_compiles_and_uses_names_that_exist(example: str) -> None:
    tree = ast.parse(example)
    used = {f"jobs.{node.attr}" for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_jobs(node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jobs":
            used |= {f"{node.module}.{alias.name}" for alias in node.names}
    for name in used:
        resolve(name)


def _is_jobs(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "jobs"


def test_quoted_code_stands_in_the_file_that_it_is_quoted_from() -> None:
    assert {quote.file for quote in QUOTES} == {"config/demo/views.py", "config/demo/receivers.py"}
    for quote in QUOTES:
        assert quote.text in read(quote.file), f"the README quotes {quote.file} wrongly"


def test_every_name_given_to_people_from_in_process_schedulers_exists() -> None:
    rows = table(README, "## Coming from an in-process scheduler", "you had")
    names = [code for _, ours in rows for code in code_in(ours) if code.startswith("jobs.")]
    assert len(names) > 25
    for name in names:
        resolve(name)


def test_every_dotted_name_in_the_prose_exists() -> None:
    for name in {code for page in PAGES for code in inline_code(page) if re.fullmatch(r"jobs(\.\w+)+", code)}:
        if not _stands_in_the_code(name):
            resolve(name)


def _stands_in_the_code(name: str) -> bool:
    """A permission, or a name that is a string there: of a logger, of a check, of a failure without an exception."""
    verb = name.removeprefix("jobs.")
    if verb in {"view_job", "view_attempt", *(permission for permission, _ in Job._meta.permissions)}:
        return True
    return any(f'"{name}"' in path.read_text(encoding="utf-8") for path in (ROOT / "jobs").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_every_command_exists(page: str) -> None:
    named = set(re.findall(r"manage\.py ([a-z]+)", read(page)))
    assert named <= set(get_commands())


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for link in links(page):
        target, _, fragment = link.partition("#")
        if target.startswith("http"):
            continue
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), f"{page} links to {link}"
        if fragment:
            assert fragment in anchors(str(path.relative_to(ROOT))), f"{page} links to {link}"


@pytest.mark.parametrize("page", PAGES)
def test_every_path_of_the_tree_exists(page: str) -> None:
    for code in inline_code(page):
        if re.fullmatch(r"(jobs|config|templates|tests)/[\w/.]*", code):
            assert (ROOT / code).exists(), f"{page} names {code}"


def test_the_options_of_runscheduler_are_those_of_its_parser() -> None:
    parser = runscheduler.Command().create_parser("manage.py", "runscheduler")
    own = {word for action in parser._actions for word in action.option_strings if word.startswith("--")}
    djangos = {"--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color"}
    told = {code_in(row[0])[0].split()[0] for row in table(README, "### runscheduler", "option")}
    assert told == own - djangos - {"--force-color", "--skip-checks"}


def test_the_exit_codes_of_runscheduler_are_told() -> None:
    told = {int(row[0]) for row in table(README, "### runscheduler", "exit code")}
    assert told == {0, 1, runscheduler.CANNOT_START, runscheduler.AGENT_DIED}


def test_the_options_of_a_task_are_told() -> None:
    told = {code_in(row[0])[0] for row in table(README, "## The API by example", "`@job(...)`")}
    assert told == {*options._TASK_OPTIONS, "name"}


def test_the_options_of_a_submission_are_told() -> None:
    rows = table(README, "## The API by example", "`.using(...)`")
    told = {name for row in rows[1:] for name in code_in(row[0])}
    assert told == {*options._SUBMIT_OPTIONS, *options._INSTANTS}


def test_the_limits_are_told() -> None:
    told = dict(table(README, "## Arguments and results", "limit"))
    assert told["result, as JSON"] == f"{MAX_RESULT_BYTES // 1024**2} MiB"
    assert options.MAX_UNIQUE_KEY == options.MAX_TASK_NAME
    assert told["unique key, task name"] == f"{options.MAX_UNIQUE_KEY} characters each"
    assert told["queue name"] == f"{options.MAX_QUEUE_NAME} characters"
    texts = f"{MESSAGE_BYTES // 1024} KiB, {TRACEBACK_BYTES // 1024} KiB"
    assert told["exception message, traceback"].startswith(texts)


def test_the_signals_are_told() -> None:
    told = {code_in(row[0])[0] for row in table(README, "## Listeners and signals", "signal")}
    assert told == {name for name, value in vars(signals).items() if isinstance(value, Signal)}


def test_the_permissions_are_told() -> None:
    told = {code for row in table(README, "## The admin", "permission") for code in code_in(row[0])}
    assert told == {"jobs.view_job", "jobs.view_attempt", *(f"jobs.{name}" for name, _ in Job._meta.permissions)}


def test_the_options_advised_for_sqlite_are_our_own() -> None:
    (advised,) = [example for example in EXAMPLES if "transaction_mode" in example]
    assert ast.literal_eval(advised.removeprefix("DATABASES = "))["default"]["OPTIONS"] == SQLITE_OPTIONS


def test_the_environment_variables_are_those_that_the_settings_read() -> None:
    told = {code for row in table(README, "### Environment variables", "variable") for code in code_in(row[0])}
    sources = read("config/settings.py") + read("config/dotenv.py")
    assert told == set(re.findall(r'(?:env\.\w+|environ\.get|flag|choice)\("([A-Z_]+)"', sources))


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_that_is_mentioned_exists(page: str) -> None:
    mentioned = set(re.findall(r'JOBS\["(\w+)"\]', read(page)))
    assert mentioned <= set(KEYS)


def test_the_statuses_and_moves_of_the_design_page_are_the_legal_ones() -> None:
    rows = table(DESIGN, "## The words", "status")
    told = {name: tuple(moves.split(", ")) if moves != "nothing" else () for name, _, moves in rows}
    assert told == {status.name: tuple(to.name for to in moves) for status, moves in LEGAL_MOVES.items()}
    assert list(told) == [status.name for status in Status]


def test_every_index_of_the_design_page_exists() -> None:
    models = (Attempt, Failure, Job, Occurrence, Payload, Result, Schedule)
    known = {one.name for model in models for one in (*model._meta.indexes, *model._meta.constraints)}
    tables = {model._meta.db_table for model in models} | {"jobs_attemptlog"}
    named = {code for code in inline_code(DESIGN) if code.startswith("jobs_")}
    assert len(named) > 8
    assert named <= known | tables


def test_the_section_on_your_own_project_says_what_the_wheel_test_does() -> None:
    done = import_module("tests.system.test_wheel")
    said = section(README, "## In your own project")
    for step in (done.SETTINGS_LINE, done.TASKS, done.MIGRATE, done.RUN, done.ENQUEUE):
        assert re.search(rf"^ *{re.escape(step.rstrip())}$", said, re.MULTILINE), f"the README does not say {step!r}"
