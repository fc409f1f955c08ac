from __future__ import annotations

import pytest

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence.grammar import LONGEST, MACROS, read_expression


@pytest.mark.parametrize(
    ("expression", "normal"),
    [
        ("0 9 * * MON-fri", "0 9 * * 1-5"),
        ("  0\t9  * *   ? ", "0 9 * * *"),
        ("00 05 01 JAN sun", "0 5 1 1 0"),
        ("0 0 * * fri-mon", "0 0 * * 0,1,5,6"),
        ("0 0 * * 7-2", "0 0 * * 0,1,2"),
        ("0 0 * oct-2 *", "0 0 * 1,2,10,11,12 *"),
        ("0 0 * * 0-7", "0 0 * * 0-7"),
        ("5/20 * * * *", "5-59/20 * * * *"),
        ("*/15,7 * * * *", "*/15,7 * * * *"),
        ("0 0 15,L * *", "0 0 15,l * *"),
        ("0 0 09w * *", "0 0 9w * *"),
        ("0 0 * * L7,fri#02", "0 0 * * l0,5#2"),
        ("@Weekly", "0 0 * * 0"),
    ],
)
def test_an_expression_is_written_back_in_numbers(expression: str, normal: str) -> None:
    assert read_expression(expression).text == normal


@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_is_its_five_fields_in_any_case(macro: str) -> None:
    assert read_expression(macro.upper()) == read_expression(MACROS[macro])


@pytest.mark.parametrize(
    ("expression", "is_open"),
    [
        ("*/15 2 * * *", True),
        ("0 */6 * * *", True),
        ("0 * * * *", True),
        ("*/15,7 3 * * *", True),
        ("0 0-23 * * *", False),
        ("0-59 2 * * *", False),
        ("0 0/6 * * *", False),
        ("0 0 */2 * *", False),
    ],
)
def test_a_star_in_minute_or_hour_follows_the_wall_clock(expression: str, is_open: bool) -> None:
    assert read_expression(expression).is_open is is_open


@pytest.mark.parametrize(
    ("expression", "minutes"),
    [("* * * * *", 1), ("*/7 * * * *", 4), ("0 9 * * *", 1440), ("0 0,23 1 1 *", 60), ("30 6,18 * * *", 720)],
)
def test_the_shortest_spacing_is_between_times_of_day(expression: str, minutes: int) -> None:
    assert read_expression(expression).shortest_spacing_minutes == minutes


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        (None, "expression: give text, not NoneType"),
        (b"* * * * *", "expression: give text, not bytes"),
        ("*" * (LONGEST + 1), f"expression: at most {LONGEST} characters"),
        ("  \t ", "expression: it is empty"),
        ("* * * *\x00*", "control characters"),
        ("* * * * *\n", "line breaks"),
        ("* * * *\u00a0*", "ASCII"),
        ("@ daily", "unknown macro"),
        ("CRON_TZ=UTC * * * * *", "time zone prefixes"),
        ("007 * * * *", "minute: 007 is outside 0-59"),
        ("9" * 200 + " * * * *", "minute: "),
        ("* /5 * * *", "hour: '' is not a number"),
        ("*/ * * * *", "minute: step '' is not a number"),
        ("*/5/2 * * * *", "minute: step '5/2' is not a number"),
        ("*/-5 * * * *", "minute: step '-5' is not a number"),
        ("*/060 * * * *", "minute: step '060' is not a number"),
        ("1-2-3 * * * *", "minute: '1-2-3' is not a valid range"),
        ("5- * * * *", "minute: '5-' is not a valid range"),
        ("*-5 * * * *", "minute: '*' is not a number"),
        ("50-10 * * * *", "minute: range 50-10 runs backwards"),
        ("5-05 * * * *", "minute: range 5-05 has equal ends"),
        ("0 0 * * sun-sun", "day-of-week: range sun-sun has equal ends"),
        ("0 0 * * 7-0", "day-of-week: range 7-0 has equal ends"),
        ("0 0 * * 7-sun", "day-of-week: range 7-sun has equal ends"),
        ("0 0 * * fri-mon/2", "day-of-week: range fri-mon runs backwards"),
        ("0 0 * * 6/1", "day-of-week: step 1 never reaches a second value in 6-6"),
        ("0 0 * * 0-7/7", "day-of-week: step 7 never reaches a second value"),
        ("0 0 * * */7", "day-of-week: step 7 never reaches a second value"),
        ("0 0 28-L * *", "day-of-month: '28-l': only"),
        ("0 0 L-3 * *", "day-of-month: 'l-3': only"),
        ("0 0 W15 * *", "day-of-month: 'w15': only"),
        ("0 0 32W * *", "day-of-month: 32 is outside 1-31"),
        ("0 0 ?/2 * *", "day-of-month: '?' is not a number"),
        ("0 0 ?,3 * *", 'day-of-month: "?" cannot be combined'),
        ("0 0 * * L", "day-of-week: write L<0-7>"),
        ("0 0 * * Lfri", "day-of-week: write L<0-7>"),
        ("0 0 * * L8", "day-of-week: write L<0-7>"),
        ("0 0 * * 5#0", "day-of-week: occurrence #0 is outside 1-5"),
        ("0 0 * * 8#1", "day-of-week: 8 is outside 0-7"),
        ("0 0 * * #1", "day-of-week: '' is not a number or name"),
        ("0 0 1 * L5", "day-of-month and day-of-week:"),
        ("0 0 15W * fri", "day-of-month and day-of-week: W"),
        ("0 0 1 * */2", "day-of-month and day-of-week:"),
        ("0 ~ * * *", "hour: '~' is not a number"),
        ("0 R(0-5) * * *", "hour: H and R"),
    ],
)
def test_what_dialects_disagree_on_is_refused_by_name(expression: object, complaint: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        read_expression(expression)
    assert complaint in str(caught.value)
