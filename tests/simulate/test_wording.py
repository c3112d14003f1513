"""How numbers, fleets and deployments are written, and small values by hand."""

from __future__ import annotations

import math

import pytest

from low_latency_endpoint.simulate import Rollout
from low_latency_endpoint.simulate.estimates import Estimate, student_quantile
from low_latency_endpoint.simulate.run_length import Memory
from low_latency_endpoint.simulate.scenario_sentences import rollout_words
from low_latency_endpoint.simulate.wording import _rounded_up, milliseconds, minutes, verdict


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (milliseconds(Estimate(0.19732, 0.0012)), "197 ± 1.2 ms"),
        (milliseconds(Estimate(612.5, 12)), "612 ± 12 s"),
        (milliseconds(Estimate(0.19732, math.inf)), "too short to tell"),
        (milliseconds(Estimate(0.0451, 1e-17)), "45.1 ms"),  # rounding
        (milliseconds(Estimate(0.0000014, 0.0000011)), "0.0014 ± 0.0011 ms"),
        (milliseconds(Estimate(0.0000014, 0.0000021)), "at most 0.0035 ms"),
        (minutes(Estimate(120.0, 180.0)), "at most 5"),
        (minutes(Estimate(120.0, 180.0), 240.0), "at most 4"),
        (minutes(Estimate(1230.0, 45.0)), "20.5 ± 0.75"),
        (minutes(Estimate(1200.0, 0.0)), "20"),
        (verdict(Estimate(0.1, 0.01), 0.2), "within"),
        (verdict(Estimate(0.1, 0.2), 0.2), "too near to tell"),
        (_rounded_up(4_014_217), 4_100_000),
        (_rounded_up(200_000), 200_000),
        (
            rollout_words(Rollout(at=0.0, kind="rolling", step_share=0.1, wait_seconds=1200.0)),
            "rolling, in batches of 10 %, 1,200 s apart",
        ),
        (Memory(queues=1, spell=100.0).requests(99.0, replications=8), 400_000),  # M/M/1 at 90 %
        (round(student_quantile(0.99, 9), 4), 3.2498),
        (round(student_quantile(0.95, 1), 3), 12.706),
    ],
    ids=str,
)
def test_values(found: object, expected: object) -> None:
    assert found == expected
