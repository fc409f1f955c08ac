"""What a page of documentation claims: its code blocks, tables, links and inline code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.support.ground import ROOT

README = "README.md"
DESIGN = "jobs/docs/design.md"

_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    file: str
    """Where in the tree it is quoted from, by `file=` after the language; empty for an example."""
    text: str


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[Block]:
    found = [Block(*parts) for parts in _BLOCK.findall(read(page))]
    return [block for block in found if block.language == language]


def prose(page: str) -> str:
    """The page without its code blocks."""
    return _BLOCK.sub("", read(page))


def inline_code(page: str) -> list[str]:
    return code_in(prose(page))


def code_in(text: str) -> list[str]:
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", text)]


def section(page: str, heading: str) -> str:
    """From a heading, such as `## Settings`, to the next one of its level or above, or to the end."""
    _, found, rest = f"\n{read(page)}".partition(f"\n{heading}\n")
    assert found, f"{page} has no heading {heading!r}"
    level = len(heading.split(" ")[0])
    kept: list[str] = []
    in_code = False
    for line in rest.splitlines(keepends=True):
        if not in_code and re.match(rf"#{{1,{level}}} ", line):
            break
        in_code ^= line.startswith("```")
        kept.append(line)
    return "".join(kept)


def table(page: str, heading: str, first: str) -> list[list[str]]:
    """The cells of the table in that section whose first column is headed `first`, row by row, without the header."""
    for lines in re.findall(r"(?:^\|.*\|\n)+", section(page, heading), re.MULTILINE):
        header, _, *rows = [[cell.strip() for cell in _CELL.split(line)[1:-1]] for line in lines.splitlines()]
        if header[0] == first:
            return rows
    raise AssertionError(f"{page} has no table with a column {first!r} under {heading!r}")


def anchors(page: str) -> set[str]:
    """The fragments by which a heading can be linked, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", prose(page))
