"""Keeping a job's log lines takes nothing away from where they went before."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from jobs.engine import log_capture


@contextmanager
def bare_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """Logging as in a project that never set it up. In the test's body: pytest adds its own handlers before it."""
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    last = logging.StreamHandler()
    last.setLevel(logging.WARNING)
    monkeypatch.setattr(logging, "lastResort", last)
    log_capture.install()
    try:
        yield root
    finally:
        root.handlers = handlers


def test_a_warning_without_a_handler_still_reaches_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with bare_logging(monkeypatch):
        logging.getLogger("shop").warning("stock is low")
        logging.getLogger("shop").info("quiet")
    assert capsys.readouterr().err == "stock is low\n"


def test_a_warning_with_a_handler_goes_there_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with bare_logging(monkeypatch) as root:
        root.addHandler(logging.NullHandler())
        logging.getLogger("shop").warning("stock is low")
    assert capsys.readouterr().err == ""
