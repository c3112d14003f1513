"""The parts of a stack that CloudFormation counts, as its settings and plans make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors.frozen import dataclass
from ..facts.deployments import rolls_back
from ..options.alarms import AlarmOptions
from ..options.option import options_of
from ..plan.pinned_model import staging_calls
from ..plan.plan import CONCURRENCY_METRIC, Plan
from ..plan.stack_limits import EndpointParts, SharedParts
from .endpoint import EndpointSettings
from .planned import planned_variants, warms
from .role_policies import RolePolicy, resources_for
from .served import has_own_model, hub_models
from .stack import Settings
from .token_alarms import token_alarm_count

#: What CloudWatch bills for alarms that follow from a threshold alone: the number of metrics of each.
_BILLED = {
    each.name: each.option.billed
    for each in options_of(AlarmOptions)
    if each.option is not None and each.option.billed
}
_OF_CAPACITY = (2,)
_OF_BOTH_FLEETS = (2, 2)
_OF_TARGET_TRACKING = (1, 1)  # one to scale out, one to scale in


def shared_parts(settings: Settings, policies: Mapping[RolePolicy, str | None]) -> SharedParts:
    """What the endpoints of a settings file share; the policies as for :func:`endpoint_parts`."""
    link, network = settings.private_link, settings.network
    staged = _staged(settings)
    return SharedParts(
        zones=len(settings.client_zones.zones),
        own_vpc=network.vpc_id is None,
        flow_log=network.flow_log is not None,
        adopted_rules=len(set(link.allow_cidrs or ("the VPC's",))) * _ports(settings)
        if link.interface_endpoint_id
        else None,
        sagemaker_api=link.sagemaker_api,
        hosted_zone=bool(link.hosted_zone_vpc_ids),
        confirms=any(each.confirm_updates for each in settings.endpoints.values()),
        s3_prefix_list=network.s3_prefix_list is not None,
        staged_calls=list(staged.values()),
        staging_bucket=any(bucket is None for bucket, *_ in staged),
        narrow_link=link.names_what_it_serves(own_vpc=network.vpc_id is None),
        role_policies=resources_for(policies, None),
        own_function_roles=settings.safeguards.function_role_arn is None,
        log_role=1 + _key_on(settings, settings.safeguards.flow_log_role_arn),
    )


def _key_on(settings: Settings, role_arn: str | None) -> bool:
    """Whether a role has a policy for the stated key beside what it is made with."""
    return settings.safeguards.kms_key_arn is not None and role_arn is None


def _staged(settings: Settings) -> dict[tuple[str | None, str, str], int]:
    """The models of the Hub by bucket, name and prefix, each with its calls."""
    return {
        (each.bucket, each.model, each.hub_model.pinned.prefix): len(
            staging_calls(each.hub_model.pinned, staged_before=each.bucket is not None)
        )
        for endpoint in settings.endpoints.values()
        for each in hub_models(endpoint)
    }


def endpoint_parts(
    settings: Settings, key: str, plan: Plan, policies: Mapping[RolePolicy, str | None]
) -> EndpointParts:
    """What belongs to one endpoint of a settings file, with all variants, without policies."""
    endpoint = settings.endpoints[key]
    adopted = settings.private_link.interface_endpoint_id is not None
    alarms, warm_up = endpoint.alarms, endpoint.warm_up
    variants = list(planned_variants(settings, key))
    production = [each.plan for each in variants if not each.shadow]
    quiet = alarms.quiet_during_deployments
    return EndpointParts(
        new_role=endpoint.role_arn is None,
        confirms=endpoint.confirm_updates,
        scales=sum(each.plan.scaling is not None for each in variants),
        steps=sum(each.plan.request.scaling.steps is not None for each in variants),
        dashboard=endpoint.dashboard,
        alarms=sum(len(_watching(settings, endpoint, each)) for each in production),
        rollback_alarms=rollback_alarms(settings, key),
        quiet=len(production) if quiet else 0,
        warm_up=warms(settings, key),
        during_deployments=bool(warm_up and warm_up.during_deployments),
        keep_warm=bool(warm_up and warm_up.keep_warm),
        link_ports=_ports(settings),
        parameters=settings.parameters is not None,
        zonal_urls=0 if adopted else len(settings.client_zones.zones),
        models=1
        + sum(bool(each.further and has_own_model(each.further.settings)) for each in variants),
        shadow_alarms=len(_of_shadow(plan)) if endpoint.shadow else 0,
        token_alarms=sum(_of_tokens(endpoint, production)),
        role_policies=resources_for(policies, key),
        own_function_roles=settings.safeguards.function_role_arn is None,
    )


def rollback_alarms(settings: Settings, key: str) -> int:
    """How many alarms roll a deployment of an endpoint back."""
    return sum(
        len(_rolling_back(settings, key, each.plan))
        for each in planned_variants(settings, key)
        if not each.shadow
    )


def watching_alarms(settings: Settings, key: str, plan: Plan) -> int:
    """How many alarms page for one variant."""
    return len(_watching(settings, settings.endpoints[key], plan))


def _of_tokens(endpoint: EndpointSettings, plans: Sequence[Plan]) -> tuple[int, int]:
    """Alarms on tokens, and composite ones: one for each server whose metrics they ask for."""
    counts = [(each, token_alarm_count(endpoint, each)) for each in plans]
    servers = {each.request.server_of_metrics for each, count in counts if count}
    return sum(count for _, count in counts), len(servers)


def _of_shadow(plan: Plan) -> list[int]:
    """The alarms that compare a shadow with production, each by its number of metrics."""
    latency = plan.request.latency
    statistics = latency.milliseconds if latency else {}
    return [*([4] * (len(statistics) or 1)), 2]


def _ports(settings: Settings) -> int:
    return 2 if settings.private_link.bidirectional_streaming else 1


def _thresholds(endpoint: EndpointSettings, plan: Plan, name: str, metric: str) -> list[str]:
    """The statistics that are watched: those stated, or the plan's."""
    stated = getattr(endpoint.alarms, name)
    return list(plan.thresholds(metric) if stated == "planned" else stated)


def _watching(settings: Settings, endpoint: EndpointSettings, plan: Plan) -> list[int]:
    """The alarms that page, each by its number of metrics."""
    found = [1 for _ in _thresholds(endpoint, plan, "model_latency", "ModelLatency")]
    found += [1 for _ in _thresholds(endpoint, plan, "overhead_latency", "OverheadLatency")]
    alarms, capacity = endpoint.alarms, endpoint.alarms.capacity_at_maximum
    if plan.scaling is not None if capacity == "scaled" else capacity:
        found += _OF_CAPACITY
    if alarms.zone_imbalance:
        found.append(len(settings.client_zones.zones))
    found += [3] * len(alarms.anomalies)  # billed with both edges of the band
    return found + [
        count for name, each in _BILLED.items() if getattr(alarms, name) for count in each
    ]


def _rolling_back(settings: Settings, key: str, plan: Plan) -> list[int]:
    """The alarms of a variant that roll a deployment back, each by its number of metrics."""
    endpoint = settings.endpoints[key]
    stated = endpoint.deployment
    types = [
        name for each in planned_variants(settings, key) for name in each.plan.request.serving.types
    ]
    back = rolls_back(stated.rollback_on_alarms if stated else None, types)
    latencies = _thresholds(endpoint, plan, "model_latency", "ModelLatency")
    return [*(1 for _ in latencies), *_BILLED["error_rate"]] if back else []


@dataclass(frozen=True)
class BilledAlarms:
    """What CloudWatch bills for: metrics in alarms, and composite alarms."""

    metrics: int  # of one alarm on several metrics each counts
    high_resolution: int
    composites: int


def billed_alarms(settings: Settings, key: str, plan: Plan) -> BilledAlarms:
    """The alarms of an endpoint, with those that target tracking makes itself."""
    endpoint = settings.endpoints[key]
    variants = list(planned_variants(settings, key))
    quiet = endpoint.alarms.quiet_during_deployments
    metrics = list(_of_shadow(plan)) if endpoint.shadow else []
    for each in variants:
        if not each.shadow:
            metrics += [
                *_watching(settings, endpoint, each.plan),
                *_rolling_back(settings, key, each.plan),
                *(_OF_BOTH_FLEETS if quiet else ()),
            ]
    of_tokens, more = _of_tokens(endpoint, [each.plan for each in variants if not each.shadow])
    normal, finely = sum(metrics) + of_tokens, 0
    for each in variants:
        policy, steps = each.plan.scaling, each.plan.request.scaling.steps
        if policy is not None and policy.metric == CONCURRENCY_METRIC:
            finely += sum(_OF_TARGET_TRACKING)
        elif policy is not None:
            normal += sum(_OF_TARGET_TRACKING)
        if steps is not None and steps.metric == "concurrency":
            finely += 1
        elif steps is not None:
            normal += 1
    return BilledAlarms(normal, finely, 1 + quiet + more)
