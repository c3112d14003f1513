"""Which instances answer an endpoint's requests: its variants, their number, type and routing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...account.calls import Account
from ...account.endpoints import (
    ENDPOINT_EXISTS,
    DeployedVariant,
    describe_endpoint,
    existing_endpoint,
)
from ...account.scaling import scalable_targets
from ...errors import did_you_mean, rule
from .limit_search import INSTANCES_KNOWN

ONE_INSTANCE_TYPE = rule(
    "LLT137",
    "variants of several instance types have no common limit of one instance",
    fix="Give --variant, one at a time.",
    source="/sagemaker/latest/APIReference/API_ProductionVariant.html",
)


@dataclass(frozen=True)
class ServingFleet:
    """The instances that requests go to, as they were when they were read."""

    # Of an endpoint that divides its requests among several variants, all of theirs together: then
    # ``variant`` names them all, ``instance_type`` and ``routing`` are empty where they differ.

    variant: str = ""
    variants: tuple[str, ...] = ()
    instance_type: str = ""
    instances: int | None = None
    routing: str = ""
    minimum: int | None = None
    maximum: int | None = None
    unknown: tuple[str, ...] = ()
    parts: tuple[ServingFleet, ...] = ()

    @property
    def scales(self) -> bool:
        """Whether scaling may change the number of instances."""
        return self.maximum is not None and self.maximum != self.minimum

    @property
    def each(self) -> tuple[ServingFleet, ...]:
        """Each variant on its own."""
        return self.parts or (self,)

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        content: dict[str, Any] = {
            "variant": self.variant,
            "instance_type": self.instance_type,
            "instances": self.instances,
            "routing": self.routing,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "unknown": list(self.unknown),
        }
        if self.parts:
            content["variants"] = [each.to_dict() for each in self.parts]
        return content


def read_fleet(account: Account, endpoint: str, variant: str | None = None) -> ServingFleet:
    """Describe what answers."""
    found = account.known("endpoint", existing_endpoint, endpoint)
    if found is None:
        return ServingFleet(
            variant or "",
            unknown=tuple(
                f"instances: {each.why}" for each in account.unknown if each.what == "endpoint"
            ),
        )
    running = {name: each for name, each in found.variants.items() if each.running}
    if variant is not None and variant not in running:
        raise ENDPOINT_EXISTS.error(
            got=f"variant {variant} of {endpoint}",
            allowed=", ".join(running) or "a variant of the endpoint",
            what="the variant must exist",
            fix=did_you_mean(variant, running) or "Name one of these with --variant.",
        )
    # Those that get requests; a variant whose weight is not told may.
    answering = [
        name
        for name, each in running.items()
        if name == variant or (variant is None and each.running.get("CurrentWeight") != 0.0)
    ]
    targets = account.known("scaling", scalable_targets, endpoint, answering) or {}
    fleet = _together([_one(running[name], targets.get(name, {})) for name in answering])
    return replace(
        fleet,
        variants=tuple(running),
        unknown=tuple(f"{each.what}: {each.why}" for each in account.unknown),
    )


def _one(variant: DeployedVariant, target: Mapping[str, Any]) -> ServingFleet:
    return ServingFleet(
        variant=variant.name,
        instance_type=_same(variant.instance_types),
        instances=variant.current_instances,
        routing=variant.routing,
        minimum=target.get("MinCapacity"),
        maximum=target.get("MaxCapacity"),
    )


def _together(parts: list[ServingFleet]) -> ServingFleet:
    if len(parts) == 1:
        return parts[0]
    counts = [each.instances for each in parts if each.instances is not None]
    fleet = ServingFleet(
        variant=", ".join(each.variant for each in parts),
        instance_type=_same(each.instance_type for each in parts),
        instances=sum(counts) if parts and len(counts) == len(parts) else None,
        routing=_same(each.routing for each in parts),
        parts=tuple(parts),
    )
    if all(each.maximum is None for each in parts):
        return fleet
    # A variant that does not scale stays as it is.
    return replace(
        fleet,
        minimum=sum(
            (each.instances or 0) if each.minimum is None else each.minimum for each in parts
        ),
        maximum=sum(
            (each.instances or 0) if each.maximum is None else each.maximum for each in parts
        ),
    )


def _same(values: Any) -> str:
    found = set(values)
    return str(found.pop()) if len(found) == 1 else ""


def read_instances(account: Account, endpoint: str, fleet: ServingFleet) -> int | None:
    """How many instances of the fleet's variants serve now; ``None`` where that is not known."""
    described = account.known("endpoint", describe_endpoint, endpoint) or {}
    counts = {
        each["VariantName"]: each.get("CurrentInstanceCount")
        for each in described.get("ProductionVariants", [])
    }
    found = [counts.get(each.variant) for each in fleet.each]
    return None if None in found else sum(count for count in found if count is not None)


def instances_of_one_kind(fleet: ServingFleet, endpoint: str, component: str | None = None) -> int:
    """The number by which a limit is divided; refused where nobody can say what one instance is."""
    where = f"endpoint {endpoint}"
    if component is not None:
        raise INSTANCES_KNOWN.error(
            got=f"inference component {component}",
            allowed="--instances",
            where=where,
            what="how many copies of an inference component answer must be told",
            fix="Give --instances the number of its copies; the limit is then that of one copy.",
        )
    check_one_type(fleet, endpoint)
    if not fleet.instances:
        why = "; ".join(each for each in fleet.unknown if each.startswith("instances"))
        raise INSTANCES_KNOWN.error(
            got=why or f"{fleet.instances} instances", where=where, allowed="a number of instances"
        )
    return fleet.instances


def check_one_type(fleet: ServingFleet, endpoint: str) -> None:
    """Variants of several instance types have no limit of one instance."""
    if len({each.instance_type for each in fleet.parts}) > 1:
        raise ONE_INSTANCE_TYPE.error(
            got=", ".join(
                f"{each.variant} on {each.instance_type or 'an unknown type'}"
                for each in fleet.parts
            ),
            allowed="variants on one instance type, or one variant",
            where=f"endpoint {endpoint}",
        )
