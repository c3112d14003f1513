"""Intended start times: the right rate at every moment, the same whoever shares the work."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from low_latency_endpoint.load_test.engine.arrivals import (
    Arrivals,
    ConstantArrivals,
    PoissonArrivals,
    RampArrivals,
    ReplayedArrivals,
    SteppedArrivals,
    arrivals_of_dict,
)
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import Step
from low_latency_endpoint.plan.traffic_shapes import Shape, shape
from tests.refusals import refused

from .fake_generator import answered

ALL: tuple[Arrivals, ...] = (
    ConstantArrivals(37),
    PoissonArrivals(41.5),
    RampArrivals(0, 80),
    RampArrivals(50, 5, False),
    SteppedArrivals(((20, 2), (0, 1), (60, 3))),
    ReplayedArrivals((0.0, 0.5, 0.5, 3.25)),
    ReplayedArrivals((1.0, 4.0), (10.0, 30.0)),
)


def counts_per(offsets: list[float], width: float, seconds: float) -> list[int]:
    """Requests in each stretch of time."""
    counts = [0] * math.ceil(seconds / width)
    for offset in offsets:
        counts[int(offset / width)] += 1
    return counts


@pytest.mark.parametrize("arrivals", ALL, ids=lambda one: one.kind)
@pytest.mark.parametrize("parts", [2, 3, 7])
def test_the_parts_together_send_what_one_process_sends(arrivals: Arrivals, parts: int) -> None:
    whole = list(arrivals.offsets(5, seed=9))
    shares = [list(arrivals.offsets(5, seed=9, part=part, parts=parts)) for part in range(parts)]
    assert sorted(itertools.chain(*shares)) == whole
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("arrivals", ALL, ids=lambda one: one.kind)
def test_times_are_in_order_and_in_the_step(arrivals: Arrivals) -> None:
    times = list(arrivals.offsets(4))
    assert times == sorted(times)
    assert all(0 <= time < 4 for time in times)
    assert times


@pytest.mark.parametrize("arrivals", ALL, ids=lambda one: one.kind)
def test_json_gives_the_same_arrivals(arrivals: Arrivals) -> None:
    assert arrivals_of_dict(json.loads(json.dumps(arrivals.to_dict()))) == arrivals


def test_constant_gaps_do_not_drift() -> None:
    times = list(ConstantArrivals(30).offsets(1000))
    assert len(times) == 30_000
    assert times[-1] == pytest.approx(29_999 / 30, abs=1e-9)


def test_poisson_gaps_are_exponential() -> None:
    times = list(PoissonArrivals(200).offsets(100, seed=5))
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert stats.kstest(gaps, "expon", args=(0, 1 / 200)).pvalue > 0.01
    assert len(times) == pytest.approx(20_000, abs=4 * math.sqrt(20_000))


def test_same_seed_same_times() -> None:
    arrivals = PoissonArrivals(100)
    assert list(arrivals.offsets(2, seed=1)) == list(arrivals.offsets(2, seed=1))
    assert list(arrivals.offsets(2, seed=1)) != list(arrivals.offsets(2, seed=2))


@pytest.mark.parametrize("poisson", [True, False])
def test_a_ramp_rises_linearly(poisson: bool) -> None:
    times = list(RampArrivals(0, 400, poisson).offsets(100, seed=2))
    for number, count in enumerate(counts_per(times, 10, 100)):
        expected = 400 * (number + 0.5) / 10 * 10
        assert count == pytest.approx(expected, abs=4 * math.sqrt(expected) if poisson else 2)


def test_steps_keep_their_rates_and_the_last_one_stays() -> None:
    times = list(SteppedArrivals(((100, 10), (0, 5), (300, 10)), poisson=False).offsets(30))
    assert counts_per(times, 5, 30) == [500, 500, 0, 1500, 1500, 1500]


@given(st.floats(0.1, 5000), st.floats(0.1, 5000), st.floats(0.5, 20))
def test_evenly_spaced_arrivals_are_as_many_as_the_rate_says(
    start: float, end: float, seconds: float
) -> None:
    arrivals = RampArrivals(start, end, poisson=False)
    expected = arrivals.expected_count(seconds)
    assert expected == pytest.approx(seconds * (start + end) / 2)
    assert abs(sum(1 for _ in arrivals.offsets(seconds)) - expected) <= 1


def test_the_rate_at_a_moment() -> None:
    assert RampArrivals(10, 20).rate_at(5, 10) == 15
    stepped = SteppedArrivals(((5, 1), (7, 1)))
    assert [stepped.rate_at(second) for second in (0, 0.99, 1, 1.5, 99)] == [5, 5, 7, 7, 7]
    replayed = ReplayedArrivals((2.0, 3.0), (10.0, 0.0))
    assert [replayed.rate_at(second) for second in (0, 2.5, 4)] == [10, 0, 0]


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ((0.0, 0.1, 0.1, 2.0, 9.0), 9 + 9 / 4),  # five requests, five gaps
        ((0.0, 1.0, 2.0, 2.0), 2 + 2 / 3),
        ((3.0,), 4.0),
        ((1.0, 1.0), 2.0),
    ],
)
def test_recorded_requests_come_at_their_times_once(
    times: tuple[float, ...], seconds: float
) -> None:
    """The last ones too, which would not be before the end of the last gap."""
    arrivals = ReplayedArrivals(times)
    assert arrivals.seconds == seconds
    assert list(arrivals.offsets(seconds)) == list(times)
    assert arrivals.expected_count(seconds) == len(times)
    assert list(arrivals.offsets(1.5)) == [each for each in times if each < 1.5]


def test_a_shape_of_the_simulator_is_replayed() -> None:
    spike = shape("spike")
    arrivals = ReplayedArrivals.of_shape("spike", peak_rate=50, speed=60, poisson=False)
    assert arrivals.seconds == pytest.approx(spike.seconds / 60)
    assert sum(1 for _ in arrivals.offsets(arrivals.seconds)) == pytest.approx(
        50 * spike.mean_share * spike.seconds / 60, abs=1
    )
    for second in (0, 10, 25, arrivals.seconds - 0.01):
        assert arrivals.rate_at(second) == pytest.approx(50 * spike.share_at(second * 60))
    mine = Shape("mine", "", ((10.0, 0.5), (20.0, 1.0)))
    assert ReplayedArrivals.of_shape(mine, peak_rate=8).rates == (4, 8)


def test_a_file_of_times_is_replayed_request_by_request(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    path.write_text("2026-11-20T10:00:04Z\n2026-11-20T10:00:00Z\n2026-11-20T10:00:01Z\n", "utf-8")
    assert ReplayedArrivals.of_file(path) == ReplayedArrivals((0, 1, 4))
    assert ReplayedArrivals.of_file(path, speed=2) == ReplayedArrivals((0, 0.5, 2))


def test_a_file_of_counts_is_replayed_at_the_rates_that_were_recorded(tmp_path: Path) -> None:
    """600 requests in a minute are 10 a second; six times as fast they take ten seconds."""
    path = tmp_path / "counts.csv"
    path.write_text("0,600\n60,1200\n180,300\n", "utf-8")
    rates = (10, 20, 0, 5)
    assert ReplayedArrivals.of_file(path) == ReplayedArrivals((60, 120, 180, 240), rates)
    assert ReplayedArrivals.of_file(path, speed=6) == ReplayedArrivals((10, 20, 30, 40), rates)


def test_counts_of_batches_are_replayed_with_a_doubt(tmp_path: Path) -> None:
    """Counts of 500 and 700 in turn: second differences of 400, squared over 6 x 600 about 44."""
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(f"{60 * at},{500 + 200 * (at % 2)}" for at in range(60)), "utf-8")
    arrivals = ReplayedArrivals.of_file(path)
    assert "real percentiles may be several times higher" in arrivals.doubt
    assert arrivals_of_dict(arrivals.to_dict()) == arrivals
    step = Step("replay", 3600.0, arrivals)
    assert arrivals.doubt in answered(step, LatencyHistogram.of([0.02])).judged().warnings


def test_a_shape_of_single_requests_is_not_replayed_as_rates() -> None:
    single = Shape("mine", "", ((60.0, 1.0),), times=(0.0, 0.0, 5.0))
    with refused("LLT133"):
        ReplayedArrivals.of_shape(single, peak_rate=10)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "shape.json"
    path.write_text('{"levels": [[60, 0.5], [120, 1]]}', encoding="utf-8")
    for file in (path, tmp_path / "none.csv"):
        with refused("LLS130") as caught:
            ReplayedArrivals.of_file(file)
        assert file.name in caught.value.where


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: ConstantArrivals(0), "LLT128"),
        (lambda: ConstantArrivals(-1), "LLT128"),
        (lambda: PoissonArrivals(math.inf), "LLT128"),
        (lambda: PoissonArrivals("10"), "LLT128"),
        (lambda: RampArrivals(0, 0), "LLT128"),
        (lambda: SteppedArrivals(()), "LLT132"),
        (lambda: SteppedArrivals(((1, 2, 3),)), "LLT132"),
        (lambda: SteppedArrivals(((0, 5),)), "LLT128"),
        (lambda: SteppedArrivals(((5, -1),)), "LLT130"),
        (lambda: ReplayedArrivals((1.0,), (-1.0,)), "LLT128"),
        (lambda: ReplayedArrivals(()), "LLT133"),
        (lambda: ReplayedArrivals("abc"), "LLT133"),
        (lambda: ReplayedArrivals((2, 1)), "LLT133"),
        (lambda: ReplayedArrivals((-1, 1)), "LLT133"),
        (lambda: ReplayedArrivals((1, "x")), "LLT133"),
        (lambda: ReplayedArrivals((math.nan,)), "LLT133"),
        (lambda: ReplayedArrivals((1,), (1, 2)), "LLT133"),
        (lambda: ReplayedArrivals.of_shape("spike", peak_rate=10, speed=0), "LLT133"),
        (lambda: ReplayedArrivals.of_shape("none", peak_rate=10), "LLS122"),
        (lambda: RampArrivals(1, 2).rate_at(3), "LLT130"),
        (lambda: arrivals_of_dict({"kind": "other"}), "LLT132"),
        (lambda: arrivals_of_dict({"kind": "constant"}), "LLT132"),
        (lambda: arrivals_of_dict([]), "LLT132"),
        (lambda: Step("s", 10), "LLT131"),
        (lambda: Step("s", 10, ConstantArrivals(1), 1), "LLT131"),
        (lambda: Step("s", 10, "100 TPS"), "LLT131"),
        (lambda: Step("s", 10, ConstantArrivals(1), settle_seconds=10), "LLT131"),
        (lambda: Step("s", -1, ConstantArrivals(1)), "LLT130"),
        (lambda: Step("s", 1, users=0), "LLT129"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_a_code(make: Any, code: str) -> None:
    with refused(code):
        make()


def test_a_step_survives_json() -> None:
    for step in (
        Step("a", 10, RampArrivals(1, 5), seed=7, settle_seconds=2),
        Step("b", 3.5, users=12, first_number=2_000_000),
    ):
        assert Step.of_dict(json.loads(json.dumps(step.to_dict()))) == step
