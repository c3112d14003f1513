"""What the stack would refuse about shared settings as given, with the line of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors.findings import Finding, breaches, finding
from ..options.rules import STACK_HAS_THE_NAME, VPC_TWICE
from ..plan import limits
from ..plan.images import known_dlc_account
from ..plan.published_metrics import METRICS_IN_ALARM
from ..plan.rules import HOSTED_ZONE_IN_OWN_VPC
from ..plan.s3_names import check_bucket
from ..plan.warm_up_rules import BELOW_TPS, KEEP_WARM_REQUESTS, keep_warm_threshold
from ..plan.zones import region_of_zone
from .endpoint_checks import all_stated_containers
from .fields import duration_of
from .model_base import items_of, mapping_of
from .variant_checks import stated_variants
from .variants import container_id

#: What the stack calls its own parts, beside those that carry an endpoint's key.
NAMES_OF_PARTS = frozenset(
    {
        "AlarmTopic",
        "BootstrapVersion",
        "CDKMetadata",
        "CheckBootstrapVersion",
        "DeepLearningContainerAccounts",
        "EncryptionKey",
        "EndpointSecurityGroup",
        "EndpointServingCheck",
        "Exports",
        "FlowLogRole",
        "FormerNames",
        "FunctionRole",
        "HubModelStaging",
        "HubModels",
        "InterfaceEndpoint",
        "LowLatencyEndpointDrain",
        "MutableRoleFlowLogRole",
        "MutableRoleFunctionRole",
        "Network",
        "PrivateLink",
        "RoleRights",
        "S3PrefixList",
    }
)
#: What the CDK's app calls a part of its own.
NAMES_IN_APP = frozenset({"Tree"})
#: What follows an endpoint's key in the names of what it brings along.
_OF_ENDPOINT = {"role_arn": "Role", "kms_key_arn": "Key"}


def stack_checks(given: Mapping[str, Any]) -> Iterator[Finding]:
    """What shared settings and the endpoints' own demand of each other."""
    _, zones = zones_of(mapping_of(given, "client_zones"))
    region = given.get("region") or (region_of_zone(zones[0]) if zones else None)
    region = region if isinstance(region, str) and limits.REGION.holds(region) else None
    yield from _names(given)
    yield from _hosted_zones(given)
    endpoints = mapping_of(given, "endpoints")
    for key in endpoints:
        endpoint = mapping_of(endpoints, key)
        for place, error in (
            *_images(endpoint, region),
            *_buckets(endpoint, region),
            *_zone_imbalance(endpoint, len(zones)),
            *_keep_warm(endpoint, _warmed_zones(given, len(zones))),
        ):
            yield ("endpoints", key, *place), error


def zones_of(given: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Which of ids and names is given, and the well-formed zones in it, each once."""
    for kind, form in (("ids", limits.ZONE_ID), ("names", limits.ZONE_NAME)):
        if kind in given:
            zones = [zone for zone in items_of(given, kind) if form.holds(zone)]
            return kind, list(dict.fromkeys(zones))
    return "ids", []


def _names(given: Mapping[str, Any]) -> Iterator[Finding]:
    """No endpoint's key, and not the stack's name, is what something else is called."""
    name = given.get("stack_name")
    if isinstance(name, str) and name in NAMES_IN_APP:
        yield finding(
            STACK_HAS_THE_NAME,
            "stack_name",
            got=name,
            allowed="another name",
            what="the CDK has a part of this name",
        )
    endpoints = mapping_of(given, "endpoints")
    network = mapping_of(given, "network")
    vpcs = [
        network.get("vpc_id"),
        *items_of(mapping_of(given, "private_link"), "hosted_zone_vpc_ids"),
    ]
    taken = {
        *NAMES_OF_PARTS,
        *(f"Vpc-{vpc}" for vpc in vpcs if vpc),
        *(f"Subnet-{zone}" for zone in mapping_of(network, "subnets")),
    }
    for key in endpoints:
        taken.update(_beside(str(key), mapping_of(endpoints, key)))
    for key in endpoints:
        if key in taken:
            yield finding(STACK_HAS_THE_NAME, "endpoints", key, got=key, allowed="another key")


def _beside(key: str, endpoint: Mapping[str, Any]) -> Iterator[str]:
    """What the stack makes beside an endpoint, by its key."""
    for setting, name in _OF_ENDPOINT.items():
        if setting in endpoint:
            yield f"{key}-{name}"
    if "role_arn" in endpoint:
        yield f"MutableRole{key}-Role"  # how the CDK keeps a role of another account
    for place, container in all_stated_containers(endpoint):
        if "ecr" in mapping_of(container, "image"):
            yield f"{container_id(key, place)}-Repository"
        if "kms_key_arn" in mapping_of(container, "data"):
            yield f"{container_id(key, place)}-DataKey"
    for place, stated in (((), endpoint), *stated_variants(endpoint)):
        for name in ("Bucket", "Token") if "hugging_face" in stated else ():
            yield f"{container_id(key, (*place, 'hugging_face', 0))}-{name}"


def _hosted_zones(given: Mapping[str, Any]) -> Iterator[Finding]:
    """Other VPCs get a hosted zone, each once."""
    own = mapping_of(given, "network").get("vpc_id")
    others = items_of(mapping_of(given, "private_link"), "hosted_zone_vpc_ids")
    for index, vpc in enumerate(others):
        place = ("private_link", "hosted_zone_vpc_ids", index)
        if vpc == own is not None:
            yield finding(HOSTED_ZONE_IN_OWN_VPC, *place, got=vpc, allowed="other VPCs")
        elif vpc in others[:index]:
            yield finding(VPC_TWICE, *place, got=vpc, allowed="each VPC once")


def _images(endpoint: Mapping[str, Any], region: str | None) -> Iterator[Finding]:
    """Deep Learning Containers come from an account that is known for the region."""
    for place, container in all_stated_containers(endpoint):
        image = mapping_of(mapping_of(container, "image"), "dlc")
        if image and region and "account" not in image:
            yield from breaches((*place, "image", "dlc"), known_dlc_account, region)


def _buckets(endpoint: Mapping[str, Any], region: str | None) -> Iterator[Finding]:
    """Buckets have names that S3 takes."""
    places: list[tuple[tuple[str | int, ...], Any]] = [
        ((*place, "data", name), mapping_of(container, "data").get(name))
        for place, container in all_stated_containers(endpoint)
        for name in ("s3", "s3_prefix")
    ]
    places += [
        ((name, "s3"), mapping_of(endpoint, name).get("s3"))
        for name in ("data_capture", "core_dump")
    ]
    for place, uri in places:
        if isinstance(uri, str):
            yield from breaches(place, check_bucket, uri, region)


def _zone_imbalance(endpoint: Mapping[str, Any], zones: int) -> Iterator[Finding]:
    """The alarm watches each zone."""
    if zones and "zone_imbalance" in mapping_of(endpoint, "alarms"):
        yield from breaches(("alarms", "zone_imbalance"), METRICS_IN_ALARM.check, zones)


def _warmed_zones(given: Mapping[str, Any], zones: int) -> int:
    """Zones that a warm-up sends to: one where the zones' names are not known."""
    adopted = "interface_endpoint_id" in mapping_of(given, "private_link")
    return 1 if adopted else zones


def _keep_warm(endpoint: Mapping[str, Any], zones: int) -> Iterator[Finding]:
    """What keep-warm sends is less than the traffic that would stop it."""
    stated = mapping_of(mapping_of(endpoint, "warm_up"), "keep_warm")
    below, count = stated.get("below_tps"), stated.get("requests_per_zone", 1)
    every = duration_of(stated.get("every", "1m"))
    if zones and every and BELOW_TPS.holds(below) and KEEP_WARM_REQUESTS.holds(count):
        yield from breaches(
            ("warm_up", "keep_warm", "below_tps"),
            lambda: keep_warm_threshold(
                zones=zones,
                requests_per_zone=count,
                every_seconds=every.total_seconds(),
                below_tps=below,
            ),
        )
