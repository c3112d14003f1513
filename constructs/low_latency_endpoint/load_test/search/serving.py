"""What an account says of an endpoint under load: the instances that answer, and CloudWatch's metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ...account.calls import Account
from ...account.clock import WALL_CLOCK, AccountClock
from ...account.endpoints import (
    ENDPOINT_EXISTS,
    DeployedEndpoint,
    DeployedVariant,
    describe_endpoint,
    existing_endpoint,
)
from ...account.metrics import Query, Series, read_queries, variant_queries
from ...account.scaling import (
    NOTHING_SUSPENDED,
    Suspended,
    scalable_targets,
    scheduled_action_names,
    suspended_scaling,
)
from ...account.sessions import Unreadable
from ...errors import did_you_mean, rule
from ..engine.steps import StepResult
from .run_plans import INSTANCES_KNOWN

ONE_INSTANCE_TYPE = rule(
    "LLT137",
    "variants with several instance types have no common limit per instance",
    fix="Test one variant at a time with --variant.",
    source="/sagemaker/latest/APIReference/API_ProductionVariant.html",
)
PERIOD = timedelta(minutes=1)
ONE_FLEET = rule(
    "LLT140",
    "an update of the endpoint is under way, so two fleets may answer",
    fix="Wait until it has ended, and test again: `low-latency diagnose` says how far it is.",
    source="/sagemaker/latest/dg/deployment-guardrails.html",
)
_WHOLE = 0.98  # of a minute: clocks differ, and a step may begin to count a little late
_COUNTED = 0.98  # share of the answers that CloudWatch must have counted to be complete
_PAUSES = (1.0, 2.0, 5.0, 10.0)
_SUMMED = {
    "Invocations",
    "Invocation4XXErrors",
    "Invocation5XXErrors",
    "InvocationModelErrors",
    "MidStreamErrors",
}
_LATENCIES = {"ModelLatency", "OverheadLatency"}


@dataclass(frozen=True)
class ServingFleet:
    """The instances that requests go to, as they were when they were read."""

    # Of an endpoint that divides its requests among several variants, all of theirs together: then
    # ``variant`` names them all, ``instance_type`` and ``routing`` are empty where they differ.

    variant: str = ""
    variants: tuple[str, ...] = ()
    instance_type: str = ""
    instances: int | None = None
    routing: str = ""
    minimum: int | None = None
    maximum: int | None = None
    suspended: Suspended = NOTHING_SUSPENDED  # of one variant's scaling, as the next
    scheduled: tuple[str, ...] = ()  # actions that may change it although nothing else may
    unknown: tuple[str, ...] = ()
    parts: tuple[ServingFleet, ...] = ()
    configuration: str = ""  # that serves; with the time of the endpoint's last change
    changed: datetime | None = None
    update: str = ""  # the update under way, in words: a second fleet may answer

    @property
    def scales(self) -> bool:
        """Whether scaling may change the number of instances."""
        return any(part.scales_in or part.scales_out or part.scheduled for part in self.each)

    @property
    def scales_in(self) -> bool:
        """Whether a policy may take instances of this one variant away."""
        above = self.instances is None or self.minimum is None or self.instances > self.minimum
        return self._follows_load and not self.suspended.scale_in and above

    @property
    def scales_out(self) -> bool:
        """Whether a policy may add instances to this one variant."""
        below = self.instances is None or self.maximum is None or self.instances < self.maximum
        return self._follows_load and not self.suspended.scale_out and below

    @property
    def _follows_load(self) -> bool:
        return self.maximum is not None and self.maximum != self.minimum

    @property
    def fewest(self) -> int | None:
        """The instances that policies may leave; ``None`` where it is not known."""
        return _sum(part.minimum if part.scales_in else part.instances for part in self.each)

    @property
    def most(self) -> int | None:
        """The instances that policies may reach; ``None`` where it is not known."""
        return _sum(part.maximum if part.scales_out else part.instances for part in self.each)

    @property
    def scheduled_actions(self) -> tuple[str, ...]:
        """The scheduled actions of all variants of which nothing else may change the number."""
        return tuple(name for part in self.each for name in part.scheduled)

    @property
    def each(self) -> tuple[ServingFleet, ...]:
        """Each variant on its own."""
        return self.parts or (self,)

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        content: dict[str, Any] = {
            "variant": self.variant,
            "instance_type": self.instance_type,
            "instances": self.instances,
            "routing": self.routing,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "suspended": asdict(self.suspended),
            "scheduled": list(self.scheduled),
            "unknown": list(self.unknown),
        }
        if self.parts:
            content["variants"] = [part.to_dict() for part in self.parts]
        return content


def read_fleet(account: Account, endpoint: str, variant: str | None = None) -> ServingFleet:
    """Describe what answers."""
    found = account.known("endpoint", existing_endpoint, endpoint)
    if found is None:
        return ServingFleet(
            variant or "",
            unknown=tuple(
                f"instances: {each.why}" for each in account.unknown if each.what == "endpoint"
            ),
        )
    running = {name: variant for name, variant in found.variants.items() if variant.running}
    if variant is not None and variant not in running:
        raise ENDPOINT_EXISTS.error(
            got=f"variant {variant} of {endpoint}",
            allowed=", ".join(running) or "a variant of the endpoint",
            what="the variant must exist",
            fix=did_you_mean(variant, running) or "Name one of these with --variant.",
        )
    # Those that get requests; a variant whose weight is not told may.
    answering = [
        name
        for name, each in running.items()
        if name == variant or (variant is None and each.running.get("CurrentWeight") != 0.0)
    ]
    targets = account.known("scaling", scalable_targets, endpoint, answering) or {}
    parts = [_one(running[name], targets.get(name, {})) for name in answering]
    fleet = _together([_with_schedule(account, endpoint, part) for part in parts])
    return replace(
        fleet,
        variants=tuple(running),
        unknown=tuple(f"{each.what}: {each.why}" for each in account.unknown),
        configuration=found.configuration_name,
        changed=found.description.get("LastModifiedTime"),
        update=found.update.words if found.update else "",
    )


def _one(variant: DeployedVariant, target: Mapping[str, Any]) -> ServingFleet:
    return ServingFleet(
        variant=variant.name,
        instance_type=_same(variant.instance_types),
        instances=variant.current_instances,
        routing=variant.routing,
        minimum=target.get("MinCapacity"),
        maximum=target.get("MaxCapacity"),
        suspended=suspended_scaling(target),
    )


def _with_schedule(account: Account, endpoint: str, part: ServingFleet) -> ServingFleet:
    """A variant with its scheduled actions, where its size depends on them alone."""
    if part.maximum is None or part.scales or part.suspended.scheduled:
        return part
    names = account.known("scheduled actions", scheduled_action_names, endpoint, part.variant)
    return replace(part, scheduled=names or ())


def _together(parts: list[ServingFleet]) -> ServingFleet:
    if len(parts) == 1:
        return parts[0]
    counts = [part.instances for part in parts if part.instances is not None]
    fleet = ServingFleet(
        variant=", ".join(part.variant for part in parts),
        instance_type=_same(part.instance_type for part in parts),
        instances=sum(counts) if parts and len(counts) == len(parts) else None,
        routing=_same(part.routing for part in parts),
        parts=tuple(parts),
    )
    if all(part.maximum is None for part in parts):
        return fleet

    def bound(name: str) -> int:
        told = ((part, getattr(part, name)) for part in parts)
        # A variant that does not scale stays as it is.
        return sum((part.instances or 0) if limit is None else limit for part, limit in told)

    return replace(fleet, minimum=bound("minimum"), maximum=bound("maximum"))


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(filter(None, known))


def _same(values: Any) -> str:
    found = set(values)
    return str(found.pop()) if len(found) == 1 else ""


def read_after(account: Account, endpoint: str, fleet: ServingFleet) -> ServingFleet:
    """The same variants as they are now; of what cannot be read, nothing is known."""
    description = account.known("endpoint", describe_endpoint, endpoint)
    if description is None:
        return replace(fleet, instances=None, configuration="", changed=None, update="")
    found = DeployedEndpoint(description, {})
    variants = found.variants
    counts = [
        variants[each.variant].current_instances if each.variant in variants else None
        for each in fleet.each
    ]
    known = [count for count in counts if count is not None]
    return replace(
        fleet,
        instances=sum(known) if len(known) == len(counts) else None,
        configuration=found.configuration_name,
        changed=description.get("LastModifiedTime"),
        update=found.update.words if found.update else "",
    )


def check_one_fleet(fleet: ServingFleet, endpoint: str) -> None:
    """Refuse what would be measured of two fleets at once."""
    if fleet.update:
        raise ONE_FLEET.error(
            got=fleet.update,
            allowed="an endpoint that nothing updates",
            where=f"endpoint {endpoint}",
        )


def instances_of_one_kind(fleet: ServingFleet, endpoint: str, component: str | None = None) -> int:
    """The number by which a limit is divided; refused where nobody can say what one instance is."""
    where = f"endpoint {endpoint}"
    if component is not None:
        raise INSTANCES_KNOWN.error(
            got=f"inference component {component}",
            allowed="--instances",
            where=where,
            what="the limit needs the number of the inference component's copies",
            fix="Give --instances the number of copies. The limit is then per copy.",
        )
    check_one_type(fleet, endpoint)
    if not fleet.instances:
        why = "; ".join(each for each in fleet.unknown if each.startswith("instances"))
        raise INSTANCES_KNOWN.error(
            got=why or f"{fleet.instances} instances", where=where, allowed="a number of instances"
        )
    return fleet.instances


def check_one_type(fleet: ServingFleet, endpoint: str) -> None:
    """Variants of several instance types have no limit of one instance."""
    if len({part.instance_type for part in fleet.parts}) > 1:
        raise ONE_INSTANCE_TYPE.error(
            got=", ".join(
                f"{part.variant} on {part.instance_type or 'an unknown type'}"
                for part in fleet.parts
            ),
            allowed="variants on one instance type, or one variant",
            where=f"endpoint {endpoint}",
        )


@dataclass(frozen=True)
class StepMetrics:
    """Values of a stretch of time, by metric and statistic such as ``ModelLatency.p99``."""

    # Latencies in milliseconds, utilization in percent of the whole instance, sums of requests per
    # second. ``shared`` when its minutes hold requests from before or after, too; ``filled`` is the
    # share of their time that the stretch has.

    values: Mapping[str, float] = field(default_factory=dict)
    shared: bool = False
    filled: float = 1.0

    def get(self, name: str) -> float | None:
        """One value."""
        return self.values.get(name)

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {"values": dict(self.values), "shared_minutes": self.shared}


@dataclass(frozen=True)
class JoinedMetrics:
    """CloudWatch's series over the run."""

    # by metric and statistic; milliseconds and percent of the whole instance
    series: Mapping[tuple[str, str], Series] = field(default_factory=dict)
    complete: bool = False  # whether it had counted the answers when it was read
    unknown: tuple[str, ...] = ()  # what could not be read, and why
    # by which the account's time, the series', went beside that of the steps
    clock: AccountClock = WALL_CLOCK

    def of(self, result: StepResult) -> StepMetrics:
        """The values of a step's time that counts; its settling is the same load."""
        return self.during(result.started_at, result.ended_at, result.step.settle_seconds)

    def during(self, start: float, end: float, settling: float = 0.0) -> StepMetrics:
        """The values between two moments (epoch seconds, wall clock), from their minutes."""
        # Whole minutes are preferred, with ``settling`` before; else those that the stretch fills most.
        seconds = PERIOD.total_seconds()
        start, end = self.clock.account(start), self.clock.account(end)
        settling *= self.clock.speed
        overlap = {
            minute: min(end, minute + seconds) - max(start, minute)
            for minute in _minutes(start, end)
        }
        whole = {
            minute
            for minute, part in overlap.items()
            if part >= 0.5 * seconds
            and min(end, minute + seconds) - max(start - settling, minute) >= _WHOLE * seconds
        }
        most = max(overlap.values(), default=0.0)
        chosen = whole or {minute for minute, part in overlap.items() if part >= 0.5 * most}
        counts = self._only(("ModelLatency", "SampleCount"), chosen)
        values: dict[str, float] = {}
        for (metric, statistic), _ in self.series.items():
            if statistic == "SampleCount":
                continue
            found = self._only((metric, statistic), chosen)
            if not found:
                continue
            if metric in _SUMMED:
                value: float | None = found.sum * self.clock.speed / (seconds * len(chosen))
            elif statistic == "Maximum":
                value = found.max
            elif metric in _LATENCIES:
                value = found.weighted_mean(counts)
            else:
                value = found.mean
            if value is not None:
                values[f"{metric}.{statistic}"] = value
        if whole or not values:
            return StepMetrics(values)
        return StepMetrics(
            values, True, sum(overlap[minute] for minute in chosen) / (seconds * len(chosen))
        )

    def _only(self, key: tuple[str, str], minutes: set[float]) -> Series:
        points = self.series.get(key, Series()).points
        return Series({at: value for at, value in points.items() if at.timestamp() in minutes})

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "period_seconds": PERIOD.total_seconds(),
            "complete": self.complete,
            "unknown": list(self.unknown),
            "series": {
                f"{metric}.{statistic}": {
                    at.astimezone(UTC).isoformat(): value
                    for at, value in sorted(each.points.items())
                }
                for (metric, statistic), each in self.series.items()
                if each
            },
        }


def read_joined(
    account: Account,
    endpoint: str,
    fleet: ServingFleet,
    *,
    start: float,
    end: float,
    answers: int,
    wait: float = 180.0,
    clock: AccountClock = WALL_CLOCK,
    progress: Callable[[str], None] = lambda text: None,
    sleep: Callable[[float], None] = time.sleep,
) -> JoinedMetrics:
    """Read CloudWatch over a run, once it has counted the run's answers."""
    if not all(fleet.variant for fleet in fleet.each):
        return JoinedMetrics(unknown=("CloudWatch: the variant is not known",), clock=clock)
    start, end = clock.account(start), clock.account(end)
    first = datetime.fromtimestamp(start - start % PERIOD.total_seconds(), UTC)
    last = datetime.fromtimestamp(end, UTC) + PERIOD
    queries = [
        query
        for fleet in fleet.each
        for query in variant_queries(endpoint, fleet.variant, fleet.instance_type)
    ]
    waited, pause, pauses = 0.0, 0.0, iter(_PAUSES)
    while True:
        try:
            found = read_queries(account, queries, first, last, PERIOD)
        except Unreadable as refusal:
            return JoinedMetrics(unknown=(f"CloudWatch: {refusal.why}",), clock=clock)
        series = _merged(found, fleet)
        counted = series.get(("Invocations", "Sum"), Series()).sum
        if counted >= _COUNTED * answers or waited >= wait:
            return JoinedMetrics(series, counted >= _COUNTED * answers, _unscaled(fleet), clock)
        progress(f"CloudWatch has counted {counted:,.0f} of {answers:,} requests")
        pause = min(next(pauses, pause), wait - waited)
        sleep(pause)
        waited += pause


def _merged(found: Mapping[Query, Series], fleet: ServingFleet) -> dict[tuple[str, str], Series]:
    """All variants as one: sums added, latencies weighted by requests, all else by instances."""
    weights = {fleet.variant: float(fleet.instances or 1) for fleet in fleet.each}
    counts = {
        query.owner[0]: values
        for query, values in found.items()
        if (query.metric, query.statistic) == ("ModelLatency", "SampleCount")
    }
    by_name: dict[tuple[str, str], dict[str, Series]] = {}
    for query, values in found.items():
        by_name.setdefault((query.metric, query.statistic), {})[query.owner[0]] = values
    merged = {}
    for (metric, statistic), parts in by_name.items():
        if len(parts) == 1:
            (merged[metric, statistic],) = parts.values()
            continue
        points = {}
        for at in {at for part in parts.values() for at in part.points}:
            here = {name: part.points[at] for name, part in parts.items() if at in part.points}
            if metric in _SUMMED or statistic == "SampleCount":
                points[at] = sum(here.values())
            elif statistic == "Maximum":
                points[at] = max(here.values())
            else:
                shares = {
                    name: counts.get(name, Series()).points.get(at, 0.0)
                    if metric in _LATENCIES
                    else weights[name]
                    for name in here
                }
                total = sum(shares.values())
                points[at] = (
                    sum(value * shares[name] for name, value in here.items()) / total
                    if total
                    else sum(here.values()) / len(here)
                )
        merged[metric, statistic] = Series(points)
    return merged


def _unscaled(fleet: ServingFleet) -> tuple[str, ...]:
    """Utilization is left out where nobody can say of how many processors it is."""
    if all(fleet.instance_type for fleet in fleet.each):
        return ()
    return ("CPU and GPU utilization: the instance type, by which they are scaled, is not known",)


def _minutes(start: float, end: float) -> list[float]:
    seconds = PERIOD.total_seconds()
    first = start - start % seconds
    return [first + number * seconds for number in range(int((end - first) // seconds) + 1)]
