"""AWS's published comparison of routing strategies, simulated: which instances would give it?

    python examples/published_routing_gains.py

docs/explanation/simulation.md has some of its rows.

AWS ran CodeGen2-7B on ml.g5.24xlarge with four users per instance: "15-16% improvement in the
throughput per minute per instance" and "4-33% improvement" in P99 from 5 to 20 instances.

Source: https://aws.amazon.com/blogs/machine-learning/
minimize-real-time-inference-latency-by-using-amazon-sagemaker-routing-strategies/
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from low_latency_endpoint.simulate import ClosedLoop, Estimate, Lognormal, Scenario, compare

LEAST = "LEAST_OUTSTANDING_REQUESTS"
SIZES = (1, 5, 10, 15, 20)
USERS_EACH = 4
PUBLISHED_THROUGHPUT_GAIN = (0.15, 0.16)
PUBLISHED_P99_CUT = (0.04, 0.33)


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of instance: how its service times vary, and how it works on several."""

    name: str
    variation: float
    concurrency: int
    slope: float = 0.0

    @property
    def batches(self) -> bool:
        """Whether all requests run at once and slow each other down."""
        return self.slope > 0


CASES = (
    *(
        Case(f"{workers} worker{'s' if workers > 1 else ''}, CV {cv:g}", cv, workers)
        for workers in (1, 2, 3, 4)
        for cv in (0.25, 0.5, 1.0)
    ),
    *(Case(f"batching, slope {slope:g}, CV 1", 1.0, 64, slope) for slope in (0.3, 0.35, 0.4, 0.5)),
    *(Case(f"batching, slope 0.4, CV {cv:g}", cv, 64, 0.4) for cv in (0.5, 1.5)),
)


@dataclass(frozen=True, slots=True)
class Gain:
    """What least outstanding requests give over random, at one size of the fleet."""

    case: Case
    instances: int
    throughput: Estimate
    p99: Estimate


def gains(case: Case, sizes: Iterable[int] = SIZES, **options: Any) -> list[Gain]:
    """Simulate both strategies at each size; options as for ``simulate.compare``."""
    found = []
    for instances in sizes:
        random = Scenario(
            service=Lognormal(1.0, case.variation),
            traffic=ClosedLoop(USERS_EACH * instances),
            instances=instances,
            concurrency=case.concurrency,
            slope=case.slope,
        )
        both = compare({"RANDOM": random, LEAST: random.with_(routing=LEAST)}, **options)
        found.append(
            Gain(
                case, instances, both.throughput_change(LEAST), both.percentile_change(LEAST, 99.0)
            )
        )
    return found


if __name__ == "__main__":
    for case in CASES:
        (gain,) = gains(case, (20,), requests=20_000, replications=3)
        print(
            f"{case.name}: throughput {gain.throughput.mean:+.1%}, p99 {gain.p99.mean:+.1%} "
            "on 20 instances"
        )
