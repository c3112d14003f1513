"""Who sends requests, and when: closed loops, open loops, recorded times, and shapes over time."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import rule
from ..facts.limit_kinds import number_range
from ..plan.traffic_shapes import Shape
from .service_laws import Constant, Exponential, ServiceLaw, never_falls

RATE = number_range(
    "LLS106", "a rate of requests", 1e-6, 1e9, unit="requests per second", whole=False
)
USERS = number_range("LLS107", "the number of users", 1, 10_000_000)
TRACE = rule(
    "LLS121",
    "the times of an arrival trace are not in order",
    fix="Give at least two times in seconds, from zero on, and never decreasing.",
)

SINGLE_REQUESTS = rule(
    "LLS161",
    "a shape of single requests would lose the time of each",
    fix="Give ArrivalTrace(shape.times), which replays them.",
)


class Traffic:
    """What sends the requests; the classes below are the kinds there are."""

    @property
    def gaps(self) -> ServiceLaw | None:
        """The law of the time from one request to the next; ``None`` if no single law has it."""
        return None


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

    @property
    def gaps(self) -> ServiceLaw:
        mean = 1 / self.rate
        return Exponential(mean) if self.poisson else Constant(mean)


@dataclass(frozen=True, slots=True)
class ArrivalTrace(Traffic):
    """Requests at recorded times, once.

    One recording is one sample of its callers: the replications of a run differ in service times
    only, and so does their interval. Requests in flight after the last arrival are counted too.

    Parameters
    ----------
    seconds : tuple of float
        Arrival times in seconds from the start of the run, in order.
    """

    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        values = self.seconds
        if not never_falls(values) or values[0] < 0:
            raise TRACE.error(
                got=f"{len(values)} times",
                where="seconds",
                allowed="two or more times from 0 on that never decrease",
            )


@dataclass(frozen=True, slots=True)
class ShapedLoop(Traffic):
    """An open loop whose rate follows a shape.

    Parameters
    ----------
    peak_rate : float
        Requests per second at the shape's share of 1.
    shape : Shape
        The shape. One of recorded single requests is refused (``LLS161``): :class:`ArrivalTrace`
        replays them.
    poisson : bool
        As for :class:`OpenLoop`.
    """

    peak_rate: float
    shape: Shape
    poisson: bool = True

    def __post_init__(self) -> None:
        RATE.check(self.peak_rate, "peak_rate")
        if self.shape.times:
            raise SINGLE_REQUESTS.error(
                got=f"{self.shape.name}, {len(self.shape.times):,} requests",
                where="shape",
                allowed="a shape of rates or counts",
            )
