"""Settings of what the endpoints share: client zones, network, PrivateLink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator
from pydantic.json_schema import WithJsonSchema

from ..errors.findings import Finding, breaches, finding
from ..options.rules import (
    AT_LEAST_ONE,
    INTERFACE_ENDPOINT_ID,
    PREFIX_LIST_ID,
    SECURITY_GROUP_ID,
    SUBNET_ID,
    VPC_ID,
    WRONG_KIND,
)
from ..plan import limits
from ..plan.rules import (
    API_NEEDS_PRIVATE_DNS,
    FIPS_WITH_POLICY,
    NARROW_WITHOUT_POLICY,
    ZONE_NAMED_TWICE,
)
from ..plan.s3_names import check_bucket_name
from ..plan.subnets import vpc_block
from .breach import BreachError
from .fields import Cidr, Limited
from .model_base import SettingsModel, excludes, items_of, needs, optional

ZoneId = Annotated[str, Limited(limits.ZONE_ID)]
ZoneName = Annotated[str, Limited(limits.ZONE_NAME)]
VpcId = Annotated[str, Limited(VPC_ID)]


FLOW_LOGS = ("reject", "accept", "all")


def _flow_logs(value: Any) -> Any:
    """What is recorded, or false; true is what is recorded by default."""
    if value is True:
        return FLOW_LOGS[0]
    if value is False or value in FLOW_LOGS:
        return value
    raise BreachError(
        [
            finding(
                WRONG_KIND,
                got=value,
                allowed="reject, accept, all, true or false",
                fix="Write true, false, reject, accept or all.",
            )
        ]
    )


#: What the flow log records, false for none.
FlowLogs = Annotated[
    Literal["reject", "accept", "all", False],
    BeforeValidator(_flow_logs),
    WithJsonSchema({"enum": [*FLOW_LOGS, True, False]}),
]


class ClientZoneSettings(SettingsModel):
    """The Availability Zones in which the callers run."""

    exactly_one_of: ClassVar[tuple[str, ...]] = ("ids", "names")

    ids: tuple[ZoneId, ...] | None = optional(
        "Zone IDs, the same physical zones in every account. At least two.",
        example=["use1-az1", "use1-az2"],
        strict=False,
    )
    names: tuple[ZoneName, ...] | None = optional(
        "Zone names, which AWS shuffles per account; prefer ids. At least two.",
        example=["us-east-1a", "us-east-1b"],
        strict=False,
    )

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones as given, by ID or by name."""
        return self.ids or self.names or ()

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """At least two zones, each once."""
        for kind, form in (("ids", limits.ZONE_ID), ("names", limits.ZONE_NAME)):
            zones = items_of(given, kind)
            if kind in given and isinstance(given[kind], (list, tuple)):
                yield from breaches((kind,), limits.CLIENT_ZONE_COUNT.check, len(zones))
            for index, zone in enumerate(zones):
                if form.holds(zone) and zone in zones[:index]:
                    yield finding(ZONE_NAMED_TWICE, kind, index, got=zone, allowed="each zone once")


class NetworkSettings(SettingsModel):
    """The VPC of the callers: a new one, or one that exists."""

    vpc_id: VpcId | None = optional(
        "An existing VPC, looked up at synthesis, instead of a new one.",
        example="vpc-0123456789abcdef0",
    )
    subnets: dict[str, Annotated[str, Limited(SUBNET_ID)]] | None = optional(
        "The existing VPC's subnet for each client zone; needed with zone IDs. Default: with "
        "zone names, one is chosen per zone.",
        example={"use1-az1": "subnet-0123456789abcdef0", "use1-az2": "subnet-0123456789abcdef1"},
    )
    cidr: str | None = optional(
        "IPv4 range of the new VPC. Default: 10.0.0.0/16.", example="10.0.0.0/16"
    )
    subnet_prefix_length: Annotated[int, Limited(limits.SUBNET_PREFIX_LENGTH)] | None = optional(
        "Size of the new VPC's subnets. Default: room for the instances of all endpoints, twice "
        "for blue/green deployments.",
        example=24,
    )
    flow_logs: FlowLogs | None = optional(
        "Packets that the new VPC's flow log records: reject, accept or all; true is reject, "
        "false none. Default: reject.",
        example="all",
    )
    s3_prefix_list: Annotated[str, Limited(PREFIX_LIST_ID)] | None = optional(
        "AWS's prefix list com.amazonaws.<region>.s3 (aws ec2 describe-managed-prefix-lists): "
        "models reach it by HTTPS and nothing else. Default: HTTPS to every address; a new VPC "
        "leads to S3 only.",
        example="pl-63a5400a",
    )
    narrow_s3: bool = optional(
        "Let the new VPC's S3 endpoint pass only the buckets that the endpoints and s3_buckets "
        "name. Default: false, it also passes all buckets of the account.",
        default=False,
    )
    s3_buckets: tuple[str, ...] = optional(
        "Further buckets that the new VPC's S3 endpoint passes. Default: those of model data, "
        "captured data and core dumps.",
        example=["tokenizers-of-another-account"],
        default=(),
        strict=False,
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """An existing VPC is taken as it is; a new one has room for its subnets."""
        yield from excludes(
            given,
            "vpc_id",
            ("cidr", "subnet_prefix_length", "flow_logs", "narrow_s3", "s3_buckets"),
            "an existing VPC is used as it is",
        )
        yield from needs(given, "subnets", "vpc_id", "subnets belong to an existing VPC")
        if "cidr" in given:
            yield from breaches(("cidr",), vpc_block, given["cidr"])
        for index, name in enumerate(items_of(given, "s3_buckets")):
            if isinstance(name, str):
                yield from breaches(("s3_buckets", index), check_bucket_name, name, None)


class PrivateLinkSettings(SettingsModel):
    """How callers reach SageMaker Runtime without leaving their zone."""

    interface_endpoint_id: Annotated[str, Limited(INTERFACE_ENDPOINT_ID)] | None = optional(
        "The existing VPC's interface endpoint for SageMaker Runtime; a VPC takes one with "
        "private DNS. Default: a new one.",
        example="vpce-0123456789abcdef0",
    )
    security_group_id: Annotated[str, Limited(SECURITY_GROUP_ID)] | None = optional(
        "The security group of that interface endpoint.", example="sg-0123456789abcdef0"
    )
    allow_cidrs: tuple[Cidr, ...] | None = optional(
        "Ranges of addresses whose callers are let in. Default: the VPC's own range.",
        example=["10.0.0.0/16"],
        strict=False,
    )
    hosted_zone_vpc_ids: tuple[VpcId, ...] = optional(
        "Peered or transit VPCs with callers: they get a private hosted zone for the "
        "runtime's name. Default: none.",
        example=["vpc-0fedcba9876543210"],
        default=(),
        strict=False,
    )
    fips: bool = optional("Use SageMaker Runtime's FIPS endpoint. Default: false.", default=False)
    private_dns: bool | None = optional(
        "Whether the interface endpoint takes over SageMaker Runtime's own name for the whole "
        "VPC; if false, callers use the zonal URLs. Default: true, with a warning in an existing "
        "VPC unless it is stated."
    )
    bidirectional_streaming: bool = optional(
        "Let in port 8443, and allow every invoke action, because AWS names none for bidirectional "
        "streaming. Default: false.",
        default=False,
    )
    endpoint_policy: bool | None = optional(
        "Let the interface endpoint pass nothing but this account's invocations. Default: true, "
        "except with fips, which takes no such policy."
    )
    narrow_policy: bool | None = optional(
        "Let that policy pass invocations of this stack's endpoints only. Default: true in a new "
        "VPC, false in an existing one, which may have other callers."
    )
    openai: bool = optional(
        "Let a narrow policy pass the bearer tokens of the OpenAI-compatible path. Default: false.",
        default=False,
    )
    sagemaker_api: bool = optional(
        "Add an interface endpoint for the SageMaker API, for callers "
        "that also describe or update endpoints. Default: false.",
        default=False,
    )

    @property
    def takes_the_name(self) -> bool:
        """Whether a new interface endpoint answers the runtime's own name in the whole VPC."""
        return self.interface_endpoint_id is None and self.private_dns is not False

    def names_what_it_serves(self, *, own_vpc: bool) -> bool:
        """Whether the policy of the interface endpoint is narrow; one that exists stays as it is."""
        if self.interface_endpoint_id:
            return False
        polices = not self.fips if self.endpoint_policy is None else self.endpoint_policy
        return polices and (own_vpc if self.narrow_policy is None else self.narrow_policy)

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """An adopted interface endpoint comes with its security group, and as it is."""
        yield from needs(
            given,
            "interface_endpoint_id",
            "security_group_id",
            "callers are let in through the security group of the interface endpoint",
        )
        if given.get("allow_cidrs") in ([], ()):
            yield finding(
                AT_LEAST_ONE,
                "allow_cidrs",
                got="none",
                allowed="one or several ranges of addresses",
                what="an empty list would let in the whole VPC, as none does",
                fix="Add a range, or leave allow_cidrs out to let in the whole VPC.",
            )
        yield from needs(
            given,
            "security_group_id",
            "interface_endpoint_id",
            "the security group belongs to an interface endpoint that exists",
        )
        if given.get("fips") is True and given.get("endpoint_policy") is True:
            yield finding(
                FIPS_WITH_POLICY,
                "endpoint_policy",
                got="endpoint_policy with fips",
                allowed="endpoint_policy: false",
                fix="Leave endpoint_policy out, and limit the callers' IAM policies.",
            )
        if "narrow_policy" in given and (
            given.get("endpoint_policy") is False or given.get("fips") is True
        ):
            yield finding(
                NARROW_WITHOUT_POLICY,
                "narrow_policy",
                got="narrow_policy with fips or endpoint_policy: false",
                allowed="narrow_policy with an endpoint policy",
                fix="Leave narrow_policy out.",
            )
        if given.get("sagemaker_api") is True and given.get("private_dns") is False:
            yield finding(
                API_NEEDS_PRIVATE_DNS,
                "sagemaker_api",
                got="sagemaker_api with private_dns: false",
                allowed="one of them",
                fix="Leave sagemaker_api or private_dns out.",
            )
        asked = [
            name
            for name in (
                "fips",
                "sagemaker_api",
                "hosted_zone_vpc_ids",
                "endpoint_policy",
                "narrow_policy",
                "openai",
            )
            if given.get(name)
        ] + ["private_dns"] * ("private_dns" in given)
        yield from excludes(
            given,
            "interface_endpoint_id",
            asked,
            "an existing interface endpoint is used as it is, and its VPC too",
        )
