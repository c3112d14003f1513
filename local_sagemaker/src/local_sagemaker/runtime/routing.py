"""Which variant and which instance takes a request.

Sources: SageMaker API reference, ProductionVariantRoutingConfig and PrefixAwareRoutingConfig;
"Minimize real-time inference latency by using Amazon SageMaker routing strategies" (AWS blog).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar


class Target(Protocol):
    """What can be chosen: an instance."""

    id: str
    outstanding: list[int]  # requests under way by router: each router sees only those it sent


T = TypeVar("T", bound=Target)
W = TypeVar("W")


@dataclass(frozen=True)
class Routing:
    """A variant's RoutingConfig."""

    strategy: str = "RANDOM"
    prefix_length: int = 0
    concurrency_threshold: int = 0

    @classmethod
    def of(cls, config: Mapping[str, Any] | None) -> Routing:
        """Read a RoutingConfig; without one RANDOM, as AWS does."""
        if not config:
            return cls()
        prefix = config.get("PrefixAwareRoutingConfig") or {}
        return cls(
            config["RoutingStrategy"],
            prefix.get("PrefixLength", 0),
            prefix.get("ConcurrencyThreshold", 0),
        )


def choose_weighted(
    choices: Sequence[W], weight: Callable[[W], float], generator: random.Random
) -> W | None:
    """Choose in proportion to weights; None when all of them are 0."""
    total = sum(weight(choice) for choice in choices)
    if total <= 0:
        return None
    point = generator.random() * total
    for choice in choices:
        point -= weight(choice)
        if point < 0:
            return choice
    return next(choice for choice in reversed(choices) if weight(choice) > 0)


def prefix_key(routing: Routing, body: bytes, prefix_id: str) -> bytes:
    """Give what ties requests to one instance: body bytes, X-Amzn-SageMaker-Prefix-Aware-Id."""
    if routing.strategy != "PREFIX_AWARE":
        return b""
    return prefix_id.encode() + b"\0" + body[: routing.prefix_length]


def choose_instance(
    instances: Sequence[T], routing: Routing, router: int, key: bytes, generator: random.Random
) -> T:
    if len(instances) == 1:
        return instances[0]
    if routing.strategy == "RANDOM":
        return generator.choice(instances)
    if routing.strategy == "PREFIX_AWARE":
        home = max(
            instances, key=lambda i: hashlib.blake2b(key + i.id.encode(), digest_size=8).digest()
        )
        if home.outstanding[router] < routing.concurrency_threshold:
            return home
        instances = [instance for instance in instances if instance is not home]
    # KV_AWARE too, which AWS falls back to for containers that tell nothing of their caches.
    fewest = min(instance.outstanding[router] for instance in instances)
    return generator.choice([i for i in instances if i.outstanding[router] == fewest])
