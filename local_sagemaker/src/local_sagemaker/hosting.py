"""What SageMaker hosting remembers per account and region, and its network interfaces.

They outlive endpoint and model, so that "stack deletion will fail after 15 minutes" on security
group and subnets
(https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1327, open since 2022;
https://github.com/hashicorp/terraform-provider-aws/issues/34397). For how long, nobody says, nor
whether they go at all when their role went first: SageMaker asks the execution role for
ec2:DeleteNetworkInterface ("SageMaker AI Roles", CreateModel in a VPC). The time can be chosen in
`RuntimeOptions`; without their role they stay, which is the worse.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moto.ec2.models import ec2_backends

from .permissions.judge import subnets_of
from .permissions.service_roles import may_delete_interfaces
from .runtime.clock import Clock
from .runtime.options import RuntimeOptions


@dataclass(eq=False)
class Interfaces:
    """The network interfaces of one endpoint's fleet."""

    endpoint: str
    config: str
    made: list[tuple[str, str | None]]  # each with the role that SageMaker needs to delete it
    left: Callable[[], bool] | None = None
    """Set once the fleet has ended: whether the time has come for them to go."""


@dataclass
class Hosting:
    """SageMaker's models, endpoint configurations, endpoints, components."""

    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    endpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Inference components, as Describe gives them."""
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    """Tags by ARN; only ARNs of the kinds above."""
    interfaces: list[Interfaces] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)


TargetKey = tuple[str, str, str]  # service namespace, resource id, scalable dimension


@dataclass
class Scaling:
    """Application Auto Scaling's targets, policies and scheduled actions."""

    targets: dict[TargetKey, dict[str, Any]] = field(default_factory=dict)
    policies: dict[tuple[TargetKey, str], dict[str, Any]] = field(default_factory=dict)
    actions: dict[tuple[TargetKey, str], dict[str, Any]] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    activities: list[dict[str, Any]] = field(default_factory=list)
    """What policies, scheduled actions and limits did, the newest first."""
    limits_set: set[TargetKey] = field(default_factory=set)
    """Targets whose limits were set and have still to be acted on."""


_hosting: dict[tuple[str, str], Hosting] = {}
_scaling: dict[tuple[str, str], Scaling] = {}


def hosting(account: str, region: str) -> Hosting:
    return _hosting.setdefault((account, region), Hosting())


def scaling(account: str, region: str) -> Scaling:
    return _scaling.setdefault((account, region), Scaling())


def scaled_places() -> list[tuple[str, str]]:
    """Give the accounts and Regions in which something is to be scaled."""
    return [place for place, state in list(_scaling.items()) if state.targets]


def reset() -> None:
    _hosting.clear()
    _scaling.clear()


def all_variants(described: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the variants of a configuration or an endpoint: production variants, then shadows."""
    return [
        *(described.get("ProductionVariants") or []),
        *(described.get("ShadowProductionVariants") or []),
    ]


def hosts_components(variant: Mapping[str, Any]) -> bool:
    """Say whether a configuration's variant is for inference components: it names no model."""
    return not variant.get("ModelName") and "ServerlessConfig" not in variant


def containers_of(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    return model.get("Containers") or [model.get("PrimaryContainer") or {}]


logger = logging.getLogger(__name__)

_RIGHT = "ec2:DeleteNetworkInterface"


def hold(
    place: tuple[str, str], endpoint: str, config: Mapping[str, Any], described: Mapping[str, Any]
) -> None:
    """Make a new fleet's interfaces: one per instance, by turns in the subnets that exist."""
    state, backend = hosting(*place), ec2_backends[place[0]][place[1]]
    known = subnets_of(*place)
    models = {
        variant["VariantName"]: state.models.get(variant.get("ModelName", ""), {})
        for variant in all_variants(config)
    }
    made = []
    for variant in all_variants(described):
        name = variant["VariantName"]
        # Instances for components are there before any model, in the configuration's network.
        network = (models[name] or config).get("VpcConfig") or {}
        subnets = [subnet for subnet in network.get("Subnets") or () if subnet in known]
        named = network.get("SecurityGroupIds") or ()
        groups = [group for group in named if backend.get_security_group_from_id(group)]
        if not subnets or not groups:
            continue
        role = str(models[name].get("ExecutionRoleArn") or config.get("ExecutionRoleArn") or "")
        # A role that never had the right is not held to it: with rights ignored it may lack it.
        needed = role if role and may_delete_interfaces(place, role, subnets) else None
        for number in range(int(variant.get("DesiredInstanceCount") or 1)):
            interface = backend.create_network_interface(
                backend.get_subnet(subnets[number % len(subnets)]),
                [],
                group_ids=groups,
                description=f"SageMaker endpoint {endpoint}, variant {name}",
            )
            made.append((interface.id, needed))
    with state.lock:
        state.interfaces.append(Interfaces(endpoint, config["EndpointConfigName"], made))


def let_go(
    place: tuple[str, str],
    endpoint: str,
    clock: Clock,
    options: RuntimeOptions,
    but_for: str | None = None,
) -> None:
    """Let an endpoint's interfaces go in their time, but for the newest of a configuration."""
    state = hosting(*place)
    with state.lock:
        held = [each for each in state.interfaces if each.endpoint == endpoint and not each.left]
        stays = [interfaces for interfaces in held if interfaces.config == but_for][-1:]
        leaves = clock.now() + options.interfaces_time(clock.speed)
        for interfaces in held:
            if interfaces not in stays:
                interfaces.left = lambda: clock.now() >= leaves
                if not options.interfaces_need_role:
                    interfaces.made = [(interface, None) for interface, _ in interfaces.made]


def remove_expired() -> None:
    """Remove the interfaces whose time has come; those whose role is gone stay for good."""
    for place, state in list(_hosting.items()):
        with state.lock:
            for due in [each for each in state.interfaces if each.left and each.left()]:
                state.interfaces.remove(due)
                for interface, role in due.made:
                    enis = ec2_backends[place[0]][place[1]].enis
                    subnets = [enis[interface].subnet.id] if interface in enis else []
                    if role and not may_delete_interfaces(place, role, subnets):
                        logger.warning("%s stays: %s has no %s any more", interface, role, _RIGHT)
                    else:
                        enis.pop(interface, None)
