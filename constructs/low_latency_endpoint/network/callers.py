"""Rules between an interface endpoint and its callers, in the stack where they make no cycle."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2

from ..synthesis.asked_once import path_of, stack_of
from ..synthesis.validation import is_token
from .vpc_zones import vpc_stack_of
from .zone_aligned_network import ZoneAlignedNetwork


def let_in(
    link_groups: Sequence[ec2.ISecurityGroup],
    groups: Sequence[ec2.ISecurityGroup],
    ports: Sequence[int],
    description: str,
) -> None:
    """Let groups into the link's, with the rules in the stacks of these groups."""
    for port in map(ec2.Port.tcp, ports):
        for group in groups:
            for link_group in link_groups:
                link_group.add_ingress_rule(group, port, description, remote_rule=True)
                if not group.allow_all_outbound:  # CDK warns of a rule for one that may go anywhere
                    group.add_egress_rule(link_group, port, description)


def rules_stand_with(
    groups: Sequence[ec2.ISecurityGroup], link_stack: Stack, network: ZoneAlignedNetwork
) -> bool:
    """Whether the rules that let groups in stand in the stacks of these groups.

    A rule names both groups, so its stack depends on the other's. Callers take the endpoint's
    name, so their stack depends on the endpoint's: there the rule makes no cycle. Unless the
    endpoint's stack is known to depend on theirs, as it does with a VPC that is made there.
    Groups that are known by their IDs bind no stack to another.
    """
    bound = [stack_of(group) for group in groups if is_token(group.security_group_id)]
    others = {path_of(stack): stack for stack in bound if path_of(stack) != path_of(link_stack)}
    if not others:
        return False
    own = path_of(_outermost(link_stack))
    vpc_stack = vpc_stack_of(network) if is_token(network.vpc_id) else link_stack
    needed = _needed_by(_outermost(link_stack), _outermost(vpc_stack))
    return not any(
        path == path_of(vpc_stack)
        if (family := path_of(_outermost(stack))) == own  # nested in the same stack
        else family in needed
        for path, stack in others.items()
    )


def _needed_by(*stacks: Stack) -> set[str]:
    """Paths of these stacks, and of all that they are known to depend on."""
    waiting, found = list(stacks), set()
    while waiting:
        stack = waiting.pop()
        if path_of(stack) not in found:
            found.add(path_of(stack))
            waiting += stack.dependencies
    return found


def _outermost(stack: Stack) -> Stack:
    """The stack itself, or the one that it is nested in."""
    while (parent := stack.nested_stack_parent) is not None:
        stack = parent
    return stack
