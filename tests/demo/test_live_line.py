"""The live line: one line on a terminal, few lines elsewhere, log lines above it."""

from __future__ import annotations

import io
import logging

import pytest

from config.demo.quickstart.live_line import LiveLine, logs_above


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_line_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "12")
    out = Terminal()
    line = LiveLine(out)
    line.show("1 of 2 done, and more")
    line.show("2 of 2")
    line.show("2 of 2")
    line.end()
    assert out.getvalue() == "\r1 of 2 done\x1b[K\r2 of 2\x1b[K\n"


def test_a_line_that_stays_passes_above() -> None:
    out = Terminal()
    line = LiveLine(out)
    line.say("first")
    line.show("running")
    line.say("news")
    assert out.getvalue() == "first\n\rrunning\x1b[K\r\x1b[Knews\n\rrunning\x1b[K"


def test_without_a_terminal_lines_are_few_and_the_last_state_is_shown() -> None:
    clock = [100.0]
    out = io.StringIO()
    line = LiveLine(out, clock=lambda: clock[0])
    for done in range(5):
        line.show(f"{done} of 5")
        clock[0] += 0.9
    line.end("5 of 5")
    assert out.getvalue() == "0 of 5\n3 of 5\n5 of 5\n"


def test_a_warning_is_one_line_without_its_traceback_and_the_console_comes_back() -> None:
    out = io.StringIO()
    before = logging.getLogger().handlers
    with logs_above(LiveLine(out)):
        try:
            raise ValueError("secret detail")
        except ValueError:
            logging.getLogger("jobs.engine").exception("job %s failed\nsecond line", 7)
        logging.getLogger("jobs.engine").info("not worth a line")
    assert logging.getLogger().handlers is before
    said = out.getvalue()
    assert said.endswith("ERROR   job 7 failed (ValueError)\n")
    assert said.count("\n") == 1
