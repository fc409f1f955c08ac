"""The README's table of settings and the code name the same keys with the same defaults."""

from __future__ import annotations

import os
import re
from dataclasses import fields

from jobs.conf import KEYS, JobsSettings
from tests.support.ground import ROOT


def rows() -> list[list[str]]:
    """The cells of the table under "## Settings", without its head."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("\n## Settings\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_every_setting_has_its_row_in_the_order_of_the_code() -> None:
    assert [row[0].strip("`") for row in rows()] == list(KEYS)


def test_every_default_in_the_readme_is_the_one_in_the_code() -> None:
    told = {row[0].strip("`"): eval(row[1].strip("`"), {"os": os}) for row in rows()}
    assert told == {one.name: one.default for one in fields(JobsSettings)}


def test_every_setting_has_a_unit_and_a_meaning() -> None:
    for row in rows():
        assert len(row) == 4 and all(row), row
