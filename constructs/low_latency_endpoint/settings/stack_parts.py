"""The parts of a stack that CloudFormation counts, as its settings and plans make them."""

from __future__ import annotations

from ..plan.latency_plan import Plan
from ..plan.stack_size import EndpointParts, SharedParts
from .endpoint import EndpointSettings
from .endpoint_checks import rolls_back
from .stack import Settings

#: Alarms that an endpoint has unless the settings state another threshold.
_BY_DEFAULT = frozenset({"error_rate", "cpu_utilization", "memory_utilization", "disk_utilization"})
#: Alarms that it has where the settings state a threshold, and how many metric alarms each is.
_ON_REQUEST = {
    "client_error_rate": 1,
    "model_error_rate": 1,
    "slow_requests": 4,
    "gpu_utilization": 1,
    "gpu_memory_utilization": 1,
    "cache_miss_rate": 1,
    "model_loading_wait": 1,
    "zone_imbalance": 1,
    "expect_traffic": 1,
}


def shared_parts(settings: Settings) -> SharedParts:
    """What the endpoints of a settings file share."""
    link, network = settings.private_link, settings.network
    return SharedParts(
        zones=len(settings.client_zones.zones),
        own_vpc=network.vpc_id is None,
        flow_log=network.flow_logs is not False,
        adopted_rules=len(set(link.allow_cidrs or ("the VPC's",))) * _ports(settings)
        if link.interface_endpoint_id
        else None,
        sagemaker_api=link.sagemaker_api,
        hosted_zone=bool(link.hosted_zone_vpc_ids),
        confirms=any(each.confirm_updates for each in settings.endpoints.values()),
        s3_prefix_list=network.s3_prefix_list is not None,
    )


def endpoint_parts(settings: Settings, key: str, plan: Plan) -> EndpointParts:
    """What belongs to one endpoint of a settings file."""
    endpoint = settings.endpoints[key]
    adopted = settings.private_link.interface_endpoint_id is not None
    latencies = len(_thresholds(endpoint, plan, "model_latency", "ModelLatency"))
    alarms, warm_up = endpoint.alarms, endpoint.warm_up
    back = rolls_back(
        {}
        if endpoint.deployment is None
        else {"rollback_on_alarms": endpoint.deployment.rollback_on_alarms},
        endpoint.instance_type,
    )
    warms = warm_up is not None and bool(plan.warm_up_requests)
    return EndpointParts(
        new_role=endpoint.role_arn is None,
        role_of_other_account=None not in (endpoint.role_arn, settings.account)
        and str(endpoint.role_arn).split(":")[4] != settings.account,
        confirms=endpoint.confirm_updates,
        scales=plan.scaling is not None,
        dashboard=endpoint.dashboard,
        alarms=latencies + _other_alarms(endpoint, plan),
        rollback_alarms=(latencies + 1) * back,
        quiet=bool(alarms and alarms.quiet_during_deployments),
        warm_up=warms,
        during_deployments=bool(warm_up and warm_up.during_deployments),
        keep_warm=bool(warm_up and warm_up.keep_warm),
        link_ports=_ports(settings),
        zonal_urls=0 if adopted else len(settings.client_zones.zones),
    )


def _ports(settings: Settings) -> int:
    return 2 if settings.private_link.bidirectional_streaming else 1


def _thresholds(endpoint: EndpointSettings, plan: Plan, name: str, metric: str) -> list[str]:
    """The statistics that are watched: those stated, or the plan's."""
    stated = getattr(endpoint.alarms, name) if endpoint.alarms else None
    return list(plan.thresholds(metric) if stated is None else stated)


def _other_alarms(endpoint: EndpointSettings, plan: Plan) -> int:
    count = len(_BY_DEFAULT)
    count += len(_thresholds(endpoint, plan, "overhead_latency", "OverheadLatency"))
    alarms = endpoint.alarms
    capacity = alarms.capacity_at_maximum if alarms else None
    count += plan.scaling is not None if capacity is None else capacity
    stated = _ON_REQUEST if alarms else {}
    return count + sum(each for name, each in stated.items() if getattr(alarms, name))
