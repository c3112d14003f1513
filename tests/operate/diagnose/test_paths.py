"""Findings about the callers' paths are dated by the runs of the canary that were bad."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pytest

from low_latency_endpoint.facts.canary_metrics import (
    OUT_OF_ZONE_MINUTES,
    PATH_MINUTES,
    UNREACHABLE_MINUTES,
)
from low_latency_endpoint.operate.diagnose.findings import Finding

from .account import MINUTE, FakeAccount
from .conftest import Run
from .faults.fault import watched
from .scenarios import END, ENDPOINT, Scenario, constant

_METRICS = {
    "LLD802": ("CanaryConnectTime", 1.0, 35.0),
    "LLD803": ("CanaryUnreachable", 0.0, 1.0),
    "LLD804": ("CanaryOutOfZone", 0.0, 1.0),
}
#: Minutes of its alarm, and how many of them are to be bad.
_RULES = {
    "LLD802": (PATH_MINUTES, PATH_MINUTES),
    "LLD803": (UNREACHABLE_MINUTES, UNREACHABLE_MINUTES),
    "LLD804": OUT_OF_ZONE_MINUTES,
}
_LENGTH = 40


def _bad_minutes(seed: int, id: str) -> set[int]:
    """A stretch as long as the alarm takes and up to four others, some single minutes, at random."""
    chosen = random.Random(seed)
    lengths = [_RULES[id][1], *chosen.choices([1, 1, 4, 12], k=chosen.randint(0, 4))]
    minutes: set[int] = set()
    for length in lengths:
        first = chosen.randrange(_LENGTH - length)
        minutes |= set(range(first, first + length))
    return minutes


def _finding(id: str, minutes: set[int], run: Run) -> Finding:
    metric, well, bad = _METRICS[id]
    zones = watched(**{metric: lambda minute: bad if minute in minutes else well})
    (finding,) = run(Scenario(minutes=_LENGTH, canary=zones)).findings
    assert finding.id == id
    return finding


def _at(minute: int) -> datetime:
    return END - (_LENGTH - minute) * MINUTE


@pytest.mark.parametrize("id", _METRICS)
@pytest.mark.parametrize("seed", range(12))
def test_dates_are_those_of_bad_runs(id: str, seed: int, run: Run) -> None:
    minutes = _bad_minutes(seed, id)
    for shown in _finding(id, minutes, run).evidence:
        assert shown.start in {_at(minute) for minute in minutes}
        assert shown.end in {_at(minute + 1) for minute in minutes}


@pytest.mark.parametrize("id", _METRICS)
def test_a_stretch_that_is_over(id: str, run: Run) -> None:
    """Twelve minutes of forty, and a single one before: that is in none of the dates."""
    finding = _finding(id, {2, *range(20, 32)}, run)
    assert finding.span == (_at(20), _at(32))
    (shown,) = finding.evidence
    assert "this ended at 03:52" in shown.text, "the window begins at 03:20"
    if id != "LLD802":
        assert "100 %" in shown.text


@pytest.mark.parametrize("id", _METRICS)
def test_a_stretch_that_lasts(id: str, run: Run) -> None:
    finding = _finding(id, set(range(25, _LENGTH)), run)
    assert finding.span == (_at(25), END)
    assert "ended" not in finding.evidence[0].text


@pytest.mark.parametrize("id", _METRICS)
def test_four_stretches_of_which_three_are_shown(id: str, run: Run) -> None:
    length = _RULES[id][1]
    firsts = [0, 11, 22, 33]
    finding = _finding(id, {first + n for first in firsts for n in range(length)}, run)
    assert [shown.start for shown in finding.evidence] == [_at(first) for first in firsts]
    assert "and 1 shorter" in finding.evidence[-1].text


def _alarmed(id: str, minutes: set[int]) -> bool:
    """Whether the alarm is on at any time, minute by minute."""
    whole, needed = _RULES[id]
    return any(
        len(minutes & set(range(end - whole + 1, end + 1))) >= needed for end in range(_LENGTH)
    )


@pytest.mark.parametrize("id", _METRICS)
@pytest.mark.parametrize("seed", range(12))
def test_found_if_and_only_if_the_alarm_is_on(id: str, seed: int, run: Run) -> None:
    chosen = random.Random(seed)
    minutes = {minute for minute in range(_LENGTH) if chosen.random() < 0.2 + 0.04 * seed}
    metric, well, bad = _METRICS[id]
    zones = watched(**{metric: lambda minute: bad if minute in minutes else well})
    found = [finding.id for finding in run(Scenario(minutes=_LENGTH, canary=zones)).findings]
    assert found == [id] * _alarmed(id, minutes)


@pytest.mark.parametrize("id", _METRICS)
def test_one_bad_run_less_than_the_alarm_takes_is_nothing(id: str, run: Run) -> None:
    """Nor are single ones all over the window: with a long one nearly every zone has some."""
    metric, well, bad = _METRICS[id]
    less = {3 + n for n in range(_RULES[id][1] - 1)}
    for minutes in (less, less | set(range(14, _LENGTH, 10))):
        zones = watched(**{metric: lambda minute, those=minutes: bad if minute in those else well})
        assert run(Scenario(minutes=_LENGTH, canary=zones)).findings == ()


@pytest.mark.parametrize("id", _METRICS)
def test_a_week_in_periods_of_five_minutes(id: str, run: Run) -> None:
    """Single bad runs all over a week are nothing; an hour of them is."""
    metric, well, bad = _METRICS[id]
    for hour, found in (((), []), (range(8000, 8060), [id])):
        zones = watched(**{metric: lambda m, h=hour: bad if m % 97 == 0 or m in h else well})
        made = run(Scenario(minutes=6 * 1440, canary=zones, tps=constant(0.01)))
        assert made.measurements.period == 5 * MINUTE
        assert [finding.id for finding in made.findings] == found


# -------------------------------------------------------------------------------- silence


def _silent(first: int, last: int = _LENGTH, **scenario: Any) -> FakeAccount:
    """The canary in one of two zones publishes nothing in some minutes."""
    account = Scenario(minutes=_LENGTH, canary=watched(), **scenario).account()
    for key in account.data:
        if key[0] == "LowLatencyEndpoint" and ("Zone", "use1-az1") in key[2]:
            kept = account.data[key].items()
            account.data[key] = {t: v for t, v in kept if not _at(first) <= t < _at(last)}
    return account


def _alarm_on(zone: str) -> dict[str, Any]:
    dimensions = {"EndpointName": ENDPOINT, "Zone": zone}
    return {
        "AlarmName": f"unreachable-{zone}",
        "Metrics": [
            {
                "Id": "unreachable",
                "MetricStat": {
                    "Metric": {
                        "Namespace": "LowLatencyEndpoint",
                        "MetricName": "CanaryUnreachable",
                        "Dimensions": [{"Name": n, "Value": v} for n, v in dimensions.items()],
                    },
                    "Period": 60,
                    "Stat": "Maximum",
                },
                "ReturnData": False,
            },
            {"Id": "expr", "Expression": "FILL(unreachable, 1)", "ReturnData": True},
        ],
        "Threshold": 0.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "StateValue": "OK",
    }


def test_a_canary_that_falls_silent(run: Run) -> None:
    made = run(_silent(10))
    (finding,) = made.findings
    assert (finding.id, made.healthy) == ("LLD805", False)
    assert [each.text for each in finding.evidence] == [
        "the canary in use1-az1 has been silent since 03:30"
    ]


def test_a_silence_that_is_over(run: Run) -> None:
    (finding,) = run(_silent(10, 20)).findings
    assert finding.evidence[0].text == "the canary in use1-az1 was silent from 03:30 to 03:40"


@pytest.mark.parametrize(("first", "last"), [(0, 10), (36, _LENGTH), (20, 24)])
def test_what_is_no_silence(first: int, last: int, run: Run) -> None:
    """Before the first run, what CloudWatch does not have yet, and less than the alarm takes."""
    assert run(_silent(first, last)).findings == ()


def test_a_canary_silent_all_the_time_is_told_where_an_alarm_waits_for_it(run: Run) -> None:
    """CloudWatch lists its metrics for two weeks, also of a zone that was removed."""
    account = _silent(0)
    key = next(each for each in account.data if ("Zone", "use1-az1") in each[2])
    assert account.data[key] == {}, "listed, and without data"
    assert run(account).findings == ()
    account.alarms.append(_alarm_on("use1-az2"))
    assert run(account).findings == (), "the zone was removed"
    account.alarms.append(_alarm_on("use1-az1"))
    (finding,) = run(account).findings
    assert "silent since before 03:20" in finding.evidence[0].text


def test_a_zone_that_was_removed_within_the_window_is_not_missed(run: Run) -> None:
    account = _silent(10)
    account.alarms.append(_alarm_on("use1-az2"))
    assert run(account).findings == ()


# -------------------------------------------------------------------------------- answers


def _answers(first: int, last: int, late: float, **scenario: Any) -> Scenario:
    zones = watched(CanaryAnswerTime=lambda m: late if first <= m < last else 50)
    return Scenario(canary=zones, **scenario)


def test_answers_of_one_zone_are_late(run: Run) -> None:
    (finding,) = run(_answers(30, 60, 2500)).findings
    assert finding.id == "LLD806"
    assert (
        "answers take 2,500 ms from use1-az1 (median), from the other zones 50 ms; connecting takes "
        "1 ms" in finding.evidence[0].text
    )


@pytest.mark.parametrize(
    ("first", "last", "late"),
    [
        (30, 40, 2500),  # two medians of five minutes
        (0, 60, 85),  # less than the limit of OverheadLatency, 40 ms
        (0, 60, 95),  # not twice as long, and no alarm says less
    ],
)
def test_a_difference_that_no_alarm_would_be_on_for(
    first: int, last: int, late: float, run: Run
) -> None:
    assert run(_answers(first, last, late)).findings == ()


def test_all_zones_late_is_no_difference(run: Run) -> None:
    zones = watched()
    zones = {zone: {**seen, "CanaryAnswerTime": constant(2500)} for zone, seen in zones.items()}
    assert run(Scenario(canary=zones)).findings == ()


def test_a_slow_path_explains_late_answers(run: Run) -> None:
    zones = watched(CanaryConnectTime=constant(35), CanaryAnswerTime=constant(190))
    assert [finding.id for finding in run(Scenario(canary=zones)).findings] == ["LLD802"]
