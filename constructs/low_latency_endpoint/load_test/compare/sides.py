"""The two sides of a comparison as SageMaker has them: how each routes, and what else differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...account.calls import Account
from ...account.endpoints import describe_model, existing_endpoint
from ...errors import rule
from ..engine.prompts import Prompts
from ..search.serving import ServingFleet, read_fleet

TWO_SIDES = rule(
    "LLT118",
    "a comparison needs two variants of one endpoint, or two endpoints",
    fix="Pass two variants of one endpoint (--variant random --variant least), or two "
    "endpoints. The variants' weights do not matter.",
    source="/sagemaker/latest/dg/model-ab-testing.html",
)

#: What a variant may have otherwise without the comparison losing its meaning, or what is
#: compared elsewhere: its instances as they are, its models by what is in them.
_OWN = {
    "VariantName",
    "RoutingConfig",
    "InitialVariantWeight",
    "InitialInstanceCount",
    "InstanceType",
    "ModelName",
}
_MODEL_OWN = {
    "ModelName",
    "ModelArn",
    "CreationTime",
    "ResponseMetadata",
    "DeploymentRecommendation",
}
_CONFIG = (
    "VpcConfig",
    "EnableNetworkIsolation",
    "DataCaptureConfig",
    "ExplainerConfig",
    "AsyncInferenceConfig",
    "ExecutionRoleArn",
)
_SHOWN = 60


@dataclass(frozen=True)
class Side:
    """One side."""

    endpoint: str
    fleet: ServingFleet  # its variant, instances, routing and scaling
    # the variant's and its endpoint configuration's other settings
    settings: Mapping[str, Any] = field(default_factory=dict)
    prefix_length: int | None = None  # of ``PREFIX_AWARE`` only, of whose routing they are a part
    concurrency_threshold: int | None = None

    @property
    def name(self) -> str:
        """Such as ``sentiment/primary``."""
        return f"{self.endpoint}/{self.fleet.variant}" if self.fleet.variant else self.endpoint

    @property
    def routing(self) -> str:
        """Its strategy with what belongs to it, such as ``PREFIX_AWARE 1024/16``."""
        if self.prefix_length is None:
            return self.fleet.routing
        return f"{self.fleet.routing} {self.prefix_length}/{self.concurrency_threshold}"

    @property
    def text(self) -> str:
        """The side in words."""
        routing = self.fleet.routing or "unknown routing"
        if self.prefix_length is not None:
            routing += (
                f" (prefix length {self.prefix_length:,}, "
                f"concurrency threshold {self.concurrency_threshold})"
            )
        count = "?" if self.fleet.instances is None else f"{self.fleet.instances}"
        return f"{self.name}: {count} x {self.fleet.instance_type or 'unknown type'}, {routing}"

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        content = {"endpoint": self.endpoint, **self.fleet.to_dict()}
        if self.prefix_length is not None:
            content["prefix_length"] = self.prefix_length
            content["concurrency_threshold"] = self.concurrency_threshold
        return content


@dataclass(frozen=True)
class Sides:
    """Both sides; the base routes at random, else by outstanding requests, where only one does."""

    base: Side
    other: Side
    differences: tuple[str, ...] = ()  # whatever differs but the routing

    @property
    def same_routing(self) -> bool:
        """Whether both are known to route alike, by the same settings."""
        return self.base.routing == self.other.routing != ""

    @property
    def known(self) -> bool:
        """Whether it is known how both route."""
        return bool(self.base.fleet.routing and self.other.fleet.routing)

    @property
    def labels(self) -> tuple[str, str]:
        """What they are called: by their routing, or by their names where that says nothing."""
        if self.known and not self.same_routing:
            if self.base.fleet.routing == self.other.fleet.routing:
                return self.base.routing, self.other.routing
            return self.base.fleet.routing, self.other.fleet.routing
        if self.base.endpoint == self.other.endpoint:
            return self.base.fleet.variant, self.other.fleet.variant
        return self.base.name, self.other.name

    def __iter__(self) -> Iterator[Side]:
        return iter((self.base, self.other))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes a difference less sure to be the routing's."""
        warnings = [
            f"The sides differ in more than routing: {difference}"
            for difference in self.differences
        ]
        if self.same_routing:
            warnings.append(
                f"Both sides route by {self.base.routing}: their difference says "
                "nothing about routing"
            )
        elif not self.known:
            warnings.append("How the sides route could not be read")
        for side in self:
            if side.fleet.instances == 1:
                warnings.append(f"{side.name} has one instance: there is nothing to route")
            if side.fleet.scales:
                warnings.append(
                    f"Scaling may change the instances of {side.name} meanwhile "
                    f"({side.fleet.minimum} to {side.fleet.maximum})"
                )
        return tuple(warnings)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be read, and why."""
        return tuple(dict.fromkeys(each for side in self for each in side.fleet.unknown))


def read_sides(account: Account, endpoints: Sequence[str], variants: Sequence[str] = ()) -> Sides:
    """Describe both sides."""
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
    names = [endpoints[0], endpoints[-1]]
    wanted: list[str | None] = [*variants] or [None, None]
    if names[0] == names[1] and wanted[0] == wanted[1]:
        raise TWO_SIDES.error(
            got=f"{names[0]}/{wanted[0] or 'its first variant'} twice",
            allowed="two different sides",
        )
    one, two = (_side(account, name, variant) for name, variant in zip(names, wanted, strict=True))
    models = _models(account, one, two)
    # The difference is that of the other strategy against RANDOM, in whatever order they came.
    if _place(two) < _place(one):
        one, two, models = two, one, models[::-1]
    return Sides(one, two, tuple(_differences(one, two, models)))


def _place(side: Side) -> int:
    """The simpler strategy is the base; those that are not known stay where they are."""
    order = ("RANDOM", "LEAST_OUTSTANDING_REQUESTS")
    return order.index(side.fleet.routing) if side.fleet.routing in order else len(order)


def _side(account: Account, endpoint: str, variant: str | None) -> Side:
    fleet = read_fleet(account, endpoint, variant)
    if fleet.parts:  # a side is one variant
        fleet = read_fleet(account, endpoint, fleet.variants[0])
    found = account.known("endpoint", existing_endpoint, endpoint)
    if found is None or fleet.variant not in found.variants:
        return Side(endpoint, fleet)
    listed_variant = found.variants[fleet.variant]
    # Both answers have it, as with the strategy.
    routing = (listed_variant.configured or listed_variant.running).get("RoutingConfig") or {}
    prefix = routing.get("PrefixAwareRoutingConfig") or {}
    return Side(
        endpoint,
        fleet,
        listed_variant.configured
        and {
            **listed_variant.configured,
            **{name: found.configuration[name] for name in _CONFIG if name in found.configuration},
        },
        prefix.get("PrefixLength"),
        prefix.get("ConcurrencyThreshold"),
    )


def _models(account: Account, one: Side, two: Side) -> list[Mapping[str, Any] | None]:
    """What the models are made of; the same for both where they have the same one."""
    names: list[Any] = [side.settings.get("ModelName") for side in (one, two)]
    if names[0] == names[1] or None in names:
        return [{}, {}]
    return [account.known("model", describe_model, name) for name in names]


def _differences(one: Side, two: Side, models: Sequence[Mapping[str, Any] | None]) -> Iterator[str]:
    pairs = [
        ("instance type", one.fleet.instance_type, two.fleet.instance_type),
        ("number of instances", one.fleet.instances, two.fleet.instances),
    ]
    for name in sorted({*one.settings, *two.settings} - _OWN):
        pairs.append((name, one.settings.get(name), two.settings.get(name)))
    for name, a, b in pairs:
        if a != b:
            yield f"{name} {_shown(a)} and {_shown(b)}"
    if None in models:
        yield (
            f"model {one.settings['ModelName']} and {two.settings['ModelName']}, which could "
            "not be compared"
        )
        return
    first, second = (
        {key: value for key, value in (model or {}).items() if key not in _MODEL_OWN}
        for model in models
    )
    for name in sorted({*first, *second}):
        if first.get(name) != second.get(name):
            yield f"model's {name} {_shown(first.get(name))} and {_shown(second.get(name))}"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _counted(names: Sequence[str], word: str) -> str:
    if not names:
        return f"no {word}s"
    return f"{len(names)} {word}{'s' if len(names) > 1 else ''} ({', '.join(names)})"


def prefix_doubts(sides: Sides, prompts: Prompts, *, openai: bool = False) -> Iterator[str]:
    """What makes prompts with shared prefixes say little about routing by them."""
    of_one = replace(prompts, prefixes=1)
    shared = sorted(_shared(of_one, number, openai) for number in range(_LOOKED_AT))
    common = shared[len(shared) // 2]
    whose = "turns of one conversation" if prompts.turns > 1 else "prompts of one prefix"
    for side in sides:
        if side.prefix_length is not None and side.prefix_length > common:
            what = "characters of the messages" if openai else "bytes of the body"
            yield (
                f"{side.name} routes by the first {side.prefix_length:,} {what}, and {whose} "
                f"share {common:,}: to PREFIX_AWARE no two begin alike. Give longer prompts, "
                "a higher shared_prefix, or another prefix length"
            )


_LOOKED_AT = 21


def _shared(prompts: Prompts, number: int, openai: bool) -> int:
    """The common beginning of two requests with one prefix, or of a conversation's first two requests."""
    _, turn = prompts.turn(number)
    first = number + (-turn % prompts.turns) * prompts.conversations
    one, other = (prompts.body(each) for each in (first, first + prompts.conversations))
    if openai:
        one, other = (
            "".join(message["content"] for message in json.loads(body)["messages"]).encode()
            for body in (one, other)
        )
    alike = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(alike) if a != b), min(len(one), len(other)))
