"""How long a document will be when CloudFormation sends it, with what it puts in for references."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import Stack
from constructs import IConstruct

from ..plan.rights import IDS, Own, made_arn, stack_id
from .asked_once import region_of, stack_name_of, stack_of
from .validation import is_token


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
    return len(json.dumps(_sent(resolved, named, pseudo), separators=(",", ":")))


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
        return value["Fn::Join"][0].join(str(_sent(each, named, pseudo)) for each in parts)
    if set(value) == {"Ref"}:
        return pseudo.get(value["Ref"]) or "r" * IDS["vpc" if "Vpc" in value["Ref"] else "subnet"]
    if set(value) == {"Fn::GetAtt"}:
        logical_id, attribute = value["Fn::GetAtt"]
        if attribute != "Arn":
            return "a" * IDS["security-group"]
        own = Own(*(pseudo[f"AWS::{each}"] for each in ("Partition", "Region", "AccountId")))
        return made_arn(own, logical_id, stack_name=named)
    return {key: _sent(each, named, pseudo) for key, each in value.items()}
