"""Weather readings from CSV files into their table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from itertools import islice

from django.db import transaction

from config.demo.models import Reading, Station

BATCH = 250


def batches(lines: Iterable[str]) -> Iterator[list[Reading]]:
    """Readings without their station, in the order of the file. Raises ValueError that names the line."""
    rows = csv.DictReader(lines)
    read = (_reading(row, rows.line_num) for row in rows)
    while batch := list(islice(read, BATCH)):
        yield batch


def store(station_code: str, batch: list[Reading]) -> None:
    """One short transaction per batch: on SQLite there is one writer, and other jobs write too."""
    with transaction.atomic():
        station, _ = Station.objects.get_or_create(code=station_code)
        for reading in batch:
            reading.station = station
        Reading.objects.bulk_create(
            batch,
            update_conflicts=True,
            unique_fields=["station", "measured_at"],
            update_fields=["temperature", "humidity"],
        )


def _reading(row: dict[str, str], line: int) -> Reading:
    try:
        return Reading(
            measured_at=datetime.fromisoformat(row["measured_at"]),
            temperature=Decimal(row["temperature"]) if row["temperature"] else None,
            humidity=int(row["humidity"]) if row["humidity"] else None,
        )
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"line {line} is not a reading: {row}") from error
