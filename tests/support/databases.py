"""New databases for child processes, each used by one test."""

from __future__ import annotations

import functools
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from tests.support.ground import lay_ground
from tests.support.processes import manage

_templates: list[str] = []


@contextmanager
def fresh_database(kind: str, *, migrated: bool = True) -> Iterator[str]:
    """The `DATABASE_URL` of a new database of this kind ("sqlite" or "postgres"), gone afterwards.

    Skips the test when there is no PostgreSQL. The tables come from a template that is migrated once per run.
    """
    if kind == "sqlite":
        with _fresh_file(_migrated_file() if migrated else None) as path:
            yield f"sqlite:///{path}"
        return
    if not lay_ground().postgres_url:
        pytest.skip(f"no PostgreSQL: {lay_ground().reason}")
    name = _create(_migrated_database() if migrated else "template0")
    try:
        yield _url(name)
    finally:
        _drop(name)


def drop_templates() -> None:
    """A server that is not ours keeps nothing of the run."""
    while _templates:
        _drop(_templates.pop())


@contextmanager
def _fresh_file(template: Path | None) -> Iterator[Path]:
    directory = lay_ground().directory / secrets.token_hex(6)
    directory.mkdir()
    path = directory / "db.sqlite3"
    if template:
        shutil.copyfile(template, path)
    try:
        yield path
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@functools.cache
def _migrated_file() -> Path:
    path = lay_ground().directory / f"template-{os.getpid()}.sqlite3"
    _migrate(f"sqlite:///{path}")
    return path


@functools.cache
def _migrated_database() -> str:
    name = _create("template0")
    _templates.append(name)
    _migrate(_url(name))
    return name


def _migrate(database_url: str) -> None:
    with manage("migrate", "--run-syncdb", "--verbosity=0", database_url=database_url) as process:
        assert process.wait(120) == 0, process.output


def _create(template: str) -> str:
    name = f"jobs_test_{os.getpid()}_{secrets.token_hex(6)}"
    with psycopg.connect(lay_ground().postgres_url, autocommit=True) as connection:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
    return name


def _drop(name: str) -> None:
    with psycopg.connect(lay_ground().postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _url(name: str) -> str:
    return urlunsplit(urlsplit(lay_ground().postgres_url)._replace(path=f"/{name}"))
