"""Was the generator the limit, or nearly? Each rule on both sides of its bound."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.measurement import TokenResult
from low_latency_endpoint.load_test.engine.steps import Step, StepResult, client_bound, warnings
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.measured_steps import judged

from .fake_generator import answered

#: So many that ten lie beyond p99.99: fewer would be a warning of their own.
COUNT = 100_000
NONE = LatencyHistogram()


def of(*counted: tuple[int, float]) -> LatencyHistogram:
    """So many of each, in seconds."""
    return LatencyHistogram.sum(_same(count, seconds) for count, seconds in counted)


def _same(count: int, seconds: float) -> LatencyHistogram:
    """So many of the same, by doubling."""
    if count < 2:
        return LatencyHistogram.of([seconds] * count)
    half = _same(count // 2, seconds)
    return LatencyHistogram.sum([half, half, _same(count % 2, seconds)])


def lags(late: int, seconds: float) -> LatencyHistogram:
    """So many requests start late."""
    return of((COUNT - late, 1e-6), (late, seconds))


LATENCY, PUNCTUAL = of((COUNT, 0.100)), lags(0, 0.0)


def result(**changes: Any) -> StepResult:
    """Requests at the right moment, answered after 100 ms each."""
    step = Step("s", 100, ConstantArrivals(1_000))
    return replace(answered(step, LATENCY, send_lag=PUNCTUAL), **changes)


def woke_late(seconds: float, **more: Any) -> dict[str, Any]:
    return {"loop_lag": LatencyHistogram.of([seconds]), **more}


BOUND: dict[str, tuple[dict[str, Any], str]] = {
    "a generator that keeps up": ({}, ""),
    "89 % of a core": ({"cpu_share": 0.89}, ""),
    "90 % of a core": ({"cpu_share": 0.90}, "used 90% of a core"),
    "one in a thousand unsent": ({"sent": COUNT - 100}, ""),
    "more unsent": (
        {"sent": COUNT - 101},
        "^101 of 100000 requests that were due were never sent$",
    ),
    "one in a thousand without a connection": ({"postponed": 100}, ""),
    "more without a connection": ({"postponed": 101}, "101 of 100000 requests waited"),
    "half less than a tenth late": ({"send_lag": lags(COUNT, 0.0099)}, ""),
    "half a tenth late": (
        {"send_lag": lags(COUNT, 0.0101)},
        "half of the requests.*10% of the median latency",
    ),
    "two in a hundred less than a quarter late": ({"send_lag": lags(2_000, 0.024)}, ""),
    "two in a hundred a quarter late": (
        {"send_lag": lags(2_000, 0.026)},
        "^one request in a hundred started 26 ms late or more, 26% of the p99 of 100 ms$",
    ),
    "one in two hundred is not the p99": ({"send_lag": lags(500, 0.090)}, ""),
    # 26 ms are much of 50 ms and little of the slow ones' 500 ms.
    "the tail is measured by the p99": (
        {"latency": of((90_000, 0.050), (10_000, 0.500)), "send_lag": lags(2_000, 0.026)},
        "",
    ),
    "an open loop's event loop": (woke_late(0.026), ""),
    "a closed loop's event loop, in time": (woke_late(0.024, send_lag=NONE), ""),
    "a closed loop's event loop, late": (
        woke_late(0.026, send_lag=NONE),
        "event loop woke 26 ms late.*26% of the p99",
    ),
    "one slow answer in a thousand hides no late event loop": (
        woke_late(0.026, send_lag=NONE, latency=of((99_900, 0.100), (100, 10.0))),
        "event loop woke 26 ms late",
    ),
    "no answer to compare with": ({"latency": NONE, "completed": 0}, ""),
    "no answer in a closed loop": ({"latency": NONE, "completed": 0, "send_lag": NONE}, ""),
}


def told(found: tuple[str, ...], said: str) -> None:
    assert len(found) == bool(said), found
    assert all(re.search(said, each) for each in found), found


@pytest.mark.parametrize("case", BOUND)
def test_the_generator_was_the_limit(case: str) -> None:
    changes, said = BOUND[case]
    told(client_bound(result(**changes)), said)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel tells no arrivals")
@pytest.mark.parametrize(
    ("lag", "said"), [(0.019, ""), (0.021, "woke 21 ms late.*the 20 ms between")]
)
def test_an_event_loop_may_be_as_late_as_the_next_token_is(lag: float, said: str) -> None:
    """Two of one stream would wait together then, of which the kernel tells the last one's moment."""
    pairs = LatencyHistogram.of([0.0, 0.040] * 50)  # two in a segment
    told(client_bound(result(**woke_late(lag, tokens=TokenResult(inter_token=pairs)))), said)


LESS_EXACT: dict[str, tuple[dict[str, Any], str]] = {
    "a generator that keeps up": ({}, ""),
    "less than a hundredth of the median late": ({"send_lag": lags(2_000, 0.00099)}, ""),
    "a hundredth of the median late": (
        {"send_lag": lags(2_000, 0.0011)},
        "1.1% of the median latency.*flagged above 1%",
    ),
    "a closed loop": ({"send_lag": NONE}, ""),
    "who waited in vain makes high percentiles lower bounds": (
        {"unanswered": 3},
        "^3 of 100000 requests were not answered in time",
    ),
    "quick refusals": ({"refused": LatencyHistogram.of([0.010, 0.050])}, ""),
    "slow refusals": (
        {"refused": LatencyHistogram.of([0.010, 0.200])},
        "up to 200 ms, more than the p99 of 100 ms",
    ),
    "refusals alone": ({"refused": LATENCY, "latency": NONE, "completed": 0}, ""),
    "few samples beyond": (
        {"latency": of((5_000, 0.1))},
        r"^p99.9, p99.99 rest on fewer than ten samples beyond: 5000 samples in all$",
    ),
    "few samples beyond one": ({"latency": of((50_000, 0.1))}, "^p99.99 rests on fewer"),
}


@pytest.mark.parametrize("case", LESS_EXACT)
def test_what_makes_figures_less_exact_is_told(case: str) -> None:
    changes, said = LESS_EXACT[case]
    told(warnings(result(**changes)), said)


LATE = {"send_lag": lags(2_000, 0.026)}


@pytest.mark.parametrize(
    ("limit", "changes", "outcome"),
    [
        (0.150, LATE, "held"),  # 100 ms with the lag in them: less without
        (0.090, LATE, "client-bound"),  # nobody knows how many of the 100 ms are the lag
        (0.150, LATE | {"sent": COUNT - 101}, "client-bound"),
        (0.150, woke_late(0.026, send_lag=NONE, step=Step("s", 100, users=10)), "client-bound"),
    ],
)
def test_who_sends_late_measures_more_and_never_less(
    limit: float, changes: dict[str, Any], outcome: str
) -> None:
    found = result(**changes).judged()
    assert found.client_bound
    assert judged(LatencyGoal({"p99": limit}), found).outcome == outcome
