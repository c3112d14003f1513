"""What this library has deployed in an account, and which endpoint or stack a name means."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import ConfigurationError, did_you_mean, rule
from .calls import Account
from .endpoints import describe_endpoint, endpoint_names, endpoints_of_region, listed, read_endpoint
from .sessions import Unreadable
from .stacks import (
    STACK_EXISTS,
    owner_of,
    stack_description,
    stack_endpoints,
    stack_ids,
    template_resources,
)

_DASHBOARD = "AWS::CloudWatch::Dashboard"


@dataclass(frozen=True)
class ListedVariant:
    """Instances that serve and that are wanted; ``None`` where SageMaker does not tell."""

    name: str
    running: int | None
    wanted: int | None
    instance_types: tuple[str, ...]

    def __str__(self) -> str:
        running, wanted = ("?" if each is None else each for each in (self.running, self.wanted))
        return f"{self.name}: {running} of {wanted} x {', '.join(self.instance_types)}"


@dataclass(frozen=True)
class ListedEndpoint:
    endpoint: str
    stack: str
    region: str
    status: str
    variants: tuple[ListedVariant, ...]
    dashboard: str | None  # its name
    # in CloudWatch's console, where that is the one of the commercial partition
    dashboard_url: str | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def deployed_endpoints(account: Account) -> list[ListedEndpoint]:
    """All endpoints of the Region whose stack holds a plan of this library, by stack and name."""
    return [found for stack in _stacks(account) for found in _of_stack(account, stack)]


def _of_stack(account: Account, stack: str) -> Iterable[ListedEndpoint]:
    resources = template_resources(account, stack)
    bodies = {
        physical: json.dumps(resources.get(logical, {})).replace("\\", "")
        for logical, physical in stack_ids(account, stack, _DASHBOARD).items()
    }
    for endpoint in stack_endpoints(account, stack):
        if not endpoint.plan or not endpoint.arn:
            continue
        deployed = read_endpoint(account, endpoint.name)
        if deployed is None:
            continue
        dashboard = next(
            (
                physical
                for physical, body in bodies.items()
                if f'"{endpoint.logical_id}"' in body or f'"{endpoint.name}"' in body
            ),
            None,
        )
        yield ListedEndpoint(
            deployed.name,
            stack,
            account.region,
            deployed.status,
            tuple(
                ListedVariant(
                    name,
                    variant.current_instances,
                    variant.desired_instances,
                    variant.instance_types,
                )
                for name, variant in deployed.variants.items()
            ),
            dashboard,
            _console(account, dashboard),
        )


def _console(account: Account, dashboard: str | None) -> str | None:
    if dashboard is None or account.partition() != "aws":
        return None
    return (
        f"https://{account.region}.console.aws.amazon.com/cloudwatch/home?region={account.region}"
        f"#dashboards/dashboard/{dashboard}"
    )


NAMED = rule(
    "LLA104",
    "no endpoint name is given, and this folder has no endpoint.yaml",
    fix="Name an endpoint or a stack: `low-latency list` shows both. --region and "
    "--profile choose another account.",
)


SEVERAL_ENDPOINTS = rule(
    "LLA105", "the stack has several endpoints", fix="Name one of these endpoints."
)


def meant_endpoint(account: Account, name: str) -> str:
    """The name, or that of the only endpoint in the stack of this name."""
    if describe_endpoint(account, name) is not None:
        return name
    with suppress(Unreadable):
        if stack_description(account, name) is not None:
            match [endpoint.name for endpoint in stack_endpoints(account, name) if endpoint.arn]:
                case [only]:
                    return only
                case [_, *_] as several:
                    raise SEVERAL_ENDPOINTS.error(got=name, allowed=", ".join(several))
    return name


def meant_stack(account: Account, name: str) -> str:
    """The name, or that of the stack which has the endpoint of this name; else ``LLA103``."""
    if stack_description(account, name) is not None:
        return name
    what = ""
    with suppress(Unreadable):
        endpoint = describe_endpoint(account, name)
        if endpoint is not None:
            owner = owner_of(account, endpoint["EndpointArn"])
            if owner is not None:
                return owner[0]
            what = f"{name} is an endpoint, and this command takes a stack: no stack has it"
    allowed, known = listed(account, "stacks with endpoints", _stacks)
    if not what:
        known += account.known("endpoints", endpoint_names) or []  # these will do, too
    near = "" if what else did_you_mean(name, known)
    raise STACK_EXISTS.error(
        what=what,
        got=" in ".join(filter(None, (name, account.region))),
        allowed=allowed,
        fix=f"{near} {STACK_EXISTS.fix}".strip(),
    )


def nothing_named(account: Account, command: str, *, stacks: bool = False) -> ConfigurationError:
    """``LLA104``, with what can be named and the command for the first of them."""
    what, read = ("stacks with endpoints", _stacks) if stacks else ("endpoints", endpoint_names)
    allowed, known = listed(account, what, read)
    ready = f"{command.format(known[0])}\n{'':11}" if known else ""
    return NAMED.error(got="no name", allowed=allowed, fix=ready + NAMED.fix)


def _stacks(account: Account) -> list[str]:
    arns = [str(endpoint["EndpointArn"]) for endpoint in endpoints_of_region(account)]
    return sorted({owner[0] for arn in arns if (owner := owner_of(account, arn)) is not None})
