"""Digest and count the source files of the installed Python library."""

from __future__ import annotations

import ast
import hashlib
import sysconfig
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NOT_OURS = ("__pycache__", "dist-packages", "site-packages")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def root() -> Path:
    return Path(sysconfig.get_paths()["stdlib"])


def folders() -> list[str]:
    """Every folder at the top that holds source files, and "." for the modules beside them."""
    found = [path.name for path in root().iterdir() if path.is_dir() and path.name not in _NOT_OURS]
    return [".", *sorted(name for name in found if files(name))]


def files(folder: str) -> list[Path]:
    """The source files of one folder, sorted; those of "." without its sub-folders."""
    return sorted(root().glob("*.py") if folder == "." else (root() / folder).rglob("*.py"))


@dataclass(slots=True)
class Tally:
    files: int = 0
    lines: int = 0
    blank_lines: int = 0
    comment_lines: int = 0
    definitions: int = 0
    unreadable: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)

    def add(self, file: Path) -> None:
        try:
            source = file.read_bytes()
        except OSError:  # a dangling link; a folder called something.py
            self.unreadable += 1
            return
        self._digest.update(hashlib.sha256(source).digest())
        self.files += 1
        for line in source.splitlines():
            self.lines += 1
            text = line.strip()
            if not text:
                self.blank_lines += 1
            elif text.startswith(b"#"):
                self.comment_lines += 1
        self.definitions += _definitions(source)

    def summary(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "lines": self.lines,
            "blank_lines": self.blank_lines,
            "comment_lines": self.comment_lines,
            "definitions": self.definitions,
            "unreadable": self.unreadable,
            "sha256": self._digest.hexdigest(),
        }


def _definitions(source: bytes) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
    ):  # the library's tests hold files that are broken on purpose
        return 0
    return sum(isinstance(node, _DEFINITIONS) for node in ast.walk(tree))
