"""From settings to the request and the plan of an endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ..plan.decisions import Decision, Explanation, PlanWarning, alarm_name
from ..plan.fleet_along import FleetAlong
from ..plan.hourly_cost import StackCost
from ..plan.latency_plan import EndpointRequest, Plan, ScalingOptions, make_plan
from ..plan.plan_warnings import NOBODY_NOTIFIED
from ..plan.s3_names import doubtful_bucket
from ..plan.secrets import secret_warning
from ..plan.summary import alarms_text, summary_of
from ..simulate.traffic import Shape
from .containers import ContainerSettings
from .costs import cost_of_plans, endpoint_cost, fleets_of_plans
from .endpoint import EndpointSettings
from .rules import NO_SUCH_ENDPOINT
from .stack import Settings
from .stack_parts import endpoint_parts
from .traffic import PrefixAwareRouting

#: Decisions of one endpoint's plan that a settings file makes once, for all of its endpoints.
SHARED_DECISIONS = frozenset({"subnets", "addresses_per_subnet", "subnet_size"})

#: A plan follows from its request alone, so whoever asks again gets the same one.
_plan_of = lru_cache(maxsize=256)(make_plan)


def endpoint_request(settings: Settings, key: str) -> EndpointRequest:
    """What one endpoint of a settings file asks of the plan; the only translation there is.

    Parameters
    ----------
    settings : Settings
        As :func:`~low_latency_endpoint.settings.load_settings` returns them.
    key : str
        The endpoint's key under ``endpoints``.

    Raises
    ------
    ConfigurationError
        LLE933 when there is no such endpoint; the codes of
        :class:`~low_latency_endpoint.plan.latency_plan.EndpointRequest`.
    """
    endpoint = settings.endpoints.get(key)
    if endpoint is None:
        raise NO_SUCH_ENDPOINT.error(got=key, allowed=", ".join(settings.endpoints))
    routing, scaling, instances = endpoint.routing, endpoint.scaling, endpoint.instances
    prefix = routing.prefix_aware if isinstance(routing, PrefixAwareRouting) else None
    return EndpointRequest(
        client_zones=settings.client_zones.zones,
        instance_type=endpoint.instance_type,
        latency=endpoint.latency.target if endpoint.latency else None,
        throughput=endpoint.throughput.measured if endpoint.throughput else None,
        images=list(images_of(endpoint).values()),
        inference_ami=endpoint.inference_ami,
        routing="PREFIX_AWARE" if prefix else str(routing).upper() if routing else None,
        prefix_length=prefix.prefix_length if prefix else None,
        concurrency_threshold=prefix.concurrency_threshold if prefix else None,
        scaling=ScalingOptions(
            enabled=scaling.enabled,
            min_instances=instances.min,
            initial_instances=instances.initial,
            max_instances=instances.max,
            target_invocations_per_instance=scaling.invocations_target,
            max_concurrency_per_instance=scaling.concurrency_target,
            scale_out_cooldown=scaling.scale_out_cooldown,
            scale_in_cooldown=scaling.scale_in_cooldown,
            instance_start=scaling.instance_start,
            keep_instance_counts=scaling.keep_counts,
            schedule=[each.planned for each in scaling.schedule],
            steps=scaling.steps.planned if scaling.steps else None,
        ),
        warm_up_requests=endpoint.warm_up.requests if endpoint.warm_up else None,
        payload_bytes=endpoint.payload_bytes,
    )


def plan_endpoint(settings: Settings, key: str) -> Plan:
    """The plan of one endpoint of a settings file, made once however often it is asked for.

    Raises
    ------
    ConfigurationError
        As :func:`endpoint_request`, and the codes of
        :func:`~low_latency_endpoint.plan.latency_plan.make_plan`; neither can occur for
        settings loaded from a file: loading makes the plan.
    """
    return _plan_of(endpoint_request(settings, key))


def explain_endpoint(settings: Settings, key: str) -> Explanation:
    """Why the plan is what it is, what it costs, and what is doubtful about the settings.

    Raises
    ------
    ConfigurationError
        As :func:`plan_endpoint`.
    """
    plan, endpoint = plan_endpoint(settings, key), settings.endpoints[key]
    cost = endpoint_cost(settings, key, plan)
    # Not in the constructs' explanation, which goes into the template: a price that changes must
    # not change the stack.
    return replace(
        plan.explanation,
        decisions=(
            *(
                each
                for each in _with_stated_alarms(settings, key, plan)
                if each.name not in SHARED_DECISIONS
            ),
            *cost.decisions(),
        ),
        warnings=(*plan.explanation.warnings, *_warnings(settings, endpoint)),
        summary=summary_of(
            plan,
            alarms=_alarms(settings, key, plan),
            cost=cost,
            named=endpoint.endpoint_name is not None,
        ),
    )


def _with_stated_alarms(settings: Settings, key: str, plan: Plan) -> Iterator[Decision]:
    """The plan's decisions, with the thresholds that the settings state in place of its own."""
    alarms = settings.endpoints[key].alarms
    stated = {
        metric: latency_thresholds(settings, key, metric)
        for metric, group in (
            ("ModelLatency", alarms and alarms.model_latency),
            ("OverheadLatency", alarms and alarms.overhead_latency),
        )
        if group is not None
    }
    said: set[str] = set()
    for decision in plan.explanation.decisions:
        metric = decision.inputs.get("metric")
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
    latencies = {
        metric: latency_thresholds(settings, key, metric)
        for metric in ("ModelLatency", "OverheadLatency")
    }
    others = endpoint_parts(settings, key, plan).alarms - sum(map(len, latencies.values()))
    return alarms_text(latencies, others)


def latency_thresholds(settings: Settings, key: str, metric: str) -> dict[str, float]:
    """Milliseconds by statistic at which the alarms on a latency stand: stated, or the plan's.

    Parameters
    ----------
    metric : str
        ``ModelLatency`` or ``OverheadLatency``.
    """
    alarms = settings.endpoints[key].alarms
    name = {"ModelLatency": "model_latency", "OverheadLatency": "overhead_latency"}[metric]
    stated = getattr(alarms, name) if alarms else None
    if stated is None:
        return plan_endpoint(settings, key).thresholds(metric)
    return {statistic: each.total_seconds() * 1000 for statistic, each in stated.items()}


def _warnings(settings: Settings, endpoint: EndpointSettings) -> Iterator[PlanWarning]:
    """What is not in the constructs' plan, because there the part it is about warns itself."""
    for container in endpoint.containers:
        for name, value in {**container.environment, **container.image.build_args}.items():
            if (text := secret_warning(name, value)) is not None:
                yield PlanWarning(f"secret-in-environment:{name}", text)
    if settings.alarm_topic_arn is None:
        yield PlanWarning("alarms-notify-nobody", NOBODY_NOTIFIED)
    uris = [
        uri
        for container in endpoint.containers
        if container.data
        for uri in (container.data.s3, container.data.s3_prefix)
    ]
    uris += [each.s3 for each in (endpoint.data_capture, endpoint.core_dump) if each]
    doubts = dict.fromkeys(doubtful_bucket(uri) for uri in uris if uri)
    for number, doubt in enumerate(filter(None, doubts)):
        yield PlanWarning(f"old-bucket-{number}", doubt)


def largest_fleet(settings: Settings) -> int:
    """The most instances that all endpoints of a settings file have together, outside of updates.

    Raises
    ------
    ConfigurationError
        As :func:`plan_endpoint`.
    """
    return sum(plan_endpoint(settings, key).largest_fleet for key in settings.endpoints)


def stack_cost(settings: Settings) -> StackCost:
    """What the stack of a settings file costs, as far as the prices are known.

    Raises
    ------
    ConfigurationError
        As :func:`plan_endpoint`; ``LLE891`` for prices of another Region.
    """
    return cost_of_plans(settings, _plans(settings))


def fleets_along(settings: Settings, shape: Shape) -> dict[str, FleetAlong | None]:
    """The instances of each endpoint along a day of that shape, whose peak is the planned one.

    ``None`` where scaling follows requests in flight, which traffic alone does not tell.

    Raises
    ------
    ConfigurationError
        As :func:`plan_endpoint`.
    """
    return fleets_of_plans(_plans(settings), shape)


def _plans(settings: Settings) -> dict[str, Plan]:
    return {key: plan_endpoint(settings, key) for key in settings.endpoints}


def images_of(endpoint: EndpointSettings) -> dict[int, str]:
    """The images of an endpoint's containers by their index, without those yet to be built."""
    return {
        index: image
        for index, container in enumerate(endpoint.containers)
        if (image := _image(container))
    }


def _image(container: ContainerSettings) -> str:
    """The image as ``ContainerImage.reference`` has it; empty for one that is yet to be built."""
    image = container.image
    if image.dlc:
        return f"{image.dlc.repository}:{image.dlc.tag}"
    if image.ecr:
        # Not AWS's own registry, so its name alone proves nothing about what it needs.
        return f"private/{image.ecr.repository}:{image.ecr.tag}"
    return f"private/{image.uri}" if image.private_registry else image.uri or ""
