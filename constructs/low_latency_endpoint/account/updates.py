"""What an update under way changes: the configuration and models to come against those that serve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..plan.secrets import looks_secret
from .calls import Account
from .endpoints import DeployedEndpoint, DeployedVariant, containers_of, describe_model

#: Of a variant or a configuration: compared in words of their own, or different in every one.
_TOLD_APART = {"VariantName", "ModelName", "InstanceType", "InitialInstanceCount", "RoutingConfig"}
_OF_EACH = {"EndpointConfigName", "EndpointConfigArn", "CreationTime", "ResponseMetadata"}
_VARIANTS = {"ProductionVariants", "ShadowProductionVariants"}
#: Of a container, what is told in words of its own.
_CONTAINER = {"ModelDataUrl": "model data", "ModelPackageName": "model package"}


def update_changes(
    account: Account, serving: DeployedEndpoint, coming: DeployedEndpoint
) -> tuple[str, ...]:
    """What differs, each difference in words; of a variant first. Models that are deleted raise."""
    changes: list[str] = []
    for name, variant in coming.variants.items():
        if name in serving.variants:
            of = f"{name}: " if len(coming.variants) > 1 else ""
            changes += [of + each for each in _of_variant(account, serving.variants[name], variant)]
        else:
            changes.append(f"a new variant {name}")
    changes += [f"no variant {name}" for name in serving.variants if name not in coming.variants]
    changes += [f"a new shadow {name}" for name in coming.shadows if name not in serving.shadows]
    changes += [f"no shadow {name}" for name in serving.shadows if name not in coming.shadows]
    changes += _others(serving.configuration, coming.configuration, _OF_EACH | _VARIANTS)
    return tuple(changes)


def _of_variant(account: Account, now: DeployedVariant, coming: DeployedVariant) -> Iterator[str]:
    yield from _models(account, now.model_name, coming.model_name)
    types = [", ".join(variant.instance_types) for variant in (now, coming)]
    yield from _changed("instance type", *types)
    yield from _changed("routing", now.routing, coming.routing)
    yield from _changed("instances", now.desired_instances, coming.desired_instances)
    yield from _others(now.configured, coming.configured, _TOLD_APART)


def _models(account: Account, now: str | None, coming: str | None) -> Iterator[str]:
    if now == coming or not now or not coming:
        yield from _changed("model", now, coming)
        return
    containers = [containers_of(describe_model(account, name)) for name in (now, coming)]
    pairs = list(zip(*containers, strict=False))
    changes = [change for pair in pairs for change in _of_container(*pair)]
    changes += _changed("containers", *map(len, containers))
    told = ", of the same image, data and environment" if not changes else ""
    yield f"model {now} to {coming}{told}"
    yield from changes


def _of_container(now: Mapping[str, Any], coming: Mapping[str, Any]) -> Iterator[str]:
    images = [str(each.get("Image") or "") for each in (now, coming)]
    short = [image.rpartition("/")[2] for image in images]
    yield from _changed("image", *(short if short[0] != short[1] else images))
    for key, word in _CONTAINER.items():
        yield from _changed(word, now.get(key), coming.get(key))
    before, after = (each.get("Environment") or {} for each in (now, coming))
    for name in sorted({*before, *after}):
        values = before.get(name), after.get(name)
        hidden = any(value and looks_secret(name, value) for value in values)
        if hidden and values[0] != values[1]:
            yield f"{name} of the environment, which looks like a secret"
        elif not hidden:
            yield from _changed(f"{name} of the environment", *values)
    yield from _others(now, coming, {*_CONTAINER, "Image", "Environment"})


def _changed(what: str, now: Any, coming: Any) -> Iterator[str]:
    if now != coming:
        absent = "none"
        yield f"{what} {now or absent} to {coming or absent}"


def _others(now: Mapping[str, Any], coming: Mapping[str, Any], told: set[str]) -> Iterator[str]:
    """Names of what else differs: its values may be long."""
    for key in sorted({*now, *coming} - told):
        if now.get(key) != coming.get(key):
            yield key
