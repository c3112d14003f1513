"""What a load test is to do: fixed steps, or a search for the limit, and how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import rule
from ...report.numbers import readable
from ..engine.arrivals import Arrivals, ConstantArrivals, PoissonArrivals
from ..engine.steps import Step
from .judging import LatencyGoal
from .search_plan import SearchPlan

LOAD_FORM = rule(
    "LLT108",
    "a load test needs exactly one kind of load",
    fix="Give --tps (requests per second), --users (callers that wait for their answers), "
    "--find-limit or --confirm.",
)

Mode = Literal["rate", "users", "find-limit", "confirm"]

_SETTLE_SHARE, _SETTLE_AT_MOST = 0.1, 5.0
_ALONE_SHARE = 1 / 6


@dataclass(frozen=True)
class RunPlan:
    """A load test.

    Make it with :func:`rate_plan`, :func:`users_plan`, :func:`limit_plan`, :func:`confirm_plan`.

    Attributes
    ----------
    goal : LatencyGoal
        What each step is judged by; without targets, by errors alone.
    steps : tuple of Step
        One after the other; empty for a search.
    whole_minutes : bool
        Whether steps of a minute or more settle until a full minute begins, so that CloudWatch,
        which counts in minutes, has some of theirs alone. By default they do not; ``load_test``
        wants it when it reads CloudWatch.
    """

    mode: Mode
    goal: LatencyGoal
    steps: tuple[Step, ...] = ()
    search: SearchPlan | None = None
    whole_minutes: bool = False

    def __post_init__(self) -> None:
        if bool(self.steps) == (self.search is not None):
            raise LOAD_FORM.error(
                got="neither steps nor a search" if not self.steps else "both",
                allowed="steps, or a search",
            )

    @property
    def seconds(self) -> float | None:
        """How long requests are sent at most; ``None`` where that depends on what is found."""
        if not self.steps:
            return None
        waiting = (
            60.0
            * sum(step.counted_seconds >= 60 and step.settle_seconds > 0 for step in self.steps)
            if self.whole_minutes
            else 0.0
        )
        return sum(step.seconds for step in self.steps) + waiting


def rate_plan(
    rates: Sequence[float | Arrivals],
    *,
    seconds: float = 60.0,
    goal: LatencyGoal | None = None,
    alone_seconds: float | None = None,
    poisson: bool = True,
    seed: int = 1,
    mode: Mode = "rate",
) -> RunPlan:
    """Open loop: requests at these rates, one step each, whether or not earlier ones are answered.

    Parameters
    ----------
    rates : sequence of float or Arrivals
        Requests per second, or arrivals of another shape.
    seconds : float
        Length of each step; a tenth of it, at most 5 seconds, comes on top and is not counted.
    goal : LatencyGoal, optional
        By default only errors count.
    alone_seconds : float, optional
        How long one caller at a time is measured before, for the service time; 0 for not at all.
        By default a sixth of a step, at most 10 seconds.
    poisson : bool
        Whether requests come at random, or evenly. By default at random.

    Examples
    --------
    >>> [step.name for step in rate_plan([50, 100], seconds=10).steps]
    ['alone', '50 TPS', '100 TPS']
    """
    steps = _alone(alone_seconds, seconds, seed)
    settle = min(_SETTLE_AT_MOST, _SETTLE_SHARE * seconds)
    for number, rate in enumerate(rates, 1):
        if isinstance(rate, Arrivals):
            arrivals: Arrivals = rate
            # A shape begins where it begins: nothing of it is set aside.
            steps.append(Step(_shape_name(arrivals), seconds, arrivals, None, seed=seed + number))
            continue
        arrivals = PoissonArrivals(rate) if poisson else ConstantArrivals(rate)
        steps.append(
            Step(
                f"{readable(rate, 4)} TPS",
                seconds + settle,
                arrivals,
                None,
                seed=seed + number,
                settle_seconds=settle,
            )
        )
    return RunPlan(mode, goal or LatencyGoal(), tuple(steps))


def users_plan(
    users: Sequence[int],
    *,
    seconds: float = 60.0,
    goal: LatencyGoal | None = None,
    alone_seconds: float | None = None,
    seed: int = 1,
) -> RunPlan:
    """Closed loop: so many callers, one step each, every one waiting for its answer.

    Examples
    --------
    >>> [step.users for step in users_plan([4, 20], seconds=10, alone_seconds=0).steps]
    [4, 20]
    """
    steps = _alone(alone_seconds, seconds, seed)
    settle = min(_SETTLE_AT_MOST, _SETTLE_SHARE * seconds)
    steps += [
        Step(
            f"{count:,} user" + ("s" if count != 1 else ""),
            seconds + settle,
            None,
            count,
            seed=seed + number,
            settle_seconds=settle,
        )
        for number, count in enumerate(users, 1)
    ]
    return RunPlan("users", goal or LatencyGoal(), tuple(steps))


def confirm_plan(
    rate: float,
    goal: LatencyGoal,
    *,
    seconds: float = 300.0,
    alone_seconds: float | None = None,
    poisson: bool = True,
    seed: int = 1,
) -> RunPlan:
    """The load of production on the fleet as it is: does it hold?"""
    return rate_plan(
        [rate],
        seconds=seconds,
        goal=goal,
        alone_seconds=alone_seconds,
        poisson=poisson,
        seed=seed,
        mode="confirm",
    )


def limit_plan(search: SearchPlan) -> RunPlan:
    """Look for the highest rate that holds."""
    return RunPlan("find-limit", search.goal, search=search)


def _alone(wanted: float | None, seconds: float, seed: int) -> list[Step]:
    length = min(10.0, _ALONE_SHARE * seconds) if wanted is None else wanted
    return [Step("alone", length, None, 1, seed=seed)] if length > 0 else []


def _shape_name(arrivals: Arrivals) -> str:
    start, end = getattr(arrivals, "start", None), getattr(arrivals, "end", None)
    if start is not None and end is not None:
        return f"{readable(start, 4)} to {readable(end, 4)} TPS"
    return arrivals.kind
