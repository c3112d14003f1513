"""Numbers that no result can have. A result asks here when it is made, and is not made with them.

A wrong number is worse than none, whoever prints it; so a result's class looks at its own numbers, in
``__post_init__``, and no printer has to. :func:`refuse` raises what the other functions find.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from operator import mul

from . import ErrorRule

#: Share by which a figure of a histogram may differ from the exact one: its bins are half as wide.
RESOLUTION = 0.002
_ROUNDING = 1e-9


def refuse(rule: ErrorRule, result: str, problems: Iterable[str]) -> None:
    """Raise the rule's error if there are problems; ``result`` says of what."""
    found = list(problems)
    if found:
        raise rule.error(got="; ".join(found), allowed="numbers that can all be true", where=result)


def out_of_range(
    numbers: Mapping[str, float | None], low: float = 0.0, high: float = math.inf
) -> Iterator[str]:
    """Numbers that are not finite, or out of a range; by default below zero. ``None`` is unknown."""
    for name, value in numbers.items():
        if value is None:
            continue
        if value != value or abs(value) == math.inf:
            yield f"{name} is {value}"
        elif value < low:
            yield f"{name} is {value:.6g}, below {low:g}"
        elif value > high * (1 + _ROUNDING):
            yield f"{name} is {value:.6g}, above {high:g}"


def falling(values: Mapping[str, float | None], tolerance: float = _ROUNDING) -> Iterator[str]:
    """Pairs that fall by more than a share, of values that only rise, such as percentiles by rank."""
    known = [(name, value) for name, value in values.items() if value is not None]
    for (lower, less), (higher, more) in pairwise(known):
        if more < less * (1 - tolerance):
            yield f"{higher} is {more:.6g}, less than {less:.6g}, the {lower}"


def mean_out_of_percentiles(
    mean: float, percentiles: Mapping[float, float], longest: float
) -> Iterator[str]:
    """A mean that values with these percentiles, by rank in percent, cannot have.

    Values between two percentiles are at least as large as the lower and at most as large as the
    higher one; those beyond the last are at most the longest. So a mean may be above its p99.9, if
    the longest values are long enough for it, and never above the longest one.
    """
    ranks = sorted(percentiles)
    values = [percentiles[rank] for rank in ranks]
    widths = [(above - below) / 100 for below, above in pairwise([0.0, *ranks, 100.0])]
    least = math.fsum(map(mul, widths, [0.0, *values]))
    most = math.fsum(map(mul, widths, [*values, longest]))
    told = f"mean is {mean:.6g}"
    if mean < least * (1 - RESOLUTION):
        yield f"{told}, and its percentiles allow {least:.6g} or more"
    elif mean > most * (1 + RESOLUTION):
        yield f"{told}, and its percentiles and the longest of {longest:.6g} allow {most:.6g} at most"


def outside(name: str, value: float, low: float, high: float) -> Iterator[str]:
    """A value that its own interval does not contain."""
    if not low - _ROUNDING * abs(low) <= value <= high + _ROUNDING * abs(high):
        yield f"{name} is {value:.6g}, not within its interval, {low:.6g} to {high:.6g}"
