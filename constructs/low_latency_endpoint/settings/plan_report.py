"""Why the plans of a settings file are what they are, what is doubtful, and what its endpoints share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from ..errors.frozen import dataclass
from ..facts.rules import has_objectives
from ..facts.s3_names import doubtful_bucket
from ..facts.subnets import (
    RESERVED_ADDRESSES,
    SPARE_ADDRESSES,
    addresses_per_subnet,
    network_blocks,
    roomy_prefix_length,
)
from ..options.alarms import TokenAlarmOptions
from ..options.throughput import counted_instances
from ..plan.decisions import Decision, Explanation, PlanWarning, alarm_name, contradicts
from ..plan.plan import Plan
from ..plan.plan_warnings import NOBODY_NOTIFIED, no_objectives_in
from ..plan.private_dns import OWN_NAMES, takeover
from ..plan.secrets import secret_warning
from ..plan.summary import alarms_text, planned_thresholds, summary_of
from ..plan.token_warnings import NO_TOKEN_ALARMS
from ..report.numbers import readable
from .endpoint import EndpointSettings, all_containers, instances_in_update
from .stack import Settings, region_of
from .stack_cost import variant_cost, watching_alarms
from .variant_plans import (
    PlannedVariant,
    hub_models,
    plan_endpoint,
    planned_variants,
    stated_limits,
    token_alarm_count,
    token_limits,
    warm_up_requests,
)

LARGE_ACCELERATORS = 8
"""Of an instance, from which on capacity is scarce: p4, p5, p6, the largest g5 to g7e, trn and inf2."""
#: Decisions of one endpoint's plan that a settings file makes once, for all of its endpoints.
SHARED_DECISIONS = frozenset({"subnets", "addresses_per_subnet", "subnet_size"})


def explain_variants(settings: Settings, key: str | None = None) -> dict[str, Explanation]:
    """Why the plans are what they are, of all variants of a file or of one endpoint, by label."""
    return {
        variant.label: _explained(settings, variant) for variant in planned_variants(settings, key)
    }


def _explained(settings: Settings, variant: PlannedVariant) -> Explanation:
    """Why the plan is what it is, what it costs, and what is doubtful about the settings."""
    # Not in the constructs' explanation, which goes into the template: a price that changes must
    # not change the stack.
    key, plan, cost = variant.key, variant.plan, variant_cost(settings, variant)
    own, decisions = plan.explanation.warnings, plan.explanation.decisions
    if not variant.shadow:
        decisions = tuple(_with_stated_alarms(settings, key, plan))
    if variant.further is None:
        further = (*own, *_warnings(settings, settings.endpoints[key], plan))
        of_alarms = (*_contradictions(settings, key, plan), *_above_targets(settings, key, plan))
        warnings = dict.fromkeys((*of_alarms, *further))
    else:
        said = {str(warning) for warning in plan_endpoint(settings, key).explanation.warnings}
        warnings = dict.fromkeys(each for each in own if each not in said)
    alarms = f"{len(plan.alarms)} compare it with production"
    return replace(
        plan.explanation,
        decisions=(
            *(decision for decision in decisions if decision.name not in SHARED_DECISIONS),
            *cost.decisions(),
        ),
        warnings=tuple(warnings),
        summary=summary_of(
            plan,
            alarms=alarms if variant.shadow else _alarms(settings, key, plan),
            warm_up=warm_up_requests(settings, key) if variant.further is None else 0,
            cost=cost,
            named=variant.further is not None or settings.endpoints[key].endpoint_name is not None,
        ),
    )


def _with_stated_alarms(settings: Settings, key: str, plan: Plan) -> Iterator[Decision[Any]]:
    """The plan's decisions, with the thresholds that the settings state in place of its own."""
    alarms = settings.endpoints[key].alarms
    stated = {
        metric: latency_thresholds(settings, key, metric)
        for metric, group in (
            ("ModelLatency", alarms.model_latency),
            ("OverheadLatency", alarms.overhead_latency),
        )
        if group != "planned"
    }
    said: set[str] = set()
    own = list(stated_limits(settings.endpoints[key], plan))
    replaced = {decision.inputs["measures"] for decision in own}
    for decision in plan.explanation.decisions:
        metric = decision.inputs.get("metric")
        if decision.inputs.get("measures") in replaced:
            continue
        if own and decision.name == "warm_up_requests":  # what comes after the alarms
            yield from own
        if metric not in stated:
            yield decision
        elif metric not in said:
            said.add(metric)
            yield from (
                replace(
                    decision,
                    name=alarm_name(metric, statistic),
                    value=milliseconds,
                    rule="your threshold",
                    inputs={"metric": metric, "statistic": statistic},
                    overridden=True,
                    note="",
                )
                for statistic, milliseconds in stated[metric].items()
            )


def _alarms(settings: Settings, key: str, plan: Plan) -> str:
    """The thresholds on latencies that are deployed, and how many other alarms there are."""
    thresholds = _thresholds(settings, key, plan)
    others = watching_alarms(settings, key, plan) + token_alarm_count(settings.endpoints[key], plan)
    return alarms_text(thresholds, others - sum(map(len, thresholds.values())))


def _thresholds(settings: Settings, key: str, plan: Plan) -> dict[str, dict[str, float]]:
    """Thresholds of all latency alarms in milliseconds, by metric and statistic."""
    found = {
        metric: latency_thresholds(settings, key, metric)
        for metric in ("ModelLatency", "OverheadLatency")
    }
    for limit in token_limits(settings.endpoints[key], plan):
        found.setdefault(limit.measures, {})[limit.percentile] = limit.seconds * 1000
    return found


def latency_thresholds(settings: Settings, key: str, metric: str) -> dict[str, float]:
    """Milliseconds by statistic at which the alarms on a latency stand: stated, or the plan's."""
    alarms = settings.endpoints[key].alarms
    name = {"ModelLatency": "model_latency", "OverheadLatency": "overhead_latency"}[metric]
    stated = getattr(alarms, name)
    if stated == "planned":
        return plan_endpoint(settings, key).thresholds(metric)
    return {statistic: each.total_seconds() * 1000 for statistic, each in stated.items()}


def _contradictions(settings: Settings, key: str, plan: Plan) -> Iterator[PlanWarning]:
    """Thresholds of alarms that the targets contradict by an order of magnitude."""
    planned = planned_thresholds(plan)
    for metric, found in _thresholds(settings, key, plan).items():
        for statistic, value in found.items():
            right = planned.get(metric, {}).get(statistic)
            if contradicts(value, right):
                yield PlanWarning(
                    f"contradiction-{metric}-{statistic}",
                    f"the alarm on {metric} {statistic} stands at {readable(value)} ms, and from the target "
                    f"follow {readable(right)} ms: is one of the two in another unit?",
                )


def _above_targets(settings: Settings, key: str, plan: Plan) -> Iterator[PlanWarning]:
    """Stated thresholds that callers' targets are below, and targets that no alarm watches.

    The alarms that roll a deployment back have the same thresholds.
    """
    planned = planned_thresholds(plan)
    for metric, watched in _thresholds(settings, key, plan).items():
        targets = _targets_of(plan, metric)
        for statistic, value in watched.items():
            target = targets.get(statistic)
            right = planned.get(metric, {}).get(statistic)
            too_late = (
                target is not None and right is not None and value > right and value >= target
            )
            if too_late and not contradicts(value, right):
                yield PlanWarning(
                    f"alarm-above-target-{metric}-{statistic}",
                    f"the alarm on {metric} {statistic} stands at {readable(value)} ms, and the callers' "
                    f"target is {readable(target)} ms: they wait too long before it goes off, and a "
                    f"deployment is not rolled back. From the target follow {readable(right)} ms",
                )
        missing = [
            f"{statistic} {readable(target)} ms"
            for statistic, target in targets.items()
            if statistic not in watched
        ]
        if watched and missing and metric != "OverheadLatency":
            yield PlanWarning(
                f"target-not-watched-{metric}",
                f"no alarm on {metric} watches the target {' or '.join(missing)}: the settings state "
                f"{' and '.join(watched)} alone, which replaces all that follow from the targets",
            )


def _targets_of(plan: Plan, metric: str) -> dict[str, float]:
    """The callers' targets in milliseconds that the alarms on a metric watch, by statistic."""
    if plan.tokens is not None:
        limits = [limit for limit in plan.tokens.thresholds if limit.measures == metric]
        if limits:
            return {limit.percentile: limit.target for limit in limits if limit.target}
    return {alarm.statistic: alarm.target for alarm in plan.alarms if alarm.metric == metric}


def _lacks_metrics_of_sglang(endpoint: EndpointSettings, plan: Plan) -> bool:
    """Whether alarms read sglang's metrics, which nothing switches on; of a pinned model the plan does."""
    request = plan.request
    if request.server_of_metrics != "sglang" or request.serving.hub is not None:
        return False
    if not token_alarm_count(endpoint, plan):
        return False
    switches = [
        container.environment.get("SM_SGLANG_ENABLE_METRICS", "")
        for _, container in all_containers(endpoint)
    ]
    return not any(switch.lower() in ("true", "1") for switch in switches)


def _warnings(settings: Settings, endpoint: EndpointSettings, plan: Plan) -> Iterator[PlanWarning]:
    """Warnings that the constructs' plan omits because the construct itself adds them."""
    containers = [container for _, container in all_containers(endpoint)]
    variables: list[Mapping[str, str]] = [
        {**each.environment, **each.image.build_args} for each in containers
    ]
    variables += [model.environment for model in hub_models(endpoint)]
    for name, value in chain.from_iterable(each.items() for each in variables):
        if (text := secret_warning(name, value)) is not None:
            yield PlanWarning(f"secret-in-environment:{name}", text)
    stated = endpoint.alarms.tokens != TokenAlarmOptions()
    if stated and plan.request.server_of_metrics is None:
        yield PlanWarning("no-token-alarms", NO_TOKEN_ALARMS)
    if _lacks_metrics_of_sglang(endpoint, plan):
        yield PlanWarning(
            "sglang-metrics-off",
            "sglang publishes its metrics only with SM_SGLANG_ENABLE_METRICS=true in the container's "
            "environment (in an image of your own: if its server has --enable-metrics). Without them the "
            "alarms on tokens have no data and never go off",
        )
    if any(container.multi_model for container in containers) and plan.alarms:
        yield PlanWarning(
            "multi-model-cache",
            "a call for a model that its instance has not loaded waits until it is: p99 is the time to "
            "load a model as soon as more than 1 % of the calls miss. Watch ModelCacheHit and "
            "ModelLoadingWaitTime, and choose memory that holds the models that are called",
        )
    facts, most = plan.request.serving.facts, plan.largest_fleet
    large = facts is not None and (facts.accelerator_count or 0) >= LARGE_ACCELERATORS
    if large and endpoint.capacity_reservation_arn is None:
        rolls = endpoint.deployment and endpoint.deployment.rolling_percent
        twice = (
            "" if rolls else f", nor {2 * most:,} in an update unless deployment.rolling says so"
        )
        yield PlanWarning(
            "scarce-capacity",
            f"nothing promises {most:,} of {plan.request.serving.instance_type}{twice}: AWS may have none free "
            "when scaling asks. An ML capacity reservation keeps them for an endpoint "
            "(capacity_reservation_arn): of a SageMaker training plan, or with EC2 capacity "
            "reservations shared to it",
        )
    if settings.alarm_topic_arn is None:
        yield PlanWarning("alarms-notify-nobody", NOBODY_NOTIFIED)
    region, own_vpc = region_of(settings) or "", settings.network.vpc_id is None
    link = settings.private_link
    if link.takes_over_unasked(own_vpc=own_vpc):
        narrow = link.narrow(own_vpc=own_vpc)
        text = takeover(link.services, region or None, narrow=narrow)
        yield PlanWarning("private-dns-takes-over", text)
    if endpoint.alarms.service_level_objective is not None and not has_objectives(region):
        yield PlanWarning("no-service-level-objective", no_objectives_in(region))
    uris = [
        uri
        for container in containers
        if container.data
        for uri in (container.data.s3, container.data.s3_prefix)
    ]
    uris += [each.s3 for each in (endpoint.data_capture, endpoint.core_dump) if each]
    doubts = dict.fromkeys(doubtful_bucket(uri) for uri in uris if uri)
    for number, doubt in enumerate(filter(None, doubts)):
        yield PlanWarning(f"old-bucket-{number}", doubt)


def fleet_with_addresses(settings: Settings) -> int:
    """How many instances the subnets are made for, of all endpoints of a settings file together."""
    return sum(variant.plan.fleet_with_addresses for variant in planned_variants(settings))


class QuotaNeed(NamedTuple):
    """Instances of a type that the account's quota must allow, over all endpoints."""

    instance_type: str
    at_most: int
    in_an_update: int


@dataclass(frozen=True)
class SharedResources:
    """What the endpoints of a settings file share."""

    blocks: dict[str, str]  # the block of each client zone's new subnet; empty where the VPC exists
    zones: tuple[str, ...]
    prefix_length: int | None  # of the new subnets; None where the VPC exists
    addresses_per_subnet: int  # that each subnet must have for the fleets of all endpoints
    instances: int  # the most instances of all endpoints, outside of updates
    quotas: tuple[QuotaNeed, ...]  # by instance type
    # requests in flight at the peaks of all endpoints together; None where one has no throughput
    connections: int | None
    interface_endpoints: int  # that the stack makes, each with an address in each client zone
    private_dns: bool | None  # whether the runtime's own name leads to it; None where it exists

    def lines(self) -> list[tuple[str, str]]:
        """What, and how much of it."""
        zones, found = len(self.zones), []
        if self.blocks:
            subnets = ", ".join(f"{zone} {block}" for zone, block in self.blocks.items())
            found.append(("Subnets", subnets))
        else:
            found.append(("Subnets", f"{zones} that exist, one in each client zone"))
        found.append(
            (
                "Addresses",
                f"{self.addresses_per_subnet:,} per subnet, two for each of "
                f"{counted_instances(self.instances)}, twice for an update, "
                f"{RESERVED_ADDRESSES} that AWS keeps, 1 for the interface endpoint, "
                f"{SPARE_ADDRESSES} to spare",
            )
        )
        found += [
            (
                "Quota",
                f"{quota.instance_type}: {quota.in_an_update:,} while all endpoints are updated, "
                f"{quota.at_most:,} otherwise",
            )
            for quota in self.quotas
        ]
        if self.connections is not None:
            found.append(("In flight", f"{self.connections:,} at once at the endpoints' peaks"))
        links = self.interface_endpoints
        found.append(
            (
                "Links",
                f"{links} interface endpoint{'s' if links > 1 else ''} in {zones} zones"
                + (f"; {OWN_NAMES}" if self.private_dns is False else "")
                if links
                else "an interface endpoint that exists",
            )
        )
        return found

    def to_dict(self) -> dict[str, Any]:
        """The numbers for JSON."""
        return {
            "subnets": self.blocks or None,
            "subnet_prefix_length": self.prefix_length,
            "addresses_per_subnet": self.addresses_per_subnet,
            "instances": self.instances,
            "quotas": [quota._asdict() for quota in self.quotas],
            "connections": self.connections,
            "interface_endpoints": self.interface_endpoints,
            "private_dns": self.private_dns,
        }


def shared_resources(settings: Settings) -> SharedResources:
    """What all endpoints of a settings file share, as the stack deploys it."""
    network, zones = settings.network, tuple(settings.client_zones.zones)
    variants = list(planned_variants(settings))
    instances = fleet_with_addresses(settings)
    needs: dict[str, tuple[int, int]] = {}
    for planned_variant in variants:
        most = planned_variant.plan.largest_fleet
        for name in (
            planned_variant.plan.request.serving.types
        ):  # any of several pools may have to serve alone
            at_most, updating = needs.get(name, (0, 0))
            needs[name] = (
                at_most + most,
                updating + instances_in_update(most, settings.endpoints[planned_variant.key]),
            )
    addresses, own = addresses_per_subnet(instances), network.vpc_id is None
    link = settings.private_link
    # Of a whole endpoint, which each of its variants' plans has.
    flying = [variant.plan.caller_connections for variant in variants if variant.further is None]
    return SharedResources(
        network_blocks(network.cidr, zones, instances, network.subnet_prefix_length) if own else {},
        zones,
        (network.subnet_prefix_length or roomy_prefix_length(addresses)) if own else None,
        addresses,
        instances,
        tuple(QuotaNeed(name, *needs[name]) for name in sorted(needs)),
        None if None in flying else sum(count or 0 for count in flying),
        0 if link.interface_endpoint_id else len(link.services),
        link.known_private_dns,
    )
