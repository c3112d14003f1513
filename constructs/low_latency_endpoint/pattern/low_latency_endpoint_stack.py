"""The deployable stack: what a settings file says, as constructs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from aws_cdk import Annotations, Environment, Stack, Stage, Tags, Token
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns
from constructs import Construct

from ..facts.rules import LOOKUP_NEEDS_ENVIRONMENT, SUBNET_NOT_IN_VPC
from ..network.private_link import RuntimePrivateLink
from ..network.subnets import is_pending
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..options.rules import VPC_NOT_LOOKED_UP
from ..synthesis.construct_tree import kept, root_of
from ..synthesis.stack_limits import synthesised
from .low_latency_endpoint import LowLatencyEndpoint

if TYPE_CHECKING:
    from aws_cdk.cx_api import CloudAssembly

    from ..settings import Settings  # loads YAML, for those who have settings


_CDK_ERROR = "aws:cdk:error"


@checked_arguments
class LowLatencyEndpointStack(Stack):
    """One network, one PrivateLink, and the endpoints of a settings file that share them.

    All of them stand in one stack, so that a second endpoint moves nothing of the first one's.

    Attributes
    ----------
    settings : Settings
    network : ZoneAlignedNetwork
    private_link : RuntimePrivateLink
    endpoints : dict of str to LowLatencyEndpoint
        By their keys in the settings file.

    Examples
    --------
    An app's ``app.py``, beside an ``endpoint.yaml``:

    >>> from aws_cdk import App
    >>> from low_latency_endpoint import LowLatencyEndpointStack
    >>> app = App()
    >>> serving = LowLatencyEndpointStack.from_settings(app, "endpoint.yaml")
    >>> serving.stack_name, list(serving.endpoints)
    ('LowLatencyEndpoint', ['sentiment'])
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings, **kwargs: Any) -> None:
        """One network, one PrivateLink, and the endpoints of a settings file that share them.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            settings: What ``load_settings`` returned.
            **kwargs: Further arguments of a CDK stack, such as ``env``.

        Raises:
            ConfigurationError: LLE801 and LLE807 for arguments of another kind, and what
                the constructs refuse.
        """
        super().__init__(
            scope,
            id,
            description="Low-latency SageMaker endpoints in their callers' zones",
            **kwargs,
        )
        from ..settings import planned_variants
        from .endpoint_arguments import endpoint_arguments

        self.settings = settings
        settings.safeguards.apply_to(self)
        self.network = self._network(settings)
        self.private_link = self._private_link(settings)
        self.endpoints: dict[str, LowLatencyEndpoint] = {}
        actions = (
            [
                cloudwatch_actions.SnsAction(
                    sns.Topic.from_topic_arn(self, "AlarmTopic", settings.alarm_topic_arn)
                )
            ]
            if settings.alarm_topic_arn
            else []
        )
        for key, endpoint in settings.endpoints.items():
            low_latency_endpoint = LowLatencyEndpoint(
                self,
                key,
                network=self.network,
                private_link=self.private_link,
                **endpoint_arguments(
                    self, key, endpoint, list(planned_variants(settings, key)), actions
                ),
            )
            low_latency_endpoint.output_settings_for_callers()
            if settings.parameters:
                low_latency_endpoint.publish_parameters(prefix=f"{settings.parameters}/{key}")
            self.endpoints[key] = low_latency_endpoint
            for name, value in endpoint.tags.items():
                Tags.of(low_latency_endpoint).add(name, value)
        for name, value in settings.tags.items():
            Tags.of(self).add(name, value)

    @classmethod
    def from_settings(
        cls,
        scope: Construct,
        path_or_settings: str | Path | Settings = "endpoint.yaml",
        id: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make the stack of a settings file.

        Args:
            scope: An app, or a stage: ``cdk deploy "Production/*"`` then deploys the stage's.
            path_or_settings: The file, or what ``load_settings`` returned; by default ``endpoint.yaml`` in the working directory, which for the CDK CLI is the folder of ``cdk.json``.
            id: By default the settings' ``stack_name``.
            **kwargs: Further arguments of a CDK stack. ``env`` by default is what the settings state; what they leave open is the stage's, else that of the credentials and region of the CDK CLI.

        Raises:
            SettingsError: With all mistakes of the file, each with its line.
            ConfigurationError: As the constructor.
        """
        from ..settings import Settings, load_settings

        settings = (
            path_or_settings
            if isinstance(path_or_settings, Settings)
            else load_settings(path_or_settings)
        )
        kwargs.setdefault("env", _environment(scope, settings))
        return cls(scope, id or settings.stack_name, settings=settings, **kwargs)

    def synth(self) -> CloudAssembly:
        """Synthesise the whole app; an error of a stack's limits is a ConfigurationError.

        ``app.synth()`` refuses the same stacks with the same text, as a RuntimeError of the CDK.

        Raises:
            ConfigurationError: LLE217, LLE378, LLE384, LLE385 and LLE736 for more than AWS takes of
                one stack.
        """
        return synthesised(root_of(self))

    def _network(self, settings: Settings) -> ZoneAlignedNetwork:
        from ..settings import fleet_with_addresses

        zones, network = settings.client_zones, settings.network
        listed = (
            ec2.PrefixList.from_prefix_list_id(self, "S3PrefixList", network.s3_prefix_list)
            if network.s3_prefix_list
            else None
        )
        if network.vpc_id:
            vpc = looked_up_vpc(self, network.vpc_id)
            return ZoneAlignedNetwork.in_vpc(
                self,
                "Network",
                vpc=vpc,
                client_zones=zones,
                subnets=subnets_by_zone(self, vpc, network.subnets) if network.subnets else None,
                s3_prefix_list=listed,
                owner=network.owner,
            )
        new_network = ZoneAlignedNetwork(
            self,
            "Network",
            client_zones=zones,
            cidr=network.cidr,
            flow_logs=ec2.FlowLogTrafficType[network.flow_log.upper()]
            if network.flow_log
            else None,
            max_instances=fleet_with_addresses(settings),
            subnet_prefix_length=network.subnet_prefix_length,
            s3_prefix_list=listed,
            narrow_s3=network.narrow_s3,
        )
        for bucket in network.s3_buckets:
            new_network.allow_s3(bucket)
        return new_network

    def _private_link(self, settings: Settings) -> RuntimePrivateLink:
        options = settings.private_link
        if options.interface_endpoint_id and options.security_group_id:
            group = ec2.SecurityGroup.from_security_group_id(
                self, "EndpointSecurityGroup", options.security_group_id
            )
            link = RuntimePrivateLink.from_interface_endpoint(
                self,
                "PrivateLink",
                network=self.network,
                interface_endpoint=(
                    ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
                        self,
                        "InterfaceEndpoint",
                        port=443,
                        security_groups=[group],
                        vpc_endpoint_id=options.interface_endpoint_id,
                    )
                ),
                bidirectional_streaming=options.bidirectional_streaming,
            )
        else:
            link = RuntimePrivateLink(
                self,
                "PrivateLink",
                network=self.network,
                fips=options.fips,
                private_dns=options.private_dns,
                bidirectional_streaming=options.bidirectional_streaming,
                openai=options.openai,
                sagemaker_api=options.sagemaker_api,
                endpoint_policy=options.endpoint_policy,
                narrow_policy=options.narrow_policy,
                hosted_zone_vpcs=[
                    looked_up_vpc(self, vpc_id) for vpc_id in options.hosted_zone_vpc_ids
                ],
            )
        ranges = options.allow_cidrs or (self.network.vpc_cidr,)
        for cidr in () if self.network.owner else ranges:
            link.allow_from(ec2.Peer.ipv4(str(cidr)))
        return link


def _environment(scope: Construct, settings: Settings) -> Environment:
    stage = scope if isinstance(scope, Stage) else Stage.of(scope)  # of a stage: its parent
    return Environment(
        account=settings.account
        or (stage and stage.account)
        or os.environ.get("CDK_DEFAULT_ACCOUNT"),
        region=settings.region or (stage and stage.region) or os.environ.get("CDK_DEFAULT_REGION"),
    )


def looked_up_vpc(stack: Stack, vpc_id: str) -> ec2.IVpc:
    """The VPC, with its subnets and their zones' names; the CLI looks it up once.

    Where the CLI could not, CDK's stand-in for it, and an error that keeps the stack from being
    deployed; other stacks of the app can be.
    """
    if Token.is_unresolved(stack.account) or Token.is_unresolved(stack.region):
        raise LOOKUP_NEEDS_ENVIRONMENT.error(
            got="no account or no region", allowed="both", where=vpc_id
        )
    attempt = Construct(stack, f"Lookup-{vpc_id}")
    vpc = ec2.Vpc.from_lookup(attempt, "Vpc", vpc_id=vpc_id)
    failures = [str(entry.data) for entry in attempt.node.metadata if entry.type == _CDK_ERROR]
    stack.node.try_remove_child(attempt.node.id)  # with CDK's error, which names no remedy
    if not failures:
        return ec2.Vpc.from_lookup(stack, f"Vpc-{vpc_id}", vpc_id=vpc_id)
    reported: list[str] = kept(stack, "failed_lookups", list)
    if not reported:  # the remedy is one for all VPCs of the stack
        error = VPC_NOT_LOOKED_UP.error(
            got=failures[0], allowed="an answer, in cdk.context.json", where=vpc_id
        )
        Annotations.of(stack).add_error(str(error))
    reported.append(vpc_id)
    return vpc


def subnets_by_zone(
    stack: Stack, vpc: ec2.IVpc, subnet_ids: Mapping[str, str]
) -> dict[str, ec2.ISubnet]:
    """The VPC's subnet for each zone, with its zone's name as the lookup found it."""
    known = {
        subnet.subnet_id: subnet
        for subnet in [*vpc.isolated_subnets, *vpc.private_subnets, *vpc.public_subnets]
    }
    by_zone: dict[str, ec2.ISubnet] = {}
    for zone, subnet_id in subnet_ids.items():
        if subnet_id in known:
            by_zone[zone] = known[subnet_id]
        elif is_pending(vpc):  # the CLI runs the app again with the VPC's real subnets
            by_zone[zone] = ec2.Subnet.from_subnet_attributes(
                stack,
                f"Subnet-{zone}",
                subnet_id=subnet_id,
                availability_zone="dummy1a",
                route_table_id="rtb-12345",  # CDK warns of a subnet without one
            )
        else:
            raise SUBNET_NOT_IN_VPC.error(
                got=subnet_id, allowed=", ".join(sorted(known)), where=f"network.subnets.{zone}"
            )
    return by_zone
