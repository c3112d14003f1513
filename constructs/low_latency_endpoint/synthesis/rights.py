"""What the roles of models and functions must be allowed, as plain data.

The actions are named one by one. CDK's own ``grant_*`` methods add wildcards, and a policy beside
the model's that nothing waits for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

_TOKEN_OR_WILDCARD = re.compile(r"(?P<token>\$\{Token\[[^\]]*\]\})|[*?$]")


def allow(
    actions: Sequence[str],
    resources: str | Sequence[str],
    *,
    principal: Any = None,
    condition: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One Allow statement."""
    statement: dict[str, Any] = {"Effect": "Allow"}
    if principal is not None:
        statement["Principal"] = principal
    statement["Action"] = list(actions)
    statement["Resource"] = resources if isinstance(resources, str) else list(resources)
    if condition:
        statement["Condition"] = dict(condition)
    return statement


def keys_apart(
    statements: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The statements without those on keys of KMS, which may be exchanged, and these."""
    for_keys = [statement for statement in statements if statement["Action"][0].startswith("kms:")]
    return [statement for statement in statements if statement not in for_keys], for_keys


def document(*statements: Mapping[str, Any]) -> dict[str, Any]:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": [dict(statement) for statement in statements]}


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


_WRITE_LOGS = (
    "logs:CreateLogGroup",
    "logs:CreateLogStream",
    "logs:DescribeLogStreams",
    "logs:PutLogEvents",
)


def hosting(own: Own, endpoint_names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What hosting needs in a VPC, whatever the version of the model.

    Source: SageMaker developer guide, "SageMaker AI Roles", CreateModel and VPC permissions. The
    first statement is on log groups. An endpoint's is named after it, and a model does not know its
    endpoints, of which there may be several: without their names it is on all endpoints' groups.
    """
    return [
        allow(_WRITE_LOGS, _endpoint_logs(own, endpoint_names)),
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


def _endpoint_logs(own: Own, endpoint_names: Sequence[str]) -> str | list[str]:
    """The log groups of these endpoints with their streams; without names, of all endpoints."""
    groups = own.arn("logs", "log-group:/aws/sagemaker/Endpoints/")
    if not endpoint_names:
        return f"{groups}*"
    # Not "NAME*", which other endpoints' names begin with too.
    return [f"{groups}{name}{end}" for name in endpoint_names for end in ("", ":*")]


def hosting_on_stated_role(
    own: Own, endpoint_names: Sequence[str] = ()
) -> list[list[dict[str, Any]]]:
    """The same for the policies of a role that several models may have.

    Named endpoints' logs stand apart: the rest is the same for all models, and stands once.
    """
    logs, *others = hosting(own, endpoint_names)
    return [[logs], others] if endpoint_names else [[logs, *others]]


def making_interfaces(
    own: Own,
    vpc_id: str,
    subnet_ids: Sequence[str],
    group_ids: Sequence[str],
    owner: str | None = None,
) -> list[dict[str, Any]]:
    """Make network interfaces in these subnets with these groups, hand over and delete those of
    this VPC; same source.

    That both actions know the interface's VPC is in
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html. Its
    owner may be another account, which shares its subnets, and maybe groups; interfaces are their
    maker's (https://docs.aws.amazon.com/vpc/latest/userguide/vpc-share-limitations.html). To whom
    interfaces are handed over (``ec2:AuthorizedService``) SageMaker does not document.
    """
    theirs = own if owner is None else own._replace(account=owner)
    groups = [f"security-group/{group_id}" for group_id in group_ids]
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
                *(theirs.arn("ec2", f"subnet/{subnet_id}") for subnet_id in subnet_ids),
                *(own.arn("ec2", group) for group in groups),
                *(theirs.arn("ec2", group) for group in groups if owner is not None),
            ],
        ),
    ]


def literal(key: str) -> str:
    """Return an S3 key as a policy names it, in which ``*``, ``?`` and ``$`` are letters.

    CDK's tokens stay. See
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#policy-vars-specialchars
    """
    return _TOKEN_OR_WILDCARD.sub(lambda found: found["token"] or f"${{{found[0]}}}", key)


def reading(bucket: str, key: str) -> list[dict[str, Any]]:
    """Read one object, or with a key that is empty or ends with a slash all below it."""
    key = literal(key)
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
    of_all = [statement for statement in statements if statement["Resource"] in shared]
    return [statement for statement in statements if statement not in of_all], of_all


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
    """Lambda may manage interfaces with the role; code that runs with it may only look at them."""
    # https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html: the key is
    # present only in requests that come from within a function. The function that waits for
    # SageMaker's interfaces looks at them, maybe with the same role.
    changing = [action for action in _INTERFACE_ACTIONS if not action.startswith("ec2:Describe")]
    return [
        allow(_INTERFACE_ACTIONS, "*"),
        {
            "Effect": "Deny",
            "Action": changing,
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
