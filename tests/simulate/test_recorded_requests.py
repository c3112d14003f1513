"""A recording of single requests is simulated at its times, and told as the one sample that it is."""

from __future__ import annotations

import heapq
import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.recorded_traffic import recording_of
from low_latency_endpoint.plan.traffic_shapes import Shape
from low_latency_endpoint.simulate import (
    ArrivalTrace,
    Constant,
    Scenario,
    ShapedLoop,
    TargetTracking,
    simulate,
)

SHIPPED = Path(__file__).parents[1] / "sentiment.yaml"
POISSON = "callers are many and independent (Poisson arrivals)"


def batches(size: int, number: int, per_second: float, seed: int = 1) -> list[float]:
    """Times of batches that come at random, each of whose requests come at once."""
    chance = random.Random(seed)
    times: list[float] = []
    now = 0.0
    for _ in range(number):
        now += chance.expovariate(per_second)
        times += [round(now, 6)] * size
    return times


def p99_by_heap(times: list[float], seconds: float, instances: int, workers: int) -> float:
    """Least outstanding requests over instances with a line of their own, by a heap of ends."""
    outstanding = [0] * instances
    free = [[0.0] * workers for _ in range(instances)]  # when each worker is free
    ends: list[tuple[float, int]] = []
    latencies = []
    for time in times:
        while ends and ends[0][0] <= time:
            outstanding[heapq.heappop(ends)[1]] -= 1
        chosen = min(range(instances), key=lambda one: outstanding[one])
        begin = max(time, heapq.heappop(free[chosen]))
        heapq.heappush(free[chosen], begin + seconds)
        heapq.heappush(ends, (begin + seconds, chosen))
        outstanding[chosen] += 1
        latencies.append(begin + seconds - time)
    return sorted(latencies)[int(0.99 * len(latencies))]


def fixed_fleet(folder: Path) -> Path:
    """The shipped endpoint with three instances that do not scale."""
    path = folder / "endpoint.yaml"
    added = "    scaling: {enabled: false}\n    instances: {initial: 3}\n    warm_up:"
    path.write_text(SHIPPED.read_text("utf-8").replace("    warm_up:", added, 1), "utf-8")
    return path


def file_of(folder: Path, times: list[float]) -> Path:
    path = folder / "requests.csv"
    path.write_text("time\n" + "\n".join(map(str, times)), "utf-8")
    return path


def ran(*arguments: str | Path) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["simulate", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


MEASURED = ("--service-time", "50ms", "--variation", "0.001", "--concurrency", "4")


def test_batches_keep_their_percentiles(tmp_path: Path) -> None:
    times = batches(size=20, number=2000, per_second=5)
    expected = p99_by_heap(times, 0.05, instances=3, workers=4)
    answer = ran(
        "--settings", fixed_fleet(tmp_path), "--traffic-from", file_of(tmp_path, times), *MEASURED
    )
    found = answer["traffic"]["requests"]
    assert found["client_latency_ms"]["p99"]["mean"] == pytest.approx(1000 * expected, rel=0.03)
    assert expected > 0.2, "several times the 50 ms of a request alone"
    assert found["requests"] == 4 * len(times), "all of them, in each of four replications"


def test_one_recording_is_said_to_be_one_sample(tmp_path: Path) -> None:
    times = batches(size=20, number=100, per_second=5)
    answer = ran(
        "--settings", fixed_fleet(tmp_path), "--traffic-from", file_of(tmp_path, times), *MEASURED
    )
    assert "in this one recording (± is of service times alone)" in answer["answer"][0]
    assert not any(POISSON in sentence for sentence in answer["assumed"])
    assert any("2,000 requests arrive at their recorded times" in s for s in answer["assumed"])


@pytest.mark.parametrize("more", [("--period", "60s"), ("--tps", "500")])
def test_what_a_recording_of_requests_leaves_without_effect_is_refused(
    more: tuple[str, str], tmp_path: Path
) -> None:
    file = file_of(tmp_path, batches(2, 10, 1))
    arguments = ["simulate", "--settings", str(SHIPPED), "--traffic-from", str(file), *more]
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, ConfigurationError)
    assert done.exception.code == "LLS160"
    assert more[0] in done.exception.got
    assert done.exception.allowed == f"a recording of single requests without {more[0]}"


def test_requests_are_not_thinned_to_rates_in_python_either() -> None:
    shape = recording_of("0\n0\n0\n61", "a").shape()
    with pytest.raises(ConfigurationError) as caught:
        ShapedLoop(10.0, shape)
    assert caught.value.code == "LLS161"
    assert ArrivalTrace(shape.times).seconds == (0.0, 0.0, 0.0, 61.0)


def test_the_last_answers_are_awaited() -> None:
    """Two at once before the end of what is simulated: the second is answered after it."""
    scenario = Scenario(service=Constant(2.0), traffic=ArrivalTrace((0.0, 0.0)))
    result = simulate(scenario, seconds=1.0, window=1.0, replications=2)
    assert result.requests == 2 * 2
    assert result.percentile(99.0).mean == pytest.approx(4.0, rel=0.01)


def test_a_fleet_scales_with_single_requests_as_with_their_rates() -> None:
    """Even gaps at two rates, as a trace and as a shape: the same instances in every minute."""
    levels = ((600.0, 4.0), (3600.0, 40.0))
    times: list[float] = []
    begin = 0.0
    for end, rate in levels:
        times += [begin + (n + 1) / rate for n in range(round((end - begin) * rate))]
        begin = end
    shape = Shape("two rates", "", tuple((end, rate / 40) for end, rate in levels))
    scenario = Scenario(
        service=Constant(0.01),
        traffic=ShapedLoop(40.0, shape, poisson=False),
        instances=2,
        scaling=TargetTracking(target=300.0, minimum=2, maximum=20),
    )
    length: dict[str, Any] = {"seconds": 3600.0, "window": 60.0, "replications": 2}
    by_shape = simulate(scenario, **length).replications[0].timeline
    trace = scenario.with_(traffic=ArrivalTrace(tuple(times)))
    by_trace = simulate(trace, **length).replications[0].timeline
    assert [line.serving for line in by_trace] == [line.serving for line in by_shape]
    assert by_trace[-1].serving == 8  # 40 a second are 2,400 a minute, 300 for each instance


def counted(folder: Path, batch: int, seed: int = 1) -> Path:
    """An hour of minutes: batches of one size, six thousand requests a minute."""
    chance = random.Random(seed)
    number = 6000 / batch
    path = folder / "counts.csv"
    counts = [max(0, batch * round(chance.gauss(number, number**0.5))) for _ in range(60)]
    path.write_text("\n".join(f"{60 * at},{count}" for at, count in enumerate(counts)), "utf-8")
    return path


def test_counts_of_batches_are_no_poisson_stream(tmp_path: Path) -> None:
    short = (*MEASURED, "--tps", "20", "--replications", "2")
    answer = ran("--settings", SHIPPED, "--traffic-from", counted(tmp_path, 20), *short)
    assert answer["answer"][0].startswith(
        "If callers were independent, which the counts contradict"
    )
    assert "real percentiles may be several times higher" in answer["warnings"][0]
    assert not any("many and independent" in sentence for sentence in answer["assumed"])
    answer = ran("--settings", SHIPPED, "--traffic-from", counted(tmp_path, 1), *short)
    assert answer["warnings"] == []
    assert any("bursts within a period do not show" in each for each in answer["assumed"])
