"""Which endpoint or stack is meant, where a name is the other's, nearly one, or not given."""

from __future__ import annotations

from contextlib import suppress

from ..errors import ConfigurationError, did_you_mean, rule
from .calls import Account
from .endpoints import (
    ENDPOINT_EXISTS,
    describe_endpoint,
    endpoint_names,
    endpoints_of_region,
    listed,
)
from .sessions import Unreadable
from .stacks import STACK_EXISTS, owner_of, stack_description, stack_endpoints

NAMED = rule(
    "LLA104",
    "no name is given, and there is no endpoint.yaml here",
    fix="Name an endpoint or a stack. `low-latency list` shows them; --region and --profile choose "
    "another account.",
)


def meant_endpoint(account: Account, name: str) -> str:
    """The name, or that of the only endpoint in the stack of this name."""
    if describe_endpoint(account, name) is not None:
        return name
    with suppress(Unreadable):
        if stack_description(account, name) is not None:
            match [each.name for each in stack_endpoints(account, name) if each.arn]:
                case [only]:
                    return only
                case [_, *_] as several:
                    raise ENDPOINT_EXISTS.error(
                        got=f"{name}, a stack of several endpoints", allowed=", ".join(several)
                    )
    return name


def meant_stack(account: Account, name: str) -> str:
    """The name, or that of the stack which has the endpoint of this name; else ``LLA103``."""
    if stack_description(account, name) is not None:
        return name
    with suppress(Unreadable):
        found = describe_endpoint(account, name)
        if found is not None and (owner := owner_of(account, found["EndpointArn"])) is not None:
            return owner[0]
    allowed, known = listed(account, "stacks with endpoints", _stacks)
    known += account.known("endpoints", endpoint_names) or []  # these will do, too
    raise STACK_EXISTS.error(
        got=" in ".join(filter(None, (name, account.region))),
        allowed=allowed,
        fix=f"{did_you_mean(name, known)} {STACK_EXISTS.fix}".strip(),
    )


def nothing_named(account: Account, command: str, *, stacks: bool = False) -> ConfigurationError:
    """``LLA104``, with what can be named and the command for the first of them."""
    what, read = ("stacks with endpoints", _stacks) if stacks else ("endpoints", endpoint_names)
    allowed, known = listed(account, what, read)
    ready = f"{command.format(known[0])}\n{'':11}" if known else ""
    return NAMED.error(got="no name", allowed=allowed, fix=ready + NAMED.fix)


def _stacks(account: Account) -> list[str]:
    arns = [str(each["EndpointArn"]) for each in endpoints_of_region(account)]
    return sorted({owner[0] for arn in arns if (owner := owner_of(account, arn)) is not None})
