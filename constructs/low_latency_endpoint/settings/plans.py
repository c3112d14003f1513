"""From settings to the plan of an endpoint."""

from __future__ import annotations

from ..planning.latency_plan import LatencyPlan, make_plan
from .containers import ContainerSettings
from .endpoint import EndpointSettings
from .rules import NO_SUCH_ENDPOINT
from .stack import Settings
from .traffic import PrefixAwareRouting

__all__ = ["largest_fleet", "largest_fleet_of_plan", "plan_endpoint"]


def plan_endpoint(settings: Settings, key: str) -> LatencyPlan:
    """The plan of one endpoint of a settings file.

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
        :func:`~low_latency_endpoint.planning.latency_plan.make_plan`, which cannot occur for
        settings loaded from a file: loading makes the plan too.
    """
    endpoint = settings.endpoints.get(key)
    if endpoint is None:
        raise NO_SUCH_ENDPOINT.error(got=key, allowed=", ".join(settings.endpoints))
    routing = endpoint.routing
    prefix = routing.prefix_aware if isinstance(routing, PrefixAwareRouting) else None
    strategy = "PREFIX_AWARE" if prefix else str(routing).upper() if routing else None
    return make_plan(
        client_zones=settings.client_zones.zones,
        instance_type=endpoint.instance_type,
        latency=endpoint.latency.target,
        throughput=endpoint.throughput.measured if endpoint.throughput else None,
        images=list(images_of(endpoint).values()),
        inference_ami=endpoint.inference_ami,
        routing=strategy,
        prefix_length=prefix.prefix_length if prefix else None,
        concurrency_threshold=prefix.concurrency_threshold if prefix else None,
        min_instances=endpoint.instances.min,
        initial_instances=endpoint.instances.initial,
        max_instances=endpoint.instances.max,
        scaling=endpoint.scaling.enabled,
        max_concurrency_per_instance=endpoint.scaling.concurrency_target,
        scale_out_cooldown=endpoint.scaling.scale_out_cooldown,
        scale_in_cooldown=endpoint.scaling.scale_in_cooldown,
        warm_up_requests=endpoint.warm_up.requests if endpoint.warm_up else None,
    )


def largest_fleet(settings: Settings) -> int:
    """The most instances that all endpoints of a settings file have together, outside of updates.

    Raises
    ------
    ConfigurationError
        As :func:`plan_endpoint`.
    """
    return sum(largest_fleet_of_plan(plan_endpoint(settings, key), endpoint)
               for key, endpoint in settings.endpoints.items())


def largest_fleet_of_plan(plan: LatencyPlan, endpoint: EndpointSettings) -> int:
    """The most instances outside of updates: the maximum, or the fixed number without scaling."""
    return int(plan["max_instances" if endpoint.scaling.enabled else "initial_instances"].value)


def images_of(endpoint: EndpointSettings) -> dict[int, str]:
    """The images of an endpoint's containers by their index, without those yet to be built."""
    return {index: image for index, container in enumerate(endpoint.containers)
            if (image := _image(container))}


def _image(container: ContainerSettings) -> str:
    """The image as ``repository:tag`` or URI; empty for one that is yet to be built."""
    image = container.image
    if image.dlc:
        return f"{image.dlc.repository}:{image.dlc.tag}"
    if image.ecr:
        # Not AWS's own registry, so its name alone proves nothing about what it needs.
        return f"private/{image.ecr.repository}:{image.ecr.tag}"
    return image.uri or ""
