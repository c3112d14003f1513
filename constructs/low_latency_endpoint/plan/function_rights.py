"""What the functions' roles must be allowed, as :mod:`.model_rights` has it of the models' roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .iam_statements import allow
from .model_rights import Own, decrypting, writing_with

LOG_KEY_ACTIONS = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
"""What CloudWatch Logs needs of a key, and through it (``kms:ViaService``) who writes a log:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html"""

STAGED_PREFIXES = ("hub/*", "users/*")
"""Of all models: an update removes the former model's files."""

_INTERFACE_ACTIONS = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda asks of a function's role to put it into a VPC."""

Statement = Mapping[str, Any]


def on_stated_role(
    statements: Sequence[Statement], shared: Collection[str | None]
) -> tuple[list[Statement], list[Statement]]:
    """A function's own statements, and those of shared resources, which stand once for all."""
    of_all = [each for each in statements if each["Resource"] in shared]
    return [each for each in statements if each not in of_all], of_all


def writing_log(
    group_arn: str, *further: str, key_arn: str | None, service: str
) -> list[dict[str, Any]]:
    """Write into a log group, which the service (``logs.REGION.SUFFIX``) may encrypt with a key."""
    statements = [allow(["logs:CreateLogStream", "logs:PutLogEvents", *further], group_arn)]
    if key_arn is not None:
        via = {"StringEquals": {"kms:ViaService": service}}
        statements.append(allow(LOG_KEY_ACTIONS, key_arn, condition=via))
    return statements


def sending_dead_letters(queue_arn: str, key_arn: str | None) -> list[dict[str, Any]]:
    """Have Lambda send dead letters.

    See "Configure KMS permissions for producers" of
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
    """
    statements = [allow(["sqs:SendMessage"], queue_arn)]
    if key_arn is not None:
        statements.append(allow(["kms:Decrypt", "kms:GenerateDataKey"], key_arn))
    return statements


def being_in_vpc(own: Own) -> list[dict[str, Any]]:
    """Lambda may manage interfaces with the role; code that runs with it may not."""
    # https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html: the key is
    # present only in requests that come from within a function.
    return [
        allow(_INTERFACE_ACTIONS, "*"),
        {
            "Effect": "Deny",
            "Action": list(_INTERFACE_ACTIONS),
            "Resource": "*",
            "Condition": {"ArnLike": {"lambda:SourceFunctionArn": own.arn("lambda", "function:*")}},
        },
    ]


def looking_at_stack(stack_id: str) -> dict[str, Any]:
    """What becomes of the stack: nothing in CloudFormation's request says so."""
    return allow(["cloudformation:DescribeStacks"], stack_id)


def looking_at_interfaces() -> dict[str, Any]:
    """Whether network interfaces have gone."""
    return allow(["ec2:DescribeNetworkInterfaces"], "*")


def looking_at_traffic() -> dict[str, Any]:
    """How many calls an endpoint gets."""
    return allow(["cloudwatch:GetMetricStatistics"], "*")


def looking_at_endpoint(endpoint_arn: str) -> dict[str, Any]:
    """What an endpoint serves."""
    return allow(["sagemaker:DescribeEndpoint"], endpoint_arn)


def calling_endpoint(endpoint_arn: str) -> dict[str, Any]:
    """Send requests to an endpoint."""
    return allow(["sagemaker:InvokeEndpoint"], endpoint_arn)


def calling_function(function_arn: str) -> dict[str, Any]:
    """Invoke a function."""
    return allow(["lambda:InvokeFunction"], function_arn)


def closing_group(own: Own, group_id: str) -> list[dict[str, Any]]:
    """Remove all rules of a security group."""
    return [
        allow(["ec2:DescribeSecurityGroups"], "*"),
        allow(
            ["ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"],
            own.arn("ec2", f"security-group/{group_id}"),
        ),
    ]


def staging(bucket_arn: str, key_arn: str | None) -> list[dict[str, Any]]:
    """Copy models into a bucket, and remove what nobody uses any more."""
    statements = [
        allow(
            ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
            [f"{bucket_arn}/{prefix}" for prefix in STAGED_PREFIXES],
        ),
        allow(
            ["s3:ListBucket"],
            bucket_arn,
            condition={"StringLike": {"s3:prefix": list(STAGED_PREFIXES)}},
        ),
        # Knows no prefix:
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
        allow(["s3:ListBucketMultipartUploads"], bucket_arn),
    ]
    return [*statements, writing_with(key_arn)] if key_arn else statements


def reading_secret(secret_arn: str, key_arn: str | None) -> list[dict[str, Any]]:
    """Read a secret."""
    statements = [allow(["secretsmanager:GetSecretValue"], secret_arn)]
    return [*statements, decrypting(key_arn)] if key_arn else statements
