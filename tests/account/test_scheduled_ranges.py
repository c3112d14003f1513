"""Limits of a scalable target by the hour: what is due now is no drift, anything else is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from low_latency_endpoint.account.drift import range_differences

NIGHT, DAY, USUAL = (4, 6), (5, 33), (3, 40)
MIDNIGHT = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)  # Monday's begin in Berlin
LONG_AGO = MIDNIGHT - timedelta(days=30)


def limits(pair: tuple[int, int]) -> dict[str, int]:
    return {"MinCapacity": pair[0], "MaxCapacity": pair[1]}


def action(time: str, pair: tuple[int, int], zone: str = "Europe/Berlin") -> dict[str, Any]:
    return {"Schedule": time, "Timezone": zone, "ScalableTargetAction": limits(pair)}


BY_NIGHT, BY_DAY = action("cron(0 23 * * ? *)", NIGHT), action("cron(51 5 * * ? *)", DAY)
STATED = {**limits(USUAL), "ScheduledActions": [BY_NIGHT, BY_DAY]}


def told(
    found: tuple[int, int], now: datetime, updated: datetime = LONG_AGO, **changes: Any
) -> list[str]:
    differing = range_differences({**STATED, **changes}, limits(found), now, updated)
    return [str(each) for each in differing]


@pytest.mark.parametrize("hour", range(7 * 24))
def test_what_is_due_at_an_hour_is_no_drift_and_every_other_pair_is(hour: int) -> None:
    now = MIDNIGHT + timedelta(hours=hour, minutes=30)
    due, other = (DAY, NIGHT) if 6 <= hour % 24 < 23 else (NIGHT, DAY)
    assert told(due, now) == []
    assert told(USUAL, now) == []  # a deployment has sent it
    assert told(other, now) != []
    assert told((due[0], other[1]), now) == [
        f"MaxCapacity is {other[1]}, the template says {due[1]}"
    ]


def test_an_action_may_come_some_minutes_late() -> None:
    evening = MIDNIGHT + timedelta(hours=23)
    assert told(DAY, evening + timedelta(minutes=3)) == []
    assert told(NIGHT, evening) == []
    assert told(DAY, evening + timedelta(minutes=7)) != []


@pytest.mark.parametrize(
    ("schedule", "updated", "now"),
    [
        # Since the deployment no action has run: the former schedule's range may stand.
        ([BY_NIGHT, BY_DAY], MIDNIGHT + timedelta(hours=11), MIDNIGHT + timedelta(hours=12)),
        # A night whose clock changes may have skipped an action.
        ([BY_NIGHT, BY_DAY], LONG_AGO, datetime(2026, 3, 30, 12, tzinfo=UTC)),
        # The hours are not worked out.
        ([BY_NIGHT, action("cron(51 5 15 * ? *)", DAY)], LONG_AGO, MIDNIGHT),
        ([BY_NIGHT, action("cron(51 5 * * ? *)", DAY, "UTC")], LONG_AGO, MIDNIGHT),
        ([BY_NIGHT, action("at(2026-11-27T08:00:00)", DAY)], LONG_AGO, MIDNIGHT),
    ],
)
def test_where_the_clock_decides_nothing_any_range_may_stand_and_no_other_pair(
    schedule: list[dict[str, Any]], updated: datetime, now: datetime
) -> None:
    for pair in (NIGHT, DAY, USUAL):
        assert told(pair, now, updated, ScheduledActions=schedule) == []
    assert told((DAY[0], NIGHT[1]), now, updated, ScheduledActions=schedule) != []


@pytest.mark.parametrize(
    ("found", "differing"),
    [((1, 6), ["MinCapacity is 1, the template says 3"]), (NIGHT, []), ((3, 99), [])],
)
def test_numbers_that_are_no_literals_are_not_compared(
    found: tuple[int, int], differing: list[str]
) -> None:
    assert told(found, MIDNIGHT, MaxCapacity={"Ref": "Most"}) == differing
