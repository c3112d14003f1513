"""What this library has deployed in an account, and which endpoint or stack a name means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from ..errors import ConfigurationError, did_you_mean, rule
from ..errors.shell_words import shell_word
from .calls import Account, Unknown, side_by_side
from .endpoints import (
    DeployedEndpoint,
    describe_configuration,
    describe_endpoint,
    endpoint_names,
    endpoints_of_region,
    listed,
)
from .sessions import Unreadable
from .stacks import (
    STACK_EXISTS,
    StackEndpoint,
    owner_of,
    stack_description,
    stack_endpoints,
    stack_ids,
    template_resources,
)

_DASHBOARD = "AWS::CloudWatch::Dashboard"
_WHOSE = "whether this library deployed it"


@dataclass(frozen=True)
class ListedVariant:
    """Instances that serve and that are wanted; ``None`` where SageMaker does not tell."""

    name: str
    running: int | None
    wanted: int | None
    instance_types: tuple[str, ...]

    def __str__(self) -> str:
        running, wanted = ("?" if each is None else each for each in (self.running, self.wanted))
        types = ", ".join(self.instance_types) or "a type that is not known"
        return f"{self.name}: {running} of {wanted} x {types}"

    def is_below(self, target: Mapping[str, Any] | None) -> bool:
        """Whether fewer instances are wanted than its scalable target's least."""
        if target is None or self.wanted is None:
            return False
        return self.wanted < int(target["MinCapacity"])


@dataclass(frozen=True)
class ListedEndpoint:
    endpoint: str
    stack: str | None  # ``None`` where it could not be read
    region: str
    status: str
    variants: tuple[ListedVariant, ...]  # none where they could not be read
    dashboard: str | None  # its name
    # in CloudWatch's console, where that is the one of the commercial partition
    dashboard_url: str | None
    unknown: tuple[Unknown, ...] = ()  # what could not be read of it
    # ``None`` where it could not be read
    deployed: DeployedEndpoint | None = field(default=None, repr=False, compare=False)

    @property
    def update(self) -> str:
        """What is under way, in words; empty without an update."""
        update = self.deployed and self.deployed.update
        return update.words if update else ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe data, but for what is unknown."""
        told = asdict(replace(self, deployed=None))
        del told["deployed"], told["unknown"]
        return told | {"update": self.update or None}


def deployed_endpoints(account: Account) -> list[ListedEndpoint]:
    """All endpoints of the Region whose stack holds a plan of this library, by stack and name.

    One of which that could not be read is among them; where it could be read of none which stack has
    it, the refusal is raised.
    """
    summaries = endpoints_of_region(account)
    read = side_by_side(partial(_listed, account), summaries)
    found = [endpoint for endpoint in read if endpoint is not None]
    if found and len(found) == len(summaries) and all(each.stack is None for each in found):
        owner_of(account, summaries[0]["EndpointArn"])
    return sorted(found, key=lambda each: (each.stack is None, each.stack, each.endpoint))


def _listed(account: Account, summary: Mapping[str, Any]) -> ListedEndpoint | None:
    """An endpoint as it is; ``None`` where this library did not deploy it, or it is gone."""
    name, arn, view = str(summary["EndpointName"]), summary["EndpointArn"], account.view()
    owner = view.known(_WHOSE, owner_of, arn)
    stated = view.known(_WHOSE, stack_endpoints, owner[0]) if owner else []
    mine = next((each for each in stated or () if each.arn == arn), None)
    if not view.unknown and (mine is None or not mine.plan):
        return None
    described = view.known("endpoint", describe_endpoint, name)
    if described is None and "endpoint" not in {each.what for each in view.unknown}:
        return None
    deployed = None
    if described is not None:
        configuration = view.known(
            "endpoint configuration", describe_configuration, described["EndpointConfigName"]
        )
        deployed = DeployedEndpoint(described, configuration or {})
    dashboard = None
    if owner and mine:
        dashboard = view.known("dashboard", _dashboard, owner[0], mine)
    return ListedEndpoint(
        name,
        owner[0] if owner else None,
        account.region,
        deployed.status if deployed else str(summary["EndpointStatus"]),
        _variants(deployed) if deployed else (),
        dashboard,
        _console(account, dashboard),
        tuple(view.unknown),
        deployed,
    )


def _variants(deployed: DeployedEndpoint) -> tuple[ListedVariant, ...]:
    return tuple(
        ListedVariant(
            name, variant.current_instances, variant.desired_instances, variant.instance_types
        )
        for name, variant in deployed.variants.items()
    )


def _dashboard(account: Account, stack: str, endpoint: StackEndpoint) -> str | None:
    """The name of the stack's dashboard that shows the endpoint; ``None`` without one."""
    resources = template_resources(account, stack)
    for logical, physical in stack_ids(account, stack, _DASHBOARD).items():
        body = json.dumps(resources.get(logical, {})).replace("\\", "")
        if f'"{endpoint.logical_id}"' in body or f'"{endpoint.name}"' in body:
            return physical
    return None


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
    ready = f"{command.replace('{}', shell_word(known[0]), 1)}\n{'':11}" if known else ""
    return NAMED.error(got="no name", allowed=allowed, fix=ready + NAMED.fix)


def _stacks(account: Account) -> list[str]:
    arns = [str(endpoint["EndpointArn"]) for endpoint in endpoints_of_region(account)]
    owners = side_by_side(partial(owner_of, account), arns)
    return sorted({owner[0] for owner in owners if owner is not None})
