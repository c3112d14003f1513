"""What the variants of one endpoint demand of each other, with the line of each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors.findings import Finding, Place, finding
from ..plan.instance_types import instance_facts
from ..plan.rules import (
    ALL_WEIGHTS_ZERO,
    KMS_WITH_LOCAL_STORAGE,
    ROLLING_NEEDS_ONE_VARIANT,
    SHADOW_OF_ONE_VARIANT,
    VARIANT_NAMED_TWICE,
)
from .instance_pools import stated_pools
from .model_base import mapping_of


def stated_variants(given: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The variants beside the first as the file has them, each with its place."""
    variants = mapping_of(given, "variants")
    for name in variants:
        yield ("variants", str(name)), mapping_of(variants, name)
    if shadow := mapping_of(given, "shadow"):
        yield ("shadow",), shadow


def variants_and_first(given: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """What each variant runs with, the first one's first, on each of its types: what a further one
    leaves out is the first one's."""
    yield (), given
    for index, pool in enumerate(stated_pools(given)):
        if pool.get("instance_type") != given.get("instance_type"):
            yield (("instance_pools", index), {**given, "instance_type": pool.get("instance_type")})
    for place, stated in stated_variants(given):
        own = {
            name: stated[name]
            for name in ("containers", "instance_type")
            if stated.get(name) not in (None, [], ())
        }
        if own:
            yield place, {**given, **own}


def _volume_keys(given: Mapping[str, Any]) -> Iterator[Finding]:
    """A key for volumes on types that have storage of their own."""
    if "kms_key_arn" not in given or given.get("kms_key_with_local_storage") is True:
        return
    for place, stated in variants_and_first(given):
        facts = instance_facts(str(stated.get("instance_type")))
        if facts and facts.local_storage_gb:
            yield finding(
                KMS_WITH_LOCAL_STORAGE,
                *(place or ("kms_key_arn",)),
                got=f"{facts.name} with {facts.local_storage_gb} GB of local storage",
                allowed="no key, or a type without local storage",
                fix="Remove kms_key_arn, choose another type, or set "
                "kms_key_with_local_storage: true if your account accepts it.",
            )


def variant_checks(given: Mapping[str, Any]) -> Iterator[Finding]:
    """Names differ, somebody gets the requests, and a shadow stands beside one variant."""
    variants, shadow = mapping_of(given, "variants"), mapping_of(given, "shadow")
    yield from _volume_keys(given)
    first = given.get("variant_name", "primary")
    for place, name in (*((("variants", name), name) for name in variants), *_named(shadow)):
        if name == first:
            yield finding(
                VARIANT_NAMED_TWICE, *place, got=name, allowed=f"another name than {first}"
            )
    if variants and shadow:
        yield finding(
            SHADOW_OF_ONE_VARIANT,
            "shadow",
            got=f"{shadow.get('name')} beside {', '.join([str(first), *map(str, variants)])}",
            allowed="variants, or a shadow",
        )
    weights = [mapping_of(variants, name).get("weight", 1) for name in variants]
    if given.get("variant_weight", 1) == 0 and all(weight == 0 for weight in weights):
        yield finding(
            ALL_WEIGHTS_ZERO, "variant_weight", got="0 of all", allowed="one weight above 0"
        )
    if variants and "rolling" in mapping_of(given, "deployment"):
        yield finding(
            ROLLING_NEEDS_ONE_VARIANT,
            "deployment",
            "rolling",
            got=f"{1 + len(variants)} variants",
            allowed="1",
        )


def _named(shadow: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    if "name" in shadow:
        yield ("shadow", "name"), shadow["name"]
