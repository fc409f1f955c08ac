"""The `.env` file: where it is, and the secret key that the first start writes into it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


def env_file() -> Path | None:
    """`ENV_FILE` when it is set, else `.env` at the project's root; None when `ENV_FILE` is set to nothing."""
    name = os.environ.get("ENV_FILE")
    if name is None:
        return BASE_DIR / ".env"
    return Path(name) if name else None


def ensure_secret_key(path: Path | None) -> bool:
    """Whether a new key was written to the file at `path`: only when neither it nor the environment has one.

    The file ends up readable by its owner only. Needs nothing but Python: it runs before settings are read.
    """
    if path is None or os.environ.get("SECRET_KEY"):
        return False
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if any(_has_key(line) for line in text.splitlines()):
        return False
    break_line = "" if not text or text.endswith("\n") else "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(f"{break_line}SECRET_KEY={secrets.token_urlsafe(50)}\n")
    return True


def _has_key(line: str) -> bool:
    name, _, value = line.strip().removeprefix("export ").partition("=")
    return name.strip() == "SECRET_KEY" and bool(value.strip())
