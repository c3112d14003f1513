"""Roles for models, functions and callers of tests, with the rights that they need."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from botocore.exceptions import ClientError

from local_sagemaker import LocalAws


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    """Write a policy."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(
    actions: str | list[str], resources: str | list[str] = "*", **more: Any
) -> dict[str, Any]:
    """Write a statement."""
    return {"Effect": "Allow", "Action": actions, "Resource": resources, **more}


def trust(*services: str, **more: Any) -> dict[str, Any]:
    """Write a trust policy for services, or another principal."""
    named = {"Service": [f"{service}.amazonaws.com" for service in services]}
    return document({"Effect": "Allow", "Principal": named, "Action": "sts:AssumeRole", **more})


HOSTING = [
    allow(
        [
            "ecr:GetAuthorizationToken",
            "ecr:BatchCheckLayerAvailability",
            "ecr:BatchGetImage",
            "ecr:GetDownloadUrlForLayer",
        ]
    ),
    allow(["s3:GetObject", "s3:ListBucket"]),
    allow(
        [
            "logs:CreateLogGroup",
            "logs:CreateLogStream",
            "logs:DescribeLogStreams",
            "logs:PutLogEvents",
        ]
    ),
    allow(
        [
            "ec2:CreateNetworkInterface",
            "ec2:CreateNetworkInterfacePermission",
            "ec2:DeleteNetworkInterface",
            "ec2:DeleteNetworkInterfacePermission",
            "ec2:DescribeDhcpOptions",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcs",
        ]
    ),
    allow(["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey"]),
]
"""What a model of any kind needs of its role."""


def give_role(
    aws: LocalAws,
    name: str,
    *statements: dict[str, Any],
    services: tuple[str, ...] = ("sagemaker",),
) -> str:
    """Make a role, or give the one that is there its policy anew; gives its ARN."""
    iam = aws.client("iam")
    with contextlib.suppress(ClientError):  # it is there already
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust(*services)))
    iam.put_role_policy(
        RoleName=name, PolicyName="rights", PolicyDocument=json.dumps(document(*statements))
    )
    return f"arn:aws:iam::{aws.account}:role/{name}"


def give_hosting_role(aws: LocalAws, name: str = "models") -> str:
    """Make a role with which any model runs."""
    return give_role(aws, name, *HOSTING)
