"""No result can be made with a number that cannot be right, so no printer can show one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from low_latency_endpoint.account import metrics
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.metrics import Query, read_queries
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError, SettingsError
from low_latency_endpoint.errors.impossible import falling, mean_out_of_percentiles
from low_latency_endpoint.load_test.compare.comparison import Difference
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import Step, StepResult
from low_latency_endpoint.load_test.search.bounds import Bounds, quantile_bounds
from low_latency_endpoint.load_test.search.limit_search import Limit
from low_latency_endpoint.operate.diagnose.diagnosis import BreakdownRow, Onset, Split
from low_latency_endpoint.plan import endpoint_decisions, latency_plan
from low_latency_endpoint.plan.billed_items import BilledItem
from low_latency_endpoint.plan.decisions import Decision
from low_latency_endpoint.plan.fleet_under_load import Fleet
from low_latency_endpoint.plan.hourly_cost import CostAlong, EndpointCost, LoadTestCost
from low_latency_endpoint.plan.scaling_pace import FleetAlong
from low_latency_endpoint.settings import variant_plans
from low_latency_endpoint.simulate import (
    Exponential,
    OpenLoop,
    Replication,
    Scenario,
    Shape,
    ShapedLoop,
    simulate,
)
from low_latency_endpoint.simulate import simulating as simulating_module
from low_latency_endpoint.simulate.estimates import Estimate
from low_latency_endpoint.simulate.replication import TimelineWindow
from low_latency_endpoint.simulate.simulating import SimulationResult
from low_latency_endpoint.simulate.wording import milliseconds, shape_sentence

SETTINGS = Path(__file__).parents[1] / "sentiment.yaml"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
REPLICATION = Replication(
    requests=1000,
    seconds=100.0,
    mean=0.05,
    waiting=0.01,
    percentiles={50.0: 0.04, 90.0: 0.09, 95.0: 0.1, 99.0: 0.15, 99.9: 0.2},
    longest=0.25,
    throughput=5.0,
    utilisation=0.4,
    in_system=0.5,
    slow_share=0.02,
    failed=3,
    instance_hours=0.05,
    mean_service=0.04,
    mean_gap=0.1,
    littles_law=0.0,
    entered=1003,
)
#: A sound result of each kind, and the code of its error.
SOUND: list[tuple[Any, str]] = [
    (Estimate(0.1, 0.01), "LLS150"),
    (REPLICATION, "LLS150"),
    (
        TimelineWindow(
            begin=1.0,
            end=2.0,
            requests=9,
            p50=0.1,
            p99=0.2,
            slow=1,
            failed=0,
            serving=2,
            launched=2,
            in_flight=1,
        ),
        "LLS150",
    ),
    (Fleet(at_peak=3, minimum=2, initial=3, maximum=4), "LLE640"),
    (Decision(name="a", value=5, rule="b"), "LLE640"),
    (FleetAlong(least=1, mean=2.0, most=3, tps=5.0), "LLE640"),
    (BilledItem(what="a", item="b", per_hour=2.0, price=None), "LLE640"),
    (CostAlong(usd_per_hour=2.0, requests_per_hour=5.0), "LLE640"),
    (
        EndpointCost(
            instance_type="a",
            at_least=1,
            at_first=2,
            at_most=3,
            in_an_update=4,
            price=None,
            peak_tps=3.0,
            at_peak=2,
        ),
        "LLE640",
    ),
    (
        LoadTestCost(
            instance_type="a", instances=1, seconds=60.0, price=None, tps_per_instance=2.0
        ),
        "LLE640",
    ),
    (StepResult(step=Step("a", 10.0, users=1), started_at=1.0, ended_at=11.0), "LLT176"),
    (Bounds(value=0.1, low=0.05, high=0.2, samples=100), "LLT176"),
    (
        Limit(rate=10.0, broken_rate=11.0, instances=1, confidence=0.95, confirmed=True, how=""),
        "LLT176",
    ),
    (
        Difference(
            statistic="p99",
            base=0.2,
            other=0.1,
            change=-0.5,
            low=-0.6,
            high=-0.4,
            would_see=0.1,
            beyond=20,
            reliable=True,
        ),
        "LLT176",
    ),
    (
        BreakdownRow(
            name="a",
            requests=5.0,
            share=0.5,
            model_average_ms=1.0,
            model_p99_ms=2.0,
            overhead_average_ms=0.1,
            cpu_percent=5.0,
        ),
        "LLD907",
    ),
    (Split(part="a", p50=1.0, p90=2.0, p99=3.0, average=1.5, worst=None), "LLD907"),
    (
        Onset(
            variant="a",
            metric="b",
            statistic="p99",
            limit=1.0,
            before=0.5,
            since=2.0,
            start=NOON,
            until=None,
        ),
        "LLD907",
    ),
]
#: Where infinity is an answer: bounds without an end, and an interval that tells nothing.
ENDLESS = {("Bounds", "high"), ("Estimate", "half_width")}
#: Where a number below zero is one: changes, and estimates of changes.
SIGNED = {("Estimate", "mean")}


def numbers_of(result: Any) -> list[str]:
    return [
        field.name
        for field in fields(result)
        if isinstance(getattr(result, field.name), (int, float))
        and not isinstance(getattr(result, field.name), bool)
    ]


CASES = [
    pytest.param(result, name, value, code, id=f"{type(result).__name__}.{name}={value}")
    for result, code in SOUND
    for name in numbers_of(result)
    for value in (math.nan, math.inf, -math.inf, -2.0)
    if not (value == math.inf and (type(result).__name__, name) in ENDLESS)
    and not (value == -2.0 and (type(result).__name__, name) in SIGNED)
]


@pytest.mark.parametrize(("result", "name", "value", "code"), CASES)
def test_no_number_of_a_result_is_impossible(
    result: Any, name: str, value: float, code: str
) -> None:
    """Every number of every result: not a number, endless, or below zero."""
    with pytest.raises(ConfigurationError) as raised:
        replace(result, **{name: value})
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("result", "changes"),
    [
        (REPLICATION, {"mean": 0.6}),  # the longest is 0.25
        (REPLICATION, {"mean": 0.02}),  # half of them take 0.04 or more, a tenth 0.09
        (REPLICATION, {"waiting": 0.06}),
        (REPLICATION, {"slow_share": 1.01}),
        (REPLICATION, {"utilisation": 1.01}),
        (REPLICATION, {"percentiles": {**REPLICATION.percentiles, 99.0: 0.05}}),
        (REPLICATION, {"percentiles": {**REPLICATION.percentiles, 50.0: -0.05}}),
        (REPLICATION, {"longest": 0.19}),
        (REPLICATION, {"littles_law": 0.01}),
        (SOUND[2][0], {"p99": 0.05}),
        (SOUND[3][0], {"minimum": 4}),
        (SOUND[3][0], {"maximum": 2}),
        (SOUND[5][0], {"mean": 4.0}),
        (SOUND[8][0], {"at_most": 5}),
        (SOUND[10][0], {"ended_at": 0.5}),
        (SOUND[10][0], {"errors": {"timeout": 2}, "sent": 1}),
        (SOUND[11][0], {"value": 0.3}),
        (SOUND[12][0], {"broken_rate": 9.0}),
        (SOUND[12][0], {"confidence": 1.1}),
        (SOUND[13][0], {"change": -0.3}),
        (SOUND[14][0], {"share": 1.1}),
        (SOUND[15][0], {"p90": 4.0}),
    ],
)
def test_no_two_numbers_of_a_result_contradict_each_other(
    result: Any, changes: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError, match="cannot be right"):
        replace(result, **changes)


samples = st.lists(st.floats(1e-6, 3600.0), min_size=1, max_size=300)


@given(samples)
def test_whatever_is_measured_is_possible(seconds: list[float]) -> None:
    """The rule of the mean refuses nothing that a histogram can hold, however long its tail."""
    found = LatencyHistogram.of(seconds)
    assert LatencyHistogram.decode(found.encode()) == found
    percentiles = {one.percent: one.seconds for one in found.percentiles()}
    assert not list(mean_out_of_percentiles(found.mean, percentiles, found.max))
    for quantile in (0.5, 0.9, 0.99, 0.999):
        quantile_bounds(found, quantile)
        quantile_bounds(found, quantile, samples=3)  # late together


def test_a_mean_above_a_high_percentile_needs_something_that_long() -> None:
    """Of 10,000 requests one takes 60 s and the others 5 ms: a mean of 11 ms, p99.9 of 5 ms."""
    percentiles = {50.0: 0.005, 99.9: 0.005}
    mean = (9_999 * 0.005 + 60) / 10_000
    assert not list(mean_out_of_percentiles(mean, percentiles, 60.0))
    # What was printed: a mean of 46.5 ms above a p99.9 of 45.11 ms, and nothing longer.
    assert list(mean_out_of_percentiles(46.5, {50.0: 45.1, 99.9: 45.11}, 45.11))


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=8))
def test_falling_values_are_those_that_are_not_in_order(values: list[float]) -> None:
    found = list(falling({str(at): value for at, value in enumerate(values)}, 0.0))
    assert bool(found) == (values != sorted(values))


def test_a_result_file_with_impossible_latencies_is_refused() -> None:
    text = LatencyHistogram.of([0.1] * 100).encode()
    histogram, total, smallest, largest = text.split(";")
    for changed in (
        (str(10 * int(total)), smallest, largest),
        (f"-{total}", smallest, largest),
        (total, smallest, str(int(largest) // 2)),
    ):
        with pytest.raises(ConfigurationError, match="LLT176"):
            LatencyHistogram.decode(";".join((histogram, *changed)))


# --- simulations -------------------------------------------------------------------------------


def test_figures_that_controls_make_contradict_each_other_are_means_instead() -> None:
    """A regression that is exact for p50 alone: with its luck taken out it is above p90."""
    luck = [0.01 * number for number in range(1, 9)]
    runs = tuple(
        replace(
            REPLICATION,
            percentiles=REPLICATION.percentiles | {50.0: 0.095 - 0.9 * one, 90.0: 0.09},
            mean=0.05,
            mean_service=0.04 * (1 + one),
        )
        for one in luck
    )
    result = SimulationResult(Scenario(service=Exponential(0.04), traffic=OpenLoop(10.0)), runs, 1)
    assert result.controls == []
    assert result.estimate(lambda run: run.percentiles[50.0]).mean == pytest.approx(
        sum(run.percentiles[50.0] for run in runs) / 8
    )


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--markdown"], ["--compare-routing"]])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda values: Estimate(-0.368, 1.152),  # p99 as it was printed
        lambda values: Estimate(-max(values), 0.0),
        lambda values: Estimate(max(values) * 1e4, 0.0),
    ],
)
def test_the_command_prints_no_impossible_estimate(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], wrong: Callable[[list[float]], Estimate]
) -> None:
    monkeypatch.setattr(simulating_module, "estimate", lambda values, **_: wrong(values))
    command = ["simulate", "--settings", str(SETTINGS), "--service-time", "45ms"]
    done = CliRunner().invoke(app, [*command, "--requests", "1000", *arguments])
    assert isinstance(done.exception, ConfigurationError)
    assert done.exception.code == "LLS150"
    assert done.stdout == ""


def test_an_interval_that_is_wider_than_its_value_is_no_answer() -> None:
    """Of two replications Student's factor is 64 at 99 %: 100 and 200 ms are 150 ± 3,183."""
    runs = tuple(
        replace(
            REPLICATION,
            mean=0.05,
            waiting=waiting,
            percentiles={rank: value * factor for rank, value in REPLICATION.percentiles.items()},
            longest=0.5,
        )
        for factor, waiting in ((1.0, 0.0001), (1.2, 0.0002))
    )
    shaped = ShapedLoop(10.0, Shape("flat", "", ((100.0, 1.0),)))
    result = SimulationResult(Scenario(service=Exponential(0.04), traffic=shaped), runs, 1)
    p99 = result.percentile(99.0)
    assert p99.mean == pytest.approx(0.165)
    assert not p99.tells
    wait = result.waiting
    # 63.66 x 0.05 ms, from the mean of 0.15 ms on
    assert milliseconds(wait) == "at most 3.33 ms"
    data = result.to_dict()
    assert data["wait_ms"] == {
        "mean": pytest.approx(0.15),
        "half_width": None,
        "at_most": pytest.approx(0.15 + 63.66 * 0.05, rel=1e-3),
    }
    assert data["client_latency_ms"]["p99"] == {"mean": pytest.approx(165), "half_width": None}
    assert "2 replications are too few to tell p99, which was 150 ms in one and 180 ms" in (
        shape_sentence(
            cast(Any, SimpleNamespace(latency_target=None, targets=())), shaped.shape, result
        )
    )


def test_a_run_that_answers_nothing_has_no_latency() -> None:
    """It had a p99 of 0 ms, which was counted with the others'."""
    result = simulate(
        Scenario(service=Exponential(0.1), traffic=OpenLoop(0.05)), seconds=20.0, discard=0.5
    )
    answered = [run for run in result.replications if run.requests]
    assert 0 < len(answered) < 8
    p99 = result.percentile(99.0)
    assert not p99.tells
    assert p99.mean == pytest.approx(sum(run.percentiles[99.0] for run in answered) / len(answered))


# --- plans -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["-v"], ["--json"], ["--markdown"], ["--cost"]])
def test_the_command_prints_no_impossible_plan(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(endpoint_decisions, "WARM_UP_MOST", -5)
    monkeypatch.setattr(variant_plans, "_plan_of", latency_plan.make_plan)  # keeps no earlier one
    done = CliRunner().invoke(app, ["plan", "--settings", str(SETTINGS), *arguments])
    assert isinstance(done.exception, SettingsError)
    assert "LLE640" in str(done.exception)
    assert done.stdout == ""


# --- what CloudWatch says ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"Maximum": -1.0}, "Maximum is -1, below 0; Maximum is -1, less than 30, the p99"),
        ({"p50": math.nan}, "p50 is nan"),
        ({"p50": 50.0}, "p99 is 30, less than 50, the p50"),
        ({"Average": 100.0}, "Maximum is 40, less than 100, the Average"),
    ],
)
def test_periods_of_a_metric_that_cannot_be_right_are_unknown(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, float], why: str
) -> None:
    right = {"p50": 10.0, "p99": 30.0, "Average": 12.0, "Maximum": 40.0}
    queries = [Query(("v", "", ""), "ModelLatency", name, ()) for name in right]
    minute = timedelta(minutes=1)
    results = [
        {
            "Id": f"q{number}",
            "Timestamps": [NOON, NOON + minute],
            "Values": [value, wrong.get(name, value)],
        }
        for number, (name, value) in enumerate(right.items())
    ]
    monkeypatch.setattr(metrics, "metric_data", lambda *_: iter(results))
    account = Account(lambda service: None)
    found = read_queries(account, queries, NOON, NOON + 2 * minute, minute)
    assert {query.statistic: series.points for query, series in found.items()} == {
        name: {NOON: value} for name, value in right.items()
    }
    (unknown,) = account.unknown
    assert unknown.what == "ModelLatency v in 1 of 2 periods"
    assert unknown.why.startswith(f"CloudWatch's values cannot be right: {why}")
