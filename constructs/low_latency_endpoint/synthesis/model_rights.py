"""What a model's role must be allowed: hosting, its data, what it writes, and KMS keys.

The actions are named one by one. CDK's own ``key.grant_*`` methods add wildcards, and a policy
beside the model's that nothing waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aws_cdk import Aws

from .iam_documents import allow, arn
from .token_text import masked

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms


_WRITE_WITH_KEY = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")
"""GenerateDataKey for each object, Decrypt for those of several parts
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html), and Encrypt, which
SageMaker asks of its roles
(https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ProductionVariantCoreDumpConfig.html)."""


_INTERFACES = "network-interface/*"


def hosting() -> list[dict[str, Any]]:
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
            arn("logs", "log-group:/aws/sagemaker/Endpoints/*"),
        ),
        # Takes back who may attach an interface. IAM lists the interface as optional for it, so
        # that a condition on the interface's VPC may find no VPC.
        allow(["ec2:DeleteNetworkInterfacePermission"], arn("ec2", _INTERFACES)),
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
    vpc_id: str, subnet_ids: Sequence[str], group_ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Make network interfaces in these subnets with these groups, hand over and delete those of
    this VPC; same source.

    That both actions know the interface's VPC is in
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html. Its
    owner may be another account, which shares it. To whom interfaces are handed over
    (``ec2:AuthorizedService``) SageMaker does not document.
    """
    vpc = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:*:vpc/{vpc_id}"
    return [
        allow(
            ["ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface"],
            arn("ec2", _INTERFACES),
            condition={"ArnLike": {"ec2:Vpc": vpc}},
        ),
        allow(
            ["ec2:CreateNetworkInterface"],
            [
                arn("ec2", _INTERFACES),
                *(arn("ec2", f"subnet/{subnet_id}") for subnet_id in subnet_ids),
                *(arn("ec2", f"security-group/{group_id}") for group_id in group_ids),
            ],
        ),
    ]


def split_s3_uri(uri: str) -> tuple[str, str] | None:
    """Bucket and key of an ``s3://`` URI, either of which may have tokens in it.

    None for another scheme, and for a URI that is known at deployment only.

    Examples
    --------
    >>> split_s3_uri("s3://models/llama/"), split_s3_uri("https://models.s3.amazonaws.com/a")
    (('models', 'llama/'), None)
    """
    text, restored = masked(uri)
    if not text.startswith("s3://"):
        return None
    bucket, _, key = text.removeprefix("s3://").partition("/")
    return restored(bucket), restored(key)


def bucket_arn(name: str) -> str:
    """ARN of a bucket, in whatever account."""
    return f"arn:{Aws.PARTITION}:s3:::{name}"


def written_objects(uri: str) -> str | None:
    """ARN of the objects below a destination; None where the URI does not say its bucket."""
    location = split_s3_uri(uri)
    if location is None:
        return None
    bucket, prefix = location
    return f"{bucket_arn(bucket)}/{prefix.rstrip('/')}{'/' if prefix else ''}*"


def reading(bucket: str, key: str) -> list[dict[str, Any]]:
    """Read one object, or with a key that is empty or ends with a slash all below it."""
    if key and not key.endswith("/"):
        return [allow(["s3:GetObject"], f"{bucket}/{key}")]
    return [
        allow(["s3:GetObject"], f"{bucket}/{key}*"),
        allow(["s3:ListBucket"], bucket, condition={"StringLike": {"s3:prefix": f"{key}*"}}),
    ]


def decrypting(key: kms.IKey) -> dict[str, Any]:
    """Read what a key has encrypted.

    See https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html
    """
    return allow(["kms:Decrypt"], key.key_arn)


def writing_with(key: kms.IKey) -> dict[str, Any]:
    """Write objects that a key encrypts."""
    return allow(_WRITE_WITH_KEY, key.key_arn)


def encrypting_volumes(key: kms.IKey) -> list[dict[str, Any]]:
    """Have the instances' volumes encrypted: the role hands the key's use on to them by a grant.

    See https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, and what
    ``VolumeKmsKeyId`` of
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_RecommendationJobInputConfig.html
    asks of the role for SageMaker hosting.
    """
    return [
        allow(["kms:DescribeKey"], key.key_arn),
        allow(
            ["kms:CreateGrant"],
            key.key_arn,
            condition={"Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
    ]
