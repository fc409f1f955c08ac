from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import Cron, Every, Rule
from jobs.domain.recurrence.zone import zone_names
from tests.domain.recurrence.rules import EXPRESSIONS, PLACES

ZONES = sorted(zone_names())
HARD_ZONES = [zone for zone, _ in PLACES]
MICROSECOND = timedelta(microseconds=1)

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

instants = st.datetimes(datetime(1970, 1, 2), datetime(2060, 1, 1), timezones=st.just(timezone.utc))  # noqa: DTZ001
spans = st.timedeltas(timedelta(0), timedelta(days=1))


def lists(low: int, high: int) -> st.SearchStrategy[str]:
    """`*`, a step, or a few numbers and ranges."""
    one = st.integers(low, high)
    ranges = st.tuples(one, one).filter(lambda ends: ends[0] < ends[1]).map(lambda ends: f"{ends[0]}-{ends[1]}")
    steps = st.integers(1, high - low).map(lambda step: f"*/{step}")
    some = st.lists(one.map(str) | ranges, min_size=1, max_size=4).map(",".join)
    return st.just("*") | steps | some


# The day fields ask for something only now and then, so that clocks change on days that match.
days = st.just("* * *") | st.sampled_from(
    ["L * *", "1-7 * sun", "* * sun", "* 3,10 *", "* * sun#2", "* * L0", "15W * *"]
)
expressions = st.sampled_from(EXPRESSIONS) | st.tuples(lists(0, 59), lists(0, 23), days).map(" ".join)
everys = st.builds(
    lambda seconds, anchor: Every(timedelta(seconds=seconds), anchor), st.integers(1, 366 * 86_400), instants
)


@cache
def jumps(zone: str) -> list[datetime]:
    """When clocks changed, from 1970 to 2040, to the second."""
    place = ZoneInfo(zone)
    found = []
    at = datetime(1970, 1, 2, tzinfo=timezone.utc)
    while at.year < 2040:
        following = at + timedelta(days=7)
        if at.astimezone(place).utcoffset() != following.astimezone(place).utcoffset():
            low, high = at, following
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) / 2
                same = middle.astimezone(place).utcoffset() == at.astimezone(place).utcoffset()
                low, high = (middle, high) if same else (low, middle)
            found.append(high)
        at = following
    return found


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone and an instant, mostly near a change of its clocks."""
    zone = draw(st.sampled_from(HARD_ZONES) | st.sampled_from(ZONES))
    if not jumps(zone) or draw(st.integers(0, 4)) == 0:
        return zone, draw(instants)
    around = st.timedeltas(timedelta(minutes=-200), timedelta(minutes=200))
    return zone, draw(st.sampled_from(jumps(zone))) + draw(around)


def cron(expression: str, zone: str) -> Cron | None:
    """None for a rule that matches only times its zone skips."""
    try:
        return Cron(expression, zone)
    except InvalidRule:
        return None


def is_consistent(rule: Rule, after: datetime, count: int) -> bool:
    """Each occurrence is later than the one before, on a whole second, and the next of all that lies between."""
    chain = rule.upcoming(count, after)
    for earlier, later in zip([after, *chain], chain, strict=False):
        assert later > earlier
        assert later.microsecond == 0 and later.tzinfo is timezone.utc
        assert rule.next_after(earlier + (later - earlier) / 2) in (later, *chain)
        assert rule.next_after(later - MICROSECOND) == later
    return True


@unhurried
@given(moments(), expressions)
def test_cron_goes_strictly_forward_in_every_zone(moment: tuple[str, datetime], expression: str) -> None:
    zone, after = moment
    rule = cron(expression, zone)
    assert rule is None or is_consistent(rule, after, 5)


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_cron_goes_strictly_forward_at_every_change_of_every_zone(zone: str) -> None:
    for expression in ("*/20 * * * *", "*/30 1-2 * * *", "0 */2 * * *", "30 1,2 * * *", "0 0 * * *", "30 23 * * *"):
        rule = Cron(expression, zone)
        for jump in jumps(zone):
            assert is_consistent(rule, jump - timedelta(minutes=100), 4)


@unhurried
@given(everys, instants)
def test_an_interval_goes_strictly_forward(rule: Every, after: datetime) -> None:
    assert is_consistent(rule, after, 5)
    assert all((one - rule.anchor) % rule.interval == timedelta(0) for one in rule.upcoming(5, after))


def walk(rule: Rule, since: datetime, now: datetime) -> list[datetime]:
    """What is due in (since, now], the long way."""
    found = []
    following = rule.next_after(since)
    while following is not None and following <= now:
        found.append(following)
        following = rule.next_after(following)
    return found


@settings(unhurried, max_examples=40)
@given(moments(), expressions, spans, st.integers(1, 12))
def test_looking_back_finds_what_walking_forward_finds(
    moment: tuple[str, datetime], expression: str, span: timedelta, count: int
) -> None:
    zone, since = moment
    rule = cron(expression, zone)
    if rule is None:
        return
    due = walk(rule, since, since + span)
    assert rule.latest(since, since + span) == (due[-1] if due else None)
    assert rule.newest(count, since, since + span) == due[-count:]
    assert rule.count(since, since + span, at_most=100_000) == len(due)
    assert rule.count(since, since + span, at_most=3) == min(3, len(due))


@unhurried
@given(st.integers(600, 86_400), instants, st.timedeltas(timedelta(days=-2), timedelta(days=2)), spans)
def test_looking_back_at_an_interval_finds_what_walking_forward_finds(
    seconds: int, anchor: datetime, ahead: timedelta, span: timedelta
) -> None:
    since = anchor + ahead
    rule = Every(timedelta(seconds=seconds), anchor)
    due = walk(rule, since, since + span)
    assert rule.latest(since, since + span) == (due[-1] if due else None)
    assert rule.newest(7, since, since + span) == due[-7:]
    assert rule.count(since, since + span, at_most=100_000) == len(due)


cron_like = st.text(alphabet="0123456789*/-,?LlWwHhRr#@ \tadeimnorstuy=:~%\n", max_size=24)
five_fields = st.lists(st.text(alphabet="0123456789*/-,?LW#", min_size=1, max_size=5), min_size=5, max_size=5).map(
    " ".join
)


@settings(unhurried, max_examples=500)
@given(cron_like | five_fields | st.text(max_size=20))
def test_any_text_is_a_working_rule_or_one_clear_error(text: str) -> None:
    try:
        rule = Cron(text, "America/New_York")
    except InvalidRule as error:
        message = str(error)
        assert message.partition(":")[0].partition(" and ")[0] in (
            "expression", "minute", "hour", "day-of-month", "month", "day-of-week"
        )  # fmt: skip
        assert len(message) < 400 and "Traceback" not in message
    else:
        assert len(rule.upcoming(2, datetime(2026, 1, 1, tzinfo=timezone.utc))) == 2
        assert rule.describe()
