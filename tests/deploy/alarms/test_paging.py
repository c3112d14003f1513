"""What pages: the composite alarm, once per incident, not during a deployment."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

MINUTE = timedelta(minutes=1)


def shares(high: float, low: float, percent: float, count: int = 1000) -> dict[str, Any]:
    """Values of which a share is high."""
    many = count * percent / 100
    return {"Values": [high, low], "Counts": [many, count - many]}


class Pager:
    """A quarter of an hour of the pager's endpoint, minute by minute."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.name = world.names["pager"]["Composite"]
        self.start = next(world.times)
        # Long enough for what an earlier test left to be said and over.
        world.aws.evaluate_alarms(self.start, since=self.start - 40 * MINUTE)
        self.before = len(self.taken())
        self.received()

    def taken(self) -> list[tuple[str, int]]:
        """What the pager's alarms did: the state and the minute."""
        names = set(self.world.names["pager"].values())
        return [
            (a["StateValue"], round((datetime.strptime(a["Time"], "%Y-%m-%dT%H:%M:%S.%f%z")
                                     - self.start) / MINUTE))
            for a in self.world.aws.alarm_actions() if a["AlarmName"] in names
        ]

    def received(self) -> list[str]:
        """The alarms that the topic's subscriber has been told of since the last question."""
        sqs, found = self.world.aws.client("sqs"), []
        while got := sqs.receive_message(
            QueueUrl=self.world.queue, MaxNumberOfMessages=10
        ).get("Messages"):
            for message in got:
                sqs.delete_message(
                    QueueUrl=self.world.queue, ReceiptHandle=message["ReceiptHandle"])
                found.append(json.loads(json.loads(message["Body"])["Message"])["AlarmName"])
        return found

    def run(self, minutes: int, *, failing: range, deploying: range = range(0)) -> list[Any]:
        for minute in range(minutes):
            now = self.start + minute * MINUTE
            data = {"Invocation5XXErrors": shares(1, 0, 50 if minute in failing else 0),
                    "Invocations": shares(1, 1, 0)}
            if minute in deploying:
                data["Invocations@new"] = {"Value": 100}
            self.world.publish("pager", (now, data))
            self.world.aws.evaluate_alarms(now + MINUTE)
        return self.taken()[self.before:]


def test_an_incident_pages_once(world):
    pager = Pager(world)
    # Two of three minutes bad at minute 5; then CloudWatch waits two minutes for the suppressor.
    assert pager.run(20, failing=range(3, 15)) == [("ALARM", 7)]
    assert pager.received() == [pager.name]


def test_one_bad_minute_pages_nobody(world):
    assert Pager(world).run(12, failing=range(3, 4)) == []


def test_a_deployment_is_quiet(world):
    pager = Pager(world)
    assert pager.run(20, failing=range(5, 12), deploying=range(3, 16)) == []


def test_what_a_deployment_leaves_broken_pages_after_the_quiet_time(world):
    """The last request to the new fleet (minute 9) keeps the suppressor on while it is in the
    alarm's evaluation range of 10 + 2 periods, to minute 22; one minute of extension follows.
    """
    pager = Pager(world)
    assert pager.run(30, failing=range(5, 30), deploying=range(3, 10)) == [("ALARM", 23)]
    assert pager.received() == [pager.name]


def test_what_breaks_within_the_quiet_time_waits_for_its_end(world):
    """By the suppressor's own length: an extension would end with the composite's first change
    (example 6 of "Suppressing composite alarm actions"), and page at minute 19.
    """
    pager = Pager(world)
    assert pager.run(30, failing=range(15, 30), deploying=range(3, 10)) == [("ALARM", 23)]


@pytest.mark.parametrize(("hour_percent", "last_minutes_percent", "expected"), [
    (20, 0, "OK"), (0, 20, "OK"), (20, 20, "ALARM"),
])
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
