"""Who sends requests, and when: closed loops, open loops, recorded traces, shapes over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..errors import rule
from ..facts.limit_kinds import number_range
from ..plan.traffic_shapes import SECONDS, Shape
from ..report.numbers import readable
from .service_laws import Constant, ServiceLaw

RATE = number_range(
    "LLS106", "a rate of requests", 1e-6, 1e9, unit="requests per second", whole=False
)
USERS = number_range("LLS107", "the number of users", 1, 10_000_000)
TRACE = rule(
    "LLS121",
    "the times of an arrival trace are not in order",
    fix="Give at least two times in seconds, from zero on, none before the last.",
)


class Traffic:
    """What sends the requests; the classes below are the kinds there are."""


@dataclass(frozen=True, slots=True)
class ClosedLoop(Traffic):
    """Users who each wait for the answer, pause, and send the next request.

    Parameters
    ----------
    users : int
        Number of users.
    think : ServiceLaw, optional
        The law of the pause. By default no pause, as in a load test at full speed.
    """

    users: int
    think: ServiceLaw = Constant(0.0)  # noqa: RUF009  # a frozen value

    def __post_init__(self) -> None:
        USERS.check(self.users, "users")


@dataclass(frozen=True, slots=True)
class OpenLoop(Traffic):
    """Requests that come whether or not earlier ones were answered, at a steady rate.

    Parameters
    ----------
    rate : float
        Requests per second.
    poisson : bool
        Whether gaps are random (many independent callers); at equal gaps otherwise. By default
        random.
    """

    rate: float
    poisson: bool = True

    def __post_init__(self) -> None:
        RATE.check(self.rate, "rate")


@dataclass(frozen=True, slots=True)
class ArrivalTrace(Traffic):
    """Requests at recorded times, once.

    Parameters
    ----------
    seconds : tuple of float
        Arrival times in seconds from the start of the run, in order.
    """

    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        values = self.seconds
        if (
            len(values) < 2
            or not all(
                isinstance(value, (int, float)) and math.isfinite(value) and value >= 0
                for value in values
            )
            or any(later < earlier for earlier, later in pairwise(values))
        ):
            raise TRACE.error(
                got=f"{len(values)} times",
                where="seconds",
                allowed="two or more times from 0 on that do not fall",
            )


@dataclass(frozen=True, slots=True)
class ShapedLoop(Traffic):
    """An open loop whose rate follows a shape.

    Parameters
    ----------
    peak_rate : float
        Requests per second at the shape's share of 1.
    shape : Shape
        The shape.
    poisson : bool
        As for :class:`OpenLoop`.
    """

    peak_rate: float
    shape: Shape
    poisson: bool = True

    def __post_init__(self) -> None:
        RATE.check(self.peak_rate, "peak_rate")


def shape_of_counts(name: str, counts: Sequence[float], seconds: float) -> Shape:
    """A shape from recorded numbers of requests per period, such as CloudWatch's Invocations.

    Parameters
    ----------
    name : str
        What to call it.
    counts : sequence of float
        Requests in each period, in order.
    seconds : float
        Length of a period.
    """
    SECONDS.check(seconds, "seconds")
    peak = max(counts, default=0)
    if peak <= 0 or seconds <= 0 or min(counts) < 0:
        raise TRACE.error(
            got=f"{len(counts)} counts, the largest {readable(peak)}",
            allowed="counts of requests, not below zero, one above",
        )
    return Shape(
        name,
        "recorded",
        tuple(((number + 1) * seconds, count / peak) for number, count in enumerate(counts)),
    )
