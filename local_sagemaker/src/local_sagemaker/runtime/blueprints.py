"""From an endpoint configuration, as CreateEndpointConfig took it, to a fleet without instances."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from ..hosting import Hosting, all_variants, containers_of, hosts_components
from ..model_servers.specifications import ECHO, NEVER_RUNS, ModelServer, model_server_for
from ..permissions.judge import subnets_of
from ..permissions.service_roles import ModelRole
from .clock import Clock
from .containers import ModelData, Site
from .fleet import Fleet, Variant
from .meter import Dimensions, Place
from .options import RuntimeOptions
from .routing import Routing


def _container(settings: Mapping[str, Any], hosting: Hosting) -> Mapping[str, Any]:
    """Give the first container of a variant's model, or an inference component's own."""
    if own := settings.get("Container"):
        return {**own, "ModelDataUrl": own.get("ArtifactUrl")}
    return containers_of(hosting.models.get(settings.get("ModelName", ""), {}))[0]


def metrics_endpoint(
    variant: Mapping[str, Any], hosting: Hosting, frequency: int
) -> tuple[str, int]:
    """Give the path that a variant's containers are scraped at, and how often (seconds)."""
    # Source: API reference, ContainerMetricsConfig: one that it names is published every 60 seconds
    # unless it says otherwise, any other as often as the endpoint's metrics.
    config = _container(variant, hosting).get("ContainerMetricsConfig") or {}
    for own in config.get("MetricsEndpoints") or []:
        return own["MetricsEndpointPath"], int(own.get("MetricPublishFrequencyInSeconds", 60))
    return "/metrics", frequency


def _chosen(
    variant: Mapping[str, Any], hosting: Hosting, options: RuntimeOptions
) -> ModelServer | None:
    return model_server_for(_container(variant, hosting), options.model_servers)


def server_of(variant: Mapping[str, Any], hosting: Hosting, options: RuntimeOptions) -> ModelServer:
    """Give a variant's model server: the mapping's, the echo, or without its driver none."""
    chosen = _chosen(variant, hosting, options)
    if chosen is None:
        return ECHO
    image = str(_container(variant, hosting).get("Image", ""))
    return chosen if _has_its_driver(variant, image) else NEVER_RUNS


# As DLCs' tags write it: cu130 is CUDA 13.0.
_CUDA_13 = re.compile(r"(?<![a-z0-9])cu13\d(?!\d)")
# Source: sagemaker-serve 1.27.0, model_builder_servers.py.
_DEFAULT_DRIVER_IS_OLDER = {"g4dn", "g5", "g6", "g6e", "p4d", "p4de", "p5", "p5e", "p5en"}
# Source: botocore 1.44.5, ProductionVariantInferenceAmiVersion (CUDA 12.4 at most).
_OLDER_AMIS = {
    "al2-ami-sagemaker-inference-gpu-2",
    "al2-ami-sagemaker-inference-gpu-2-1",
    "al2-ami-sagemaker-inference-gpu-3-1",
    "al2-ami-sagemaker-inference-neuron-2",
}


def _has_its_driver(variant: Mapping[str, Any], image: str) -> bool:
    """Say whether an image that SageMaker's SDK would give another AMI has an AMI that will do."""
    # Source: aws/sagemaker-python-sdk#6281: otherwise it "crashes even before any logs can be
    # produced". AWS documents the default AMI of no family.
    family = str(variant.get("InstanceType", "")).split(".")[1:2]
    tag = image.partition("@")[0].rpartition("/")[2].lower()
    if not _CUDA_13.search(tag) or not _DEFAULT_DRIVER_IS_OLDER.intersection(family):
        return True
    return variant.get("InferenceAmiVersion", "") not in {"", *_OLDER_AMIS}


def is_live(config: Mapping[str, Any], hosting: Hosting, options: RuntimeOptions) -> bool:
    """Say whether a variant has a model server of the mapping, or room for components."""
    return any(
        hosts_components(variant)
        or (options.model_servers and _chosen(variant, hosting, options) is not None)
        for variant in all_variants(config)
    )


def fleet_of(
    place: Place,
    endpoint: str,
    config: Mapping[str, Any],
    hosting: Hosting,
    clock: Clock,
    options: RuntimeOptions,
    running: Callable[[], int],
    site: Site,
) -> Fleet:
    variants = []
    settings_of_all = all_variants(config)
    shadows = [variant["VariantName"] for variant in config.get("ShadowProductionVariants") or []]
    for settings in settings_of_all:
        if hosts_components(settings):
            continue
        name = settings["VariantName"]
        of_all = {each: config.get(each) for each in ("ExecutionRoleArn", "VpcConfig", "KmsKeyId")}
        variant = _variant(place, name, {**of_all, **settings}, hosting, options)
        variant.weight = float(settings.get("InitialVariantWeight", 1.0))
        variant.shadow = name in shadows
        variant.invocation_dimensions = ((("EndpointName", endpoint), ("VariantName", name)),)
        variants.append(variant)
    fleet = Fleet(config["EndpointConfigName"], variants, clock, options, running, site)
    fleet.hosts_components = len(variants) < len(settings_of_all)
    return fleet


def component_fleet(
    place: Place,
    name: str,
    specification: Mapping[str, Any],
    host: Mapping[str, Any],
    hosting: Hosting,
    clock: Clock,
    options: RuntimeOptions,
    site: Site,
) -> Fleet:
    """Make the fleet of an inference component: one variant, whose instances are the copies."""
    own = {key: specification.get(key) for key in ("ModelName", "Container")}
    settings = {**host, **(specification.get("StartupParameters") or {}), **own}
    variant = _variant(place, name, settings, hosting, options)
    variant.component = True
    # Source: SageMaker developer guide, "Amazon SageMaker AI metrics in Amazon CloudWatch".
    variant.invocation_dimensions = ((("InferenceComponentName", name),),)
    # Copies are no instances, of which alone there may be a limit.
    unlimited = dataclasses.replace(options, instance_limit=None)
    site = dataclasses.replace(site, component=name)
    return Fleet("", [variant], clock, unlimited, lambda: 0, site)


def _variant(
    place: Place, name: str, settings: Mapping[str, Any], hosting: Hosting, options: RuntimeOptions
) -> Variant:
    model = hosting.models.get(settings.get("ModelName", ""), {})
    container = _container(settings, hosting)
    network = settings.get("VpcConfig") or model.get("VpcConfig") or {}
    return Variant(
        name=name,
        role=role_of(place, settings, hosting) if options.permissions == "enforced" else None,
        server=server_of(settings, hosting, options),
        settings=settings,
        environment=container.get("Environment") or {},
        model_data=ModelData.of(container),
        zones=_zones(place, network.get("Subnets") or ()),
        routing=Routing.of(settings.get("RoutingConfig")),
        multi_model=container.get("Mode") == "MultiModel",
    )


def role_of(
    place: Place,
    settings: Mapping[str, Any],
    hosting: Hosting,
    config: Mapping[str, Any] | None = None,
) -> ModelRole | None:
    """Give the role of a variant's model, or of the configuration that it has none of its own in."""
    model = hosting.models.get(settings.get("ModelName", ""), {})
    given = {**(config or {}), **settings}
    arn = model.get("ExecutionRoleArn") or given.get("ExecutionRoleArn")
    if not arn:
        return None
    return ModelRole(
        place,
        arn,
        [settings["Container"]] if settings.get("Container") else containers_of(model),
        given.get("VpcConfig") or model.get("VpcConfig"),
        bool(model.get("EnableNetworkIsolation") or given.get("EnableNetworkIsolation")),
        given.get("KmsKeyId"),
    )


def desired_counts(described: Mapping[str, Any]) -> dict[str, int]:
    """Give the instances that each variant of a described endpoint should have."""
    return {
        variant["VariantName"]: int(variant.get("DesiredInstanceCount", 1))
        for variant in all_variants(described)
    }


def _zones(place: Place, subnets: Sequence[str]) -> list[str]:
    """Give the zones of a model's subnets; without any, two of the Region's."""
    known, region = subnets_of(*place), place[1]
    found = {known[each].availability_zone for each in subnets if each in known}
    return sorted(found) or [f"{region}a", f"{region}b"]


def zone_name(zone: str, region: str) -> str | None:
    """Give the name of a zone from its name, its ID, or the zonal host name of an endpoint.

    Examples
    --------
    >>> zone_name("use1-az4", "us-east-1") == zone_name("us-east-1a", "us-east-1")
    False
    >>> zone_name("vpce-0a-1b-us-east-1a.runtime.sagemaker.us-east-1.vpce.amazonaws.com",
    ...           "us-east-1")
    'us-east-1a'
    """
    for found in RegionsAndZonesBackend.zones.get(region, []):
        name = str(found.name)
        if zone in (name, found.zone_id) or zone.partition(".")[0].endswith(f"-{name}"):
            return name
    return None


def instance_dimensions(
    variant: Variant, instance_id: str, zone: str, region: str, *, enhanced: bool
) -> list[Dimensions]:
    """Give the further dimensions of a request: its instance's only with enhanced metrics.

    Those of its zone were seen without them: tests/recorded, R4.
    """
    base = variant.invocation_dimensions[0]
    kind = str(variant.settings.get("InstanceType", ""))
    by_zone: Dimensions = (
        *base,
        ("Region", region),
        ("AvailabilityZone", zone),
        ("InstanceType", kind),
    )
    return [(*base, ("InstanceId", instance_id)), by_zone] if enhanced else [by_zone]
