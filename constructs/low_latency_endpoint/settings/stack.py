"""The settings of one stack: what its endpoints share, the endpoints, and what they demand of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Annotated

from ..errors import did_you_mean
from ..errors.findings import Finding, Place, breaches, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.durations import seconds_of
from ..facts.homes import Home
from ..facts.images import known_dlc_account
from ..facts.prices import PRICED_ITEM, Price
from ..facts.rules import (
    ENDPOINTS_ARE_THE_OWNERS,
    HOSTED_ZONE_IN_OWN_VPC,
    SUBNET_OF_TWO_ZONES,
    SUBNETS_OF_OTHER_ZONES,
)
from ..facts.s3_names import bucket_of, check_bucket
from ..facts.subnets import plan_subnets
from ..facts.warm_up_rules import keep_warm_threshold
from ..facts.zones import check_zones_in_region, region_of_zone
from ..options.network import ClientZones, NetworkOptions, PrivateLinkOptions
from ..options.option import EXCLUDES_ANOTHER, NEEDS_ANOTHER, Option, Options, Unsound, with_a_home
from ..options.rules import (
    AT_LEAST_ONE,
    ENDPOINT_KEY,
    NAME_TWICE,
    NO_SUCH_ENDPOINT,
    STACK_HAS_THE_NAME,
    STACK_NAME,
    TOPIC_ARN,
    VPC_TWICE,
)
from ..options.safeguards import Safeguards
from ..plan.launched_names import OWN_NAME
from ..plan.published_metrics import METRICS_IN_ALARM
from .endpoint import EndpointSettings, all_containers, container_id, further_variants
from .stated_prices import PricesKind

#: What the stack calls its own parts, beside those that carry an endpoint's key.
NAMES_OF_PARTS = frozenset(
    {
        "AlarmTopic",
        "BootstrapVersion",
        "CDKMetadata",
        "CheckBootstrapVersion",
        "constructor",  # as the next ones: what each object of JavaScript has
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
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
        OWN_NAME,
        "PrivateLink",
        "RoleRights",
        "S3PrefixList",
    }
)
#: What the CDK's app calls a part of its own.
NAMES_IN_APP = frozenset({"Tree"})


def region_of(settings: Settings) -> str | None:
    """Where a settings file deploys: as it says, or where its first client zone is."""
    zones = settings.client_zones.zones
    return settings.region or (region_of_zone(zones[0]) if zones else None)


def _beside(key: str, endpoint: EndpointSettings) -> Iterator[str]:
    """Resources that the stack creates beside an endpoint, by the endpoint's key."""
    if endpoint.role_arn is not None:
        yield f"{key}-Role"
        yield f"MutableRole{key}-Role"  # how the CDK keeps a role of another account
    if endpoint.kms_key_arn is not None:
        yield f"{key}-Key"
    for group, name in ((endpoint.core_dump, "CoreDumpKey"), (endpoint.data_capture, "CaptureKey")):
        if group is not None and group.kms_key_arn is not None:
            yield f"{key}-{name}"
    for place, container in all_containers(endpoint):
        if container.image.ecr is not None:
            yield f"{container_id(key, place)}-Repository"
        if container.data is not None and container.data.kms_key_arn is not None:
            yield f"{container_id(key, place)}-DataKey"
    hubs = {variant.place: variant.settings.hugging_face for variant in further_variants(endpoint)}
    for place, hub in {(): endpoint.hugging_face, **hubs}.items():
        for name in ("Bucket", "Token") if hub is not None else ():
            yield f"{container_id(key, (*place, 'hugging_face', 0))}-{name}"


def _images(settings: Settings, endpoint: EndpointSettings) -> Iterator[Finding]:
    """Deep Learning Containers come from an account that is known for the region."""
    region = region_of(settings)
    for place, container in all_containers(endpoint):
        image = container.image.dlc
        if image is not None and region and image.account is None:
            yield from breaches((*place, "image", "dlc"), known_dlc_account, region)


def _buckets(settings: Settings, endpoint: EndpointSettings) -> Iterator[Finding]:
    """Buckets have names that S3 takes."""
    places: dict[Place, str | None] = {}
    for place, container in all_containers(endpoint):
        for name in ("s3", "s3_prefix"):
            places[*place, "data", name] = getattr(container.data, name, None)
    for name in ("data_capture", "core_dump"):
        places[name, "s3"] = getattr(getattr(endpoint, name), "s3", None)
    for place, uri in places.items():
        if uri is not None:
            yield from breaches(place, check_bucket, uri, region_of(settings))


def _zone_imbalance(settings: Settings, endpoint: EndpointSettings) -> Iterator[Finding]:
    """The alarm watches each zone."""
    if endpoint.alarms.zone_imbalance is not None:
        count = len(settings.client_zones.zones)
        yield from breaches(("alarms", "zone_imbalance"), METRICS_IN_ALARM.check, count)


def _keep_warm(settings: Settings, endpoint: EndpointSettings) -> Iterator[Finding]:
    """What keep-warm sends is less than the traffic that would stop it."""
    stated = endpoint.warm_up.keep_warm if endpoint.warm_up else None
    if stated is not None:
        adopted = settings.private_link.interface_endpoint_id is not None
        # One zone where the zones' names are not known.
        zones = 1 if adopted else len(settings.client_zones.zones)
        yield from breaches(
            ("warm_up", "keep_warm", "below_tps"),
            lambda: keep_warm_threshold(
                zones=zones,
                requests_per_zone=stated.requests_per_zone,
                every_seconds=seconds_of(stated.every),
                below_tps=stated.below_tps,
            ),
        )


__all__ = ["Settings", "region_of"]


@dataclass(frozen=True, kw_only=True)
class Settings(Options):
    """One stack: shared network and PrivateLink, and one or several endpoints."""

    stack_name: Annotated[str, Option(STACK_NAME, "LowLatencyEndpoint")] = "LowLatencyEndpoint"
    """Name of the CloudFormation stack. Default: LowLatencyEndpoint."""
    region: Annotated[str | None, Option(limits.REGION, "us-east-1")] = None
    """Region to deploy to. Default: that of the AWS CLI's profile."""
    account: Annotated[str | None, Option(limits.ACCOUNT, "123456789012")] = None
    """Account to deploy to, twelve digits in quotes. Default: that of the AWS CLI's profile."""
    client_zones: Annotated[ClientZones, Option(example={"ids": ["use1-az1", "use1-az2"]})]
    """Where the callers run: everything else goes into the same zones."""
    network: Annotated[NetworkOptions, Option(example={"vpc_id": "vpc-0123456789abcdef0"})] = field(
        default_factory=NetworkOptions
    )
    """The VPC. Default: a new one with one isolated subnet in each client zone."""
    private_link: Annotated[
        PrivateLinkOptions, Option(example={"allow_cidrs": ["10.0.0.0/16"]})
    ] = field(default_factory=PrivateLinkOptions)
    """How callers reach SageMaker Runtime. Default: a new interface endpoint with private DNS in
    the client zones, open to the VPC."""
    parameters: Annotated[str | None, Option(limits.PARAMETER_PREFIX, "/low-latency")] = None
    """Prefix of SSM parameters for callers: endpoint-name, url, zonal-url/<zone> and
    client-settings of each endpoint, such as /low-latency/sentiment/url. Default: none; the stack's
    outputs have the same values."""
    alarm_topic_arn: Annotated[
        str | None, Option(TOPIC_ARN, "arn:aws:sns:us-east-1:123456789012:on-call")
    ] = None
    """SNS topic that the alarms notify. Default: none."""
    safeguards: Annotated[Safeguards, Option(example={"log_retention_days": 365})] = field(
        default_factory=Safeguards
    )
    """Key, log retention and roles for all resources of the stacks. Default: AWS's keys, short
    retentions, separate roles."""
    tags: Annotated[
        Mapping[str, str], Option(limits.TAG_VALUE, {"team": "nlp"}, keys=limits.TAG_KEY)
    ] = field(default_factory=dict)
    """Tags for every resource of the stack, up to 50."""
    prices: Annotated[
        Mapping[str, Price],
        Option(example={"file": "prices-us-east-1.csv", "ml.m5.12xlarge": 1.0}, keys=PRICED_ITEM),
        PricesKind(),
    ] = field(default_factory=dict)
    """Prices in US dollars; they do not change the stack. file: the file that low-latency prices
    wrote. Your own prices override it, such as an hour of an instance type, or of
    interface_endpoint in one zone; the example is invented. Default: AWS's list prices that this
    library has, none of instance types."""
    endpoints: Annotated[
        Mapping[str, EndpointSettings], Option(example={"sentiment": "..."}, keys=ENDPOINT_KEY)
    ]
    """The endpoints, by a key of your choice, which is the construct's id. They share the network
    and the interface endpoint."""

    def _rules_of_region(self) -> Iterator[Finding]:
        """All client zones lie in the stack's region; without one, in that of the first zone."""
        stated, region = self.client_zones, region_of(self)
        for index, zone in enumerate(stated.zones if region else ()):
            place = ("client_zones", "ids" if stated.ids else "names", index)
            yield from breaches(place, check_zones_in_region, [zone], region)

    def _rules_of_homes(self) -> Iterator[Finding]:
        """What the stack names is where the stack is."""
        home = Home(region_of(self) or "", self.account or "")
        for place, named in with_a_home(self):
            yield from breaches(place, home.check, named)

    def _rules_of_subnets(self) -> Iterator[Finding]:
        """One subnet per client zone; with zone IDs they cannot be found by lookup."""
        zones, subnets = self.client_zones.zones, self.network.subnets
        if not zones:  # that fault is found with the zones
            return
        if subnets is None:
            if self.network.vpc_id is not None and self.client_zones.ids:
                yield finding(
                    NEEDS_ANOTHER,
                    *("network", "vpc_id"),
                    got="vpc_id with zone IDs, no subnets",
                    allowed="subnets: {" + ", ".join(f"{z}: subnet-..." for z in zones) + "}",
                    what="zones given by ID need the existing VPC's subnet for each",
                    fix="Add network.subnets, or give client_zones by names: a lookup finds "
                    "subnets by zone name only.",
                )
            return
        if set(subnets) != set(zones):
            missing = [zone for zone in zones if zone not in subnets]
            foreign = [zone for zone in subnets if zone not in zones]
            parts = [f"none for {', '.join(missing)}"] * bool(missing)
            parts += [f"one for {', '.join(foreign)}"] * bool(foreign)
            yield finding(
                SUBNETS_OF_OTHER_ZONES,
                *("network", "subnets"),
                got="; ".join(parts),
                allowed=", ".join(zones),
            )
        zone_of: dict[str, str] = {}
        for zone, subnet in subnets.items():
            if zone_of.setdefault(subnet, zone) != zone:
                yield finding(
                    SUBNET_OF_TWO_ZONES,
                    *("network", "subnets", zone),
                    got=f"{subnet}, that of {zone_of[subnet]}",
                    allowed="a subnet for each zone",
                )

    def _rules_of_room(self) -> Iterator[Finding]:
        """The new VPC has room for a subnet of the wanted size in each client zone."""
        network, zones = self.network, self.client_zones.zones
        if network.subnet_prefix_length is not None:
            yield from breaches(
                ("network", "subnet_prefix_length"),
                *(plan_subnets, network.cidr, zones, network.subnet_prefix_length),
            )

    def _rules_of_link(self) -> Iterator[Finding]:
        """An interface endpoint that exists lies in a VPC that exists."""
        adopted = self.private_link.interface_endpoint_id is not None
        if adopted and not self.network._states("vpc_id"):
            yield finding(
                NEEDS_ANOTHER,
                *("private_link", "interface_endpoint_id"),
                got="interface_endpoint_id with a new VPC",
                allowed="interface_endpoint_id with network.vpc_id",
                what="an interface endpoint that exists lies in a VPC that exists",
                fix="Add network: {vpc_id: vpc-...}, or remove interface_endpoint_id.",
            )

    @property
    def other_owner(self) -> str | None:
        """The account that shares the VPC, where the file says that it is another one."""
        owner = self.network.owner
        return None if owner == self.account else owner

    def _rules_of_owner(self) -> Iterator[Finding]:
        """In a VPC of another account its interface endpoint is used, as it is."""
        if self.other_owner is None:
            return
        link = self.private_link
        if not link._states("interface_endpoint_id"):
            yield finding(
                ENDPOINTS_ARE_THE_OWNERS,
                *("network", "owner"),
                got=f"a VPC of account {self.other_owner}, no interface_endpoint_id",
                allowed="private_link.interface_endpoint_id of the owner's",
            )
        if link._states("allow_cidrs"):
            yield finding(
                EXCLUDES_ANOTHER,
                *("private_link", "allow_cidrs"),
                got="allow_cidrs beside network.owner",
                allowed="network.owner without allow_cidrs",
                what="the security group is the owner's, who lets callers in",
                fix="Remove allow_cidrs; let the owner open port 443 for these ranges.",
            )

    def _rules_of_hosted_zones(self) -> Iterator[Finding]:
        """Other VPCs get a hosted zone, each once."""
        own, others = self.network.vpc_id, self.private_link.hosted_zone_vpc_ids
        for index, vpc in enumerate(others):
            place = ("private_link", "hosted_zone_vpc_ids", index)
            if vpc == own:
                yield finding(HOSTED_ZONE_IN_OWN_VPC, *place, got=vpc, allowed="other VPCs")
            elif vpc in others[:index]:
                yield finding(VPC_TWICE, *place, got=vpc, allowed="each VPC once")

    def _rules_of_buckets(self) -> Iterator[Finding]:
        """The new VPC's S3 endpoint names so many buckets."""
        if self.network._states("vpc_id"):
            return
        uris: list[str | None] = []
        for endpoint in self.endpoints.values():
            uris += [each.s3 for each in (endpoint.data_capture, endpoint.core_dump) if each]
            for _, container in all_containers(endpoint):
                if container.data is not None:
                    uris += [container.data.s3, container.data.s3_prefix]
                uris += container.environment.values()
        named = {bucket_of(uri) for uri in uris if uri is not None}
        count = len((named - {None, ""}) | {*self.network.s3_buckets})
        yield from breaches(("network",), limits.S3_POLICY_BUCKETS.check, count)

    def _rules_of_tags(self) -> Iterator[Finding]:
        """There are so many tags of the stack, and of each endpoint with these."""
        yield from breaches(("tags",), limits.TAG_COUNT.check, len(self.tags))
        for key, endpoint in self.endpoints.items():
            if endpoint.tags:
                count = len({*self.tags, *endpoint.tags})
                yield from breaches(("endpoints", key, "tags"), limits.TAG_COUNT.check, count)

    def _rules_of_stack_name(self) -> Iterator[Finding]:
        """The stack's name is not what the CDK calls a part of the app."""
        if self.stack_name in NAMES_IN_APP:
            yield finding(
                STACK_HAS_THE_NAME,
                "stack_name",
                got=self.stack_name,
                allowed="another name",
                what="the CDK has a part of this name",
            )

    def _rules_of_keys(self) -> Iterator[Finding]:
        """There are endpoints, and no key is what something else is called."""
        if not self.endpoints:
            yield finding(
                AT_LEAST_ONE,
                "endpoints",
                got="none",
                allowed="one or several endpoints",
                what="the stack has no endpoint",
                fix="Add one under endpoints, by a key of your choice.",
            )
        network = self.network
        vpcs = [network.vpc_id, *self.private_link.hosted_zone_vpc_ids]
        taken = {
            *NAMES_OF_PARTS,
            *(f"Vpc-{vpc}" for vpc in vpcs if vpc),
            *(f"Subnet-{zone}" for zone in network.subnets or ()),
        }
        for key, endpoint in self.endpoints.items():
            with suppress(Unsound):
                taken.update(_beside(key, endpoint))
        for key in self.endpoints:
            if key in taken:
                yield finding(STACK_HAS_THE_NAME, "endpoints", key, got=key, allowed="another key")

    def _rules_of_endpoint_names(self) -> Iterator[Finding]:
        """Names of endpoints differ, as SageMaker compares them."""
        names: dict[str, str] = {}
        for key, endpoint in self.endpoints.items():
            name = endpoint.endpoint_name
            if name is not None and names.setdefault(name.lower(), key) != key:
                yield finding(
                    NAME_TWICE,
                    *("endpoints", key, "endpoint_name"),
                    got=name,
                    allowed=f"another name than that of {names[name.lower()]}",
                    what="two endpoints have the same name",
                )

    def _rules_of_endpoints(self) -> Iterator[Finding]:
        """What each endpoint demands of what is shared."""
        rules: tuple[Callable[[Settings, EndpointSettings], Iterator[Finding]], ...]
        rules = (_images, _buckets, _zone_imbalance, _keep_warm)
        endpoints: Mapping[str, EndpointSettings] = self.endpoints
        for key, endpoint in endpoints.items():
            for rule in rules:
                with suppress(Unsound):
                    for place, error in rule(self, endpoint):
                        yield ("endpoints", key, *place), error

    def key_of(self, name: str) -> str:
        """The key of an endpoint, by that key or by its name at AWS."""
        named = {endpoint.endpoint_name or key: key for key, endpoint in self.endpoints.items()}
        named |= {key: key for key in self.endpoints}
        if name not in named:
            fix = f"{did_you_mean(name, named)} {NO_SUCH_ENDPOINT.fix}".strip()
            raise NO_SUCH_ENDPOINT.error(got=name, allowed=", ".join(named), fix=fix)
        return named[name]
