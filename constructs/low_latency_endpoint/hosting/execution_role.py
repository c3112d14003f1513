"""The role of what SageMaker hosts in the network's subnets; on delete it stays until SageMaker's
network interfaces have gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jsii
from aws_cdk import Aws, CustomResource, Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from ..facts.limits import MODEL_SECURITY_GROUPS
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..synthesis.annotations import acknowledge_wildcard_resources, warn
from ..synthesis.arns import written_objects
from ..synthesis.construct_tree import TreePart, path_of, stack_of
from ..synthesis.lambda_functions import shared_function
from ..synthesis.policy_documents import for_hosting
from ..synthesis.rights import (
    Own,
    allow,
    by_service,
    calling_function,
    encrypting_volumes,
    hosting,
    hosting_on_stated_role,
    looking_at_interfaces,
    looking_at_stack,
    making_interfaces,
    writing_with,
)
from ..synthesis.role_rights import RightsBefore, RoleRights
from ..synthesis.safeguards import safeguards_of
from ..synthesis.template_values import pseudo_parameters
from .model_interface import IModel

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms


_LONGEST_RUN = 900
"""Seconds, the most by Lambda's guide
(https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html); its API model in botocore
1.44.8 says 1,800. For its hour the function invokes itself four times; Lambda stops a chain after
about sixteen invocations
(https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html)."""
_LONGEST_WAIT = 3600
"""Seconds; the most that CloudFormation takes for a custom resource."""


class _DrainedInterfaces(TreePart):
    """Deleted between a model and what its network interfaces need: waits until they have gone."""

    # They outlive endpoint and model by minutes
    # (https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1327). Meanwhile
    # EC2 refuses to delete their groups and subnets, and SageMaker may need the role's rights.
    # Whose an interface is cannot be told. Where the groups go along with the whole stack, so do
    # all of its models: the function waits for the interfaces to the end, 57 minutes, and then
    # fails. Otherwise (an update, a group of another stack) others may stay in the groups: it waits
    # 20 minutes at most.

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        security_groups: Sequence[ec2.ISecurityGroup],
        subnets: Sequence[ec2.ISubnet],
        needed: Sequence[IDependable],
    ) -> None:
        super().__init__(scope, id)
        stack = stack_of(self)
        function = shared_function(
            self,
            "LowLatencyEndpointDrain",
            "wait_for_interfaces",
            description="Waits on delete until SageMaker's network interfaces have gone",
            statements=[looking_at_interfaces(), looking_at_stack(Aws.STACK_ID)],
            wildcards="ec2:DescribeNetworkInterfaces takes no resource.",
            timeout_seconds=_LONGEST_RUN,
        )
        # Beside the role: one that names the function which has the role would be a circle.
        may_invoke_itself = function.role.also(
            "InvokesItself", calling_function(function.arn), fixed=True
        )
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::DrainedInterfaces",
            service_token=function.arn,
            service_timeout=Duration.seconds(_LONGEST_WAIT),
            properties={
                "GroupIds": [group.security_group_id for group in security_groups],
                "OwnGroupIds": [
                    group.security_group_id
                    for group in security_groups
                    if isinstance(group.node.default_child, ec2.CfnSecurityGroup)
                    and path_of(stack_of(group)) == path_of(stack)
                ],
            },
        )
        # Of subnets only the subnet: what else is below them is none of the interfaces' matter.
        places = [subnet.node.default_child for subnet in subnets]
        resource.node.add_dependency(may_invoke_itself, *needed, *filter(None, places))


class Groups(NamedTuple):
    """Security groups and subnets of what is hosted, and their IDs."""

    groups: Sequence[ec2.ISecurityGroup]
    group_ids: list[str]
    subnet_ids: list[str]


def groups_in(
    network: ZoneAlignedNetwork, stated: Sequence[ec2.ISecurityGroup] | None, where: str
) -> Groups:
    """The groups that are stated, by default the network's; in all of the network's subnets."""
    groups = list(stated) if stated is not None else [network.model_security_group]
    MODEL_SECURITY_GROUPS.check(len(groups), where)
    return Groups(groups, [group.security_group_id for group in groups], network.subnet_ids)


@checked_arguments
@jsii.implements(iam.IGrantable, ec2.IConnectable)
class HostedInNetwork(IModel):
    """What has an execution role, and security groups in the network's subnets."""

    role: iam.IRole
    network: ZoneAlignedNetwork

    def _host(
        self,
        network: ZoneAlignedNetwork,
        placed: Groups,
        role: iam.IRole | None,
        statements: Sequence[Mapping[str, Any]],
        endpoint_names: Sequence[str] = (),
    ) -> None:
        """Take a role that may make network interfaces in these subnets, and what else is stated.

        With names of endpoints it writes no other endpoint's logs.
        """
        # A policy's name follows its content: an update adds the new version's and takes the old
        # one's away after the endpoint has changed. All that SageMaker asks for is in ``_needed``.
        # With the role of a ComponentHost nothing waits for interfaces: they are the host's.
        self.network = network
        self.role = role or iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com", conditions=for_hosting()),
        )
        self._connections = ec2.Connections(security_groups=placed.groups)
        self._rights = RoleRights(self, self.role) if role is None else RoleRights.given(self, role)
        own = Own(*pseudo_parameters())
        interfaces = making_interfaces(
            own, network.vpc_id, placed.subnet_ids, placed.group_ids, network.owner
        )
        self._needed: list[IDependable] = (
            [
                self._allowed("Hosting", hosting(own, endpoint_names), fixed=not endpoint_names),
                self._allowed("Version", [*interfaces, *statements]),
            ]
            if role is None
            else [
                *(
                    self._allowed("Hosting", part)
                    for part in hosting_on_stated_role(own, endpoint_names)
                ),
                self._allowed("Interfaces", interfaces),
                *(self._allowed("Version", part) for part in by_service(statements)),
                role,
                RightsBefore.of(self, role),
            ]
        )
        self._needed += network.data_path
        self._waiting: list[Construct] = []
        of_host = (
            role is not None and getattr(role.node.scope, "shape", "") == "inference-component"
        )
        if safeguards_of(self).wait_for_interfaces and not of_host:
            drained = _DrainedInterfaces(
                self,
                "Drained",
                security_groups=placed.groups,
                subnets=() if network.own_vpc else network.subnets,  # what it needs is data_path
                needed=[self.role, *self._needed],
            )
            self._needed.append(drained)

    def _before(self, hosted: Construct) -> None:
        """Have all of it there before this is made, also what is granted later."""
        hosted.node.add_dependency(*self._needed)
        self._waiting.append(hosted)

    @property
    @jsii.member(jsii_name="grantPrincipal")
    def grant_principal(self) -> iam.IPrincipal:
        """The role: pass the model to any ``grant_*`` method."""
        return self.role

    @property
    @jsii.member(jsii_name="connections")
    def connections(self) -> ec2.Connections:
        """The security groups: pass the model to any ``allow_*`` method."""
        return self._connections

    def grant_write(self, s3_uri: str, key: kms.IKey | None = None) -> list[IDependable]:
        """Let the role write objects under an S3 URI: captured data, core dumps.

        Bucket and prefix may be tokens. For a URI that does not say its bucket, a token as a whole
        or another scheme than ``s3://``, a warning says what to allow. The key's own policy must
        leave the decision to IAM policies of the account, or name the role. What returns is the
        policy: whatever writes has to depend on it.
        """
        resource = written_objects(s3_uri)
        statements = [] if key is None else [writing_with(key.key_arn)]
        if resource is None:
            warn(
                self,
                "writeRights",
                "The bucket that the model writes to is not known at synth. Allow the "
                "model's role s3:PutObject there with bucket.grant_put(model), or give an "
                "s3:// URI that names the bucket.",
            )
        else:
            statements.insert(0, allow(["s3:PutObject"], resource))
            self.network.let_into_s3(statements)
        return self._grant("Writing", statements)

    def grant_volume_key(self, key: kms.IKey) -> list[IDependable]:
        """Let the role hand a key on to the storage volumes of its instances.

        The key's own policy must leave the decision to IAM policies of the account, or name the
        role. What returns is the policy: whatever has volumes has to depend on it.
        """
        return self._grant("Volumes", encrypting_volumes(key.key_arn))

    def _grant(self, kind: str, statements: Sequence[Mapping[str, Any]]) -> list[IDependable]:
        if not statements:
            return []
        policy = self._allowed(kind, statements)
        for hosted in self._waiting:
            hosted.node.add_dependency(policy)
        return [policy]

    def _allowed(
        self, kind: str, statements: Sequence[Mapping[str, Any]], *, fixed: bool = False
    ) -> Construct:
        policy = self._rights.allow(kind, *statements, owner=self, fixed=fixed)
        _acknowledge_wildcards(policy, statements)
        return policy


def _acknowledge_wildcards(policy: Construct, statements: Sequence[Mapping[str, Any]]) -> None:
    wildcards = {
        resource
        for statement in statements
        for resource in (
            [statement["Resource"]]
            if isinstance(statement["Resource"], str)
            else statement["Resource"]
        )
        if resource.endswith("*")
    }
    acknowledge_wildcard_resources(
        policy,
        sorted(wildcards),
        reason="Log streams, network interfaces and model files are named at run time; read-only "
        "calls, PutMetricData (held to SageMaker's namespaces) and "
        "ecr:GetAuthorizationToken take no resource.",
    )
