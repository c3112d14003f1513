"""The Availability Zones in which the callers run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..plan.argument_kinds import checked_arguments
from ..plan.limits import CLIENT_ZONE_COUNT, ZONE_ID, ZONE_NAME
from ..plan.rules import ZONE_NAMED_TWICE, ZONE_WITHOUT_SUBNET, ZONES_UNKNOWN_AT_SYNTH
from ..plan.zones import is_stand_in
from ..synthesis.validation import is_token
from .vpc_zones import zone_name_of

if TYPE_CHECKING:
    from aws_cdk import aws_ec2 as ec2

_NAME_THEM = 'Name the zones: ClientZones.of_names("us-east-1a", "us-east-1b"). ' + (
    "CDK knows those of a VPC only where its stack has account and region, where it is looked up, "
    "or where an import states them."
)


@checked_arguments
@dataclass(frozen=True, slots=True)
class ClientZones:
    """Zones by ID or by name: :meth:`of_ids`, :meth:`of_names`, or :meth:`of_vpc`.

    IDs are preferred: ``use1-az4`` is the same physical zone in every account, while each
    account shuffles what ``us-east-1a`` stands for, so callers in another account can be matched
    by ID only.

    Raises
    ------
    ConfigurationError
        LLE101 or LLE102 for a malformed zone, LLE103 for fewer than two or more than sixteen
        (SageMaker hosting in a VPC needs subnets in two zones), LLE107 for a zone named twice.

    Examples
    --------
    >>> ClientZones.of_ids("use1-az1", "use1-az2").zones
    ('use1-az1', 'use1-az2')
    """

    kind: Literal["id", "name"]
    zones: tuple[str, ...]

    @classmethod
    def of_ids(cls, *zones: str) -> ClientZones:
        """Zones by ID, such as ``use1-az4``."""
        return cls("id", zones)

    @classmethod
    def of_names(cls, *zones: str) -> ClientZones:
        """Zones by name, such as ``us-east-1a``, as this account knows them.

        What CDK puts in their place until the CLI has looked them up (``dummy1a``) passes.
        """
        return cls("name", zones)

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
            )
        if None in found or any(map(is_token, zones)):
            raise ZONES_UNKNOWN_AT_SYNTH.error(
                what="the VPC's zones are not known at synth",
                got="subnets whose zones are tokens, or not stated",
                allowed="a VPC whose zones are known by name",
                where=where,
                fix=_NAME_THEM,
            )
        return cls("name", tuple(zones))

    def __post_init__(self) -> None:
        form = ZONE_ID if self.kind == "id" else ZONE_NAME
        for zone in self.zones:
            if self.kind == "name" and is_stand_in(zone):
                continue
            if is_token(zone):
                raise form.rule.error(
                    what="the zones are not known at synth",
                    got="a token",
                    allowed=form.allowed,
                    where="ClientZones",
                    fix=_NAME_THEM,
                )
            form.check(zone)
        CLIENT_ZONE_COUNT.check(len(self.zones))
        for zone in self.zones:
            if self.zones.count(zone) > 1:
                raise ZONE_NAMED_TWICE.error(got=zone, allowed="zones that differ")
