"""Tasks that leave transactions and connections in a mess, and one that writes properly."""

from __future__ import annotations

import threading
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from jobs import job
from tests.support.models import Effect


@job
def write(alias: str) -> None:
    Effect.objects.using(alias).create(label="written")


@job
async def awrite(alias: str) -> None:
    await Effect.objects.using(alias).acreate(label="written")


def _open_and_write(alias: str) -> None:
    transaction.atomic(using=alias).__enter__()
    Effect.objects.using(alias).create(label="lost")


@job
def leave_transaction_open(alias: str) -> None:
    _open_and_write(alias)


@job
async def aleave_transaction_open(alias: str) -> None:
    await sync_to_async(_open_and_write)(alias)


@job
def turn_autocommit_off(alias: str) -> None:
    transaction.set_autocommit(False, using=alias)
    Effect.objects.using(alias).create(label="lost")


@job
def raise_in_transaction(alias: str) -> None:
    _open_and_write(alias)
    raise ValueError("with a transaction open")


def _write_twice(alias: str) -> None:
    with transaction.atomic(using=alias):
        Effect.objects.using(alias).create(label="lost", pk=1)
        Effect.objects.using(alias).create(label="lost", pk=1)


@job
def break_transaction(alias: str) -> None:
    _write_twice(alias)


@job
async def abreak_transaction(alias: str) -> None:
    await sync_to_async(_write_twice)(alias)


@job
def break_connection(alias: str) -> None:
    """Outside any block of its own: what Django marks as broken is the caller's transaction, if there is one."""
    Effect.objects.using(alias).create(label="first", pk=1)
    Effect.objects.using(alias).create(label="second", pk=1)


@job
def write_then_fail(alias: str) -> None:
    Effect.objects.using(alias).create(label="kept")
    raise ValueError("after the write")


@job
def close_connection(alias: str) -> None:
    Effect.objects.using(alias).exists()
    connections[alias].close()


def _close_under_django(alias: str) -> None:
    Effect.objects.using(alias).exists()
    raw: Any = connections[alias].connection
    raw.close()


@job
def close_under_django(alias: str) -> None:
    _close_under_django(alias)


@job
async def aclose_under_django(alias: str) -> None:
    await sync_to_async(_close_under_django)(alias)


@job
def close_all() -> None:
    connections.close_all()


def _where(alias: str) -> dict[str, Any]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()" if connections[alias].vendor == "postgresql" else "SELECT 0")
        (backend,) = cursor.fetchone()
    return {"thread": threading.get_native_id(), "backend": backend}


@job
async def athread(alias: str) -> dict[str, Any]:
    first = await sync_to_async(_where)(alias)
    assert first == await sync_to_async(_where)(alias)
    return first
