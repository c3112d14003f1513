"""Counts, set times and steps: what holds together, and what they say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from low_latency_endpoint.options.option import Declared, options_of, read
from low_latency_endpoint.options.scaling import (
    CapacityStep,
    InstanceCounts,
    ScalingOptions,
    ScalingSchedule,
    ScalingSteps,
    StepUp,
    fewest_scheduled,
    most_scheduled,
    whole_seconds,
)
from low_latency_endpoint.plan.standing_ranges import check_schedule
from tests.refusals import refused


def steps(*pairs: tuple[float, int], **more: Any) -> ScalingSteps:
    return ScalingSteps(adds=[StepUp(requests=at, add=add) for at, add in pairs], **more)


def at_night(name: str = "night", **more: Any) -> ScalingSchedule:
    return ScalingSchedule(name=name, rate="1 day", **more)


# Counts


@pytest.mark.parametrize(
    "counts",
    [
        {"min": 2, "max": 2},
        {"min": 2, "initial": 2, "max": 2},
        {"min": 2, "initial": 2},
        {"min": 2, "initial": 3, "max": 4},
        {"initial": 4, "max": 4},
        {"initial": 1},
    ],
)
def test_the_initial_count_lies_between_the_two_or_is_one_of_them(counts: dict[str, int]) -> None:
    made = InstanceCounts(**counts)
    assert {name: getattr(made, name) for name in counts} == counts


@pytest.mark.parametrize(
    ("counts", "code", "got", "allowed"),
    [
        ({"min": 3, "max": 2}, "LLE621", "3 above 2", "at most 2"),
        ({"min": 3, "initial": 2}, "LLE625", "2", "at least 3"),
        ({"initial": 3, "max": 2}, "LLE625", "3", "at most 2"),
        ({"min": 2, "initial": 1, "max": 4}, "LLE625", "1", "at least 2 and at most 4"),
        ({"min": 2, "initial": 5, "max": 4}, "LLE625", "5", "at least 2 and at most 4"),
    ],
)
def test_counts_that_cannot_be_together(
    counts: dict[str, int], code: str, got: str, allowed: str
) -> None:
    with refused(code, got=got, allowed=allowed):
        InstanceCounts(**counts)


# Set times


@pytest.mark.parametrize(
    ("when", "expression"),
    [
        # The examples of Application Auto Scaling's PutScheduledAction.
        ({"cron": "15 12 * * ? *"}, "cron(15 12 * * ? *)"),
        ({"cron": "0 8 ? * 2#1 *", "time_zone": "Europe/Berlin"}, "cron(0 8 ? * 2#1 *)"),
        ({"at": "2030-01-31T17:00:00"}, "at(2030-01-31T17:00:00)"),
        ({"at": "2030-01-31T17:00:00", "time_zone": "Etc/UTC"}, "at(2030-01-31T17:00:00)"),
        ({"rate": "1 day"}, "rate(1 day)"),
        ({"rate": "30 minutes"}, "rate(30 minutes)"),
        ({"rate": "2 hours"}, "rate(2 hours)"),
    ],
)
def test_times_are_written_as_application_auto_scaling_takes_them(
    when: dict[str, str], expression: str
) -> None:
    assert ScalingSchedule(name="change", min=2, **when).expression == expression


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ({"cron": "15 12 * * ?"}, "LLE612"),  # five fields are a crontab's
        ({"cron": "15 12 * * ? * *"}, "LLE612"),
        ({"at": "2030-01-31T17:00"}, "LLE612"),
        ({"at": "2030-01-31 17:00:00"}, "LLE612"),
        ({"rate": "0 days"}, "LLE612"),
        ({"rate": "1 week"}, "LLE612"),
        ({"rate": "1 day", "time_zone": "Etc/UTC"}, "LLE613"),
        ({"cron": "15 12 * * ? *", "time_zone": "Europe/Bonn"}, "LLE613"),
        ({"at": "2030-01-31T17:00:00", "time_zone": "CEST-2"}, "LLE613"),
        ({}, "LLE927"),
        ({"rate": "1 day", "at": "2030-01-31T17:00:00"}, "LLE927"),
    ],
)
def test_times_that_are_none(when: dict[str, str], code: str) -> None:
    with refused(code):
        ScalingSchedule(name="change", min=2, **when)


@pytest.mark.parametrize("name", ["a", "a b", "für 夜", "a*b?", "n" * 256])
def test_a_set_time_may_have_any_name_that_application_auto_scaling_takes(name: str) -> None:
    assert at_night(name, min=2).name == name


@pytest.mark.parametrize(
    "name", ["", " ", " a", "a ", "a:b", "a/b", "a|b", "a\tb", "a\x7fb", "a\x9fb", "n" * 257]
)
def test_names_that_application_auto_scaling_refuses(name: str) -> None:
    """ScheduledActionName's pattern and length, in the API reference of PutScheduledAction."""
    with refused("LLE611"):
        at_night(name, min=2)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"min": 2}, "at least 2 instances"),
        ({"max": 4}, "at most 4 instances"),
        ({"min": 2, "max": 4}, "2 to 4 instances"),
        ({"min": 4, "max": 4}, "4 to 4 instances"),
    ],
)
def test_a_set_time_changes_one_end_of_the_range_or_both(change: dict[str, int], text: str) -> None:
    assert at_night(**change).text == text


def test_a_set_time_without_a_range_is_refused() -> None:
    with refused("LLE627", got="neither", allowed="min, max or both"):
        at_night()
    with refused("LLE621", got="5 above 4", allowed="at most 4"):
        at_night(min=5, max=4)


def test_the_fewest_and_the_most_are_those_of_any_set_time() -> None:
    schedule = [at_night(min=1), at_night(max=9), at_night(min=3, max=12)]
    assert (fewest_scheduled(schedule, 2), most_scheduled(schedule, 10)) == (1, 12)
    assert (fewest_scheduled(schedule[1:], 2), most_scheduled(schedule[:2], 10)) == (2, 10)
    assert (fewest_scheduled([], 2), most_scheduled([], 10)) == (2, 10)


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        # The end that is not stated stays as it is: 2 to 4, or what the other action left of it.
        ([{"min": 4}, {"max": 4, "name": "morning"}], "", ""),
        ([{"min": 4}, {"max": 2, "name": "morning"}], "LLE621", "schedule[0]"),
        ([{"min": 5}], "LLE621", "schedule[0]"),
        ([{"min": 5, "max": 8}], "", ""),
        ([{"min": 3}, {"max": 1, "name": "morning"}], "LLE621", "schedule[1]"),
        ([{"min": 3}, {"min": 4}], "LLE626", "schedule[1]"),
        *(
            ([{"min": 3, "name": name}], "LLE626", "schedule[0]")
            for name in ("Concurrency", "Invocations", "Steps")
        ),
    ],
)
def test_set_times_have_a_range_beside_the_usual_one_and_a_name_of_their_own(
    changes: list[dict[str, Any]], code: str, where: str
) -> None:
    schedule = [at_night(**change) for change in changes]
    if not code:
        check_schedule(schedule, 2, 4)
        return
    with refused(code, where=where):
        check_schedule(schedule, 2, 4)


# Steps


def test_steps_count_from_the_lowest_however_they_are_listed() -> None:
    """Step scaling takes distances to the alarm's threshold, as its user guide has it."""
    for made in (steps((8, 2), (16, 4), (40, 5)), steps((40, 5), (8, 2), (16, 4))):
        assert made.threshold == 8
        assert made.steps == (
            CapacityStep(0, 8, 2),
            CapacityStep(8, 32, 4),
            CapacityStep(32, None, 5),
        )
        assert made.text == "2 from 8, 4 from 16, 5 from 40 requests in flight per instance on"
    by_minute = steps((900, 1), metric="invocations")
    assert by_minute.steps == (CapacityStep(0, None, 1),)
    assert by_minute.text == "1 from 900 requests a minute per instance on"


@pytest.mark.parametrize(
    ("pairs", "got"),
    [
        ([], "no steps"),
        ([(8, 2), (8, 4)], "2 from 8 on, 4 from 8 on"),
        ([(8, 2), (16, 2)], "2 from 8 on, 2 from 16 on"),
        ([(16, 1), (8, 2)], "2 from 8 on, 1 from 16 on"),
    ],
)
def test_a_higher_step_adds_more(pairs: list[tuple[float, int]], got: str) -> None:
    with refused("LLE628", got=got):
        steps(*pairs)


@pytest.mark.parametrize(
    ("requests", "valid"), [(1e-6, True), (0.5, True), (0, False), (-1, False)]
)
def test_a_step_begins_above_nothing(requests: float, valid: bool) -> None:
    if valid:
        assert StepUp(requests=requests, add=1).requests == requests
    else:
        with refused("LLE614"):
            StepUp(requests=requests, add=1)


@pytest.mark.parametrize(("periods", "valid"), [(0, False), (1, True), (10, True), (11, False)])
def test_a_step_waits_for_one_to_ten_periods(periods: int, valid: bool) -> None:
    if valid:
        assert steps((8, 2), periods=periods).periods == periods
    else:
        with refused("LLE615"):
            steps((8, 2), periods=periods)


TOKEN = -1.8881545897087503e289  # as the CDK encodes numbers that CloudFormation knows


def made(name: str, value: Any) -> object:
    if name == "periods":
        return steps((8, 2), periods=value)
    return StepUp(**{"requests": 8, "add": 1, name: value})


@pytest.mark.parametrize(
    ("name", "code"), [("requests", "LLE614"), ("add", "LLE364"), ("periods", "LLE615")]
)
def test_the_numbers_of_steps_are_numbers_that_are_known(name: str, code: str) -> None:
    with refused(code, got="a token"):
        made(name, TOKEN)
    with refused("LLE807"):
        made(name, "many")


# All of them


@pytest.mark.parametrize(
    ("given", "code", "got"),
    [
        ({"metric": "concurrency"}, "LLE928", "concurrency without concurrency_target"),
        (
            {"metric": "concurrency", "concurrency_target": 4, "invocations_target": 9},
            "LLE929",
            "metric: concurrency",
        ),
        ({"metric": "invocations", "concurrency_target": 4}, "LLE929", "metric: invocations"),
        # Without a metric it is the default.
        ({"concurrency_target": 4}, "LLE929", "metric: invocations"),
        ({"keep_counts": False}, "LLE512", "keep_counts is off, and enabled is on"),
    ],
)
def test_a_target_belongs_to_its_metric_and_kept_counts_to_scaling(
    given: dict[str, Any], code: str, got: str
) -> None:
    with refused(code, got=got):
        ScalingOptions(**given)


ASKED: list[dict[str, Any]] = [
    {"invocations_target": 90},
    {"metric": "invocations", "invocations_target": 90},
    {"metric": "concurrency", "concurrency_target": 4},
    {"schedule": [at_night(min=2)]},
    {"steps": steps((8, 2))},
]
PACE: list[dict[str, Any]] = [
    {"scale_in_cooldown": timedelta(minutes=9)},
    {"scale_out_cooldown": timedelta(minutes=2)},
    {"instance_start": timedelta(minutes=12)},
]


@pytest.mark.parametrize("given", ASKED)
def test_a_target_set_times_and_steps_ask_for_scaling(given: dict[str, Any]) -> None:
    assert ScalingOptions(**given).is_asked_for


@pytest.mark.parametrize(
    "given", [{}, {"metric": "invocations"}, {"enabled": False, "keep_counts": False}, *PACE]
)
def test_nothing_else_asks_for_scaling(given: dict[str, Any]) -> None:
    assert not ScalingOptions(**given).is_asked_for


@pytest.mark.parametrize("given", [*ASKED, *PACE])
def test_a_fixed_fleet_has_none_of_what_a_policy_would_do(given: dict[str, Any]) -> None:
    ScalingOptions(**given)
    with refused("LLE629") as raised:
        ScalingOptions(enabled=False, **given)
    assert raised.value.where.removeprefix("ScalingOptions, ") in given


@pytest.mark.parametrize(
    ("stated", "seconds"), [(None, None), (timedelta(0), 0), (timedelta(minutes=5), 300)]
)
def test_durations_are_whole_seconds(stated: timedelta | None, seconds: int | None) -> None:
    assert whole_seconds(stated) == seconds


@pytest.mark.parametrize(
    "option",
    [each for each in options_of(ScalingOptions) if each.name not in ("enabled", "keep_counts")],
    ids=lambda each: each.name,
)
def test_nothing_is_dropped_in_silence_where_nothing_scales(option: Declared) -> None:
    """Also of an option that somebody adds, whatever its name."""
    stated = {option.name: True} if option.option.example is None else {}
    stated = stated or {option.name: option.option.example}
    _, found = read(ScalingOptions, {"enabled": False, **stated})
    told = [place for place, error in found if error.code == "LLE629"]
    assert told == [(option.name,)]
