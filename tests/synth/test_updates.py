"""An update is what AWS's schemas say of its two templates, and takes nothing away too early.

For each setting: a stack that has it is deployed over the same stack without it, and the other way.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from low_latency_endpoint.change.comparison import SettingsComparison, review
from low_latency_endpoint.change.effects import Effect
from low_latency_endpoint.change.resource_changes import ResourceEffect, changes_of
from low_latency_endpoint.change.resource_types import is_custom
from low_latency_endpoint.change.stack_change import stack_change
from low_latency_endpoint.change.stack_update import StackUpdate
from low_latency_endpoint.change.synthesis import DescribedStack
from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.options.option import Declared, Options, groups_in, options_of
from low_latency_endpoint.settings import Settings, load_settings
from tests.depth import sampled
from tools.fuzzing.agreement import text_of

from .names_and_rights import narrowed, shared_by_an_update
from .settings_changes import (
    ADOPTED,
    AT_ONCE,
    BASE,
    BUILT,
    CANARY,
    CAPTURE,
    CHALLENGED,
    DUMP,
    EXISTING,
    FIXED,
    GONE,
    HUB,
    LARGER,
    LENGTHS,
    LINEAR,
    LOCAL,
    OF_FILE,
    OF_MANY,
    OF_VLLM,
    OWN,
    PACKED,
    PEAKS,
    POOLS,
    PREFIX,
    PRIVATE,
    ROLLING,
    SCHEDULE,
    SECOND,
    SHADOWED,
    SLOW,
    STEPS,
    THREE_ZONES,
    TWO,
    VPCS,
    ZONE,
    Changes,
    below,
    changed,
)

Place = tuple[str, ...]
OF_HUB = {"hugging_face": HUB[".hugging_face"], "instance_type": HUB[".instance_type"]}
#: What a setting is tried in: the first of these that holds with it and without it.
WITHOUT: list[Changes] = [
    {},
    {**CANARY, **CAPTURE, **DUMP, **SLOW, **PREFIX, **SCHEDULE},
    {**HUB, **LINEAR, **LENGTHS, ".variants": {"b": {"weight": 1}}},
    {**POOLS, **OWN, **ROLLING, **PEAKS},
    {**below("", **TWO), **STEPS, **SHADOWED, ".warm_up.payload.target_container": "one"},
    {**BUILT, **AT_ONCE, ".warm_up": {"payload": OF_FILE, "keep_warm": {"every": "2m"}}},
    {**PRIVATE, ".canary": {"payload": OF_FILE}, ".metrics": {"enhanced": True}},
    {**OF_MANY, **CHALLENGED},
    {**OF_VLLM, ".alarms.tokens.kv_cache_use": 0.95},
    {**LOCAL, **SHADOWED},
    {**PACKED, ".variants": {"b": {"weight": 1, "scaling": {"scale_in_cooldown": "9m"}}}},
    {".shadow": {"name": "b", **OF_HUB}},
    {".variants": {"b": {"weight": 1, **OF_HUB}}},
    {".variants": {"b": {"containers": OWN[".containers"], "weight": 1}}},
    {".scaling": {"metric": "concurrency", "concurrency_target": 4}},
    ADOPTED,
    EXISTING,
]
#: Places of rights that settings are there to take away at once.
TO_NARROW = {"narrow_s3", "bidirectional_streaming", "narrow_policy", "openai", "endpoint_policy"}


def places(group: type[Options] = Settings, place: Place = ()) -> Iterator[tuple[Place, Declared]]:
    """Each setting, with its place: a list's first entry and a mapping's first key stand for all."""
    for declared in options_of(group):
        if declared.option is None:
            continue
        own = (*place, declared.option.key or declared.name)
        yield own, declared
        for inside in groups_in(declared.kind)[:1]:
            yield from places(inside, own)


def stated(values: Any, place: Place, value: Any) -> Any:
    """A copy in which a place has a value, or no value; groups around it are made where missing."""
    values = copy.deepcopy(values)
    at = values
    for name in place[:-1]:
        at = at.setdefault(name, {})
        if name in ("endpoints", "variants", "peaks"):
            at = at.setdefault(next(iter(at), "b"), {})
        if isinstance(at, list):
            at = at[0]
    if value is GONE:
        at.pop(place[-1], None)
    else:
        at[place[-1]] = value
    return values


def example_of(declared: Declared) -> Any:
    """A value that is not the default."""
    assert declared.option is not None
    if declared.option.example is None:
        return declared.default is not True
    return declared.option.example


@cache
def loaded(text: str, folder: Path) -> Settings | None:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        return load_settings(path)
    except SettingsError:
        return None


def pair(place: Place, declared: Declared, folder: Path) -> tuple[Settings, Settings] | None:
    """Settings without a value, or with another one, and with it, which are accepted and differ."""
    for base in WITHOUT:
        values = changed(BASE, base)
        try:
            later = loaded(text_of(stated(values, place, example_of(declared))), folder)
            formers = [loaded(text_of(stated(values, place, GONE)), folder)]
        except (AttributeError, IndexError, TypeError):  # another kind of value stands there
            continue
        formers.append(loaded(text_of(values), folder))
        for former in formers:
            if former is not None and later is not None and former != later:
                return former, later
    return None


PLACES = list(places())


@pytest.mark.parametrize(
    ("place", "declared"), sampled(PLACES, 10), ids=[".".join(place) for place, _ in PLACES]
)
def test_an_update_is_what_the_schemas_say(place: Place, declared: Declared, folder: Path) -> None:
    settings = pair(place, declared, folder)
    if settings is None:
        pytest.skip("no example of it goes with these settings")
    one, other = map(DescribedStack, settings)
    for before, after in ((one, other), (other, one)):
        comparison = SettingsComparison(before, after)
        old, new = before.template, after.template
        changes = changes_of(old, new)
        assert {name: change.effect for name, change in changes.items()} == expected(old, new)
        unchanged = all(change.effect is ResourceEffect.LEFT for change in changes.values())
        assert (comparison.effect is Effect.NOTHING) == (unchanged and not comparison.stack.rows)
        assert not narrowed(old, new) or place[-1] in TO_NARROW
        assert not shared_by_an_update(old, new) or comparison.effect is Effect.REFUSED
        assert stack_change(StackUpdate(old, old, comparison.keys)).effect is Effect.NOTHING


@pytest.mark.nightly
def test_most_settings_are_tried(folder: Path) -> None:
    tried = [place for place, declared in PLACES if pair(place, declared, folder)]
    assert len(tried) > 0.65 * len(PLACES)


def expected(before: dict[str, Any], after: dict[str, Any]) -> dict[str, ResourceEffect]:
    """What becomes of each resource by AWS's schemas: a replaced one has another logical ID."""
    old, new = before["Resources"], after["Resources"]
    replaced: set[str] = set()
    size = -1
    while size != len(replaced):
        size = len(replaced)
        effects = {
            name: effect_of(old.get(name), renamed(new.get(name), replaced))
            for name in {**old, **new}
        }
        replaced = {name for name, effect in effects.items() if effect is ResourceEffect.REPLACED}
    for name in replaced:
        if takes_name(old[name], renamed(new[name], replaced)):
            effects[name] = ResourceEffect.REFUSED
    return effects


def renamed(resource: dict[str, Any] | None, names: set[str]) -> dict[str, Any] | None:
    """A resource that refers to others by other logical IDs."""
    text = json.dumps(resource)
    for name in names:
        text = text.replace(f'"{name}"', f'"{name} anew"').replace(f"${{{name}", f"${{{name} anew")
    renamed_resource: dict[str, Any] | None = json.loads(text)
    return renamed_resource


def effect_of(old: dict[str, Any] | None, new: dict[str, Any] | None) -> ResourceEffect:
    if old is None or new is None:
        return ResourceEffect.ADDED if old is None else ResourceEffect.DELETED
    was, now = (one.get("Properties", {}) for one in (old, new))
    kind = new["Type"]
    if is_custom(kind):
        create_only, conditional = ["ServiceToken"], sorted({*was, *now})
    else:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
        create_only = schema.get("createOnlyProperties", [])
        conditional = schema.get("conditionalCreateOnlyProperties", [])
    if any(values(was, path) != values(now, path) for path in create_only):
        return ResourceEffect.REPLACED
    if any(values(was, path) != values(now, path) for path in conditional):
        return ResourceEffect.MAY_BE_REPLACED
    return ResourceEffect.UPDATED if was != now else ResourceEffect.LEFT


def values(properties: dict[str, Any], path: str) -> Any:
    """What stands at a schema's path; a function of CloudFormation stands for all below it."""
    value: Any = properties
    for part in path.removeprefix("/properties/").split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def takes_name(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a new resource has the name of the one that it replaces."""
    kind = new["Type"].rpartition("::")[2]
    name = "Name" if kind == "Parameter" else f"{kind.removeprefix('Scaling')}Name"
    was, now = old["Properties"], new["Properties"]
    target = was.get("ScalingTargetId") == now.get("ScalingTargetId")
    return name in now and was.get(name) == now[name] and target


#: What becomes of the stack and of its endpoint, where AWS's schemas alone do not say it.
BEYOND_THE_SCHEMAS: list[tuple[Changes, Changes, Effect, Effect]] = [
    # The key names the resources: the endpoint's own name is taken, as long as both are there.
    ({}, {".endpoint_name": "Sentiment"}, Effect.REFUSED, Effect.REFUSED),
    ({}, {".endpoint_name": "mood"}, Effect.REPLACED, Effect.REPLACED),
    ({}, {"endpoints.second": SECOND}, Effect.NEW, Effect.NOTHING),
    # A variant that is a scalable target keeps its name and type.
    ({}, {".instance_type": LARGER}, Effect.REFUSED, Effect.REFUSED),
    ({}, POOLS, Effect.REFUSED, Effect.REFUSED),
    ({}, {".variant_name": "blue"}, Effect.REFUSED, Effect.REFUSED),
    (CHALLENGED, {".variants": GONE}, Effect.REFUSED, Effect.REFUSED),
    (SHADOWED, {".shadow.name": "other"}, Effect.REFUSED, Effect.REFUSED),
    (FIXED, {".instance_type": LARGER}, Effect.DEPLOYMENT, Effect.DEPLOYMENT),
    # Subnets with room for more instances overlap those that are there.
    ({}, {".instances.max": 80}, Effect.REFUSED, Effect.REFUSED),
    ({}, THREE_ZONES, Effect.DEPLOYMENT, Effect.DEPLOYMENT),
    (THREE_ZONES, {"client_zones.ids": ["use1-az1", "use1-az2"]}, Effect.DELETED, Effect.DEPLOYMENT),
    # Another way of deploying is sent with the configuration that serves already.
    ({}, LINEAR, Effect.NOT_KNOWN, Effect.NOT_KNOWN),
    ({}, {".scaling": FIXED[".scaling"]}, Effect.NOT_KNOWN, Effect.NOT_KNOWN),
    (CANARY, {".deployment.rollback_on_alarms": False}, Effect.NOT_KNOWN, Effect.NOT_KNOWN),
    # What callers use goes, though every resource is updated in place.
    ({}, {"private_link.private_dns": False}, Effect.DELETED, Effect.NOTHING),
    (
        {"private_link.bidirectional_streaming": True},
        {"private_link.bidirectional_streaming": False},
        Effect.DELETED,
        Effect.IN_PLACE,
    ),
    ({"private_link.openai": True}, {"private_link.openai": False}, Effect.DELETED, Effect.NOTHING),
    ({ZONE: VPCS}, {ZONE: VPCS[:1]}, Effect.DELETED, Effect.NOTHING),
    # The policy of an interface endpoint named every endpoint, and then the stack's own.
    (
        {**EXISTING, "private_link": {"private_dns": True, "openai": True}},
        {"private_link.narrow_policy": True},
        Effect.DELETED,
        Effect.NOTHING,
    ),
    # Another folder of a model is no loss: the policy keeps the former one's until the next update.
    (
        {"network.narrow_s3": True, ".containers[0].data": {"s3_prefix": "s3://my-bucket/a/"}},
        {".containers[0].data": {"s3_prefix": "s3://my-bucket/b/"}},
        Effect.DEPLOYMENT,
        Effect.DEPLOYMENT,
    ),
    (
        {"network.narrow_s3": True, "network.s3_buckets": ["other-bucket"]},
        {"network.s3_buckets": []},
        Effect.DELETED,
        Effect.IN_PLACE,
    ),
    (ADOPTED, {"network.owner": "210987654321"}, Effect.DELETED, Effect.IN_PLACE),
    ({**FIXED, **CHALLENGED, ".variants.b.scaling": {"enabled": False}}, {".variants": GONE},
     Effect.DELETED, Effect.DEPLOYMENT),
    ({}, {"network.cidr": "10.1.0.0/16"}, Effect.REPLACED, Effect.DEPLOYMENT),
    ({}, EXISTING, Effect.DELETED, Effect.DEPLOYMENT),
    ({}, {"private_link.fips": True}, Effect.REPLACED, Effect.IN_PLACE),
    # Prices, and what the plan alone uses.
    ({}, {"prices": {"interface_endpoint": 0.02}, ".payload_bytes": 8}, Effect.NOTHING, Effect.NOTHING),
    ({}, {".tags.team": "nlp"}, Effect.IN_PLACE, Effect.IN_PLACE),
]  # fmt: skip


@pytest.mark.parametrize(("base", "change", "stack", "endpoint"), BEYOND_THE_SCHEMAS)
def test_what_aws_does_beyond_the_schemas(
    base: Changes, change: Changes, stack: Effect, endpoint: Effect, folder: Path
) -> None:
    former = changed(BASE, base)
    before, after = (loaded(text_of(one), folder) for one in (former, changed(former, change)))
    assert before is not None
    assert after is not None
    comparison = review(before, after)
    assert comparison.effect is stack
    assert comparison.outcomes["sentiment"].effect is endpoint
