from __future__ import annotations

import enum
import json
import math
import time
from collections import OrderedDict, namedtuple
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.domain.errors import NotStorable
from jobs.domain.strict_json import LARGEST_INTEGER, MAX_DEPTH, SMALLEST_INTEGER, dumps

LIMIT = 100_000


class Colour(str, enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


class Plain(enum.Enum):
    ONE = 1


def stored(value: object) -> Any:
    return json.loads(dumps(value, root="result", max_bytes=LIMIT))


def refusal(value: object, max_bytes: int = LIMIT) -> str:
    with pytest.raises(NotStorable) as refused:
        dumps(value, root="result", max_bytes=max_bytes)
    assert refused.value.__cause__ is None
    return str(refused.value)


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(SMALLEST_INTEGER, LARGEST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
json_values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=20)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return (
            isinstance(right, dict) and list(left) == list(right) and all(same(left[key], right[key]) for key in left)
        )
    return type(left) is type(right) and left == right


@given(json_values)
def test_json_values_come_back_equal_and_of_the_same_type(value: object) -> None:
    assert same(stored(value), value)


@given(json_values)
def test_the_text_is_what_the_json_module_would_accept_and_is_compact(value: object) -> None:
    written = dumps(value, root="result", max_bytes=LIMIT)
    assert len(written.encode()) <= LIMIT
    json.loads(written, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_never_looks_like_an_integer_to_jsonb(value: float) -> None:
    written = dumps(value, root="result", max_bytes=LIMIT)
    assert "e" not in written.lower()
    assert "." in written
    assert float(written) == value
    # What PostgreSQL does: numeric keeps every digit and the scale.
    assert isinstance(json.loads(format(Decimal(written), "f")), float)


def test_negative_zero_is_stored_as_zero_on_both_databases() -> None:
    assert math.copysign(1, stored(-0.0)) == 1


@given(json_values, st.integers(0, 60))
def test_the_limit_counts_the_bytes_of_the_text_exactly(value: object, max_bytes: int) -> None:
    size = len(dumps(value, root="result", max_bytes=LIMIT).encode())
    if size <= max_bytes:
        dumps(value, root="result", max_bytes=max_bytes)
    else:
        assert "takes more than" in refusal(value, max_bytes)


def test_a_value_of_exactly_the_limit_is_stored() -> None:
    assert dumps("é" * 10, root="result", max_bytes=22) == '"éééééééééé"'
    assert refusal("é" * 10, 21) == (
        "result takes more than 21 bytes as JSON; store the data elsewhere and give its key"
    )


def test_subclasses_are_stored_as_their_plain_values() -> None:
    class Loud(str):
        def __str__(self) -> str:
            return "LOUD"

        def __contains__(self, key: object) -> bool:
            raise AssertionError("not asked")

    class Long(int):
        def __repr__(self) -> str:
            return "not a number"

    class Precise(float):
        __repr__ = __str__ = lambda self: "not a number"

    class Odd(dict[str, int]):
        def items(self) -> Any:
            return [("wrong", 1)]

    pair = namedtuple("pair", "left right")
    assert stored([Loud("quiet"), Long(7), Precise(1.5), Colour.RED, Size.BIG]) == ["quiet", 7, 1.5, "red", 3]
    assert stored([OrderedDict(a=1), Odd(a=1), pair(1, 2), (1, (2,))]) == [{"a": 1}, {"a": 1}, [1, 2], [1, [2]]]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_lacks_is_refused(value: float) -> None:
    assert refusal({"rows": [0, 1, 2, {"price": value}]}) == (
        f"result.rows[3].price is {value!r}, which JSON does not have"
    )


@pytest.mark.parametrize("value", [LARGEST_INTEGER + 1, SMALLEST_INTEGER - 1, pytest.param(10**6000, id="huge")])
def test_an_integer_of_more_than_64_bits_is_refused(value: int) -> None:
    assert refusal([value]) == "result[0] is an integer of more than 64 bits; give it as text"


@pytest.mark.parametrize("value", [LARGEST_INTEGER, SMALLEST_INTEGER])
def test_integers_of_64_bits_are_stored(value: int) -> None:
    assert stored(value) == value


def test_text_that_a_database_refuses_is_refused_here() -> None:
    assert "result.a contains a NUL character" in refusal({"a": "x\0y"})
    assert "result.a contains a lone surrogate" in refusal({"a": "x\ud800"})
    assert r"result['x\x00'] contains a NUL" in refusal({"x\0": 1})
    assert r"result['\udfff'] contains a lone surrogate" in refusal({"\udfff": 1})


@pytest.mark.parametrize(("key", "shown"), [(1, "1"), (None, "None"), (True, "True"), (1.5, "1.5"), ((1,), "tuple")])
def test_a_key_that_is_not_text_is_refused_because_it_would_change(key: object, shown: str) -> None:
    message = refusal({"rows": {"1": "a", key: "b"}})
    assert message.startswith("result.rows has a key that is ")
    assert shown in message


def test_two_keys_of_the_same_text_are_refused() -> None:
    class Key(str):
        __eq__ = object.__eq__
        __hash__ = object.__hash__

    both = {Key("red"): 1, "red": 2}
    assert len(both) == 2
    assert refusal(both) == "result.red is the text of two keys"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1}, "give a sorted list"),
        (b"x", "decode it to text"),
        (object(), "of type object"),
        (lambda: 1, "of type function"),
        (Plain.ONE, "Plain member; give its value"),
        (date(2026, 1, 1), "of type datetime.date"),
        (1j, "of type complex"),
        (Decimal(1), "of type decimal.Decimal"),
        (iter([]), "list_iterator"),
    ],
)
def test_a_type_that_json_lacks_is_refused_with_its_path(value: object, words: str) -> None:
    message = refusal({"rows": [{"a b": value}]})
    assert message.startswith("result.rows[0]['a b'] is ")
    assert words in message


def test_a_model_instance_is_refused_with_the_advice_to_give_its_key() -> None:
    class Receipt:
        _meta = "options"
        pk = 1

    class Lazy:
        def __getattr__(self, name: str) -> object:
            return getattr(Receipt, name)

    assert "give its key (pk)" in refusal([Receipt()])
    assert "give its key (pk)" in refusal([Lazy()])


def test_an_object_that_lies_about_its_class_is_refused_like_any_other() -> None:
    class Liar:
        @property  # type: ignore[misc]
        def __class__(self) -> type:
            return str

    class Bomb:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

    assert "Liar" in refusal([Liar()])
    assert "Bomb" in refusal([Bomb()])


def nested(levels: int) -> object:
    value: object = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_nesting_is_stored_down_to_the_limit_and_refused_below() -> None:
    assert stored(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert f"is nested deeper than {MAX_DEPTH} levels" in refusal(nested(MAX_DEPTH + 1))
    deep = refusal(nested(20_000))
    assert "is nested deeper" in deep
    assert len(deep) < 300


def test_a_value_that_contains_itself_is_refused_at_the_place() -> None:
    row: dict[str, object] = {}
    row["rows"] = [1, row]
    assert refusal(row) == "result.rows[1] refers back to something that contains it"


def test_a_value_that_is_used_twice_is_no_cycle() -> None:
    shared = [1]
    assert stored([shared, shared]) == [[1], [1]]


def test_large_and_tangled_values_are_refused_without_walking_all_of_them() -> None:
    bush: object = "leaf"
    for _ in range(90):
        bush = [bush, bush]
    started = time.perf_counter()
    for value in ("x" * 50_000_000, "é" * 20_000_000, list(range(3_000_000)), [[1] * 1000] * 100_000, bush):
        assert refusal(value).startswith("result takes more than 100000 bytes")
    assert time.perf_counter() - started < 3  # building the values included; walking them would take minutes
