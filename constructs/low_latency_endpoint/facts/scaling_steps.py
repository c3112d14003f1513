"""The steps of a step scaling policy: together they cover a range, each part of it once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ..errors import ConfigurationError, rule
from ..report.numbers import plain_number
from .limit_kinds import Range

_API = "/autoscaling/application/APIReference/API_StepAdjustment.html"
STEP_CHANGE = Range(
    rule(
        "LLE364",
        "a scaling step is not a whole number of instances",
        fix="Give the instances to add, or a negative number to remove instances.",
        source=_API,
    ),
    "the change of a scaling step",
    None,
    None,
    "instances",
)

STEPS_COVER_A_RANGE = rule(
    "LLE630",
    "the steps of a step scaling policy have gaps or overlaps",
    fix="Start each step where the previous step ends. Leave out the highest upper bound, "
    "and the lowest lower bound if it is below the threshold.",
    source=_API,
)


def check_steps(bounds: Sequence[tuple[float | None, float | None]], where: str = "") -> None:
    """Raise unless the ranges follow each other without overlap and gap, none of them backwards."""

    def broken(got: str, allowed: str) -> ConfigurationError:
        return STEPS_COVER_A_RANGE.error(got=got, allowed=allowed, where=where)

    for lower, upper in bounds:
        if lower is None and upper is None:
            raise broken("a step that is open on both sides", "a bound on at least one side")
        if lower is not None and upper is not None and lower >= upper:
            got = f"a step from {plain_number(lower)} to {plain_number(upper)}"
            raise broken(got, "a lower bound below the upper one")
    for side, name in ((0, "below"), (1, "above")):
        if [step[side] for step in bounds].count(None) > 1:
            raise broken(f"several steps that are open {name}", "one")
    ordered = sorted(
        (-math.inf if lower is None else lower, math.inf if upper is None else upper)
        for lower, upper in bounds
    )
    for (_, end), (begin, _) in pairwise(ordered):
        if begin != end:
            raise broken(
                f"one step to {plain_number(end)}, the next from {plain_number(begin)}",
                f"the next from {plain_number(end)}" if end < math.inf else "the open step last",
            )
    if -math.inf < ordered[0][0] < 0:
        raise broken(
            f"a lowest step from {plain_number(ordered[0][0])}",
            "none below it: leave its lower bound out",
        )
    if 0 < ordered[-1][1] < math.inf:
        raise broken(
            f"a highest step to {plain_number(ordered[-1][1])}",
            "none above it: leave its upper bound out",
        )
