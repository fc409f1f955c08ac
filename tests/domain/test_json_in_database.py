from __future__ import annotations

import json
from typing import Any

from django.db import connections

from jobs.domain.strict_json import LARGEST_INTEGER, SMALLEST_INTEGER, dumps

VALUES: list[Any] = [
    [1e16, 1e22, 1.0, 0.1, -0.0, 1e308, 5e-324, 1.5e-7, 123456789.123456789, -2.5e300],
    [0, 1, -1, LARGEST_INTEGER, SMALLEST_INTEGER, True, False, None],
    ["", "é", "\u2028", "😀", "\x01\x1f\x7f", '"\\/', "\ufffe", "\\u0000"],
    {"": 1, "b": {"a": [[], {}]}, "é": 2},
]


def test_what_strict_json_accepts_comes_back_the_same_from_the_database(database: str) -> None:
    connection = connections[database]
    through = "CAST(CAST(%s AS jsonb) AS text)" if connection.vendor == "postgresql" else "json(%s)"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {through}", [dumps(VALUES, root="value", max_bytes=10_000)])
        arrived = json.loads(cursor.fetchone()[0])
    assert arrived == VALUES
    assert [[type(item) for item in items] for items in arrived[:3]] == [
        [type(item) for item in items] for items in VALUES[:3]
    ]
