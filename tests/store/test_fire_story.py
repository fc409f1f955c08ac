"""Whatever happens to clocks, pauses and rules: each instant is dealt with once, in order, and none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.domain.recurrence import Cron, Every, Rule
from jobs.models import Schedule
from jobs.store.attention import attend
from tests.support.schedules import Diary
from tests.support.store import START

HOUR, DAY = 3600, 86_400
ANCHOR = datetime(2027, 1, 1, tzinfo=timezone.utc)
RULES: dict[str, tuple[dict[str, Any], Rule]] = {
    "every half hour": (
        {"interval_seconds": 1800, "anchor_at": ANCHOR, "expression": ""},
        Every(timedelta(minutes=30), ANCHOR),
    ),
    "every 50 minutes": (
        {"interval_seconds": 3000, "anchor_at": ANCHOR, "expression": ""},
        Every(timedelta(minutes=50), ANCHOR),
    ),
    # Clocks change there on 14 March 2027, in the middle of the story.
    "cron": (
        {"interval_seconds": None, "expression": "*/20 1-4,9 * * *", "timezone": "America/New_York"},
        Cron("*/20 1-4,9 * * *", "America/New_York"),
    ),
}
ACTS = st.one_of(
    st.tuples(st.just("turn"), st.sampled_from([1, 60, 1799, 1800, 1801, HOUR, 5 * HOUR, DAY, -1, -HOUR, -DAY])),
    st.tuples(st.just("turn"), st.integers(-DAY, DAY)),
    st.tuples(st.just("pause"), st.just(0)),
    st.tuples(st.just("activate"), st.just(0)),
    st.tuples(st.just("pause_until"), st.integers(1, DAY)),
    st.tuples(st.just("resume"), st.just(0)),
    st.tuples(st.just("skip_next"), st.just(0)),
    st.tuples(st.just("edit"), st.sampled_from(sorted(RULES))),
)


@dataclass
class Story:
    """What a schedule should do, told by instants alone; `since`: up to where everything is dealt with."""

    rule: Rule
    since: datetime
    last: datetime | None = None
    paused: bool = False
    paused_until: datetime | None = None
    skips: bool = False
    due: list[datetime] = field(default_factory=list)
    """All that ever were."""
    skipped: list[datetime] = field(default_factory=list)

    def start_over(self, at: datetime) -> None:
        self.since = at if self.last is None else max(at, self.last)

    def look(self, now: datetime, *, all_of_them: bool) -> list[datetime]:
        """The instants of the jobs that are to be made."""
        if self.paused and self.paused_until is not None and self.paused_until <= now:
            self.paused_until = None
        if self.paused or (self.paused_until is not None and self.paused_until > now):
            return []
        if self.paused_until is not None:
            self.start_over(self.paused_until)
            self.paused_until = None
        due = list(self._between(self.since, now))
        self.since = max(self.since, now)
        if not due:
            return []
        self.due += due
        self.last = due[-1]
        made = due if all_of_them else due[-1:]
        if self.skips:
            self.skips = False
            self.skipped.append(due[0])
            made = [at for at in made if at != due[0]]
        return made

    def _between(self, since: datetime, now: datetime) -> Iterator[datetime]:
        following = self.rule.next_after(since)
        while following is not None and following <= now:
            yield following
            following = self.rule.next_after(following)


def happen(diary: Diary, row: Schedule, story: Story, act: str, value: Any) -> None:
    stored = Schedule.objects.using(diary.alias).filter(pk=row.pk)
    match act:
        case "turn":
            diary.turn(value)
        case "pause":
            stored.update(active=False)
            story.paused = True
        case "activate" if story.paused:
            stored.update(active=True)
            story.paused = False
            if story.paused_until is None:
                story.start_over(diary.now)
        case "pause_until":
            until = diary.now + timedelta(seconds=value)
            stored.update(active=True, paused_until=until)
            story.paused, story.paused_until = False, until
        case "resume" if story.paused or story.paused_until is not None:
            stored.update(active=True, paused_until=None)
            story.paused, story.paused_until = False, None
            story.start_over(diary.now)
        case "skip_next":
            stored.update(skip_next=True)
            story.skips = True
        case "edit" if story.rule != RULES[value][1]:
            stored.update(**RULES[value][0])
            story.rule = RULES[value][1]
            story.start_over(diary.now)


@pytest.mark.parametrize("catch_up", ["all", "coalesce"])
@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=st.sampled_from(sorted(RULES)), acts=st.lists(ACTS, min_size=5, max_size=25))
def test_each_instant_outside_pauses_is_dealt_with_once_and_in_order(
    database: str, catch_up: str, first: str, acts: list[tuple[str, Any]]
) -> None:
    Schedule.objects.using(database).all().delete()  # of the example before
    diary = Diary(database)
    diary.turn(12 * DAY)
    fields, rule = RULES[first]
    row = diary.schedule(catch_up=catch_up, catch_up_cap=100, overlap="allow", **fields)
    story = Story(rule, diary.now)
    made: list[datetime] = []
    for act, value in acts:
        happen(diary, row, story, act, value)
        expected = story.look(diary.now, all_of_them=catch_up == "all")
        found = []
        while attend(diary.bench.db).due:
            found += diary.fire()
        assert found == expected, (act, value, diary.now - START)
        made += found
        row.refresh_from_db()
        assert row.next_run_at is None or row.next_run_at > diary.now
    assert made == sorted(set(made))
    skipped = row.occurrences.using(database).filter(outcome="skipped").values_list("planned_at", flat=True)
    assert sorted(skipped) == story.skipped
    assert len(made) + len(story.skipped) + row.missed == len(story.due)
