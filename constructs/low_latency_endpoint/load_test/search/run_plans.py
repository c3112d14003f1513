"""What a load test is to do: fixed steps, or a search for the limit; how long they are, how they are judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import rule
from ...facts.limit_kinds import Range
from ...report.numbers import readable
from ..engine.arrivals import Arrivals, ConstantArrivals, PoissonArrivals, RampArrivals
from ..engine.steps import Step
from .bounds import samples_for
from .early_verdict import Looks, errors_need, looks_of
from .judging import LatencyGoal, is_mean, quantile_of

LOAD_FORM = rule(
    "LLT108",
    "a load test needs exactly one kind of load",
    fix="Give --tps (requests per second), --users (callers that wait for their answers), "
    "--find-limit or --confirm.",
)
INSTANCES_KNOWN = rule(
    "LLT136",
    "the limit of one instance needs the number of instances",
    fix="Allow sagemaker:DescribeEndpoint, or give --instances.",
    source="/sagemaker/latest/APIReference/API_DescribeEndpoint.html",
)
PRECISION = Range(
    rule(
        "LLT117",
        "the precision of the limit is out of range",
        fix="Give the allowed gap, as a share, between the highest rate that meets the target "
        "and the next rate tried (default 0.05).",
    ),
    "the precision",
    0.005,
    0.5,
    "",
    False,
)

#: The chance that a step which only shows the way is wrongly said to hold. The step that confirms
#: has the goal's.
GUIDE_ERROR = 0.2
#: From one rate to the next while they hold.
RISE = 2.0
#: A step that shows the way ends unclear after this share of its time, when the rest would not tell.
ENOUGH = 0.5
#: How much longer than others the step may become that confirms; and for the sake of the errors.
CONFIRMS_FOR = 2
_CONFIRMS_AT_MOST = 5
# What a slow rate's step may become for the sake of its percentile: so much longer than wanted for
# requests to spare, and so much longer for the fewest that can tell.
_LONGER, _LONGEST = 10.0, 30.0
_SPARE, _FEWEST = 2.5, 1.2
# Seconds that a step sends before it counts: a share of it, at most so many where it only shows the
# way, and where its figures are kept.
_SETTLE_SHARE, _GUIDES_SETTLE, _KEPT_SETTLES = 0.1, 2.0, 5.0
_ALONE_SHARE = 1 / 6

Mode = Literal["rate", "users", "find-limit", "confirm"]


@dataclass(frozen=True)
class SearchPlan:
    """How the limit is looked for.

    Parameters
    ----------
    goal : LatencyGoal
        What has to hold.
    seed : int
        Of random arrivals: same seed, same times. By default 1.
    seconds : float
        Length of a step; longer where the rate is too low to judge the percentile by.
    alone_seconds : float
        How long one caller is measured; 0 for not at all.
    first_rate : float, optional
        Where rising starts. By default half of what one caller at a time gets per instance; of a
        language model, whose server batches, four times that caller's rate. Without a caller alone
        the slowest rate that steps of this length can judge.
    highest_rate : float
        Where rising ends.
    instances : int, optional
        That serve now, all together; the limit is divided by them. ``load_test`` fills in what
        SageMaker says; without either the search is refused.
    precision : float
        Distance at which the bisection ends, as a share. By default 0.05.
    poisson : bool
        Whether requests come at random (many independent callers), or evenly. By default at
        random.

    Raises
    ------
    ConfigurationError
        ``LLT117``.
    """

    goal: LatencyGoal
    seconds: float = 60.0
    alone_seconds: float = 10.0
    first_rate: float | None = None
    highest_rate: float = 100_000.0
    instances: int | None = None
    precision: float = 0.05
    poisson: bool = True
    seed: int = 1

    def __post_init__(self) -> None:
        PRECISION.check(self.precision, "precision")

    def seconds_at(self, rate: float) -> float:
        """Length of a step that can show the goal to be held; infinite where that takes too long.

        With some requests to spare, unless they take ten times as long as a step should.
        """
        fewest = _FEWEST * self.needed / rate
        if fewest > _LONGEST * self.seconds:
            return math.inf
        return max(self.seconds, fewest, min(_SPARE * self.needed / rate, _LONGER * self.seconds))

    def confirms_for(self, rate: float, failures_worth: float = 1.0) -> float:
        """How long a step may take that confirms a rate.

        Twice as long as others; longer where it then has the requests to show the allowed share of
        errors too, unless that takes more than five times as long as a step should.
        """
        twice = CONFIRMS_FOR * self.seconds_at(rate)
        for_errors = _FEWEST * errors_need(self.goal, failures_worth) / rate
        return for_errors if twice < for_errors <= _CONFIRMS_AT_MOST * self.seconds else twice

    def guide_looks(self, rate: float) -> Looks:
        """When a step is looked at that shows the way."""
        seconds = self.seconds_at(rate)
        return looks_of(self.goal, ENOUGH * seconds, seconds, rate, hold_error=GUIDE_ERROR)

    def confirming_looks(self, rate: float, failures_worth: float = 1.0) -> Looks:
        """When a step is looked at that confirms a rate."""
        seconds = self.seconds_at(rate)
        longest = self.confirms_for(rate, failures_worth)
        return looks_of(
            self.goal,
            longest,
            longest,
            rate,
            hold_error=1 - self.goal.confidence,
            holds_from=seconds,
            latency_ends=CONFIRMS_FOR * seconds,
            failures_worth=failures_worth,
        )

    @property
    def needed(self) -> int:
        """Fewest requests that can show the goal's highest percentile to be held."""
        quantiles = [quantile_of(name) for name in self.goal.targets if not is_mean(name)]
        return max(
            (samples_for(quantile, self.goal.confidence) for quantile in quantiles), default=30
        )

    @property
    def slowest_rate(self) -> float:
        """The rate from which on no step becomes longer than wanted."""
        return _SPARE * self.needed / self.seconds


def settle_seconds(seconds: float, *, kept: bool = True) -> float:
    """How long a step sends before it counts; a step that only shows the way is not kept."""
    return min(_KEPT_SETTLES if kept else _GUIDES_SETTLE, _SETTLE_SHARE * seconds)


def settled(name: str, seconds: float, settle: float, seed: int, **load: Any) -> Step:
    """A step that counts for so many seconds, after its settling; ``load`` is arrivals or users."""
    return Step(name, seconds + settle, seed=seed, settle_seconds=settle, **load)


@dataclass(frozen=True)
class RunPlan:
    """A load test, as :func:`rate_plan`, :func:`users_plan`, :func:`limit_plan` and so on make it."""

    mode: Mode
    goal: LatencyGoal  # what each step is judged by; without targets, by errors alone
    steps: tuple[Step, ...] = ()  # one after the other; empty for a search
    search: SearchPlan | None = None
    # whether steps of a minute or more settle until a full minute begins, so that CloudWatch, which
    # counts in minutes, has some of theirs alone; ``load_test`` wants it when it reads CloudWatch
    whole_minutes: bool = False

    def __post_init__(self) -> None:
        if bool(self.steps) == (self.search is not None):
            raise LOAD_FORM.error(
                got="neither steps nor a search" if not self.steps else "both",
                allowed="steps, or a search",
            )


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
    seed : int
        Of random arrivals: same seed, same times. By default 1.
    mode : str
        What the report calls the test; by default ``rate``.

    Examples
    --------
    >>> [step.name for step in rate_plan([50, 100], seconds=10).steps]
    ['alone', '50 TPS', '100 TPS']
    """
    steps = _alone(alone_seconds, seconds, seed)
    settle = settle_seconds(seconds)
    for number, rate in enumerate(rates, 1):
        if isinstance(rate, Arrivals):
            arrivals: Arrivals = rate
            # A shape begins where it begins: nothing of it is set aside.
            steps.append(Step(_shape_name(arrivals), seconds, arrivals, None, seed=seed + number))
            continue
        arrivals = PoissonArrivals(rate) if poisson else ConstantArrivals(rate)
        name = f"{readable(rate, 4)} TPS"
        steps.append(settled(name, seconds, settle, seed + number, arrivals=arrivals))
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

    Parameters
    ----------
    users : sequence of int
        Number of callers, one for each step.
    seconds : float
        Length of each step; a tenth of it, at most 5 seconds, comes on top and is not counted.
    goal : LatencyGoal, optional
        By default only errors count.
    alone_seconds : float, optional
        How long one caller at a time is measured before, for the service time; 0 for not at all.
        By default a sixth of a step, at most 10 seconds.
    seed : int
        Of random numbers: same seed, same numbers. By default 1.

    Examples
    --------
    >>> [step.users for step in users_plan([4, 20], seconds=10, alone_seconds=0).steps]
    [4, 20]
    """
    steps = _alone(alone_seconds, seconds, seed)
    settle = settle_seconds(seconds)
    for number, count in enumerate(users, 1):
        name = f"{count:,} user" + ("s" if count != 1 else "")
        steps.append(settled(name, seconds, settle, seed + number, users=count))
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
    """The load of production on the fleet as it is: does it hold?

    Parameters
    ----------
    rate : float
        Requests per second.
    goal : LatencyGoal
        What has to hold.
    seconds : float
        Length of the step; by default 300.
    alone_seconds : float, optional
        How long one caller at a time is measured before, for the service time; 0 for not at all.
        By default a sixth of the step, at most 10 seconds.
    poisson : bool
        Whether requests come at random, or evenly. By default at random.
    seed : int
        Of random arrivals: same seed, same times. By default 1.
    """
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
    """Look for the highest rate that holds.

    Parameters
    ----------
    search : SearchPlan
        The goal, and how long and how closely is looked.
    """
    return RunPlan("find-limit", search.goal, search=search)


def _alone(wanted: float | None, seconds: float, seed: int) -> list[Step]:
    length = min(10.0, _ALONE_SHARE * seconds) if wanted is None else wanted
    return [Step("alone", length, None, 1, seed=seed)] if length > 0 else []


def _shape_name(arrivals: Arrivals) -> str:
    if isinstance(arrivals, RampArrivals):
        return f"{readable(arrivals.start, 4)} to {readable(arrivals.end, 4)} TPS"
    return arrivals.kind
