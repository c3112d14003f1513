"""What pages: the composite alarm, once per incident; if asked for, not during a deployment."""

from __future__ import annotations

from typing import Any

import pytest

from tests.depth import sampled

from .conftest import MINUTE, Pager, shares

ENDPOINTS = ("pager", "quiet", "two")


# The series with EndpointConfigName: never there; during a deployment and for good from then on;
# for good from the first create on.
SERIES: dict[str, dict[str, Any]] = {
    "none": {},
    "lasting": {"deploying": range(3, 13), "lasting": range(13, 60)},
    "from create": {"lasting": range(60)},
}


@pytest.mark.parametrize("series", sampled(SERIES, 2))
@pytest.mark.parametrize(
    ("shape", "minute"),
    [
        # Two of three minutes bad at minute 42; with a suppressor CloudWatch waits a minute for it.
        ("pager", 42),
        ("quiet", 43),
    ],
)
def test_an_incident_pages_once_whatever_deployments_left_behind(world, shape, minute, series):
    pager = Pager(world, shape)
    assert pager.run(60, failing=range(40, 50), **SERIES[series]) == [("ALARM", minute)]
    assert pager.received() == [pager.name]


@pytest.mark.parametrize("shape", ["pager", "quiet"])
def test_one_bad_minute_pages_nobody(world, shape):
    assert Pager(world, shape).run(12, failing=range(3, 4)) == []


def test_nothing_is_held_back_unless_asked_for(world):
    pager = Pager(world)
    assert pager.run(60, failing=range(40, 60), deploying=range(3, 60)) == [("ALARM", 42)]
    assert not {"Quiet", "Deploying", "DeployingTooLong"} & set(world.names["pager"])
    (composite,) = world.cloudwatch.describe_alarms(
        AlarmNames=[pager.name], AlarmTypes=["CompositeAlarm"]
    )["CompositeAlarms"]
    assert "ActionsSuppressor" not in composite


def test_a_deployment_is_quiet_when_asked_for(world):
    pager = Pager(world, "quiet")
    assert pager.run(20, failing=range(5, 12), deploying=range(3, 16)) == []


@pytest.mark.parametrize(
    "failing", [range(5, 30), range(15, 30)], ids=["in the deployment", "in the quiet time"]
)
def test_what_a_deployment_leaves_broken_pages_after_the_quiet_time(world, failing):
    """Minute 9 is the last with both fleets, and among the last ten until minute 19; at 20 the
    suppressor is off, and one minute of extension follows.
    """
    pager = Pager(world, "quiet")
    lasting = range(10, 30)
    assert pager.run(30, failing=failing, deploying=range(3, 10), lasting=lasting) == [
        ("ALARM", 21)
    ]
    assert pager.received() == [pager.name]


@pytest.mark.parametrize(
    ("every", "page", "asleep"),
    [
        # The 60th minute with both fleets is the last that holds back: one to be known, one extension.
        (1, 3 + 59 + 2, range(0)),
        pytest.param(10, 3 + 590 + 2, range(570), marks=pytest.mark.nightly),
        # The suppressor is off for a minute each time, which the extension covers; the 60th time it
        # stays off.
        (11, 3 + 649 + 1, range(100, 620)),
        # Off for two minutes, the first time 11 minutes after minute 3.
        (12, 3 + 11 + 1, range(0)),
    ],
)
def test_pages_are_not_held_back_for_ever(world, every, page, asleep):
    """Both fleets take requests for ever, all the time or just often enough."""
    end = page + 15
    found = Pager(world, "quiet").run(
        end, failing=range(5, end), deploying=range(3, end, every), asleep=asleep
    )
    assert found == [("ALARM", page)]


@pytest.mark.parametrize(
    ("data", "state"),
    [
        ({"Invocations@new": {"Value": 10}, "Invocations": {"Value": 100}}, "ALARM"),
        ({"Invocations@new": {"Value": 100}, "Invocations": {"Value": 100}}, "OK"),
        ({"Invocations@new": {"Value": 0}, "Invocations": {"Value": 100}}, "OK"),
        # One of the two missing or late holds nothing back.
        ({"Invocations@new": {"Value": 10}}, "OK"),
        ({"Invocations": {"Value": 100}}, "OK"),
        ({}, "OK"),
    ],
)
def test_deploying_is_when_both_fleets_take_requests(world, data, state):
    start = next(world.times)
    world.publish("quiet", (start, data))
    world.aws.evaluate_alarms(start + MINUTE)
    assert world.states("quiet")["Deploying"] == world.states("quiet")["Quiet"] == state


@pytest.mark.parametrize(
    ("hour_percent", "last_minutes_percent", "expected"),
    [(20, 0, "OK"), (0, 20, "OK"), (20, 20, "ALARM")],
)
def test_burn_rates_alarm_in_pairs(world, hour_percent, last_minutes_percent, expected):
    """Over the hour and still now: neither a burst that is over nor one that has just begun."""
    start = next(world.times)
    world.publish(
        "pager",
        (start, {"ModelLatency": shares(200_001, 50_000, hour_percent, 50_000)}),
        (start + 58 * MINUTE, {"ModelLatency": shares(200_001, 50_000, last_minutes_percent)}),
    )
    world.aws.evaluate_alarms(start + 60 * MINUTE)
    states = world.states("pager")
    assert states["ModelLatency/BurnRateFast/Long"] == ("ALARM" if hour_percent else "OK")
    assert states["ModelLatency/BurnRateFast/Short"] == ("ALARM" if last_minutes_percent else "OK")
    assert states["Composite"] == expected


def test_two_variants_in_turn_do_not_hold_pages_back_for_ever(world):
    """59 minutes of one, which are not too long yet, then 59 of the other, and so on."""
    one = [*range(3, 590, 10), *range(1183, 1300, 10)]
    other = range(593, 1180, 10)
    assert (len(one[:59]), one[58], len(other)) == (59, 583, 59)
    found = Pager(world, "two").run(
        1200, failing=range(5, 1200), deploying=one, deploying_other=other, asleep=range(1170)
    )
    assert found == [("ALARM", 1183 + 2)]
