"""Where a construct stands: node, path, stack, Region, and names made of them; each is asked for
once, since each question is a call to Node.js."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aws_cdk import Names, Stack
from constructs import Construct, IConstruct, Node

from ..facts.token_values import is_token
from ..plan.launched_names import as_named

if TYPE_CHECKING:
    from aws_cdk import aws_cloudwatch as cloudwatch


_KEPT = "_low_latency_endpoint_"

_LONGEST = 63


class TreePart(Construct):
    """A construct that knows its path and its stack without a call to Node.js."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        path_below(self, scope, id)


def only_child(stack: Stack, id: str, make: Callable[[], Construct]) -> Any:
    """The stack's child of this ID, which ``make`` makes where it is not there yet."""
    return kept(stack, id, lambda: node_of(stack).try_find_child(id) or make())


def node_of(construct: IConstruct) -> Node:
    """``construct.node``."""
    node: Node = kept(construct, "node", lambda: construct.node)
    return node


def root_of(construct: IConstruct) -> IConstruct:
    """``construct.node.root``."""
    root: IConstruct = kept(construct, "root", lambda: node_of(construct).root)
    return root


def path_of(construct: IConstruct) -> str:
    """``construct.node.path``."""
    return str(kept(construct, "path", lambda: node_of(construct).path))


def path_below(construct: IConstruct, scope: IConstruct, id: str) -> str:
    """The path of a construct that is being made, without asking jsii: its scope's, and its ID."""
    kept(construct, "stack", lambda: stack_of(scope))
    path = f"{path_of(scope)}/{id.replace('/', '--')}".lstrip("/")
    return str(kept(construct, "path", lambda: path))


def stack_of(construct: IConstruct) -> Stack:
    """``Stack.of(construct)``."""
    stack: Stack = kept(
        construct,
        "stack",
        lambda: construct if isinstance(construct, Stack) else Stack.of(construct),
    )
    return stack


def region_of(construct: IConstruct) -> str:
    """The Region of the construct's stack, maybe a token."""
    stack = stack_of(construct)
    return str(kept(stack, "region", lambda: stack.region))


def stack_name_of(stack: Stack) -> str:
    """``stack.stack_name``."""
    return str(kept(stack, "name", lambda: stack.stack_name))


def alarm_arn_of(alarm: cloudwatch.Alarm) -> str:
    """``alarm.alarm_arn``."""
    return str(kept(alarm, "arn", lambda: alarm.alarm_arn))


def alarm_name_of(alarm: cloudwatch.IAlarm) -> str:
    """``alarm.alarm_name``."""
    return str(kept(alarm, "name", lambda: alarm.alarm_name))


def keep_alarm_name(alarm: cloudwatch.IAlarm, name: str) -> cloudwatch.IAlarm:
    """The alarm, whose name is not asked for: CDK would take it from its ARN."""
    kept(alarm, "name", lambda: name)
    return alarm


def kept(construct: Any, what: str, ask: Callable[[], Any]) -> Any:
    """What an object of CDK's answered to ``ask``, unless that was None."""
    answer = getattr(construct, _KEPT + what, None)
    if answer is None:
        answer = ask()
        with suppress(AttributeError):  # what stands for an object that only Node.js has
            setattr(construct, _KEPT + what, answer)
    return answer


def name_of(construct: Construct) -> str:
    """A name in lower case, of 63 characters at most, that follows the construct's path."""
    # A stack that is not called as its path says (stack_name=) is one of several that an app may
    # make of the same constructs: there the name follows the stack's name too.
    stack = outermost_stack(stack_of(construct))
    name = stack_name_of(stack)
    end = "" if is_token(name) or _follows(name, path_of(stack)) else f"-{digest(stack, name)}"
    path = Names.unique_resource_name(construct, max_length=_LONGEST - len(end), separator="-")
    return f"{path.lower()}{end}"


def outermost_stack(stack: Stack) -> Stack:
    """The stack itself, or the one that it is nested in."""
    while (parent := stack.nested_stack_parent) is not None:
        stack = parent
    return stack


def _follows(stack_name: str, path: str) -> bool:
    """Whether CDK made a stack's name of its path: one ID, a stage's and its, or a digest."""
    ids = path.split("/")
    joined = re.escape(re.sub("[^A-Za-z0-9]", "", "".join(ids)))
    return stack_name == "-".join(ids) or bool(re.fullmatch(f"{joined}[0-9A-F]{{8}}", stack_name))


def digest(scope: IConstruct, text: str) -> str:
    """The same for the same text in every synthesis: tokens count as what they refer to."""
    return digest_of(as_named(stack_of(scope).resolve(text)))


def digest_of(resolved: Any) -> str:
    """The same of anything that a stack has resolved already."""
    canonical = json.dumps(resolved, sort_keys=True)
    from hashlib import sha256  # OpenSSL: a tenth of what importing the constructs takes

    return sha256(canonical.encode()).hexdigest()[:8]
