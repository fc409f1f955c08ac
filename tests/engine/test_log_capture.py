"""Keeping a job's log lines takes nothing away from where they went before."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from jobs.engine import log_capture


@pytest.fixture
def bare_root() -> Iterator[logging.Logger]:
    """Logging as in a project that never set it up."""
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    log_capture.install()
    yield root
    root.handlers = handlers


def test_a_warning_without_a_handler_still_reaches_standard_error(
    bare_root: logging.Logger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "lastResort", logging.StreamHandler())
    assert logging.lastResort is not None
    logging.lastResort.setLevel(logging.WARNING)
    logging.getLogger("shop").warning("stock is low")
    logging.getLogger("shop").info("quiet")
    assert capsys.readouterr().err == "stock is low\n"


def test_a_warning_with_a_handler_is_printed_once(
    bare_root: logging.Logger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "lastResort", logging.StreamHandler())
    bare_root.addHandler(logging.NullHandler())
    logging.getLogger("shop").warning("stock is low")
    assert capsys.readouterr().err == ""
