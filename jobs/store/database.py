"""One database as a verb sees it: its alias, its SQL dialect and its clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar
from uuid import UUID

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.dateparse import parse_datetime

Rows = list[tuple[Any, ...]]
Item = TypeVar("Item")


LARGE = 64 * 1024
"""Characters of a parameter that SQLite should not keep."""


class Records(str):
    """A list of records as `encode_records` writes it for SQLite."""

    __slots__ = ()


class Database:
    """Base of the two dialects. Fragments are SQL strings that refer to named parameters.

    `now` is None in production, where the SQL asks the database's clock; tests pass an instant. The fragment
    is a scalar sub-select on PostgreSQL: `clock_timestamp()` itself is volatile, and no index serves a
    comparison with a volatile expression.
    """

    lock: str
    """Ends a SELECT that locks its rows and skips those that others hold."""
    lock_and_wait: str
    now: str
    json_type: str
    materialized: str
    """After `AS` of a common table expression that must be computed once, for it locks rows."""

    def __init__(self, alias: str, instant: datetime | None = None) -> None:
        self.alias = alias
        self.instant = instant

    @property
    def connection(self) -> BaseDatabaseWrapper:
        return connections[self.alias]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction, or a savepoint in the caller's own."""
        with transaction.atomic(using=self.alias):
            yield

    def let_in_one(self, table: str) -> None:
        """Wait until no other transaction that has asked for this table is left. Stops no reader."""
        raise NotImplementedError

    def rows(self, sql: str, **parameters: Any) -> Rows:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, self._parameters(sql, parameters))
            found: Rows = cursor.fetchall()
            return found

    def execute(self, sql: str, **parameters: Any) -> int:
        """How many rows were written."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql, self._parameters(sql, parameters))
            return int(cursor.rowcount)

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Run `callback` once the surrounding transaction is committed; at once when there is none."""
        transaction.on_commit(callback, using=self.alias, robust=True)

    def _parameters(self, sql: str, given: Mapping[str, Any]) -> dict[str, Any]:
        parameters = {name: self.adapt(value) for name, value in given.items()}
        if "%(now)s" in sql:
            parameters["now"] = self.adapt(self.instant or datetime.now(timezone.utc))
        return parameters

    def adapt(self, value: Any) -> Any:
        raise NotImplementedError

    def members(self, name: str) -> str:
        """`IN`-condition over the list parameter `name`."""
        raise NotImplementedError

    def among(self, select: str) -> str:
        """`IN`-condition over a sub-select that is computed once, and first."""
        raise NotImplementedError

    def found_in(self, column: str, select: str) -> str:
        """Membership by a hash table, whatever the planner believes of the select's size: it joins nothing."""
        return f"({column} IN ({select})) IS TRUE"

    def records(self, name: str, columns: Mapping[str, str]) -> str:
        """A FROM item with the given columns and PostgreSQL types, over a parameter made by `encode_records`."""
        raise NotImplementedError

    def not_by_index(self, condition: str) -> str:
        """The condition in a form that no index serves, no partial one either."""
        return f"COALESCE({condition}, false)"

    def later(self, seconds: str) -> str:
        """The instant that lies `seconds` (an SQL expression) after now."""
        raise NotImplementedError

    def encode_records(self, rows: Iterable[Mapping[str, Any]]) -> str:
        return json.dumps(list(rows), default=self._plain)

    def _plain(self, value: Any) -> Any:
        raise NotImplementedError

    def read_instant(self, value: Any) -> datetime | None:
        raise NotImplementedError

    def read_json(self, value: Any) -> Any:
        """A JSON column of a raw query: text on both databases, as Django sets psycopg up."""
        return json.loads(value) if isinstance(value, str) else value


class PostgreSQL(Database):
    lock = "FOR NO KEY UPDATE SKIP LOCKED"
    lock_and_wait = "FOR NO KEY UPDATE"
    json_type = "jsonb"
    materialized = "MATERIALIZED"

    @property
    def now(self) -> str:  # type: ignore[override]
        return "%(now)s::timestamptz" if self.instant else "(SELECT clock_timestamp())"

    def let_in_one(self, table: str) -> None:
        self.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")

    def adapt(self, value: Any) -> Any:
        return list(value) if isinstance(value, (list, tuple, set, frozenset)) else value

    def members(self, name: str) -> str:
        return f"= ANY(%({name})s)"

    def among(self, select: str) -> str:
        return f"= ANY(ARRAY({select}))"

    def records(self, name: str, columns: Mapping[str, str]) -> str:
        typed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        return f"json_to_recordset(%({name})s::json) AS {name}({typed})"

    def later(self, seconds: str) -> str:
        return f"({self.now} + {seconds} * interval '1 second')"

    def _plain(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        return value.hex if isinstance(value, UUID) else value

    def read_instant(self, value: Any) -> datetime | None:
        return parse_datetime(value) if isinstance(value, str) else value


class SQLite(Database):
    lock = ""
    lock_and_wait = ""
    json_type = "text"
    materialized = ""  # the keyword came with SQLite 3.35, and it locks no rows
    now = "%(now)s"

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """IMMEDIATE whatever the project sets: a deferred one that reads, then writes, fails at once when it is
        overtaken, however long the busy timeout."""
        connection: Any = self.connection
        connection.ensure_connection()
        configured = connection.transaction_mode
        connection.transaction_mode = "IMMEDIATE"
        try:
            with super().transaction():
                yield
        finally:
            connection.transaction_mode = configured

    def let_in_one(self, table: str) -> None:
        """An IMMEDIATE transaction is the only one that writes anyway."""

    def rows(self, sql: str, **parameters: Any) -> Rows:
        found = super().rows(sql, **parameters)
        self._let_go(sql, parameters)
        return found

    def execute(self, sql: str, **parameters: Any) -> int:
        written = super().execute(sql, **parameters)
        self._let_go(sql, parameters)
        return written

    def _let_go(self, sql: str, parameters: dict[str, Any]) -> None:
        """A statement in the connection's cache keeps what was bound to it last, megabytes of failures or arguments,
        until it is bound anew: here to no records, which does nothing."""
        large = {key: "[]" for key, value in parameters.items() if isinstance(value, Records) and len(value) > LARGE}
        if large:
            with self.connection.cursor() as cursor:
                # Past Django's log of statements: it is none of the caller's.
                cursor.cursor.execute(sql, self._parameters(sql, {**parameters, **large}))

    def adapt(self, value: Any) -> Any:
        if isinstance(value, (list, tuple, set, frozenset)):
            return json.dumps(list(value))
        return self._plain(value)

    def encode_records(self, rows: Iterable[Mapping[str, Any]]) -> str:
        return Records(super().encode_records(rows))

    def members(self, name: str) -> str:
        return f"IN (SELECT value FROM json_each(%({name})s))"

    def among(self, select: str) -> str:
        return f"IN ({select})"

    def records(self, name: str, columns: Mapping[str, str]) -> str:
        read = ", ".join(f"json_extract(value, '$.{column}') AS {column}" for column in columns)
        return f"(SELECT {read} FROM json_each(%({name})s)) AS {name}"

    def later(self, seconds: str) -> str:
        # Django's own function: SQLite's date functions round to milliseconds, which may lie in the future.
        return f"django_format_dtdelta('+', %(now)s, CAST(round({seconds} * 1000000) AS INTEGER))"

    def _plain(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return self.connection.ops.adapt_datetimefield_value(value)
        return value.hex if isinstance(value, UUID) else value

    def read_instant(self, value: Any) -> datetime | None:
        if value is None:
            return None
        # A declared column arrives parsed, an expression as text; both without the zone, which is UTC.
        parsed = value if isinstance(value, datetime) else parse_datetime(value)
        assert parsed is not None, value
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)


def database(alias: str, now: datetime | None = None) -> Database:
    """The database behind a Django alias. Raises NotImplementedError for another vendor; a check says it first."""
    vendor = connections[alias].vendor
    if vendor == "postgresql":
        return PostgreSQL(alias, now)
    if vendor == "sqlite":
        return SQLite(alias, now)
    raise NotImplementedError(f"database {alias!r} is {vendor}: jobs run on PostgreSQL and SQLite only")


def shifted(instant: datetime, seconds: float) -> datetime:
    """`instant` plus a possibly huge number of seconds, capped at what both databases hold."""
    latest = datetime(9999, 1, 1, tzinfo=timezone.utc)
    try:
        return min(instant + timedelta(seconds=seconds), latest)
    except OverflowError:
        return latest


def in_batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
