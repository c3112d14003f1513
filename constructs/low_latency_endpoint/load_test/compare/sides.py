"""The two sides of a comparison as SageMaker has them, which may differ in their routing only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...account.calls import Account
from ...account.endpoints import DeployedVariant, describe_model, existing_endpoint
from ...account.sessions import Unreadable
from ...errors import rule
from ..search.serving import ServingFleet, check_one_fleet, read_fleet

TWO_SIDES = rule(
    "LLT118",
    "a comparison needs two variants of one endpoint, or two endpoints",
    fix="Pass two variants of one endpoint (--variant random --variant least), or two "
    "endpoints. The variants' weights do not matter.",
    source="/sagemaker/latest/dg/model-ab-testing.html",
)
SAME_ROUTING = rule(
    "LLT119",
    "both sides use the same routing",
    fix="Give the variants different RoutingConfig.RoutingStrategy values.",
    source="/sagemaker/latest/APIReference/API_ProductionVariantRoutingConfig.html",
)
UNLIKE_SIDES = rule(
    "LLT172",
    "the sides of a comparison differ in more than their routing",
    fix="Give both sides the same model, instance type and number of instances. Two variants of one "
    "endpoint with equal weights have them.",
    source="/sagemaker/latest/dg/model-ab-testing.html",
)

#: The simpler strategy is the base: the difference is that of the other one against it.
_BASE_FIRST = {"RANDOM": 0, "LEAST_OUTSTANDING_REQUESTS": 1}


@dataclass(frozen=True)
class Side:
    """One variant, its instances and its routing."""

    endpoint: str
    fleet: ServingFleet
    # the strategy, by which the side is called; of PREFIX_AWARE with prefix length and concurrency
    # threshold
    routing: str

    @property
    def name(self) -> str:
        """Such as ``sentiment/primary``."""
        return f"{self.endpoint}/{self.fleet.variant}"

    @property
    def text(self) -> str:
        """The side in words."""
        kind = self.fleet.instance_type or "several types"
        return f"{self.name}: {self.fleet.instances} x {kind}, {self.routing}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes a difference less sure to be the routing's."""
        warnings = []
        if self.fleet.instances == 1:
            warnings.append(f"{self.name} has one instance: there is nothing to route")
        if self.fleet.scales:
            warnings.append(
                f"Scaling may change the instances of {self.name} meanwhile "
                f"({self.fleet.minimum} to {self.fleet.maximum})"
            )
        return tuple(warnings)

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {"label": self.routing, "endpoint": self.endpoint, **self.fleet.to_dict()}


def read_sides(
    account: Account, endpoints: Sequence[str], variants: Sequence[str] = ()
) -> tuple[Side, Side]:
    """Describe both sides, the base first.

    ``LLT118``, ``LLT119``, ``LLT140`` or ``LLT172`` where a comparison means nothing.
    """
    named = _named_variants(account, endpoints, variants)
    sides = []
    deployed = []
    for endpoint, variant in named:
        fleet = read_fleet(account, endpoint, variant)
        if fleet.parts:  # a side is one variant
            fleet = read_fleet(account, endpoint, fleet.variants[0])
        check_one_fleet(fleet, endpoint)
        found = existing_endpoint(account, endpoint)
        if not found.configuration:
            raise Unreadable(account.unknown[-1].why)
        sides.append(Side(endpoint, fleet, _routing(found.variants[fleet.variant])))
        deployed.append(found.variants[fleet.variant])
    one, two = sides
    if one.routing == two.routing:
        raise SAME_ROUTING.error(
            got=f"{one.routing} for {one.name} and {two.name}",
            allowed="different routing strategies",
        )
    on_one, on_two = (_instances(variant) for variant in deployed)
    if on_one != on_two or not _same_model(account, deployed):
        models = [variant.model_name for variant in deployed]
        raise UNLIKE_SIDES.error(
            got=f"{one.name} on {on_one} with the model {models[0]} and "
            f"{two.name} on {on_two} with the model {models[1]}",
            allowed="the same model on equally many instances of one type",
        )
    base, other = sorted(sides, key=lambda side: _BASE_FIRST.get(side.fleet.routing, 2))
    return base, other


def _named_variants(
    account: Account, endpoints: Sequence[str], variants: Sequence[str]
) -> list[tuple[str, str | None]]:
    """Endpoint and variant of each side; without a variant, the first one of the endpoint."""
    if len(endpoints) not in (1, 2) or len(variants) not in (0, 2):
        raise TWO_SIDES.error(
            got=f"{_counted(endpoints, 'endpoint')}, {_counted(variants, 'variant')}",
            allowed="one or two endpoints, and either no variant or two",
        )
    if len(endpoints) == 1 and not variants:
        variants = read_fleet(account, endpoints[0]).variants
        if len(variants) != 2:
            raise TWO_SIDES.error(
                got=f"{endpoints[0]} with {_counted(variants, 'variant')}",
                allowed="an endpoint of two variants, or --variant twice",
            )
    names: Sequence[str | None] = variants or (None, None)
    one = endpoints[0], names[0]
    two = endpoints[-1], names[1]
    if one == two:
        raise TWO_SIDES.error(
            got=f"{one[0]}/{one[1] or 'its first variant'} twice", allowed="two different sides"
        )
    return [one, two]


def _counted(names: Sequence[str], word: str) -> str:
    if not names:
        return f"no {word}s"
    return f"{len(names)} {word}{'s' if len(names) > 1 else ''} ({', '.join(names)})"


def _routing(variant: DeployedVariant) -> str:
    """The strategy, such as ``RANDOM`` or ``PREFIX_AWARE 1024/16``."""
    stated = variant.configured.get("RoutingConfig") or {}
    prefix = stated.get("PrefixAwareRoutingConfig")
    if prefix is None:
        return variant.routing
    return f"{variant.routing} {prefix['PrefixLength']}/{prefix['ConcurrencyThreshold']}"


def _instances(variant: DeployedVariant) -> str:
    """Their number and type, such as ``5 x ml.g5.xlarge``; of instance pools, all types."""
    return f"{variant.current_instances} x {' or '.join(variant.instance_types)}"


def _same_model(account: Account, variants: Sequence[DeployedVariant]) -> bool:
    """Whether both variants run the same containers; models of two names may."""
    one, two = (variant.model_name for variant in variants)
    if one is None or two is None:
        return one == two
    return _containers(describe_model(account, one)) == _containers(describe_model(account, two))


def _containers(model: Mapping[str, Any]) -> list[Any]:
    return model.get("Containers") or [model.get("PrimaryContainer")]
