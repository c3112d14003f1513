"""What deploying one template over another does to the stack, and to each endpoint in it.

Start with :func:`stack_change`. It reads what CloudFormation does with each resource
(:mod:`resource_changes`), whose resource it is by the construct's path, and what SageMaker, EC2 and
callers make of it (:mod:`refusals`, :mod:`callers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors.frozen import dataclass
from .callers import lost_by_callers
from .effects import Effect
from .property_values import changed_values
from .refusals import overlapping_subnets, refused_variants, taken_name
from .resource_changes import ResourceChange, ResourceEffect, Template, changes_of
from .resource_types import is_custom, is_known, words_of

ENDPOINT = "AWS::SageMaker::Endpoint"
CONFIGURATION = "AWS::SageMaker::EndpointConfig"
_MODEL = "AWS::SageMaker::Model"
#: What CloudFormation sends with the configuration that serves already.
_WITH_SAME_CONFIGURATION = {
    "DeploymentConfig": "the deployment policy",
    "RetainAllVariantProperties": "whether updates keep the number of instances",
    "ExcludeRetainedVariantProperties": "which values of variants an update keeps",
}
_SAME_CONFIGURATION = (
    "an update with the configuration that serves already, which SageMaker may refuse, ignore or "
    "deploy: change it together with the configuration (docs/explanation/updates.md)"
)
_NAME_OR_METRIC = (
    "CloudFormation makes the new one before it deletes the old one, and would give it the same name, "
    "or the same metric on the same target, which AWS refuses"
)
_VERBS = {
    ResourceEffect.ADDED: "adds",
    ResourceEffect.DELETED: "removes",
    ResourceEffect.REPLACED: "replaces",
    ResourceEffect.REFUSED: "cannot replace",
    ResourceEffect.UPDATED: "changes",
    ResourceEffect.MAY_BE_REPLACED: "changes",
}
_MOST_NAMED = 4  # resources in a row


class EndpointOutcome(NamedTuple):
    """What becomes of an endpoint."""

    effect: Effect
    text: str  # what is done, and what callers see of it


class ServedEndpoint(NamedTuple):
    """What a template says of how an endpoint is updated."""

    keeps_counts: bool  # whether an update keeps the number of instances that run
    rollback_alarms: int  # how many alarms roll a deployment back


@dataclass(frozen=True)
class ChangeRow:
    """One thing that a deployment does to the resources of an endpoint, or to shared ones."""

    effect: Effect
    endpoint: str  # the endpoint's key; empty for what all share
    text: str
    resource_type: str = ""  # empty for what is of several types

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON-safe data."""
        return {
            "endpoint": self.endpoint or None,
            "type": self.resource_type or None,
            "effect": self.effect.word,
            "what": self.text,
        }


@dataclass(frozen=True)
class StackChange:
    """What deploying one template over another does."""

    rows: tuple[ChangeRow, ...]  # what endpoints share first, then endpoint by endpoint
    outcomes: Mapping[str, EndpointOutcome]  # by the endpoint's key

    @property
    def effect(self) -> Effect:
        """The greatest of all."""
        effects = [row.effect for row in self.rows]
        effects += [outcome.effect for outcome in self.outcomes.values()]
        return max(effects, default=Effect.NOTHING)


def stack_change(before: Template, after: Template, keys: Sequence[str]) -> StackChange:
    """Compare the templates of a stack with endpoints of these keys, before or after."""
    changes = changes_of(before, after)
    owners = {name: _owner(change, keys) for name, change in changes.items()}
    refusal = overlapping_subnets(before, after, changes)
    outcomes = {}
    for key in keys:
        own = {name: change for name, change in changes.items() if owners[name] == key}
        outcome = _outcome(key, own, changes, before, after)
        if refusal and outcome.effect is not Effect.NEW:
            outcome = EndpointOutcome(Effect.REFUSED, refusal)
        outcomes[key] = outcome
    rows = []
    if refusal:
        rows.append(ChangeRow(Effect.REFUSED, "", refusal, "AWS::EC2::Subnet"))
    for text in lost_by_callers(before, after, changes):
        rows.append(ChangeRow(Effect.DELETED, "", text))
    for key in ("", *keys):
        own = {name: change for name, change in changes.items() if owners[name] == key}
        rows += _rows(key, own, outcomes.get(key), before, after)
    return StackChange(tuple(rows), outcomes)


def served_endpoint(template: Template, key: str) -> ServedEndpoint:
    """How the endpoint of this key is updated."""
    for resource in template["Resources"].values():
        if resource["Type"] == ENDPOINT and _key_of(resource) == key:
            properties = resource["Properties"]
            rollback = properties.get("DeploymentConfig", {}).get("AutoRollbackConfiguration", {})
            keeps_counts = bool(properties.get("RetainAllVariantProperties"))
            return ServedEndpoint(keeps_counts, len(rollback.get("Alarms", ())))
    raise KeyError(key)


def _key_of(resource: Mapping[str, Any]) -> str:
    return str(resource["Metadata"]["aws:cdk:path"].split("/")[1])


def _owner(change: ResourceChange, keys: Sequence[str]) -> str:
    """The key of the endpoint in whose construct a resource stands; empty for shared ones."""
    parts = change.path.split("/")
    return parts[1] if len(parts) > 1 and parts[1] in keys else ""


def _outcome(
    key: str,
    own: Mapping[str, ResourceChange],
    changes: Mapping[str, ResourceChange],
    before: Template,
    after: Template,
) -> EndpointOutcome:
    """What becomes of one endpoint; the text of a deployment is left to the plan."""
    endpoints = (change for change in own.values() if change.kind == ENDPOINT)
    endpoint = next(endpoints, None)
    if endpoint is None:
        return EndpointOutcome(Effect.NOTHING, "it stays as it is")
    old = before["Resources"].get(endpoint.logical_id)
    new = after["Resources"].get(endpoint.logical_id)
    if endpoint.effect is ResourceEffect.DELETED:
        text = f"{_name(old)}, with its model, alarms and dashboard: whoever invokes it fails"
        return EndpointOutcome(Effect.DELETED, text)
    if endpoint.effect is not ResourceEffect.ADDED:
        kept = _kept(key, endpoint, own, changes, before, after)
        if kept is not None:
            return kept
    taken = taken_name(before, _name(new))
    if taken:
        return EndpointOutcome(Effect.REFUSED, taken)
    if endpoint.effect is ResourceEffect.ADDED:
        return EndpointOutcome(Effect.NEW, f"an endpoint {_name(new)}")
    was, now = _name(old), _name(new)
    return EndpointOutcome(
        Effect.REPLACED,
        f"{now} comes up beside {was}, then {was} is deleted; whoever invokes it by that name is "
        "served until then, and fails from then on",
    )


def _kept(
    key: str,
    endpoint: ResourceChange,
    own: Mapping[str, ResourceChange],
    changes: Mapping[str, ResourceChange],
    before: Template,
    after: Template,
) -> EndpointOutcome | None:
    """What becomes of an endpoint that is not replaced; None of one that is."""
    if endpoint.effect in (ResourceEffect.REPLACED, ResourceEffect.REFUSED):
        return None
    replaced = (ResourceEffect.REPLACED, ResourceEffect.REFUSED)
    if any(one.kind == CONFIGURATION and one.effect in replaced for one in own.values()):
        refused = refused_variants(own, before, after)
        return (
            EndpointOutcome(Effect.REFUSED, refused)
            if refused
            else EndpointOutcome(Effect.DEPLOYMENT, "")
        )
    sent = [
        words for name, words in _WITH_SAME_CONFIGURATION.items() if name in endpoint.properties
    ]
    if sent:
        return EndpointOutcome(Effect.NOT_KNOWN, f"{', '.join(sent)}: {_SAME_CONFIGURATION}")
    touched = [name for name, change in changes.items() if change.effect is not ResourceEffect.LEFT]
    if any(name in own for name in touched) or _models_wait_for(own, touched, before, after):
        return EndpointOutcome(Effect.IN_PLACE, "it serves on with the instances that it has")
    return EndpointOutcome(Effect.NOTHING, "it stays as it is")


def _models_wait_for(
    own: Iterable[str], touched: Iterable[str], before: Template, after: Template
) -> bool:
    """Whether an endpoint's models wait for what changes, such as what several have on one role."""
    waited: set[str] = set()
    for template in (before, after):
        for name in own:
            resource = template["Resources"].get(name, {})
            if resource.get("Type") == _MODEL:
                waited |= set(resource.get("DependsOn", ()))
    return not waited.isdisjoint(touched)


def _name(endpoint: Mapping[str, Any] | None) -> str:
    name = (endpoint or {}).get("Properties", {}).get("EndpointName")
    return name if isinstance(name, str) else "the endpoint"


def _rows(
    key: str,
    own: Mapping[str, ResourceChange],
    outcome: EndpointOutcome | None,
    before: Template,
    after: Template,
) -> Iterator[ChangeRow]:
    """The rows of an endpoint's resources, or of shared ones; none of what only comes or goes whole."""
    whole = outcome is not None and outcome.effect in (Effect.NEW, Effect.DELETED)
    if whole:
        return
    by_kind: dict[tuple[str, ResourceEffect], list[ResourceChange]] = {}
    tagged = [change for change in own.values() if change.properties == {"Tags"}]
    for change in own.values():
        if change.effect is ResourceEffect.LEFT or change.kind == ENDPOINT or change in tagged:
            continue
        by_kind.setdefault((change.kind, change.effect), []).append(change)
    if tagged:
        text = f"changes the tags of {len(tagged)} resource{'s' * (len(tagged) != 1)}"
        yield ChangeRow(Effect.IN_PLACE, key, text)
    others: dict[str, list[str]] = {}
    for (kind, effect), group in by_kind.items():
        done = _effect(kind, effect, outcome)
        counted = _counted(kind, len(group))
        if done is Effect.IN_PLACE and not (words_of(kind).of_values and _has_values(group)):
            others.setdefault(_VERBS[effect], []).append(counted)
            continue
        names = _named(key, group, before, after)
        text = f"{_VERBS[effect]} {counted}: {names}{_consequence(kind, effect, done)}"
        yield ChangeRow(done, key, text, kind)
    if others:
        texts = [f"{verb} {', '.join(counted)}" for verb, counted in others.items()]
        yield ChangeRow(Effect.IN_PLACE, key, "; ".join(texts))


def _has_values(group: Sequence[ResourceChange]) -> bool:
    return group[0].effect in (ResourceEffect.UPDATED, ResourceEffect.REPLACED)


def _effect(kind: str, effect: ResourceEffect, outcome: EndpointOutcome | None) -> Effect:
    """What a change of a resource is to whoever uses the stack."""
    words = words_of(kind)
    if not is_known(kind):
        return Effect.NOT_KNOWN
    if kind in (CONFIGURATION, _MODEL):
        stays = effect is ResourceEffect.UPDATED or outcome is None
        return Effect.IN_PLACE if stays else Effect.DEPLOYMENT
    if effect is ResourceEffect.REFUSED:
        return Effect.REFUSED
    if effect is ResourceEffect.REPLACED and words.replaced:
        return Effect.REPLACED
    if effect is ResourceEffect.DELETED and words.deleted:
        return Effect.DELETED
    if effect is ResourceEffect.ADDED and words.is_new_to_users:
        return Effect.NEW
    if effect is ResourceEffect.MAY_BE_REPLACED and not is_custom(kind):
        return Effect.NOT_KNOWN
    return Effect.IN_PLACE


def _counted(kind: str, count: int) -> str:
    noun = words_of(kind).noun
    if count == 1:
        return f"1 {noun}"
    first, of, rest = noun.partition(" of ")
    plural = f"{first[:-1]}ies" if first.endswith("y") and first[-2] not in "aeo" else f"{first}s"
    return f"{count} {plural}{of}{rest}"


def _named(key: str, group: Sequence[ResourceChange], before: Template, after: Template) -> str:
    """The resources by the ends of their paths, each with the values that change."""
    texts = []
    for change in group[:_MOST_NAMED]:
        name = change.path.partition("/")[2].removeprefix(f"{key}/") or change.logical_id
        values = changed_values(change, before, after) if words_of(change.kind).of_values else ""
        texts.append(f"{name} ({values})" if values else name)
    more = len(group) - _MOST_NAMED
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")


def _consequence(kind: str, effect: ResourceEffect, done: Effect) -> str:
    """What users notice of it, behind a semicolon; empty where there is nothing to say."""
    words = words_of(kind)
    text = ""
    if not is_known(kind):
        text = "unknown: see cdk diff"
    elif done is Effect.REFUSED:
        text = _NAME_OR_METRIC
    elif done is Effect.REPLACED:
        text = words.replaced
    elif done is Effect.DELETED:
        text = words.deleted
    return f"; {text}" if text else ""
