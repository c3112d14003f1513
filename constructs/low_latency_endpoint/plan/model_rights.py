"""What a model's role must be allowed: hosting, its image and data, what it writes, and KMS keys.

The actions are named one by one. CDK's own ``grant_*`` methods add wildcards, and a policy beside
the model's that nothing waits for. The constructs name partition, Region and account by tokens, the
plan by what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .iam_statements import allow

_WRITE_WITH_KEY = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")
"""GenerateDataKey for each object, Decrypt for those of several parts
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html), and Encrypt, which
SageMaker asks of its roles
(https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ProductionVariantCoreDumpConfig.html)."""


_INTERFACES = "network-interface/*"


class Own(NamedTuple):
    """The stack's partition, Region and account."""

    partition: str
    region: str
    account: str

    def arn(self, service: str, resource: str) -> str:
        """ARN of a resource of the stack's own."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def hosting(own: Own) -> list[dict[str, Any]]:
    """What hosting needs in a VPC, whatever the version of the model.

    Source: SageMaker developer guide, "SageMaker AI Roles", CreateModel and VPC permissions. The
    log groups are all endpoints': an endpoint's is named after it, and a model does not know its
    endpoints, of which there may be several.
    """
    return [
        allow(
            [
                "logs:CreateLogGroup",
                "logs:CreateLogStream",
                "logs:DescribeLogStreams",
                "logs:PutLogEvents",
            ],
            own.arn("logs", "log-group:/aws/sagemaker/Endpoints/*"),
        ),
        # Takes back who may attach an interface. IAM lists the interface as optional for it, so
        # that a condition on the interface's VPC may find no VPC.
        allow(["ec2:DeleteNetworkInterfacePermission"], own.arn("ec2", _INTERFACES)),
        allow(
            [
                "cloudwatch:DescribeAlarms",
                "ec2:DescribeDhcpOptions",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeVpcEndpoints",
                "ec2:DescribeVpcs",
                "ecr:GetAuthorizationToken",
            ],
            "*",
        ),
        allow(
            ["cloudwatch:PutMetricData"],
            "*",
            condition={"StringLike": {"cloudwatch:namespace": "/aws/sagemaker/*"}},
        ),
    ]


def making_interfaces(
    own: Own, vpc_id: str, subnet_ids: Sequence[str], group_ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Make network interfaces in these subnets with these groups, hand over and delete those of
    this VPC; same source.

    That both actions know the interface's VPC is in
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html. Its
    owner may be another account, which shares it. To whom interfaces are handed over
    (``ec2:AuthorizedService``) SageMaker does not document.
    """
    vpc = f"arn:{own.partition}:ec2:{own.region}:*:vpc/{vpc_id}"
    return [
        allow(
            ["ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface"],
            own.arn("ec2", _INTERFACES),
            condition={"ArnLike": {"ec2:Vpc": vpc}},
        ),
        allow(
            ["ec2:CreateNetworkInterface"],
            [
                own.arn("ec2", _INTERFACES),
                *(own.arn("ec2", f"subnet/{subnet_id}") for subnet_id in subnet_ids),
                *(own.arn("ec2", f"security-group/{group_id}") for group_id in group_ids),
            ],
        ),
    ]


def reading(bucket: str, key: str) -> list[dict[str, Any]]:
    """Read one object, or with a key that is empty or ends with a slash all below it."""
    if key and not key.endswith("/"):
        return [allow(["s3:GetObject"], f"{bucket}/{key}")]
    return [
        allow(["s3:GetObject"], f"{bucket}/{key}*"),
        allow(["s3:ListBucket"], bucket, condition={"StringLike": {"s3:prefix": f"{key}*"}}),
    ]


def pulling(repository_arn: str) -> list[dict[str, Any]]:
    """Pull an image from a repository of ECR."""
    return [
        allow(
            ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            repository_arn,
        )
    ]


def by_service(statements: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The statements for each AWS service: an image may be several models', data seldom are."""
    services: dict[str, list[Mapping[str, Any]]] = {}
    for statement in statements:
        services.setdefault(statement["Action"][0].partition(":")[0], []).append(statement)
    return list(services.values())


def decrypting(key_arn: str) -> dict[str, Any]:
    """Read what a key has encrypted.

    See https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html
    """
    return allow(["kms:Decrypt"], key_arn)


def writing_with(key_arn: str) -> dict[str, Any]:
    """Write objects that a key encrypts."""
    return allow(_WRITE_WITH_KEY, key_arn)


def encrypting_volumes(key_arn: str) -> list[dict[str, Any]]:
    """Have the instances' volumes encrypted: the role hands the key's use on to them by a grant.

    See https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, and what
    ``VolumeKmsKeyId`` of
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_RecommendationJobInputConfig.html
    asks of the role for SageMaker hosting.
    """
    return [
        allow(["kms:DescribeKey"], key_arn),
        allow(
            ["kms:CreateGrant"], key_arn, condition={"Bool": {"kms:GrantIsForAWSResource": "true"}}
        ),
    ]
