"""What nothing else beats in both cost and latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

_T = TypeVar("_T")


def pareto_front(
    found: Iterable[_T], cost: Callable[[_T], float], latency: Callable[[_T], float]
) -> tuple[_T, ...]:
    """Those for which no other is as cheap and as quick, by cost.

    Examples
    --------
    >>> offers = [(1.0, 90), (2.0, 50), (2.0, 60), (3.0, 55)]
    >>> pareto_front(offers, lambda each: each[0], lambda each: each[1])
    ((1.0, 90), (2.0, 50))
    """
    front: list[_T] = []
    for each in sorted(found, key=lambda one: (cost(one), latency(one))):
        if not front or latency(each) < latency(front[-1]):
            front.append(each)
    return tuple(front)
