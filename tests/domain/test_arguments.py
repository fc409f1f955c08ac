from __future__ import annotations

import decimal
import enum
import functools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, NewType, Optional
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.domain.arguments import Parameters
from jobs.domain.errors import InvalidArguments

if TYPE_CHECKING:
    from somewhere import Missing  # type: ignore[import-not-found]

Day = NewType("Day", date)


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Shape(enum.Enum):
    """Values that JSON lacks."""

    SQUARE = (1, 1)
    BAR = (1, 3)


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


def arrive(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    parameters = Parameters(function, takes_context=False)
    return parameters.decode(json.loads(parameters.encode(args, kwargs, max_bytes=10_000)))


def refusal(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(InvalidArguments) as refused:
        Parameters(function, takes_context=False).encode(args, kwargs, max_bytes=10_000)
    return str(refused.value)


def plain(order_id: int, rows: Any = None, *, copy_to: str | None = None) -> None: ...


def test_arguments_are_stored_as_the_caller_passed_them() -> None:
    text = Parameters(plain, takes_context=False).encode((42,), {"rows": (1, 2)}, max_bytes=1000)
    assert json.loads(text) == {"args": [42], "kwargs": {"rows": [1, 2]}}


def test_what_is_stored_is_not_what_the_caller_goes_on_changing() -> None:
    rows = [1]
    parameters = Parameters(plain, takes_context=False)
    text = parameters.encode((42, rows), {}, max_bytes=1000)
    rows.append(2)
    assert parameters.decode(json.loads(text)) == ([42, [1]], {})


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ((), {}, "missing a required argument: 'order_id'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"order_id": 2}, "multiple values for argument 'order_id'"),
        ((1,), {"to": "x"}, "unexpected keyword argument 'to'"),
    ],
)
def test_a_wrong_call_fails_with_the_function_and_pythons_own_reason(
    args: tuple[Any, ...], kwargs: dict[str, Any], reason: str
) -> None:
    message = refusal(plain, *args, **kwargs)
    assert message.startswith("plain(): ")
    assert reason in message


def test_the_context_is_no_argument_of_the_caller() -> None:
    def task(context: Any, order_id: int) -> None: ...

    parameters = Parameters(task, takes_context=True)
    assert str(parameters.signature) == "(order_id: 'int') -> 'None'"
    assert parameters.decode(json.loads(parameters.encode((1,), {}, max_bytes=100))) == ([1], {})
    with pytest.raises(InvalidArguments, match="unexpected keyword argument 'context'"):
        parameters.encode((1,), {"context": None}, max_bytes=100)


def test_a_value_that_json_lacks_is_named_by_its_path() -> None:
    message = refusal(plain, 1, rows=[0, 1, 2, {"price": float("nan")}])
    assert message == "plain(): kwargs.rows[3].price is nan, which JSON does not have"
    assert "args[0] is an integer of more than 64 bits" in refusal(plain, 2**64)


def test_arguments_beyond_the_size_limit_are_refused() -> None:
    assert "takes more than 10000 bytes" in refusal(plain, 1, rows="x" * 50_000_000)


def test_a_model_instance_is_refused_with_the_advice_to_pass_its_key() -> None:
    class Receipt:
        _meta = pk = 1

    assert "kwargs.rows[0] is a model instance; give its key (pk)" in refusal(plain, 1, rows=[Receipt()])


def test_a_date_without_annotation_is_refused_with_the_advice_to_annotate() -> None:
    for value in (date(2026, 1, 1), Decimal(1), uuid.uuid4(), timedelta(1), Colour.RED):
        message = refusal(plain, 1, value)
        assert "args[1] is a " in message
        assert "annotate the parameter" in message


def converted(
    day: date,
    moment: datetime,
    clock: time,
    span: timedelta,
    price: Decimal,
    key: uuid.UUID,
    colour: Colour,
    shape: Shape,
    rights: Rights,
) -> None: ...


fixed_zones = st.integers(-82_800, 82_800).map(lambda seconds: timezone(timedelta(seconds=seconds)))
zones = st.none() | fixed_zones


@given(
    st.tuples(
        st.dates(),
        st.datetimes(timezones=zones),
        st.times(timezones=zones),
        st.timedeltas(),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.uuids(),
        st.sampled_from(Colour),
        st.sampled_from(Shape),
        st.sampled_from([Rights.READ, Rights.READ | Rights.WRITE, Rights(0)]),
    )
)
def test_annotated_values_arrive_as_themselves(values: tuple[Any, ...]) -> None:
    arrived, _ = arrive(converted, *values)
    assert arrived == list(values)
    assert [type(value) for value in arrived] == [type(value) for value in values]
    assert arrived[1].utcoffset() == values[1].utcoffset()
    assert arrived[2].utcoffset() == values[2].utcoffset()
    assert str(arrived[4]) == str(values[4])  # Decimal("1.10") stays that


def test_a_datetime_in_a_zone_arrives_with_its_offset() -> None:
    def task(moment: datetime) -> None: ...

    moment = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    [arrived], _ = arrive(task, moment)
    assert arrived.isoformat() == "2026-07-01T12:00:00+02:00"


def test_the_callers_own_decimal_context_does_not_round_a_timedelta() -> None:
    def task(span: timedelta) -> None: ...

    with decimal.localcontext() as context:
        context.prec = 3
        for span in (timedelta.max, timedelta.min, timedelta(microseconds=1), -timedelta(seconds=1.5)):
            assert arrive(task, span)[0] == [span]


def test_annotations_inside_other_annotations_count() -> None:
    def task(
        maybe: date | None,
        optional: Optional[date],  # noqa: UP045
        days: list[date],
        pairs: Sequence[tuple[date, int]],
        by_name: dict[str, date],
        nested: Mapping[str, list[Decimal | None]],
        annotated: Annotated[date, "a note"],
        renamed: Day,
        span: tuple[date, ...],
    ) -> None: ...

    day = date(2026, 2, 1)
    args = (None, day, [day, day], [(day, 1)], {"a": day}, {"b": [Decimal("1.50"), None]}, day, Day(day), (day, day))
    assert arrive(task, *args) == (list(args), {})


def test_a_tuple_arrives_as_a_tuple_where_the_annotation_says_so_and_as_a_list_elsewhere() -> None:
    def task(pair: tuple[int, str], some: tuple[int, ...], any_tuple: tuple, rows: Any) -> None: ...  # type: ignore[type-arg]

    assert arrive(task, (1, "a"), (1, 2), (1,), (1,)) == ([(1, "a"), (1, 2), (1,), [1]], {})
    assert "args[0] has 3 items, but its parameter is a tuple of 2" in refusal(task, (1, "a", 2), (), (), ())


def test_star_arguments_are_converted_by_their_annotation() -> None:
    def task(first: int, /, *days: date, limit: Decimal = Decimal(1), **prices: Decimal) -> None: ...

    day = date(2026, 2, 1)
    args, kwargs = arrive(task, 1, day, day, limit=Decimal("2.5"), first=Decimal("3.5"), a=Decimal(4))
    assert args == [1, day, day]
    assert kwargs == {"limit": Decimal("2.5"), "first": Decimal("3.5"), "a": Decimal(4)}
    assert "args[2] is not a date: 'x'" in refusal(task, 1, day, "x")
    assert "kwargs.a is of type float" in refusal(task, 1, a=1.5)


def test_a_union_of_several_types_is_plain_json() -> None:
    def task(when: date | int) -> None: ...

    assert arrive(task, 5) == ([5], {})
    assert "annotate the parameter with exactly that type" in refusal(task, date(2026, 1, 1))


def test_an_annotation_that_cannot_be_resolved_leaves_the_others_alone() -> None:
    def task(thing: Missing, when: date, other: Missing | None = None) -> None: ...

    day = date(2026, 1, 1)
    assert arrive(task, {"a": 1}, day, other=[1]) == ([{"a": 1}, day], {"other": [1]})


def test_a_type_that_contains_itself_is_plain_json() -> None:
    def task(tree: Tree, when: date) -> None: ...

    assert arrive(task, [[], [[]]], date(2026, 1, 1)) == ([[[], [[]]], date(2026, 1, 1)], {})


Tree = list["Tree"]


def test_names_in_annotations_may_appear_after_the_task_was_made() -> None:
    namespace: dict[str, Any] = {"__name__": "later"}
    exec("from __future__ import annotations\ndef task(when: date) -> None: ...", namespace)  # noqa: S102
    parameters = Parameters(namespace["task"], takes_context=False)
    namespace["date"] = date
    assert parameters.decode(json.loads(parameters.encode([date(2026, 1, 1)], {}, max_bytes=100)))[0] == [
        date(2026, 1, 1)
    ]


def test_a_decorated_function_keeps_its_own_signature_and_names() -> None:
    @functools.wraps(converted)
    def wrapper(*args: Any, **kwargs: Any) -> None: ...

    assert "missing a required argument: 'moment'" in refusal(wrapper, date(2026, 1, 1))


def test_values_come_also_in_their_stored_form_because_forms_send_only_json() -> None:
    def task(day: date, moment: datetime, span: timedelta, price: Decimal, colour: Colour, shape: Shape) -> None: ...

    args, _ = arrive(task, "2026-01-31", "2026-01-31T10:00:00Z", 90, "19.90", "red", "BAR")
    assert args == [
        date(2026, 1, 31),
        datetime(2026, 1, 31, 10, tzinfo=timezone.utc),
        timedelta(seconds=90),
        Decimal("19.90"),
        Colour.RED,
        Shape.BAR,
    ]
    assert arrive(task, "2026-01-31", "2026-01-31", 0.5, 3, 2, "BAR")[0][2:5] == [
        timedelta(seconds=0.5),
        Decimal(3),
        Colour.BLUE,
    ]


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (date, datetime(2026, 1, 1, tzinfo=timezone.utc), "is of type datetime.datetime, but its parameter is a date"),
        (datetime, date(2026, 1, 1), "is of type datetime.date, but its parameter is a datetime"),
        (date, "2026-02-30", "is not a date: '2026-02-30' (as in '2026-01-31')"),
        (date, 5, "is of type int, but its parameter is a date"),
        (timedelta, True, "is of type bool"),
        (timedelta, float("nan"), "is not a timedelta"),
        (timedelta, 1e300, "is not a timedelta"),
        (timedelta, "1e999999", "is not a timedelta"),
        (Decimal, 1.5, "is of type float, but its parameter is a Decimal"),
        (Decimal, Decimal("NaN"), "is the Decimal NaN, which is no number"),
        (Decimal, Decimal("sNaN"), "which is no number"),
        (Decimal, "inf", "is not a Decimal"),
        (uuid.UUID, "x", "is not a UUID"),
        (time, time(1, tzinfo=ZoneInfo("Europe/Berlin")), "zone without a fixed offset"),
        (datetime, datetime(2026, 1, 1, tzinfo=timezone(timedelta(microseconds=1))), "not a whole number of seconds"),
        (Colour, "green", "is not a Colour: 'green' (one of 'red', 2)"),
        (Colour, True, "is not a Colour"),
        (Shape, (1, 1), "is not a Shape: (1, 1) (one of 'SQUARE', 'BAR')"),
        (list[date], {1}, "is of type set, but its parameter is a list or tuple"),
        (list[date], "2026", "is of type str, but its parameter is a list or tuple"),
        (dict[str, date], [1], "is of type list, but its parameter is a dict"),
        (dict[str, date], {1: date(2026, 1, 1)}, "has a key that is 1"),
    ],
)
def test_a_value_that_does_not_fit_its_annotation_is_refused_at_the_call(
    annotation: Any, value: Any, problem: str
) -> None:
    def task(value: Any) -> None: ...

    task.__annotations__ = {"value": annotation}
    message = refusal(task, value=value)
    assert ": kwargs.value " in message
    assert problem in message


def test_the_path_leads_into_converted_values_too() -> None:
    def task(rows: dict[str, list[date]]) -> None: ...

    assert "kwargs.rows.a[1] is not a date: 'x'" in refusal(task, rows={"a": ["2026-01-01", "x"]})


@pytest.mark.parametrize("stored", [{}, {"args": {}, "kwargs": {}}, {"args": [], "kwargs": []}, [], None, "x"])
def test_stored_arguments_of_the_wrong_shape_are_refused(stored: Any) -> None:
    with pytest.raises(InvalidArguments, match="the stored arguments are not a list args and a dict kwargs"):
        Parameters(plain, takes_context=False).decode(stored)


def test_stored_arguments_that_no_longer_fit_the_annotation_are_named_by_their_path() -> None:
    def task(day: date, *, colour: Colour = Colour.RED) -> None: ...

    parameters = Parameters(task, takes_context=False)
    with pytest.raises(InvalidArguments, match=r"args\[0\] is not a date: 'yesterday'"):
        parameters.decode({"args": ["yesterday"], "kwargs": {}})
    with pytest.raises(InvalidArguments, match=r"kwargs\.colour is not a Colour: 'mauve'"):
        parameters.decode({"args": ["2026-01-01"], "kwargs": {"colour": "mauve"}})


def test_a_builtin_without_signature_takes_anything() -> None:
    assert arrive(print, 1, end="x") == ([1], {"end": "x"})
    assert arrive(getattr, 1)[0] == [1]
