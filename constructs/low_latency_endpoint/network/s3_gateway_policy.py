"""The way to S3 through a network's gateway endpoint: its policy, and who may take it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..facts.limits import ENDPOINT_POLICY_LENGTH, S3_POLICY_BUCKETS
from ..synthesis.asked_once import path_of, region_of
from ..synthesis.findings import known_at_synth, pseudo_parameters, warn
from ..synthesis.former_names import LONGEST_ANSWER, FormerNames
from ..synthesis.iam_documents import allow, document, least_length

# What may be done to what is named; the names of each, and the former ones, are a list.
_KINDS = {
    "Read": ("s3:GetObject",),
    "List": ("s3:ListBucket",),
    "Put": ("s3:PutObject",),
    "Change": ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"),
}


class S3GatewayPolicy:
    """Image layers, the account's own buckets, and what is named, whosever it is.

    Nothing else: a container with credentials of its own, brought along in a model archive, could
    write to any bucket of anybody's otherwise. A narrow policy has no place for the account's
    other buckets. Of a bucket that is read from, all may be read: which objects is the roles'
    matter, and the next version of a model lies beside this one. What an update names no more is
    let through until the next one (:class:`FormerNames`).

    Parameters
    ----------
    owner : Construct
        The network, for warnings.
    endpoint : aws_ec2.CfnVPCEndpoint
    narrow : bool
    """

    def __init__(self, owner: Construct, endpoint: ec2.CfnVPCEndpoint, *, narrow: bool) -> None:
        self._owner, self._endpoint, self._narrow = owner, endpoint, narrow
        self._named: dict[str, list[str]] = {kind: [] for kind in _KINDS}
        self._former = FormerNames(owner, "FormerS3", kinds=list(_KINDS))
        self._write()

    def let(self, statements: Iterable[Mapping[str, Any]]) -> None:
        """Let through what these statements of a role allow in S3.

        A bucket of which the app knows an attribute only (it is made in the app, so it is the
        account's) cannot be named: its stack may need the network's. The account's buckets are
        let through as a whole, and a narrow policy is narrow no more.
        """
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
        policy = document(*statements, *former)
        length = least_length(policy, region_of(self._owner)) + LONGEST_ANSWER
        ENDPOINT_POLICY_LENGTH.check(length, path_of(self._owner))
        self._former.now({kind: named or [_nothing()] for kind, named in self._named.items()})
        self._endpoint.policy_document = policy


def _image_layers() -> str:
    """Where ECR keeps the layers of images.

    Who pulls one in the VPC (the load-test tasks) reads it by presigned URL: "Minimum Amazon S3
    Bucket Permissions for Amazon ECR",
    https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
    """
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
