"""Steps of a step scaling policy: which lists AWS takes, and what is said of the others.

AWS: ranges must not overlap or have a gap, at most one is open at each end, and none of them may
be open on both sides; https://docs.aws.amazon.com/autoscaling/application/APIReference/API_StepAdjustment.html
"""

from __future__ import annotations

import pytest

from low_latency_endpoint.facts.scaling_steps import check_steps
from tests.refusals import refused

Bounds = list[tuple[float | None, float | None]]


@pytest.mark.parametrize(
    "bounds",
    [
        [(0, None)],
        [(None, 0)],
        [(0, 10), (10, None)],
        [(10, None), (0, 10)],
        [(None, -5), (-5, 0)],
        [(None, -5), (-5, 5), (5, None)],
        [(5, None)],
        [(None, -5)],
    ],
)
def test_steps_that_follow_each_other(bounds: Bounds) -> None:
    check_steps(bounds)


@pytest.mark.parametrize(
    ("bounds", "got", "allowed"),
    [
        ([(None, None)], "a step that is open on both sides", "a bound on at least one side"),
        ([(10, 10)], "a step from 10 to 10", "a lower bound below the upper one"),
        ([(10, 0)], "a step from 10 to 0", "a lower bound below the upper one"),
        ([(None, 0), (None, 5)], "several steps that are open below", "one"),
        ([(0, None), (5, None)], "several steps that are open above", "one"),
        ([(0, 10), (11, None)], "one step to 10, the next from 11", "the next from 10"),
        ([(0, 10), (9, None)], "one step to 10, the next from 9", "the next from 10"),
        ([(0, None), (5, 10)], "one step to inf, the next from 5", "the open step last"),
        (
            [(-10, 0), (0, None)],
            "a lowest step from -10",
            "none below it: leave its lower bound out",
        ),
        ([(0, 10)], "a highest step to 10", "none above it: leave its upper bound out"),
    ],
)
def test_steps_that_do_not(bounds: Bounds, got: str, allowed: str) -> None:
    with refused("LLE630", got=got, allowed=allowed, where="Stack/Policy"):
        check_steps(bounds, "Stack/Policy")
