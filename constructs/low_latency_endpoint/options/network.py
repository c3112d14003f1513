"""Where callers are and what leads them to the endpoints: zones, VPC, PrivateLink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from ..errors.findings import Finding, breaches, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.rules import (
    API_NEEDS_PRIVATE_DNS,
    FIPS_WITH_POLICY,
    NARROW_WITHOUT_POLICY,
    ZONE_NAMED_TWICE,
    ZONE_WITHOUT_SUBNET,
    ZONES_UNKNOWN_AT_SYNTH,
)
from ..facts.s3_names import check_bucket_name
from ..facts.subnets import vpc_block
from ..facts.token_values import is_token
from ..facts.zones import is_stand_in, zone_name_of
from .argument_kinds import checked_arguments
from .option import Option, Options
from .rules import (
    AT_LEAST_ONE,
    CIDR,
    INTERFACE_ENDPOINT_ID,
    PREFIX_LIST_ID,
    SECURITY_GROUP_ID,
    SUBNET_ID,
    VPC_ID,
)

if TYPE_CHECKING:
    from aws_cdk import aws_ec2 as ec2

_NAMES = (
    'Give the stack account and region; or name the zones, ClientZones.of_names("us-east-1a", '
    '"us-east-1b"), and pass the subnet of each: subnets={"us-east-1a": subnet, ...}. CDK knows '
    "those of a VPC only where its stack has account and region, where it is looked up, or where an "
    "import states them."
)
SUBNETS_NOT_STATED = (
    "Add private or isolated subnets to the VPC. Of an imported VPC only those are known that the "
    "import states: state them there, as with private_subnet_ids=, or name the zones with "
    'ClientZones.of_names(...) and pass the subnet of each: subnets={"us-east-1a": subnet, ...}.'
)
DEFAULT_CIDR = "10.0.0.0/16"


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ClientZones(Options):
    """The Availability Zones in which the callers run.

    :meth:`of_ids`, :meth:`of_names` or :meth:`of_vpc` makes them. IDs are preferred: ``use1-az4``
    is the same physical zone in every account, while each account shuffles what ``us-east-1a``
    stands for, so callers in another account can be matched by ID only.

    Raises:
        ConfigurationError: LLE101 or LLE102 for a malformed zone, LLE103 for fewer than two or
            more than sixteen (SageMaker hosting in a VPC needs subnets in two zones), LLE107 for
            a zone named twice, LLE927 for both of ids and names.

    Examples:
        >>> ClientZones.of_ids("use1-az1", "use1-az2").zones
        ('use1-az1', 'use1-az2')
    """

    exactly_one_of: ClassVar[tuple[str, ...]] = ("ids", "names")

    ids: Annotated[Sequence[str] | None, Option(limits.ZONE_ID, ["use1-az1", "use1-az2"])] = None
    """Zone IDs, the same physical zones in every account. At least two."""
    names: Annotated[
        Sequence[str] | None,
        Option(limits.ZONE_NAME, ["us-east-1a", "us-east-1b"], passes=is_stand_in),
    ] = None
    """Zone names, which AWS shuffles per account; prefer ids. At least two."""

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones as given, by ID or by name."""
        return tuple(self.ids or self.names or ())

    @classmethod
    def of_ids(cls, *zones: str) -> ClientZones:
        """Zones by ID, such as ``use1-az4``."""
        return cls(ids=zones)

    @classmethod
    def of_names(cls, *zones: str) -> ClientZones:
        """Zones by name, such as ``us-east-1a``, as this account knows them.

        What CDK puts in their place until the CLI has looked them up (``dummy1a``) passes.
        """
        return cls(names=zones)

    @classmethod
    def of_vpc(cls, vpc: ec2.IVpc) -> ClientZones:
        """The zones in which a VPC has subnets that are not public, by name.

        In these the endpoint can be, and callers without a public address run. Name the zones
        instead where callers run in some of them only: the interface endpoint costs in each zone,
        and the plan wants an instance in each.

        Args:
            vpc: Made in the app in a stack with account and region, looked up, or imported with its zones.

        Raises:
            ConfigurationError: LLE152 where the zones are tokens, LLE151 where all subnets
                are public, LLE103 for a VPC in one zone.

        Examples:
            >>> from aws_cdk import App, Stack, aws_ec2 as ec2
            >>> stack = Stack(App(), "Callers")
            >>> vpc = ec2.Vpc.from_vpc_attributes(
            ...     stack, "Vpc", vpc_id="vpc-0123456789abcdef0",
            ...     availability_zones=["us-east-1a", "us-east-1b"],
            ...     private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"])
            >>> ClientZones.of_vpc(vpc).zones
            ('us-east-1a', 'us-east-1b')
        """
        where = f"ClientZones.of_vpc({vpc.node.path})"
        found = [zone_name_of(each) for each in [*vpc.isolated_subnets, *vpc.private_subnets]]
        zones = sorted({zone for zone in found if zone is not None})
        if not found:
            raise ZONE_WITHOUT_SUBNET.error(
                what="the VPC has no subnet that is not public",
                got="no isolated and no private subnet",
                allowed="private or isolated subnets in two zones",
                where=where,
                fix=SUBNETS_NOT_STATED,
            )
        if None in found or any(map(is_token, zones)):
            raise ZONES_UNKNOWN_AT_SYNTH.error(
                what="the VPC's zones are not known at synth",
                got="subnets whose zones are tokens, or not stated",
                allowed="a VPC whose zones are known by name",
                where=where,
                fix=_NAMES,
            )
        return cls(names=tuple(zones))

    def _rules(self) -> Iterator[Finding]:
        """At least two zones, each once."""
        name, zones = ("names", self.names) if self.ids is None else ("ids", self.ids)
        if zones is not None:
            yield from breaches((name,), limits.CLIENT_ZONE_COUNT.check, len(zones))
        for index, zone in enumerate(zones or ()):
            if is_token(zone):
                form = limits.ZONE_NAME if self.ids is None else limits.ZONE_ID
                what = "the zones are not known at synth"
                yield finding(
                    form.rule,
                    name,
                    index,
                    got="a token",
                    what=what,
                    allowed=form.allowed,
                    fix=_NAMES,
                )
            if zone in self.zones[:index]:
                yield finding(ZONE_NAMED_TWICE, name, index, got=zone, allowed="each zone once")


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(Options):
    """The VPC of the callers: a new one, or one that exists."""

    vpc_id: Annotated[str | None, Option(VPC_ID, "vpc-0123456789abcdef0")] = None
    """An existing VPC, looked up at synthesis, instead of a new one."""
    owner: Annotated[str | None, Option(limits.ACCOUNT, "210987654321")] = None
    """Account that shares the existing VPC's subnets by AWS RAM, twelve digits in quotes. Its
    interface endpoint is adopted, and its security groups stay as they are. Default: as the lookup
    finds."""
    subnets: Annotated[
        Mapping[str, str] | None,
        Option(
            SUBNET_ID,
            {"use1-az1": "subnet-0123456789abcdef0", "use1-az2": "subnet-0123456789abcdef1"},
        ),
    ] = None
    """The existing VPC's subnet for each client zone; needed with zone IDs. Default: with zone
    names, one is chosen per zone."""
    cidr: Annotated[str, Option(example="10.0.0.0/16")] = DEFAULT_CIDR
    """IPv4 range of the new VPC. Default: 10.0.0.0/16."""
    subnet_prefix_length: Annotated[int | None, Option(limits.SUBNET_PREFIX_LENGTH, 24)] = None
    """Size of the new VPC's subnets. Default: room for the instances of all endpoints, twice for
    blue/green deployments."""
    flow_logs: Annotated[Literal["reject", "accept", "all", True, False], Option(example="all")] = (
        "reject"
    )
    """Packets that the new VPC's flow log records: reject, accept or all; true is reject, false
    none. Default: reject."""
    s3_prefix_list: Annotated[str | None, Option(PREFIX_LIST_ID, "pl-63a5400a")] = None
    """AWS's prefix list com.amazonaws.<region>.s3 (aws ec2 describe-managed-prefix-lists): models
    reach only S3, by HTTPS. Default: HTTPS to every address; a new VPC leads to S3 only."""
    narrow_s3: Annotated[bool, Option()] = False
    """Let the new VPC's S3 endpoint allow only buckets that the endpoints and s3_buckets name.
    Default: false, which allows all buckets of the account."""
    s3_buckets: Annotated[Sequence[str], Option(example=["tokenizers-of-another-account"])] = ()
    """Additional buckets that the new VPC's S3 endpoint allows. Default: those of model data,
    captured data and core dumps."""

    @property
    def flow_log(self) -> str | None:
        """The packets that are recorded, if some are."""
        return "reject" if self.flow_logs is True else self.flow_logs or None

    def _rules(self) -> Iterator[Finding]:
        """An existing VPC is taken as it is, and each bucket's name is one."""
        yield from self._excludes(
            "vpc_id",
            ("cidr", "subnet_prefix_length", "flow_logs", "narrow_s3", "s3_buckets"),
            "an existing VPC is used as it is",
        )
        yield from self._needs("subnets", "vpc_id", "subnets belong to an existing VPC")
        yield from self._needs("owner", "vpc_id", "a VPC of the stack's own is its account's")
        for index, name in enumerate(self.s3_buckets):
            yield from breaches(("s3_buckets", index), check_bucket_name, name, None)

    def _rules_of_range(self) -> Iterator[Finding]:
        """A new VPC has room for its subnets."""
        yield from breaches(("cidr",), vpc_block, self.cidr)


@dataclass(frozen=True, kw_only=True)
class PrivateLinkOptions(Options):
    """How callers reach SageMaker Runtime without leaving their zone."""

    interface_endpoint_id: Annotated[
        str | None, Option(INTERFACE_ENDPOINT_ID, "vpce-0123456789abcdef0")
    ] = None
    """The existing VPC's interface endpoint for SageMaker Runtime; a VPC takes one with private
    DNS. Default: a new one."""
    security_group_id: Annotated[str | None, Option(SECURITY_GROUP_ID, "sg-0123456789abcdef0")] = (
        None
    )
    """The security group of that interface endpoint."""
    allow_cidrs: Annotated[Sequence[str] | None, Option(CIDR, ["10.0.0.0/16"])] = None
    """CIDR ranges that may connect. Default: the VPC's own range."""
    hosted_zone_vpc_ids: Annotated[Sequence[str], Option(VPC_ID, ["vpc-0fedcba9876543210"])] = ()
    """Peered or transit VPCs with callers, which get a private hosted zone for the runtime's DNS
    name. Default: none."""
    fips: Annotated[bool, Option()] = False
    """Use SageMaker Runtime's FIPS endpoint. Default: false."""
    private_dns: Annotated[bool | None, Option()] = None
    """Resolve SageMaker Runtime's own DNS name to the interface endpoint in the whole VPC; if
    false, callers use the zonal URLs. Default: true, with a warning in an existing VPC unless you
    state it."""
    bidirectional_streaming: Annotated[bool, Option()] = False
    """Open port 8443 and allow every invoke action, because AWS names none for bidirectional
    streaming. Default: false."""
    endpoint_policy: Annotated[bool | None, Option()] = None
    """Restrict the interface endpoint to this account's invocations. Default: true, except with
    fips, which has no such policy."""
    narrow_policy: Annotated[bool | None, Option()] = None
    """Restrict that policy to invocations of this stack's endpoints. Default: true in a new VPC;
    false in an existing VPC, which may have other callers."""
    openai: Annotated[bool, Option()] = False
    """Let a narrow policy allow bearer tokens of the OpenAI-compatible path. Default: false."""
    sagemaker_api: Annotated[bool, Option()] = False
    """Add an interface endpoint for the SageMaker API, so that the VPC reaches all SageMaker API
    operations, such as DescribeEndpoint, and not only invocations. Default: false."""

    @property
    def takes_the_name(self) -> bool:
        """Whether a new interface endpoint answers the runtime's own name in the whole VPC."""
        return self.interface_endpoint_id is None and self.private_dns is not False

    @property
    def known_private_dns(self) -> bool | None:
        """Whether the interface endpoint has private DNS; None of one that exists."""
        return None if self.interface_endpoint_id else self.takes_the_name

    @property
    def services(self) -> tuple[str, ...]:
        """The services of the new interface endpoints."""
        runtime = "sagemaker.runtime-fips" if self.fips else "sagemaker.runtime"
        return (runtime, "sagemaker.api") if self.sagemaker_api else (runtime,)

    def takes_over_unasked(self, *, own_vpc: bool) -> bool:
        """Whether a VPC's other callers meet private DNS that nobody has stated."""
        return not own_vpc and self.takes_the_name and self.private_dns is None

    def narrow(self, *, own_vpc: bool) -> bool | None:
        """Whether the policy of a new interface endpoint is narrow; None without a policy."""
        if not self.polices:
            return None
        return own_vpc if self.narrow_policy is None else self.narrow_policy

    @property
    def polices(self) -> bool:
        """Whether a new interface endpoint has a policy."""
        return not self.fips if self.endpoint_policy is None else self.endpoint_policy

    def _rules_of_policy(self) -> Iterator[Finding]:
        """A policy is narrow where there is one."""
        if self.fips and self.endpoint_policy:
            yield finding(
                FIPS_WITH_POLICY,
                "endpoint_policy",
                got="endpoint_policy with fips",
                allowed="one of them",
                fix="Leave endpoint_policy out, and limit the callers' IAM policies.",
            )
        if self.narrow_policy is not None and (self.fips or not self.polices):
            yield finding(
                NARROW_WITHOUT_POLICY,
                "narrow_policy",
                got="narrow_policy without an endpoint policy",
                allowed="narrow_policy with an endpoint policy",
                fix="Leave narrow_policy out.",
            )

    def _rules_of_api(self) -> Iterator[Finding]:
        """The SageMaker API is reached by its own name."""
        if self.sagemaker_api and self.private_dns is False:
            yield finding(
                API_NEEDS_PRIVATE_DNS,
                "sagemaker_api",
                got="sagemaker_api without private_dns",
                allowed="one of them",
                fix="Leave sagemaker_api or private_dns out.",
            )

    def _rules(self) -> Iterator[Finding]:
        """An adopted interface endpoint comes with its security group, and as it is."""
        yield from self._needs(
            "interface_endpoint_id",
            "security_group_id",
            "callers are let in through the security group of the interface endpoint",
        )
        yield from self._needs(
            "security_group_id",
            "interface_endpoint_id",
            "the security group belongs to an interface endpoint that exists",
        )
        yield from self._excludes(
            "interface_endpoint_id",
            (
                *("fips", "sagemaker_api", "hosted_zone_vpc_ids", "endpoint_policy"),
                *("narrow_policy", "openai", "private_dns"),
            ),
            "an existing interface endpoint is used as it is, and its VPC too",
        )
        if self.allow_cidrs is not None and not self.allow_cidrs:
            yield finding(
                AT_LEAST_ONE,
                "allow_cidrs",
                got="none",
                allowed="one or several ranges of addresses",
                what="an empty list would let in the whole VPC, as none does",
                fix="Add a range, or leave allow_cidrs out to let in the whole VPC.",
            )
