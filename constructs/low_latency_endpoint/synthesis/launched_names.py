"""Names that follow the stack which is really made, where one template makes several."""

from __future__ import annotations

from typing import Any

import jsii
from aws_cdk import (
    Aws,
    CfnCondition,
    Fn,
    IResolveContext,
    IStringProducer,
    Lazy,
    ScopedAws,
    Stack,
    Token,
)
from constructs import Construct

from ..plan.launched_names import OWN_NAME, beginning_elsewhere
from .construct_tree import kept, name_of, only_child, outermost_stack, stack_name_of, stack_of


class LaunchedName(str):
    """A token of a name that is in lower case in every stack.

    Attributes
    ----------
    at_synth : str
        The name in the stack that has the app's name for it.
    in_stack : LaunchedName
        A token for the construct's own stack, which CDK resolves without a call to Python.
    """

    at_synth: str
    in_stack: LaunchedName


def launched_name_of(construct: Construct) -> LaunchedName:
    """Token of the construct's name in the template.

    In the stack that has the app's name for it this is :func:`name_of`. A stack that the same
    template makes under another name (``aws cloudformation deploy --stack-name``, a product of
    Service Catalog) has a part of its own ID at the end, since its name may be too long, and in
    upper case. Other stacks of the app name the first one.
    """
    name, stack = name_of(construct), stack_of(construct)
    elsewhere = f"{beginning_elsewhere(name)}-{kept(stack, 'id_part', _part_of_id)}"
    in_stack = LaunchedName(launched(stack, name, elsewhere=elsewhere))
    in_stack.at_synth, in_stack.in_stack = name, in_stack
    token = LaunchedName(Lazy.uncached_string(_Name(stack, in_stack, name)))
    token.at_synth, token.in_stack = name, in_stack
    return token


def launched(stack: Stack, own: str, *, elsewhere: str) -> str:
    """Token of a text that is another one in a stack which is launched under another name."""
    return Token.as_string(Fn.condition_if(_own_name(stack), own, elsewhere))


@jsii.implements(IStringProducer)
class _Name:
    def __init__(self, stack: Stack, in_stack: str, name: str) -> None:
        self._stack, self._in_stack, self._name = stack, in_stack, name

    def produce(self, context: IResolveContext) -> str:
        """The name as the resource that names it must write it."""
        same = stack_of(context.scope) is self._stack
        return self._in_stack if same else self._name


def _part_of_id() -> str:
    """The first group of the UUID in the stack's ID."""
    return Fn.select(0, Fn.split("-", Fn.select(2, Fn.split("/", Aws.STACK_ID))))


def _own_name(stack: Stack) -> str:
    """The condition that the stack, or the one that it is nested in, has the app's name."""
    outermost = outermost_stack(stack)

    def condition() -> CfnCondition:
        name = Aws.STACK_NAME if outermost is stack else ScopedAws(outermost).stack_name
        own: Any = Fn.condition_equals(name, stack_name_of(outermost))
        return CfnCondition(stack, OWN_NAME, expression=own)

    only_child(stack, OWN_NAME, condition)
    return OWN_NAME
