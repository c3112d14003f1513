"""Does a series creep upward? Mann and Kendall's test and Theil and Sen's slope, on block medians.

Blocks take out what minutes have in common with their neighbours, medians take out single bad
minutes, and a step is no creep: no single rise between blocks may be half of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

from ..thresholds import BLOCK, BLOCKS, DOUBLED, LEAST_BLOCKS, STEP, TAU

#: Quarters of the window that are looked at, from and to: a creep may begin late, and may end.
_PARTS = ((0, 4), (1, 4), (2, 4), (0, 3), (1, 3), (0, 2))


@dataclass(frozen=True, slots=True)
class Creep:
    """From index ``first`` to ``last`` (included) the values grew from ``low`` to ``high``."""

    first: int
    last: int
    low: float
    high: float
    tau: float


def creep(values: Sequence[float]) -> Creep | None:
    """The part of a series that creeps upward most; ``None`` without one.

    >>> found = creep([40 + 4 * n for n in range(60)])
    >>> found.first, found.last, round(found.high / found.low, 1)
    (0, 59, 4.4)
    >>> creep([40] * 30 + [200] * 30) is None  # a step
    True
    """
    best = None
    for begin, end in _PARTS:
        first, last = begin * len(values) // 4, end * len(values) // 4
        found = _creep(values[first:last], first)
        if found and (best is None or found.high / found.low > 1.1 * best.high / best.low):
            best = found
    return best


def _creep(values: Sequence[float], first: int) -> Creep | None:
    count = min(BLOCKS, len(values) // BLOCK)
    if count < LEAST_BLOCKS:
        return None
    edges = [round(n * len(values) / count) for n in range(count + 1)]
    blocks = [median(values[a:b]) for a, b in pairwise(edges)]
    if min(blocks) <= 0:
        return None
    tau = kendall(blocks)
    logs = [math.log(each) for each in blocks]
    grown = theil_sen(logs) * (count - 1)
    low, high = median(blocks[:2]), median(blocks[-2:])
    whole = math.log(high / low)
    steepest = max(later - one for one, later in pairwise(logs))
    if tau < TAU or grown < math.log(DOUBLED) or whole < math.log(DOUBLED):
        return None
    if steepest > STEP * max(logs[-1] - logs[0], whole):
        return None
    return Creep(first, first + len(values) - 1, low, high, tau)


def kendall(values: Sequence[float]) -> float:
    """Kendall's tau of a series with time: 1 when it always rises, -1 when it always falls.

    >>> kendall([1, 2, 3]), kendall([3, 2, 1]), kendall([1, 1, 1])
    (1.0, -1.0, 0.0)
    """
    pairs = list(combinations(values, 2))
    return sum((b > a) - (b < a) for a, b in pairs) / len(pairs)


def theil_sen(values: Sequence[float]) -> float:
    """Median of the slopes between all pairs.

    >>> theil_sen([0, 1, 2, 90, 4])
    1.0
    """
    return median(
        (later - one) / (j - i) for (i, one), (j, later) in combinations(enumerate(values), 2)
    )
