"""A VPC that the CDK CLI looks up: how an app asks for it, and what the CLI answers."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

KEY = (
    "vpc-provider:account=123456789012:filter.vpc-id=vpc-0fedcba9876543210:region=us-east-1:"
    "returnAsymmetricSubnets=true"
)


def looked_up(stack: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc.from_lookup(stack, "Found", vpc_id="vpc-0fedcba9876543210")


def _subnets(kind: str) -> list[dict[str, str]]:
    return [
        {
            "subnetId": f"subnet-{kind}-{zone}",
            "cidr": f"10.0.{place}.0/24",
            "availabilityZone": f"us-east-1{zone}",
            "routeTableId": f"rtb-{kind}",
        }
        for place, zone in enumerate("abc")
    ]


#: The context of the second run.
SECOND_RUN: dict[str, Any] = {
    KEY: {
        "vpcId": "vpc-0fedcba9876543210",
        "vpcCidrBlock": "10.0.0.0/16",
        "ownerAccountId": "123456789012",
        "availabilityZones": [],
        "subnetGroups": [
            {"name": "Public", "type": "Public", "subnets": _subnets("public")},
            {"name": "Private", "type": "Private", "subnets": _subnets("private")},
        ],
    }
}
