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
from constructs import Construct, IConstruct

from ..plan.launched_names import OWN_NAME, beginning_elsewhere
from .construct_tree import kept, name_of, only_child, outermost_stack, stack_name_of, stack_of


class LaunchedName(str):
    """Token of a name in its construct's own stack, in lower case wherever that is launched.

    Attributes
    ----------
    at_synth : str
        The name in the stack that has the app's name for it.
    stack : aws_cdk.Stack
        The construct's own.
    """

    at_synth: str
    stack: Stack


def launched_name_of(construct: Construct) -> LaunchedName:
    """The construct's name, for its own stack; :func:`name_in` and :func:`name_anywhere` for others.

    In the stack that has the app's name for it this is :func:`name_of`. A stack that the same
    template makes under another name (``aws cloudformation deploy --stack-name``, a product of
    Service Catalog) has a part of its own ID at the end, since its name may be too long, and in
    upper case. Other stacks of the app name the first one.
    """
    name, stack = name_of(construct), stack_of(construct)
    elsewhere = f"{beginning_elsewhere(name)}-{kept(stack, 'id_part', _part_of_id)}"
    token = LaunchedName(launched(stack, name, elsewhere=elsewhere))
    token.at_synth, token.stack = name, stack
    return token


def name_in(scope: IConstruct, name: str) -> str:
    """A stated or launched name as the stack of ``scope`` writes it."""
    if isinstance(name, LaunchedName) and stack_of(scope) is not name.stack:
        return name.at_synth
    return name


def name_anywhere(name: str) -> str:
    """Token of the same for what users may put into any stack: CDK calls Python to resolve it."""
    if not isinstance(name, LaunchedName):
        return name
    return Lazy.uncached_string(_NameAnywhere(name))


@jsii.implements(IStringProducer)
class _NameAnywhere:
    def __init__(self, name: LaunchedName) -> None:
        self._name = name

    def produce(self, context: IResolveContext) -> str:
        """The name as the resource that names it must write it."""
        return name_in(context.scope, self._name)


def launched(stack: Stack, own: str, *, elsewhere: str) -> str:
    """Token of a text that is another one in a stack which is launched under another name."""
    return Token.as_string(Fn.condition_if(_own_name(stack), own, elsewhere))


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
