"""Numbers of instances, and what changes them: load, set times, and steps on a jump."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from ..errors import rule
from ..errors.findings import Finding, breaches, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.limit_kinds import Range, text_form
from ..facts.rules import (
    CAPACITY_CHANGE,
    COUNTS_OF_A_SCALED_FLEET,
    INITIAL_OUTSIDE_RANGE,
    MIN_ABOVE_MAX,
    SCALING_IS_OFF,
    SCALING_STEPS,
)
from ..facts.scaling_steps import STEP_CHANGE
from ..report.numbers import plain_number
from .argument_kinds import checked_arguments
from .option import EXCLUDES_ANOTHER, NEEDS_ANOTHER, Option, Options, options_of

if TYPE_CHECKING:
    from aws_cdk import Duration

_API = "/autoscaling/application/APIReference/"
_CRONS = "/autoscaling/application/userguide/scheduled-scaling-using-cron-expressions.html"


def _list_of(number: str, *besides: str) -> str:
    """The form of a cron field: numbers, ranges and steps, and what else stands in a list."""
    item = "|".join((rf"(?:\*|{number}(?:-{number})?)(?:/[1-9]\d{{0,3}})?", *besides))
    return rf"(?:{item})(?:,(?:{item}))*"


_MINUTES = _list_of(r"[0-5]?\d")
_HOURS = _list_of(r"(?:[01]?\d|2[0-3])")
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_DAYS = _list_of(_DAY, "L", f"{_DAY}W")
_MONTHS = _list_of("(?:0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)")
_WEEKDAY = "(?:[1-7]|SUN|MON|TUE|WED|THU|FRI|SAT)"
_WEEKDAYS = _list_of(_WEEKDAY, f"{_WEEKDAY}?L", f"{_WEEKDAY}#[1-5]")
_YEARS = _list_of(r"(?:19[7-9]\d|2[01]\d\d)")

SCHEDULE_NAME = text_form(
    "LLE611",
    "a scheduled action's name",
    r"(?!.*[:/|\x00-\x1f\x7f-\x9f])[^ ](?:.*[^ ])?",
    "text without : / | and control characters, and without a space at either end",
    max_length=256,
    source=_API + "API_PutScheduledAction.html",
)
SCHEDULE_EXPRESSION = text_form(
    "LLE612",
    "a scheduled action's time",
    rf"(?i:cron\({_MINUTES} {_HOURS} "
    rf"(?:\? {_MONTHS} {_WEEKDAYS}|{_DAYS} {_MONTHS} \?) {_YEARS}\))"
    r"|at\(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\)"
    r"|rate\((?:1 (?:minute|hour|day)|(?!1 )[1-9]\d* (?:minutes|hours|days))\)",
    "cron(minutes hours day-of-month month day-of-week year) with ? for one of the two days, "
    "at(yyyy-mm-ddThh:mm:ss), rate(1 unit) or rate(value units)",
    max_length=1600,
    source=_CRONS,
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
    fix="Set the throughput or max_concurrency_per_instance (scaling.concurrency_target), "
    "and a maximum above the minimum.",
    source="/autoscaling/application/userguide/step-scaling-policy-overview.html",
)


#: What the policies of :class:`LowLatencyEndpoint` are called.
POLICY_NAMES = ("Concurrency", "Invocations", "Steps")


STEP_PERIODS = Range(
    rule(
        "LLE615",
        "the number of periods until a step acts is out of range",
        fix="Count periods of 10 seconds for concurrency, of a minute for invocations.",
    ),
    "the number of periods",
    1,
    10,
    "periods",
)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class InstanceCounts(Options):
    """How many instances run; counts you omit follow from the throughput.

    Raises:
        ConfigurationError: LLE106, LLE403 and LLE601 for numbers out of range, LLE621 for a
            minimum above the maximum, LLE625 for an initial number outside the two, LLE825
            for tokens.

    Examples:
        >>> from low_latency_endpoint import InstanceCounts
        >>> InstanceCounts(min=2, max=12).max
        12
    """

    min: Annotated[int | None, Option(limits.MIN_CAPACITY, 2, planned=True)] = None
    """Minimum; 1 is possible, but leaves no reserve. Default: one per client zone, at least two."""
    initial: Annotated[int | None, Option(limits.INITIAL_INSTANCE_COUNT, 4, planned=True)] = None
    """Instances that the first deployment starts. Default: the plan's."""
    max: Annotated[int | None, Option(limits.MAX_INSTANCES, 12, planned=True)] = None
    """Maximum. Default: enough for the peak with the safety factor."""

    def _rules(self) -> Iterator[Finding]:
        """min <= initial <= max."""
        low, start, high = self.min, self.initial, self.max
        if low is not None and high is not None and low > high:
            yield finding(
                MIN_ABOVE_MAX, "min", got=f"{low} above {high}", allowed=f"at most {high}"
            )
        elif start is not None and ((low or start) > start or (high or start) < start):
            bounds = [f"at least {low}"] * (low is not None)
            bounds += [f"at most {high}"] * (high is not None)
            yield finding(INITIAL_OUTSIDE_RANGE, "initial", got=start, allowed=" and ".join(bounds))


def _check_expression(text: str, where: str = "") -> str:
    """Return an expression of a time that there is, or raise LLE612."""
    SCHEDULE_EXPRESSION.check(text, where)
    if text.startswith("at("):
        try:
            datetime.fromisoformat(text.removeprefix("at(").removesuffix(")"))
        except ValueError:
            raise SCHEDULE_EXPRESSION.rule.error(
                got=text, allowed="a date that there is", where=where
            ) from None
    return text


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ScalingSchedule(Options):
    """New instance limits from a set time on, until another schedule changes them.

    Raises:
        ConfigurationError: LLE106 and LLE601 for numbers out of range, LLE611 for the
            name, LLE612 for the time, LLE613 for the time zone, LLE621 for a minimum
            above the maximum, LLE627 without numbers, LLE927 without a time.

    Examples:
        >>> rush = ScalingSchedule(name="rush", cron="45 7 ? * MON-FRI *",
        ...                        time_zone="Europe/Berlin", min=8, max=20)
        >>> rush.expression, rush.text
        ('cron(45 7 ? * MON-FRI *)', '8 to 20 instances')
    """

    exactly_one_of: ClassVar[tuple[str, ...]] = ("cron", "at", "rate")

    name: Annotated[str, Option(SCHEDULE_NAME, "morning", known=True)]
    """Unique name within the endpoint."""
    cron: Annotated[str | None, Option(example="45 7 ? * MON-FRI *")] = None
    """Minutes, hours, day of month, month, day of week, year."""
    at: Annotated[str | None, Option(example="2026-11-27T08:00:00")] = None
    """Once, at this time."""
    rate: Annotated[str | None, Option(example="1 day")] = None
    """Repeatedly, at this interval."""
    time_zone: Annotated[str | None, Option(example="Europe/Berlin")] = None
    """With cron and at: IANA time zone. Default: UTC."""
    min: Annotated[int | None, Option(limits.MIN_CAPACITY, 8, known=True)] = None
    """Minimum from then on. Default: unchanged."""
    max: Annotated[int | None, Option(limits.MAX_INSTANCES, 20, known=True)] = None
    """Maximum from then on. Default: unchanged."""

    @property
    def expression(self) -> str:
        """When, as Application Auto Scaling takes it."""
        return "".join(f"{name}({getattr(self, name)})" for name in self.ways[:1])

    def _rules(self) -> Iterator[Finding]:
        """When and how many, as Application Auto Scaling takes it."""
        kind, _, _ = self.expression.partition("(")
        if kind:
            yield from breaches((kind,), _check_expression, self.expression)
        if self.time_zone is not None and kind == "rate":
            got, allowed = f"{self.time_zone} with rate", "a time zone with cron and at only"
            yield finding(SCHEDULE_TIME_ZONE, "time_zone", got=got, allowed=allowed)
        else:
            yield from breaches(("time_zone",), check_time_zone, self.time_zone)
        low, high = self.min, self.max
        if low is None and high is None:
            yield finding(CAPACITY_CHANGE, got="neither", allowed="min, max or both")
        elif low is not None and high is not None and low > high:
            yield finding(
                MIN_ABOVE_MAX, "min", got=f"{low} above {high}", allowed=f"at most {high}"
            )

    @property
    def when(self) -> str:
        """The time in words: ``from 22:00 UTC``, or the expression of one that has more to it."""
        zone = self.time_zone or "UTC"
        if self.rate is not None:
            return f"every {self.rate}"
        if self.at is not None:
            return f"from {self.at.replace('T', ' ')} {zone}"
        minutes, hours, *date = (self.cron or "").split(" ")
        if not (minutes.isdecimal() and hours.isdecimal() and date[-1:] == ["*"]):
            return f"{self.expression} {zone}"
        days = [f"days {date[0]}"] * (date[0] not in ("*", "?"))
        days += [f"months {date[1]}"] * (date[1] not in ("*", "?"))
        days += [date[2]] * (date[2] not in ("*", "?"))
        return f"from {int(hours):02}:{int(minutes):02} {' '.join([zone, *days])}"

    @property
    def text(self) -> str:
        """The range in words."""
        if self.min is None:
            return f"at most {self.max} instances"
        return (
            f"at least {self.min} instances"
            if self.max is None
            else f"{self.min} to {self.max} instances"
        )


class CapacityStep(NamedTuple):
    """One step: from where to where above the threshold, and how many instances it adds."""

    lower: float
    upper: float | None
    change: int


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class StepUp(Options):
    """One step."""

    requests: Annotated[float, Option(STEP_THRESHOLD, 8, known=True)]
    """Requests in flight or per minute on one instance at which the step acts."""
    add: Annotated[int, Option(STEP_ADDS, 2, known=True)]
    """Instances to add; more than the previous step."""


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ScalingSteps(Options):
    """Instances to add at once when a metric jumps, in addition to target tracking.

    Target tracking adds what its last value asks for, once three of them are above the target. Steps act on the first one, and add what you state. They never take
    instances away; target tracking does, when all its alarms agree.

    Latency is no metric for it: it also rises when what the model calls is slow, and then more
    instances call that more often.

    Attributes:
        threshold: The metric's value from which the steps count.
        steps: What to do from which distance to the threshold on.

    Raises:
        ConfigurationError: LLE364 and LLE628 for steps that do not add more the higher
            they are, LLE605 for the cooldown, LLE614 and LLE615 for values out of
            range.

    Examples:
        >>> from low_latency_endpoint import ScalingSteps, StepUp
        >>> steps = ScalingSteps(adds=[StepUp(requests=8, add=2), StepUp(requests=16, add=4)])
        >>> steps.threshold, steps.steps
        (8, (CapacityStep(lower=0, upper=8, change=2), CapacityStep(lower=8, upper=None, change=4)))
    """

    metric: Annotated[Literal["concurrency", "invocations"], Option()] = "concurrency"
    """Requests in flight on the busiest instance, every ten seconds, or invocations per instance
    and minute. Default: concurrency."""
    adds: Annotated[
        Sequence[StepUp], Option(example=[{"requests": 8, "add": 2}, {"requests": 16, "add": 4}])
    ]
    """The steps."""
    periods: Annotated[int, Option(STEP_PERIODS, 1, known=True)] = 1
    """Consecutive periods of the metric before scaling acts. Default: 1."""
    cooldown: Annotated[
        Duration | timedelta | str | None, Option(limits.COOLDOWN_SECONDS, "2m", known=True)
    ] = None
    """Time in which a larger step adds only the difference. Default: 5m."""

    def _rules(self) -> Iterator[Finding]:
        """Each step adds more instances than the steps below it."""
        steps = sorted((each.requests, each.add) for each in self.adds)
        if not steps:
            yield finding(SCALING_STEPS, "adds", got="no steps", allowed="at least one")
        if any(at >= above or add >= more for (at, add), (above, more) in pairwise(steps)):
            yield finding(
                SCALING_STEPS,
                "adds",
                what="a higher step adds more instances than a lower one",
                got=", ".join(f"{add} from {plain_number(at)} on" for at, add in steps),
                allowed="rising, each from another value on",
                fix="Let each step add more than the one below it; taking away is target tracking's.",
            )

    @property
    def threshold(self) -> float:
        """Where the first step begins: that of the alarm."""
        return builtins.min(each.requests for each in self.adds)

    @property
    def steps(self) -> tuple[CapacityStep, ...]:
        """The steps above the threshold."""
        adds = {each.requests: each.add for each in self.adds}
        bounds = sorted(adds)
        first = bounds[0]
        return tuple(
            CapacityStep(lower - first, None if upper is None else upper - first, adds[lower])
            for lower, upper in pairwise([*bounds, None])
            if lower is not None
        )

    @property
    def text(self) -> str:
        """The steps in words."""
        what = "in flight" if self.metric == "concurrency" else "a minute"
        steps = sorted((each.requests, each.add) for each in self.adds)
        parts = (f"{plain_number(add)} from {plain_number(at)}" for at, add in steps)
        return f"{', '.join(parts)} requests {what} per instance on"


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ScalingOptions(Options):
    """How the number of instances follows the load.

    Raises:
        ConfigurationError: LLE512 for counts that are not kept while the fleet scales, LLE602,
            LLE605 and LLE610 for numbers out of range, LLE629 for what has no effect without
            scaling, LLE825 for tokens, LLE928 and LLE929 for a target without its metric,
            LLE801 and LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import ScalingOptions
        >>> ScalingOptions(metric="concurrency", concurrency_target=4).is_asked_for
        True
    """

    enabled: Annotated[bool, Option()] = True
    """Scale with the load; false keeps the initial count and allows no targets or cooldowns.
    Nothing scales before throughput is measured or a target is stated. Default: true."""
    keep_counts: Annotated[bool | None, Option(example=True)] = None
    """Keep the number of running instances in an update. Set false, with enabled: false, for a
    fixed fleet. Default: true for a fleet that scales, and with enabled: false."""
    metric: Annotated[
        Literal["invocations", "concurrency"] | None, Option(example="invocations")
    ] = None
    """Metric to track: invocations per instance and minute, or requests in flight every ten
    seconds. Not CPU: its use at the limit is not what a load test finds, and an instance whose
    workers all wait is full with idle CPUs. Default: invocations; for a language model concurrency,
    once concurrency_per_instance is known."""
    invocations_target: Annotated[float | None, Option(limits.SCALING_TARGET, 500)] = None
    """With metric: invocations: target per instance and minute. Default: TPS per instance x safety
    factor x 60. A stated one takes the factor's place in all numbers of the plan."""
    concurrency_target: Annotated[float | None, Option(limits.SCALING_TARGET, 4)] = None
    """With metric: concurrency only: target of requests in flight per instance. With
    throughput.concurrency_per_instance it takes the safety factor's place too."""
    scale_in_cooldown: Annotated[
        Duration | timedelta | str | None, Option(limits.COOLDOWN_SECONDS, "5m", planned=True)
    ] = None
    """Cooldown after removing instances. Default: 5m."""
    scale_out_cooldown: Annotated[
        Duration | timedelta | str | None, Option(limits.COOLDOWN_SECONDS, "60s", planned=True)
    ] = None
    """Cooldown after adding instances. Default: 60s."""
    instance_start: Annotated[
        Duration | timedelta | str | None,
        Option(limits.INSTANCE_START_SECONDS, "12m", planned=True),
    ] = None
    """How long a new instance takes until it serves; the minimum must serve rising traffic for this
    time. Default: 5m, assumed, and more for Hub weights above 37 GB."""
    schedule: Annotated[
        Sequence[ScalingSchedule],
        Option(example=[{"name": "morning", "cron": "45 7 ? * MON-FRI *", "min": 8}]),
    ] = ()
    """Other minimum and maximum counts at set times. Default: none."""
    steps: Annotated[
        ScalingSteps | None,
        Option(example={"metric": "concurrency", "adds": [{"requests": 8, "add": 2}]}),
    ] = None
    """Instances to add at once when traffic jumps, before target tracking acts. Default: none."""

    def _rules(self) -> Iterator[Finding]:
        """A target belongs to its metric, and both to scaling."""
        by_concurrency = self.metric == "concurrency"
        if by_concurrency and self.concurrency_target is None:
            yield finding(
                NEEDS_ANOTHER,
                "metric",
                got="concurrency without concurrency_target",
                allowed="concurrency_target beside it",
                what="scaling on concurrency needs a target",
                fix="Add concurrency_target: the requests in flight that one instance holds.",
            )
        for name, other in (
            ("concurrency_target", "concurrency"),
            ("invocations_target", "invocations"),
        ):
            if getattr(self, name) is not None and by_concurrency is not (other == "concurrency"):
                yield finding(
                    EXCLUDES_ANOTHER,
                    name,
                    got=f"metric: {self.metric or 'invocations'}",
                    allowed=f"metric: {other}",
                    what=f"{name} is for the metric {other}",
                    fix=f"State the metric {other}, or remove {name}.",
                )

    def _rules_of_a_fixed_fleet(self) -> Iterator[Finding]:
        """What a policy would do is not dropped in silence, and a fleet that scales keeps counts."""
        if self.enabled and self.keep_counts is False:
            yield finding(
                COUNTS_OF_A_SCALED_FLEET,
                "keep_counts",
                got="keep_counts is off, and enabled is on",
                allowed="keep_counts on, or both off",
            )
        kept = ("enabled", "keep_counts")  # what a fleet may say that does not scale
        names = [option.name for option in options_of(ScalingOptions) if option.name not in kept]
        for name in () if self.enabled else names:
            if self._states(name):
                yield finding(
                    SCALING_IS_OFF,
                    name,
                    got=f"{name}, and enabled is off",
                    allowed=f"enabled off without {name}",
                    fix=f"Remove {name}, or leave enabled on.",
                )

    @property
    def is_asked_for(self) -> bool:
        """Whether a target, set times or steps are stated."""
        targets = (self.invocations_target, self.concurrency_target)
        return bool(self.schedule or self.steps or any(targets))


def whole_seconds(stated: Any) -> int | None:
    """A duration of these options, settled already."""
    return None if stated is None else int(stated / timedelta(seconds=1))


def check_time_zone(name: str | None) -> None:
    """Raise for a time zone that this machine's database does not have, LLE613."""
    known = _time_zones()
    if name is not None and known and name not in known:
        raise SCHEDULE_TIME_ZONE.error(
            got=name, allowed="a zone of the IANA database, such as Europe/Berlin or Etc/UTC"
        )


@cache
def _time_zones() -> frozenset[str]:
    """The zones of this machine's database; empty where it has none."""
    import zoneinfo

    return frozenset(zoneinfo.available_timezones())


def most_scheduled(schedule: Sequence[ScalingSchedule], maximum: int) -> int:
    """The most instances that the maximum or a schedule allows."""
    return max(maximum, *(schedule.max or 0 for schedule in schedule)) if schedule else maximum


def fewest_scheduled(schedule: Sequence[ScalingSchedule], minimum: int) -> int:
    """The fewest that the minimum or a schedule allows."""
    return min([minimum, *(schedule.min or minimum for schedule in schedule)])
