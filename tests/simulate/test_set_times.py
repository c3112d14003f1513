"""Set times in a simulation: the ranges of a schedule, other peaks of the day, or that they are left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.plan.recorded_traffic import recording_of
from low_latency_endpoint.plan.traffic_shapes import Shape, shape
from low_latency_endpoint.settings import parse_settings, plan_endpoint
from low_latency_endpoint.simulate import simulate
from low_latency_endpoint.simulate.assumptions import SimulatedEndpoint, model_of_plan
from low_latency_endpoint.simulate.auto_scaling import AutoScaling
from tests.depth import examples

DAY = 1440  # minutes
WEEK = 7 * DAY
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
#: An instance is aimed at 6 requests a minute: ten at the peak.
LOAD = {"peak_tps": 1, "tps_per_instance": 0.2, "safety_factor": 0.5}
NIGHT = {"name": "night", "cron": "0 22 * * ? *", "min": 2}
DAILY = shape("daily-wave")
WEEKLY = Shape(
    "week", "a week", tuple((43_200.0 * half, 0.2 + 0.6 * (half % 2)) for half in range(1, 15))
)

Action = dict[str, Any]


def text_of(
    schedule: Sequence[Action] = (), load: Any = None, latency: str = "20s", **throughput: Any
) -> str:
    endpoint: dict[str, Any] = {
        "instance_type": "ml.m5.xlarge",
        "containers": [{"image": {"uri": "a/b:1"}}],
        "latency": {"p99": latency},
        "throughput": (load or LOAD) | throughput,
        "instances": {"min": 3, "max": 20},
    }
    if schedule:
        endpoint["scaling"] = {"schedule": [*schedule]}
    zones = {"ids": ["use1-az1", "use1-az2"]}
    return yaml.safe_dump({"client_zones": zones, "endpoints": {"e": endpoint}})


def model_of(text: str, service_seconds: float = 1.0) -> SimulatedEndpoint:
    read = parse_settings(text)
    return model_of_plan(
        plan_endpoint(read, "e"),
        throughput=read.endpoints["e"].throughput,
        service_seconds=service_seconds,
    )


# --- ranges --------------------------------------------------------------------------------------


@st.composite
def schedules(draw: st.DrawFn) -> list[Action]:
    """Actions in one time zone, each at its own minute of the day."""
    zone = draw(st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]))
    minutes = draw(st.lists(st.integers(0, DAY - 1), min_size=1, max_size=5, unique=True))
    actions = []
    for number, minute in enumerate(minutes):
        days = draw(st.sampled_from(["*", *WEEKDAYS]))
        action: Action = {
            "name": f"a{number}",
            "cron": f"{minute % 60} {minute // 60} {'*' if days == '*' else '?'} * "
            f"{'?' if days == '*' else days} *",
            "time_zone": zone,
        }
        # No minimum above 8 and no maximum below it, so that they never cross.
        which = draw(st.sampled_from(["min", "max", "both"]))
        if which != "max":
            action["min"] = draw(st.integers(2, 8))
        if which != "min":
            action["max"] = draw(st.integers(8, 14))
        actions.append(action)
    return actions


def naive_ranges(schedule: Sequence[Action]) -> list[tuple[int, int]]:
    """The range in each minute of a week, minute by minute, after two weeks of the schedule."""
    low, high = 3, 20
    ranges = []
    for minute in range(3 * WEEK):
        for action in schedule:
            parts = action["cron"].split(" ")
            at = 60 * int(parts[1]) + int(parts[0])
            today = parts[4] == "?" or parts[4] == WEEKDAYS[minute // DAY % 7]
            if today and at == minute % DAY:
                low = action.get("min", low)
                high = action.get("max", high)
        ranges.append((low, high))
    return ranges[2 * WEEK :]


@pytest.mark.parametrize("traffic", [DAILY, WEEKLY], ids=["day", "week"])
@settings(max_examples=examples(25), deadline=None)
@given(schedule=schedules())
def test_ranges_stand_as_the_schedule_sets_them(traffic: Shape, schedule: list[Action]) -> None:
    scaling = model_of(text_of(schedule)).over_time(traffic).scaling
    assert scaling is not None
    changes = {limits.at / 60: (limits.minimum, limits.maximum) for limits in scaling.limits}
    stands = (scaling.minimum, scaling.maximum)
    for minute, wanted in enumerate(naive_ranges(schedule)[: int(traffic.seconds / 60)]):
        stands = changes.pop(minute, stands)
        assert stands == wanted, minute
    assert not changes


@pytest.mark.parametrize("traffic", [DAILY, WEEKLY], ids=["day", "week"])
@settings(max_examples=examples(4), deadline=None)
@given(schedule=schedules())
def test_the_fleet_stays_within_the_range_that_stands(
    traffic: Shape, schedule: list[Action]
) -> None:
    """Within five minutes, the longest update of the endpoint that a new range waits for."""
    desired: list[int] = []
    original = AutoScaling._end_of_period

    def recorded(scaling: AutoScaling) -> None:
        desired.append(scaling.control.desired)
        original(scaling)

    scenario = model_of(text_of(schedule)).over_time(traffic)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AutoScaling, "_end_of_period", recorded)
        simulate(scenario, seconds=traffic.seconds, replications=2)
    minutes = int(traffic.seconds / 60)
    ranges = naive_ranges(schedule)[:minutes]
    assert ranges[0][0] <= scenario.instances <= ranges[0][1]
    first = desired[: minutes - 1]  # of the first replication, at the end of each minute
    assert len(first) == minutes - 1
    for ended, count in enumerate(first, start=1):
        lately = ranges[max(0, ended - 6) : ended + 1]
        if len(set(lately)) == 1:
            low, high = lately[0]
            assert low <= count <= high, (ended, count, low, high)


def test_a_minimum_that_nothing_takes_back_makes_the_morning_late() -> None:
    """At six traffic rises by 2.5 a second each minute to 80, as the plan was told.

    8 instances of 10 a second are there for it; a minimum of 2 leaves 2, as 0.05 x 80 / 6 = 0.7.
    """
    rising = [(21_600.0 + 60 * minute, 0.05 + 2.5 * minute / 80) for minute in range(1, 31)]
    levels = ((21_600.0, 0.05), *rising, (25_200.0, 1.0), (86_400.0, 0.05))
    morning = Shape("morning", "a day", levels)
    load = {
        "peak_tps": 80,
        "tps_per_instance": 10,
        "safety_factor": 0.6,
        "rise_tps_per_minute": 2.5,
    }
    late = {}
    for name, schedule in {"none": [], "night": [NIGHT]}.items():
        text = text_of(schedule, load, "1s").replace("min: 3", "min: 8")
        scenario = model_of(text, 0.09).over_time(morning)
        over = simulate(scenario, seconds=86_400, window=60, replications=2).time_over_target
        assert over is not None
        late[name] = over.mean
    assert late["none"] == 0
    assert late["night"] >= 3 * 60


# --- traffic with dates --------------------------------------------------------------------------

BERLIN = [
    {"name": "night", "cron": "0 22 * * ? *", "time_zone": "Europe/Berlin", "min": 2, "max": 9},
    {"name": "day", "cron": "0 6 * * ? *", "time_zone": "Europe/Berlin", "min": 5, "max": 20},
]


@pytest.mark.parametrize(
    ("first", "begins", "changes"),
    [
        # 13:00 in winter; 22:00 is 21:00 UTC, and 6:00 of the next day 4:00 UTC in summer time.
        ("2026-03-28T12:00:00Z", "Saturday, 2026-03-28 at 13:00 Europe/Berlin", [(9, 2), (16, 5)]),
        ("1774699200", "Saturday, 2026-03-28 at 13:00 Europe/Berlin", [(9, 2), (16, 5)]),
        # Without a zone the clock is that of the set times.
        ("2026-03-28T12:00:00", "Saturday, 2026-03-28 at 12:00 Europe/Berlin", [(10, 2), (18, 5)]),
    ],
)
def test_recorded_dates_have_the_set_times_of_their_hours(
    first: str, begins: str, changes: list[tuple[int, int]]
) -> None:
    assert datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp() == 1774699200
    begin = datetime.fromtimestamp(1774699200, UTC)
    hours = [
        str(int(first) + 3600 * hour)
        if first.isdigit()
        else begin.replace(day=28 + (12 + hour) // 24, hour=(12 + hour) % 24)
        .isoformat()
        .replace("+00:00", first[19:])
        for hour in range(20)
    ]
    recorded = recording_of("\n".join(f"{time},1800" for time in hours), "mine").shape(3600)
    model = model_of(text_of(BERLIN))
    scaling = model.over_time(recorded).scaling
    assert scaling is not None
    assert (scaling.minimum, scaling.maximum) == (5, 20)
    assert [(limits.at / 3600, limits.minimum) for limits in scaling.limits] == changes
    assert any(begins in sentence for sentence in model.assumed_over_time(recorded))
    assert not model.without_set_times(recorded)


def test_seconds_from_a_start_have_no_time_of_day() -> None:
    recorded = recording_of("0,60\n60,60\n120,60", "mine").shape()
    model = model_of(text_of([NIGHT]))
    assert model.without_set_times(recorded) == "the traffic has no time of day"
    assert model.over_time(recorded).scaling == model.scaling


# --- other peaks ---------------------------------------------------------------------------------


@st.composite
def day_peaks(draw: st.DrawFn) -> dict[str, Any]:
    peaks = {}
    for name in draw(st.sampled_from([["a"], ["a", "b"]])):
        begin, end = draw(st.lists(st.integers(0, DAY - 1), min_size=2, max_size=2, unique=True))
        peaks[name] = {
            "tps": draw(st.sampled_from([0.25, 0.5, 2])),
            "from": f"{begin // 60:02}:{begin % 60:02}",
            "to": f"{end // 60:02}:{end % 60:02}",
        }
    return peaks


@settings(max_examples=examples(25), deadline=None)
@given(
    peaks=day_peaks(), rise=st.sampled_from([{}, {"rise_tps_per_minute": 0.01}, {"from_tps": 0.1}])
)
def test_other_peaks_come_at_their_rate(peaks: dict[str, Any], rise: dict[str, float]) -> None:
    traffic = model_of(text_of(peaks=peaks, **rise)).traffic_along(DAILY)
    for minute in range(DAY):
        rates = []
        for peak in peaks.values():
            begin, end = (60 * int(peak[key][:2]) + int(peak[key][3:]) for key in ("from", "to"))
            inside = begin <= minute < end if begin < end else not end <= minute < begin
            if inside:
                rates.append(peak["tps"])
        wanted = max(rates, default=DAILY.share_at(60 * minute + 30))
        assert traffic.share_at(60 * minute + 30) == wanted, minute


# --- what is said --------------------------------------------------------------------------------


def run(folder: Path, text: str, *arguments: str) -> dict[str, Any]:
    path = folder / "endpoint.yaml"
    path.write_text(text, encoding="utf-8")
    command = ["simulate", "--settings", str(path), "--service-time", "1s", "--json"]
    done = CliRunner().invoke(app, [*command, "--replications", "2", *arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


OTHER_ZONE = {"name": "b", "cron": "0 6 * * ? *", "time_zone": "Asia/Tokyo", "min": 3}


@pytest.mark.parametrize(
    ("schedule", "traffic"),
    [
        ([NIGHT], "steady"),
        ([NIGHT], "spike"),
        ([NIGHT, OTHER_ZONE], "daily-wave"),
        ([{"name": "odd", "rate": "2 days", "min": 2}], "daily-wave"),
        ([{"name": "once", "at": "2027-01-01T00:00:00", "min": 2}], "daily-wave"),
        ([NIGHT, {"name": "once", "at": "2027-01-01T00:00:00", "max": 12}], "daily-wave"),
        ([{"name": "first", "cron": "0 6 1 * ? *", "min": 2}], "daily-wave"),
    ],
)
def test_no_verdict_without_set_times_is_unconditional(
    schedule: list[Action], traffic: str, tmp_path: Path
) -> None:
    answer = run(tmp_path, text_of(schedule), "--traffic", traffic)
    assert answer["answer"][0].startswith("Without the settings' set times: ")
    assert any("set times are left out" in said for said in answer["assumed"])
    assert not any("a month" in said for said in answer["answer"])
    counted = run(tmp_path, text_of(), "--traffic", traffic)
    assert not any("set times" in said for said in [*counted["answer"], *counted["assumed"]])


def test_a_steady_answer_is_about_each_peak(tmp_path: Path) -> None:
    """10 instances at 0.1 a second each; 20 for twice as much at night."""
    peaks = {"night": {"tps": 2, "from": "22:00", "to": "06:00"}}
    for arguments in ((), ("--compare-routing",)):
        answer = run(tmp_path, text_of(peaks=peaks), "--requests", "20000", *arguments)
        usual, night = answer["answer"][:2]
        assert usual.startswith("usual peak: ")
        assert night.startswith("night (from 22:00 to 06:00 UTC): ")
        assert "20 instances" in night
        assert [*answer["other_peaks"]] == ["night (from 22:00 to 06:00 UTC)"]
    lone = run(tmp_path, text_of(peaks=peaks), "--requests", "20000", "--tps", "1.5")
    assert "other_peaks" not in lone
