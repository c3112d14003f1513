"""How a network reaches S3: the gateway endpoint's policy, the rules of security groups, and a
warning where there is no way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jsii
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IValidation

from ..facts.limits import S3_POLICY_BUCKETS
from ..synthesis.annotations import warn
from ..synthesis.construct_tree import path_of, stack_of
from ..synthesis.rights import allow, document
from ..synthesis.template_values import is_token, known_at_synth, pseudo_parameters
from .vpc_endpoints import FormerNames, service_name_of, stands_in

# What may be done to what is named; the names of each, and the former ones, are a list.
_KINDS = {
    "Read": ("s3:GetObject",),
    "List": ("s3:ListBucket",),
    "Put": ("s3:PutObject",),
    "Change": ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"),
}


class S3GatewayPolicy:
    """Image layers, the account's buckets unless it is narrow, and what is named, whosever it is."""

    # Nothing else: a container with credentials of its own, brought along in a model archive, could
    # write to anybody's bucket otherwise. Of a bucket that is read from, all may be read: which
    # objects is the roles' matter, and the next version of a model lies beside this one. What an
    # update names no more is let through until the next one (FormerNames).

    def __init__(self, owner: Construct, endpoint: ec2.CfnVPCEndpoint, *, narrow: bool) -> None:
        self._owner, self._endpoint, self._narrow = owner, endpoint, narrow
        self._named: dict[str, list[str]] = {kind: [] for kind in _KINDS}
        self._former = FormerNames(owner, "FormerS3", kinds=list(_KINDS))
        self._write()

    def let(self, statements: Iterable[Mapping[str, Any]]) -> None:
        """Let through what these statements of a role allow in S3."""
        # A bucket of which the app knows an attribute only (it is made in the app, so it is the
        # account's) cannot be named: its stack may need the network's. So all of the account's are
        # let through.
        for statement in statements:
            actions, resources = tuple(statement["Action"]), _resources(statement)
            if not actions[0].startswith("s3:"):
                continue
            if not known_at_synth(resources):
                self.let_account("a bucket is known at deployment only")
                continue
            kind = next(kind for kind, allowed in _KINDS.items() if allowed == actions)
            for resource in resources:
                named = f"{_bucket(resource)}/*" if kind == "Read" else resource
                if named not in self._named[kind]:
                    self._named[kind].append(named)
        self._write()

    def let_account(self, reason: str) -> None:
        """Let all buckets of the account through, where a narrow policy would stand in the way."""
        if self._narrow:
            warn(
                self._owner,
                "s3PolicyOfTheAccount",
                "The S3 gateway endpoint's policy was to name buckets, but lets all buckets of "
                f"the account through, because {reason}: give the names as text.",
            )
        self._narrow = False
        self._write()

    def _write(self) -> None:
        statements = [allow(["s3:GetObject"], _image_layers(), principal="*")]
        if not self._narrow:
            # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
            statements.append(
                allow(
                    ["s3:*"],
                    "*",
                    principal="*",
                    condition={"StringEquals": {"aws:ResourceAccount": pseudo_parameters()[2]}},
                )
            )
        buckets = {_bucket(each) for named in self._named.values() for each in named}
        S3_POLICY_BUCKETS.check(len(buckets), path_of(self._owner))
        statements += [
            allow(_KINDS[kind], named, principal="*")
            for kind, named in self._named.items()
            if named
        ]
        former = [
            allow(_KINDS[kind], names, principal="*") for kind, names in self._former.names.items()
        ]
        self._former.now({kind: named or [_nothing()] for kind, named in self._named.items()})
        self._endpoint.policy_document = document(*statements, *former)


def _image_layers() -> str:
    """Where ECR keeps images' layers, which load-test tasks read by presigned URL."""
    # "Minimum Amazon S3 Bucket Permissions for Amazon ECR",
    # https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
    partition, region, _ = pseudo_parameters()
    return f"arn:{partition}:s3:::prod-{region}-starport-layer-bucket/*"


def _nothing() -> str:
    """The ARN of no object: names of buckets have three characters at least."""
    return f"arn:{pseudo_parameters()[0]}:s3:::-/-"


def _resources(statement: Mapping[str, Any]) -> list[str]:
    resources = statement["Resource"]
    return [resources] if isinstance(resources, str) else list(resources)


def _bucket(resource: str) -> str:
    return resource.partition("/")[0]


def let_out_to_s3(
    group: ec2.SecurityGroup, listed: ec2.IPrefixList | None, description: str
) -> None:
    """Let members reach S3 by HTTPS; CloudFormation has no attribute for its prefix list."""
    if listed is None:
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), description)
        return
    # A rule towards a prefix list is a resource of its own. EC2 gives a group that is created
    # without any rule one that allows everything; the CDK would take its own stand-in away.
    group.add_egress_rule(
        ec2.Peer.ipv4("255.255.255.255/32"), ec2.Port.tcp(443), "Nobody: in place of everybody"
    )
    group.add_egress_rule(
        ec2.Peer.prefix_list(listed.prefix_list_id), ec2.Port.tcp(443), description
    )


def reads_from_s3(statements: Iterable[Mapping[str, Any]]) -> bool:
    """Whether these statements of a role let it read objects."""
    return any("s3:GetObject" in statement["Action"] for statement in statements)


def expect_way_to_s3(network: Construct, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> None:
    """Warn at synthesis where subnets of a VPC of this app lead neither to NAT nor to S3."""
    if isinstance(vpc, ec2.Vpc):
        network.node.add_validation(_WayToS3(network, vpc, subnets))


@jsii.implements(IValidation)
class _WayToS3:
    def __init__(self, network: Construct, vpc: ec2.Vpc, subnets: Sequence[ec2.ISubnet]) -> None:
        self._network, self._vpc, self._subnets = network, vpc, subnets

    def validate(self) -> list[str]:
        """Warn where there is no way; there is never a complaint."""
        without = _route_tables(self._vpc, self._subnets)
        for scope in (self._vpc, self._network.node.root):  # most ways stand below the VPC
            for construct in scope.node.find_all():
                led = _tables_that_reach_s3(construct, self._vpc, without)
                without = {table: path for table, path in without.items() if table not in led}
                if not without:
                    return []
        warn(
            self._network,
            "noWayToS3",
            f"{', '.join(without.values())} have no default route (NAT gateway) and no S3 gateway "
            "endpoint in this app, and what the model reads lies in S3. AWS documents that with "
            "network_isolation SageMaker downloads the model's data through the VPC: then the "
            "endpoint cannot come into service. Without it SageMaker downloads model data beside "
            "the VPC, but what a container reads from S3 by itself (s3:// URIs in its environment) "
            "is out of its reach. Images that SageMaker pulls need nothing. Add "
            'vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3), which '
            "costs nothing, or take other subnets with subnet_selection. Neither was seen on AWS.",
        )
        return []


def _route_tables(vpc: ec2.Vpc, subnets: Sequence[ec2.ISubnet]) -> dict[str, str]:
    """Route table -> a subnet's path, for the subnets that the app made."""
    made_in_app = {subnet.node.path for subnet in [*vpc.isolated_subnets, *vpc.private_subnets]}
    return {
        subnet.route_table.route_table_id: subnet.node.path
        for subnet in subnets
        if subnet.node.path in made_in_app
    }


def _tables_that_reach_s3(construct: Any, vpc: ec2.Vpc, tables: Mapping[str, str]) -> set[str]:
    """The route tables that a construct gives a way to S3; those that cannot be told, too."""
    if isinstance(construct, ec2.CfnRoute):
        everywhere = construct.destination_cidr_block == "0.0.0.0/0" or is_token(
            construct.destination_cidr_block
        )
        leads = everywhere or construct.destination_prefix_list_id is not None
        return _tables_named(construct, [construct.route_table_id], tables) if leads else set()
    if not (
        isinstance(construct, ec2.CfnVPCEndpoint)
        and service_name_of(construct).endswith(".s3")
        and stands_in(construct, vpc.vpc_id, stack_of(vpc))
    ):
        return set()
    if construct.vpc_endpoint_type != "Gateway":  # an interface endpoint, with DNS of its own
        return set(tables)
    return _tables_named(construct, construct.route_table_ids or [], tables)


def _tables_named(
    construct: Construct, table_ids: Sequence[str], tables: Mapping[str, str]
) -> set[str]:
    stack = stack_of(construct)
    named = stack.resolve(list(table_ids))
    if not isinstance(named, list):  # a list that is a token
        return set(tables)
    return {table for table in tables if stack.resolve(table) in named}
