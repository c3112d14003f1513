"""What VPC endpoints of the app say of themselves: the service, and the VPC they stand in."""

from __future__ import annotations

from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2

from ..synthesis.asked_once import stack_of
from ..synthesis.validation import is_token


def service_name_of(endpoint: ec2.CfnVPCEndpoint) -> str:
    """The end of the service's name; the beginning may be a function of CloudFormation."""
    name: Any = stack_of(endpoint).resolve(endpoint.service_name)
    while isinstance(name, dict) and "Fn::Join" in name:
        name = name["Fn::Join"][1][-1]
    return str(name)


def stands_in(endpoint: ec2.CfnVPCEndpoint, vpc_id: str, stack: Stack) -> bool:
    """Whether the endpoint is one of the VPC's, which is of this stack."""
    if endpoint.vpc_id == vpc_id:
        return True
    # The same import of another stack's VPC, made twice, gives two tokens.
    return bool(
        is_token(vpc_id)
        and stack == stack_of(endpoint)
        and stack.resolve(vpc_id) == stack.resolve(endpoint.vpc_id)
    )
