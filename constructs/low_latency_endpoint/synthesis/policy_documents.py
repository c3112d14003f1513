"""Policy documents as plain data (one call into jsii instead of one for each statement), and how
long they will be when CloudFormation sends them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack
from constructs import IConstruct

from ..plan.launched_names import as_named
from ..plan.rights import IDS, Own, made_arn, stack_id
from .arns import arn
from .construct_tree import region_of, stack_name_of, stack_of
from .template_values import is_token, masked, pseudo_parameters


def least_length(policy: Mapping[str, Any], region: str) -> int:
    """Characters that a policy has at least, whatever its tokens will say."""
    known = ("aws", "us-east-1" if is_token(region) else region, "123456789012")  # none is shorter
    text = json.dumps(policy, separators=(",", ":"))
    for token, value in zip(pseudo_parameters(), known, strict=True):
        text = text.replace(token, value)
    return len(masked(text)[0])


def trust(service: str, source: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, Any]:
    """Trust policy that lets one AWS service assume a role."""
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
    }
    if source:
        statement["Condition"] = {name: dict(keys) for name, keys in source.items()}
    return {"Version": "2012-10-17", "Statement": [statement]}


def for_hosting() -> dict[str, dict[str, str]]:
    """SageMaker assumes the role for this account and Region; the asterisk is what it sends."""
    # "SageMaker AI Inference" of
    # https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html
    return {"ArnLike": {"aws:SourceArn": arn("sagemaker", "*")}}


def for_flow_logs() -> dict[str, dict[str, str]]:
    """For this account's flow logs; the ID of one is known only afterwards."""
    # https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-iam-role.html
    return _of_account(arn("ec2", "vpc-flow-log/*"))


def for_tasks() -> dict[str, dict[str, str]]:
    """For tasks of this account."""
    # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html
    return _of_account(arn("ecs", "*"))


def _of_account(source_arn: str) -> dict[str, dict[str, str]]:
    return {
        "StringEquals": {"aws:SourceAccount": pseudo_parameters()[2]},
        "ArnLike": {"aws:SourceArn": source_arn},
    }


def sent_length(scope: IConstruct, resolved: Any) -> int:
    """Characters without white space; names and IDs as long as AWS makes them."""
    stack, region = stack_of(scope), region_of(scope)
    named = least_stack_name(stack)
    pseudo = {
        "AWS::Partition": "aws",
        "AWS::Region": "us-east-1" if is_token(region) else region,
        "AWS::AccountId": "1" * 12,
        "AWS::URLSuffix": "amazonaws.com",
        "AWS::StackId": stack_id(named),
    }
    return len(json.dumps(_sent(as_named(resolved), named, pseudo), separators=(",", ":")))


def least_stack_name(stack: Stack) -> int:
    """Characters of a stack's name, at least one where the name is not known."""
    name = stack_name_of(stack)
    return 1 if is_token(name) else len(name)


def _sent(value: Any, named: int, pseudo: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_sent(each, named, pseudo) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Fn::Join"}:
        parts = value["Fn::Join"][1]
        return value["Fn::Join"][0].join(str(_sent(part, named, pseudo)) for part in parts)
    if set(value) == {"Ref"}:
        return pseudo.get(value["Ref"]) or "r" * IDS["vpc" if "Vpc" in value["Ref"] else "subnet"]
    if set(value) == {"Fn::GetAtt"}:
        logical_id, attribute = value["Fn::GetAtt"]
        if attribute != "Arn":
            return "a" * IDS["security-group"]
        own = Own(*(pseudo[f"AWS::{each}"] for each in ("Partition", "Region", "AccountId")))
        return made_arn(own, logical_id, stack_name=named)
    return {key: _sent(each, named, pseudo) for key, each in value.items()}
