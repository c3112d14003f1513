"""The settings of one stack: what its endpoints share, and the endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from ..errors import did_you_mean
from ..errors.findings import Finding, breaches, finding
from ..options.network import DEFAULT_CIDR, ClientZones, NetworkOptions, PrivateLinkOptions
from ..options.rules import (
    AT_LEAST_ONE,
    ENDPOINT_KEY,
    ENDPOINT_NAME_TWICE,
    NEEDS_ANOTHER,
    NO_SUCH_ENDPOINT,
    STACK_NAME,
    TOPIC_ARN,
)
from ..options.safeguards import Safeguards
from ..plan import limits
from ..plan.rules import SUBNET_OF_TWO_ZONES, SUBNETS_OF_OTHER_ZONES
from ..plan.subnets import plan_subnets, vpc_block
from ..plan.zones import check_zones_in_region, region_of_zone
from .endpoint import EndpointSettings, Tags
from .endpoint_checks import all_stated_containers
from .fields import Limited
from .model_base import SettingsModel, items_of, mapping_of, optional
from .of_options import OfOptions
from .prices import Prices
from .stack_checks import stack_checks, zones_of


class Settings(SettingsModel):
    """One stack: shared network and PrivateLink, and one or several endpoints."""

    stack_name: Annotated[str, Limited(STACK_NAME)] = optional(
        "Name of the CloudFormation stack. Default: LowLatencyEndpoint.",
        example="LowLatencyEndpoint",
        default="LowLatencyEndpoint",
    )
    region: Annotated[str, Limited(limits.REGION)] | None = optional(
        "Region to deploy to. Default: that of the AWS CLI's profile.", example="us-east-1"
    )
    account: Annotated[str, Limited(limits.ACCOUNT)] | None = optional(
        "Account to deploy to, twelve digits in quotes. Default: that of the AWS CLI's profile.",
        example="123456789012",
    )
    client_zones: Annotated[ClientZones, OfOptions()] = Field(
        examples=[{"ids": ["use1-az1", "use1-az2"]}],
        description="Where the callers run: everything else goes into the same zones.",
    )
    network: Annotated[NetworkOptions, OfOptions()] = Field(
        default_factory=NetworkOptions,
        examples=[{"vpc_id": "vpc-0123456789abcdef0"}],
        description="The VPC. Default: a new one with one isolated subnet in each client zone.",
    )
    private_link: Annotated[PrivateLinkOptions, OfOptions()] = Field(
        default_factory=PrivateLinkOptions,
        examples=[{"allow_cidrs": ["10.0.0.0/16"]}],
        description="How callers reach SageMaker Runtime. Default: a new interface endpoint with "
        "private DNS in the client zones, open to the VPC.",
    )
    parameters: Annotated[str, Limited(limits.PARAMETER_PREFIX)] | None = optional(
        "Prefix of SSM parameters with what callers need: endpoint-name, url, zonal-url/<zone> "
        "and client-settings of each endpoint, such as /low-latency/sentiment/url. Default: "
        "none; the stack's outputs say the same.",
        example="/low-latency",
    )
    alarm_topic_arn: Annotated[str, Limited(TOPIC_ARN)] | None = optional(
        "SNS topic that the alarms notify. Default: they notify nobody.",
        example="arn:aws:sns:us-east-1:123456789012:on-call",
    )
    safeguards: Annotated[Safeguards, OfOptions()] = Field(
        default_factory=Safeguards,
        examples=[{"log_retention_days": 365}],
        description="Key, log retention and roles for everything that the stacks make. Default: "
        "AWS's keys, short retentions, a role for each.",
    )
    tags: Tags = Field(
        default_factory=dict,
        examples=[{"team": "nlp"}],
        description="Tags of everything in the stack, up to 50.",
    )
    prices: Prices = Field(
        default_factory=dict,
        examples=[{"file": "prices-us-east-1.csv", "ml.m5.12xlarge": 1.0}],
        description="Prices in US dollars; they change nothing of the stack. file: what "
        "low-latency prices wrote. Your own prices beside it win, such as an hour of an instance type, "
        "or of interface_endpoint in one zone; the example's is made up. Default: AWS's list "
        "prices, where this library has them: it has none of instance types.",
    )
    endpoints: dict[
        Annotated[str, Limited(ENDPOINT_KEY)], Annotated[EndpointSettings, OfOptions()]
    ] = Field(
        examples=[{"sentiment": "..."}],
        description="The endpoints by a key of your choice, the construct's id. They share the "
        "network and the interface endpoint.",
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """What shared settings and endpoints demand of each other."""
        zones = mapping_of(given, "client_zones")
        network = mapping_of(given, "network")
        yield from _region(given, zones)
        yield from _subnets(zones, network)
        yield from _room(zones, network)
        if "interface_endpoint_id" in mapping_of(given, "private_link") and "vpc_id" not in network:
            yield finding(
                NEEDS_ANOTHER,
                "private_link",
                "interface_endpoint_id",
                got="interface_endpoint_id with a new VPC",
                allowed="interface_endpoint_id with network.vpc_id",
                what="an interface endpoint that exists lies in a VPC that exists",
                fix="Add network: {vpc_id: vpc-...}, or remove interface_endpoint_id.",
            )
        if "vpc_id" not in network:
            yield from breaches(
                ("network",), limits.S3_POLICY_BUCKETS.check, len(_named_buckets(given))
            )
        yield from breaches(("tags",), limits.TAG_COUNT.check, len(mapping_of(given, "tags")))
        yield from _endpoints(given)
        yield from stack_checks(given)

    def key_of(self, name: str) -> str:
        """The key of an endpoint, by that key or by its name at AWS."""
        named = {each.endpoint_name or key: key for key, each in self.endpoints.items()}
        named |= {key: key for key in self.endpoints}
        if name not in named:
            fix = f"{did_you_mean(name, named)} {NO_SUCH_ENDPOINT.fix}".strip()
            raise NO_SUCH_ENDPOINT.error(got=name, allowed=", ".join(named), fix=fix)
        return named[name]


def region_of(settings: Settings) -> str | None:
    """Where a settings file deploys: as it says, or where its first client zone is."""
    return settings.region or region_of_zone(settings.client_zones.zones[0])


def _named_buckets(given: Mapping[str, Any]) -> set[str]:
    """The buckets that the new VPC's S3 endpoint has to name."""
    uris: list[Any] = []
    for key in mapping_of(given, "endpoints"):
        endpoint = mapping_of(mapping_of(given, "endpoints"), key)
        uris += [mapping_of(endpoint, group).get("s3") for group in ("data_capture", "core_dump")]
        for _, stated in all_stated_containers(endpoint):
            uris += mapping_of(stated, "data").values()
            uris += mapping_of(stated, "environment").values()
    buckets = {
        uri.removeprefix("s3://").partition("/")[0]
        for uri in uris
        if isinstance(uri, str) and uri.startswith("s3://")
    }
    return (buckets - {""}) | {
        each
        for each in items_of(mapping_of(given, "network"), "s3_buckets")
        if isinstance(each, str)
    }


def _region(given: Mapping[str, Any], client_zones: Mapping[str, Any]) -> Iterator[Finding]:
    """All client zones lie in the stack's region; without one, in that of the first zone."""
    kind, zones = zones_of(client_zones)
    region = given.get("region") or (region_of_zone(zones[0]) if zones else None)
    if limits.REGION.holds(region):
        for index, zone in enumerate(items_of(client_zones, kind)):
            if zone in zones:
                yield from breaches(
                    ("client_zones", kind, index), check_zones_in_region, [zone], region
                )


def _subnets(client_zones: Mapping[str, Any], network: Mapping[str, Any]) -> Iterator[Finding]:
    """One subnet per client zone; with zone IDs they cannot be found by lookup."""
    kind, zones = zones_of(client_zones)
    subnets = mapping_of(network, "subnets")
    if "vpc_id" in network and "subnets" not in network and kind == "ids" and zones:
        yield finding(
            NEEDS_ANOTHER,
            "network",
            "vpc_id",
            got="vpc_id with zone IDs, no subnets",
            allowed="subnets: {" + ", ".join(f"{z}: subnet-..." for z in zones) + "}",
            what="zones given by ID need the existing VPC's subnet for each",
            fix="Add network.subnets, or give client_zones by names: a lookup finds "
            "subnets by zone name only.",
        )
    if "subnets" in network and zones and set(subnets) != set(zones):
        missing = [zone for zone in zones if zone not in subnets]
        foreign = [zone for zone in subnets if zone not in zones]
        parts = [f"none for {', '.join(missing)}"] * bool(missing)
        parts += [f"one for {', '.join(foreign)}"] * bool(foreign)
        yield finding(
            SUBNETS_OF_OTHER_ZONES,
            "network",
            "subnets",
            got="; ".join(parts),
            allowed=", ".join(zones),
        )
    zone_of: dict[Any, str] = {}
    for zone, subnet in subnets.items():
        if isinstance(subnet, str) and subnet in zone_of:
            yield finding(
                SUBNET_OF_TWO_ZONES,
                "network",
                "subnets",
                zone,
                got=f"{subnet}, that of {zone_of[subnet]}",
                allowed="a subnet for each zone",
            )
        elif isinstance(subnet, str):
            zone_of[subnet] = zone


def _room(client_zones: Mapping[str, Any], network: Mapping[str, Any]) -> Iterator[Finding]:
    """The new VPC has room for a subnet of the wanted size in each client zone."""
    _, zones = zones_of(client_zones)
    length = network.get("subnet_prefix_length")
    cidr = network.get("cidr", DEFAULT_CIDR)
    sound = not list(breaches((), vpc_block, cidr))
    if sound and zones and limits.SUBNET_PREFIX_LENGTH.holds(length):
        yield from breaches(("network", "subnet_prefix_length"), plan_subnets, cidr, zones, length)


def _endpoints(given: Mapping[str, Any]) -> Iterator[Finding]:
    if "endpoints" in given and given["endpoints"] == {}:
        yield finding(
            AT_LEAST_ONE,
            "endpoints",
            got="none",
            allowed="one or several endpoints",
            what="the stack has no endpoint",
            fix="Add one under endpoints, by a key of your choice.",
        )
    names: dict[str, str] = {}
    shared = mapping_of(given, "tags")
    for key in mapping_of(given, "endpoints"):
        endpoint = mapping_of(mapping_of(given, "endpoints"), key)
        own = mapping_of(endpoint, "tags")
        if own:
            yield from breaches(
                ("endpoints", key, "tags"), limits.TAG_COUNT.check, len({*shared, *own})
            )
        name = endpoint.get("endpoint_name")
        if isinstance(name, str) and name.lower() in names:  # as SageMaker compares them
            yield finding(
                ENDPOINT_NAME_TWICE,
                "endpoints",
                key,
                "endpoint_name",
                got=name,
                allowed=f"another name than that of {names[name.lower()]}",
            )
        elif isinstance(name, str):
            names[name.lower()] = key
