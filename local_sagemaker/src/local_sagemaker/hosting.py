"""What SageMaker hosting and Application Auto Scaling remember, per account and region."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Interfaces:
    """The network interfaces of one endpoint's fleet; see `hosting_interfaces`."""

    endpoint: str
    config: str
    made: list[tuple[str, str | None]]  # each with the role that SageMaker needs to delete it
    left: Callable[[], bool] | None = None
    """Set once the fleet has ended: whether the time has come for them to go."""


@dataclass
class Hosting:
    """SageMaker's models, endpoint configurations, endpoints, components, optimization jobs."""

    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    endpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Inference components, as Describe gives them."""
    optimizations: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Optimization jobs, as Describe gives them."""
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
    """What policies did, the newest first."""


_hosting: dict[tuple[str, str], Hosting] = {}
_scaling: dict[tuple[str, str], Scaling] = {}


def hosting(account: str, region: str) -> Hosting:
    return _hosting.setdefault((account, region), Hosting())


def all_hosting() -> list[tuple[tuple[str, str], Hosting]]:
    return list(_hosting.items())


def scaling(account: str, region: str) -> Scaling:
    return _scaling.setdefault((account, region), Scaling())


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


def variant_resource_id(endpoint: str, variant: str) -> str:
    """Write the scalable resource id of an endpoint's variant."""
    return f"endpoint/{endpoint}/variant/{variant}"
