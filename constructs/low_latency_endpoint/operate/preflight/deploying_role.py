"""What the deploying role needs: the statements of ``deploying_role.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

from ...settings import Settings
from ...settings.variant_plans import hub_models


@dataclass(frozen=True)
class DeploymentPlace:
    """Where a stack is deployed, as the resources of statements name it."""

    stack: str
    account: str
    region: str
    partition: str = "aws"
    parameters: str = "/low-latency"

    def arn(self, pattern: str) -> str:
        """A pattern of the file, filled in."""
        return pattern.format(bucket=self.stack.lower(), **vars(self))


@dataclass(frozen=True)
class DeployingStatement:
    """One statement; an action is ``called``, ``documented`` or ``told``, as the file explains."""

    sid: str
    resources: tuple[str, ...]
    called: tuple[str, ...] = ()
    documented: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    condition: tuple[str, tuple[str, ...]] | None = None  # a key, and the values it may have
    when: tuple[str, ...] = ()  # the cases in which it is needed; always if there is none
    note: str = ""
    source: str = ""

    @property
    def actions(self) -> list[str]:
        return sorted({*self.called, *self.documented, *self.told})

    def in_policy(self, place: DeploymentPlace) -> dict[str, Any]:
        """The statement as a policy has it."""
        arns = [place.arn(pattern) for pattern in self.resources]
        statement = {"Sid": self.sid, "Effect": "Allow", "Action": self.actions, "Resource": arns}
        if self.condition is None:
            return statement
        key, values = self.condition
        return statement | {"Condition": {"StringEquals": {key: list(values)}}}


@cache
def _file() -> Mapping[str, Any]:
    text = files(__package__).joinpath("deploying_role.yaml").read_text("utf-8")
    told: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return told


def deploying_cases() -> Mapping[str, str]:
    """When a statement is needed that not every stack needs, in words."""
    cases: Mapping[str, str] = _file()["cases"]
    return cases


def deploying_statements() -> Iterator[DeployingStatement]:
    """All statements, in the order of the file."""
    for row in _file()["statements"]:
        lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
        ((key, values),) = row.get("condition", {None: ()}).items()
        yield DeployingStatement(
            **{**row, **lists, "condition": (key, tuple(values)) if key else None}
        )


def needed_statements(settings: Settings) -> Iterator[DeployingStatement]:
    """Those that the stack of a settings file needs, of what the file alone tells."""
    cases = _cases_of(settings)
    return (
        statement
        for statement in deploying_statements()
        if not statement.when or any(cases.get(case) for case in statement.when)
    )


def _cases_of(settings: Settings) -> dict[str, bool]:
    """Which of the cases a settings file is; that of a key has no ARN that could be simulated."""
    endpoints = list(settings.endpoints.values())
    network, link, safeguards = settings.network, settings.private_link, settings.safeguards
    own_vpc = network.vpc_id is None
    roles = [endpoint.role_arn for endpoint in endpoints] + [safeguards.function_role_arn]
    return {
        "roles": None in roles or (own_vpc and safeguards.flow_log_role_arn is None),
        "network": own_vpc,
        "links": network.owner is None and link.interface_endpoint_id is None,
        "schedules": any(endpoint.warm_up or endpoint.canary for endpoint in endpoints),
        "objectives": any(endpoint.alarms.service_level_objective for endpoint in endpoints),
        "parameters": settings.parameters is not None,
        "models": any(map(hub_models, endpoints)),
        "signing": safeguards.code_signing_config_arn is not None,
        "zones": bool(link.hosted_zone_vpc_ids),
    }
