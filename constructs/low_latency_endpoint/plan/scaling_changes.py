"""What changes the number of instances beside target tracking: set times, and steps on a jump."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ..errors import rule
from ..report.numbers import plain_number
from .argument_kinds import checked_arguments
from .durations import seconds_of
from .limits import COOLDOWN_SECONDS, MAX_INSTANCES, MIN_CAPACITY, Range, text_form
from .rules import CAPACITY_CHANGE, MIN_ABOVE_MAX, POLICY_NAMED_TWICE, SCALING_STEPS
from .scaling_steps import STEP_CHANGE

_API = "/autoscaling/application/APIReference/"
_FIELD = r"[A-Za-z0-9*?,/#-]+"

SCHEDULE_NAME = text_form(
    "LLE611",
    "a scheduled action's name",
    r"(?!.*[:/|\x00-\x1f\x7f-\x9f])[^ ](?:.*[^ ])?",
    "text without : / | and control characters, and without a space at either end",
    max_length=256,
    source=_API + "API_PutScheduledAction.html",
    unicode=True,
)
SCHEDULE_EXPRESSION = text_form(
    "LLE612",
    "a scheduled action's time",
    rf"cron\({_FIELD}(?: {_FIELD}){{5}}\)"
    r"|at\(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\)"
    r"|rate\([1-9]\d* (?:minute|hour|day)s?\)",
    "cron(minutes hours day-of-month month day-of-week year), at(yyyy-mm-ddThh:mm:ss) or "
    "rate(value unit)",
    max_length=1600,
    source=_API + "API_PutScheduledAction.html",
)
SCHEDULE_TIME_ZONE = rule(
    "LLE613",
    "a scheduled action's time zone is not valid",
    fix="Name an IANA zone, such as Europe/Berlin, with cron or at; leave it out for UTC.",
    source=_API + "API_PutScheduledAction.html",
)
STEP_THRESHOLD = Range(
    rule(
        "LLE614",
        "the metric value at which a step begins is out of range",
        fix="Give one instance's requests in flight (concurrency) or per minute (invocations).",
    ),
    "the value at which a step begins",
    1e-6,
    None,
    "requests",
    False,
)
STEP_ADDS = Range(STEP_CHANGE.rule, "the instances that a step adds", 1, None, "instances")
CHANGES_NEED_SCALING = rule(
    "LLE634",
    "a schedule or steps need scaling",
    fix="State the throughput or max_concurrency_per_instance (scaling.concurrency_target), "
    "and a maximum above the minimum.",
    source="/autoscaling/application/userguide/step-scaling-policy-overview.html",
)


#: What the policies of :class:`LowLatencyEndpoint` are called.
POLICY_NAMES = ("Concurrency", "Invocations", "Steps")


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ScalingSchedule:
    """Another range of instances from a set time on, such as before a known rush.

    Args:
        name: Of its own among the endpoint's.
        expression: ``cron(0 8 ? * MON-FRI *)``, ``at(2026-11-27T08:00:00)`` or ``rate(1 day)``.
        time_zone: Of the IANA database, such as ``Europe/Berlin``, for ``cron`` and ``at``; by default UTC.
        min_instances: Fewest instances from then on, until another schedule changes them: the end of the rush needs one of its own. State this or ``max_instances``, or both.
        max_instances: Most instances from then on, likewise.

    Raises:
        ConfigurationError: LLE106 and LLE601 for numbers out of range, LLE611 for the
            name, LLE612 for the expression, LLE613 for the time zone, LLE621 for a
            minimum above the maximum, LLE627 without numbers.

    Examples:
        >>> rush = ScalingSchedule(name="rush", expression="cron(45 7 ? * MON-FRI *)",
        ...                        time_zone="Europe/Berlin", min_instances=8, max_instances=20)
        >>> rush.text
        '8 to 20 instances'
    """

    name: str
    expression: str
    time_zone: str | None = None
    min_instances: int | None = None
    max_instances: int | None = None

    def __post_init__(self) -> None:
        SCHEDULE_NAME.check(self.name, "name")
        SCHEDULE_EXPRESSION.check(self.expression, "expression")
        check_time_zone(self.time_zone, self.expression)
        if self.min_instances is None and self.max_instances is None:
            raise CAPACITY_CHANGE.error(got="neither", allowed="one or both", where=self.name)
        for name, limit in (("min_instances", MIN_CAPACITY), ("max_instances", MAX_INSTANCES)):
            count = getattr(self, name)
            if count is not None:
                object.__setattr__(self, name, int(limit.check(count, name)))  # 3.0 is 3
        low, high = self.min_instances, self.max_instances
        if low is not None and high is not None and low > high:
            raise MIN_ABOVE_MAX.error(
                got=f"{low} above {high}", allowed=f"at most {high}", where=self.name
            )

    @property
    def text(self) -> str:
        """The range in words."""
        low, high = self.min_instances, self.max_instances
        if low is None:
            return f"at most {high} instances"
        return f"at least {low} instances" if high is None else f"{low} to {high} instances"


class Step(NamedTuple):
    """One step: from where to where above the threshold, and how many instances it adds."""

    lower: float
    upper: float | None
    change: int


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ScalingSteps:
    """Instances to add at once when a metric jumps, beside target tracking.

    Target tracking adds what its last value asks for, once three of them are above the target.
    Steps act on the first one, and add what you state. They never take instances away; target
    tracking does, when all its alarms agree.

    Latency is no metric for it: it also rises when what the model calls is slow, and then more
    instances call that more often.

    Args:
        metric: Requests in flight on the busiest instance (``ConcurrentRequestsPerModel``, Maximum, every 10 seconds), or invocations per instance and minute (``InvocationsPerInstance``). By default ``concurrency``.
        adds: Instances to add by the value of the metric from which on: ``{8: 2, 16: 4}`` adds 2 from 8 requests in flight on, and 4 from 16 on.
        periods: Periods of the metric in a row until it acts, 1 to 10; by default 1.
        cooldown: In it a larger step adds the difference. By default 300 seconds.

    Attributes:
        cooldown_seconds: ``cooldown`` in seconds.
        threshold: The metric's value from which the steps count.
        steps: What to do from which distance to the threshold on.

    Raises:
        ConfigurationError: LLE364 and LLE628 for steps that do not add more the higher
            they are, LLE605 for the cooldown, LLE614 and LLE615 for values out of
            range.

    Examples:
        >>> steps = ScalingSteps(adds={8: 2, 16: 4})
        >>> steps.threshold, steps.steps
        (8, (Step(lower=0, upper=8, change=2), Step(lower=8, upper=None, change=4)))
    """

    metric: Literal["concurrency", "invocations"] = "concurrency"
    adds: Mapping[float, int] = field(hash=False)
    periods: int = 1
    cooldown: Any = field(default=None, compare=False, repr=False)
    cooldown_seconds: int | None = field(init=False)

    def __post_init__(self) -> None:
        check_adds(list(self.adds.items()))
        STEP_PERIODS.check(self.periods, "periods")
        given = self.cooldown
        seconds = (
            None
            if given is None
            else int(COOLDOWN_SECONDS.check(seconds_of(given, "cooldown"), "cooldown"))
        )
        object.__setattr__(self, "cooldown_seconds", seconds)

    @property
    def threshold(self) -> float:
        """Where the first step begins: that of the alarm."""
        return min(self.adds)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps above the threshold."""
        bounds = sorted(self.adds)
        first = bounds[0]
        return tuple(
            Step(lower - first, None if upper is None else upper - first, int(self.adds[lower]))
            for lower, upper in pairwise([*bounds, None])
            if lower is not None
        )

    @property
    def text(self) -> str:
        """The steps in words."""
        what = "in flight" if self.metric == "concurrency" else "a minute"
        parts = (
            f"{plain_number(self.adds[at])} from {plain_number(at)}" for at in sorted(self.adds)
        )
        return f"{', '.join(parts)} requests {what} per instance on"


STEP_PERIODS = Range(
    rule(
        "LLE615",
        "the number of periods until a step acts is out of range",
        fix="A period is 10 seconds for concurrency, a minute for invocations.",
    ),
    "the number of periods",
    1,
    10,
    "periods",
)


def check_time_zone(time_zone: str | None, expression: str) -> None:
    """Raise for a zone that is none, or that ``rate`` would ignore."""
    if time_zone is None:
        return
    if expression.startswith("rate"):
        raise SCHEDULE_TIME_ZONE.error(
            got=f"{time_zone} with {expression}",
            allowed="a time zone with cron and at only",
            where="time_zone",
        )
    known = _time_zones()
    if known and time_zone not in known:
        raise SCHEDULE_TIME_ZONE.error(
            got=repr(time_zone), allowed="such as Europe/Berlin or Etc/UTC", where="time_zone"
        )


@cache
def _time_zones() -> frozenset[str]:
    """The zones of this machine's database; empty where it has none."""
    return frozenset(zoneinfo.available_timezones())


def check_adds(adds: Sequence[tuple[float, int]]) -> None:
    """Raise unless each step adds instances, and more than the steps below it."""
    if not adds:
        raise SCALING_STEPS.error(got="no steps", allowed="at least one", where="adds")
    for at, change in adds:
        STEP_THRESHOLD.check(at, "adds")
        STEP_ADDS.check(change, "adds")
    changes = [change for _, change in sorted(adds)]
    places = {at for at, _ in adds}
    if any(b <= a for a, b in pairwise(changes)) or len(places) < len(adds):
        raise SCALING_STEPS.error(
            what="a higher step adds more instances than a lower one",
            got=", ".join(f"{change} from {plain_number(at)} on" for at, change in sorted(adds)),
            allowed="rising, each from another value on",
            fix="Let each step add more than the one below it; taking away is target tracking's.",
            where="adds",
        )


def most_scheduled(schedule: Sequence[ScalingSchedule], maximum: int) -> int:
    """The most instances that the maximum or a schedule allows."""
    return max(maximum, *(each.max_instances or 0 for each in schedule)) if schedule else maximum


def fewest_scheduled(schedule: Sequence[ScalingSchedule], minimum: int) -> int:
    """The fewest that the minimum or a schedule allows."""
    return min([minimum, *(each.min_instances or minimum for each in schedule)])


def check_schedule(schedule: Sequence[ScalingSchedule], minimum: int, maximum: int) -> None:
    """Raise unless every range holds beside the usual one, whichever came before it."""
    names = set(POLICY_NAMES)
    for index, each in enumerate(schedule):
        where = f"schedule[{index}]"
        if each.name in names:
            raise POLICY_NAMED_TWICE.error(
                got=each.name, allowed=f"none of {', '.join(sorted(names))}", where=where
            )
        names.add(each.name)
        low = minimum if each.min_instances is None else each.min_instances
        high = maximum if each.max_instances is None else each.max_instances
        if low > high:
            raise MIN_ABOVE_MAX.error(
                got=f"{each.text}, and {minimum} to {maximum} otherwise",
                allowed="both numbers, or one that the other range holds",
                where=where,
            )
