"""What deploying one template over another does to the stack, and to each endpoint in it.

Start with :func:`stack_change`. What CloudFormation does with each resource is in
:mod:`resource_changes`, what SageMaker, EC2 and callers make of it in :mod:`endpoint_outcomes`,
:mod:`refusals` and :mod:`callers`. Here it becomes rows of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .callers import lost_by_callers
from .effects import ChangeRow, Effect, EndpointOutcome, StackChange
from .endpoint_outcomes import endpoint_outcome
from .property_values import changed_values
from .refusals import overlapping_subnets
from .resource_changes import ResourceChange, ResourceEffect
from .resource_types import is_custom, is_known, words_of
from .stack_update import CONFIGURATION, ENDPOINT, MODEL, StackUpdate

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
_BEHIND_NOUN = re.compile(r"(?= of | for |, )")
_ENDS_IN_IES = re.compile(r"[^aeo]y$")


def stack_change(update: StackUpdate) -> StackChange:
    """What becomes of a stack: of each endpoint, and of the resources, in rows."""
    outcomes = {key: endpoint_outcome(update, key) for key in update.keys}
    rows = []
    refusal = overlapping_subnets(update)
    if refusal:
        rows.append(ChangeRow(Effect.REFUSED, "", refusal, "AWS::EC2::Subnet"))
        for key, outcome in outcomes.items():
            if outcome.effect is not Effect.NEW:
                outcomes[key] = EndpointOutcome(Effect.REFUSED, refusal)
    rows += [ChangeRow(Effect.DELETED, "", text) for text in lost_by_callers(update)]
    rows += _rows(update, "", None)
    for key, outcome in outcomes.items():
        if outcome.effect not in (Effect.NEW, Effect.DELETED):  # whose resources say nothing more
            rows += _rows(update, key, outcome)
    return StackChange(tuple(rows), outcomes)


def _rows(update: StackUpdate, key: str, outcome: EndpointOutcome | None) -> Iterator[ChangeRow]:
    """The rows of an endpoint's resources, or of shared ones."""
    tagged = 0
    groups: dict[tuple[str, ResourceEffect], list[ResourceChange]] = {}
    for change in update.changes_for(key):
        if change.properties == {"Tags"}:
            tagged += 1
        elif change.effect is not ResourceEffect.LEFT and change.kind != ENDPOINT:
            groups.setdefault((change.kind, change.effect), []).append(change)
    if tagged:
        text = f"changes the tags of {tagged} resource{'s' * (tagged != 1)}"
        yield ChangeRow(Effect.IN_PLACE, key, text)
    others: dict[str, list[str]] = {}
    for (kind, effect), group in groups.items():
        done = _effect(kind, effect, outcome)
        counted = _counted(kind, len(group))
        if done is Effect.IN_PLACE and not (words_of(kind).of_values and _has_values(group)):
            others.setdefault(_VERBS[effect], []).append(counted)
        else:
            names = _named(update, key, group)
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
    if kind in (CONFIGURATION, MODEL):
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
    """How many of a type, with its noun in the plural."""
    noun = words_of(kind).noun
    if count == 1:
        return f"1 {noun}"
    first, *rest = _BEHIND_NOUN.split(noun, maxsplit=1)
    plural = f"{first[:-1]}ies" if _ENDS_IN_IES.search(first) else f"{first}s"
    return f"{count} {plural}{''.join(rest)}"


def _named(update: StackUpdate, key: str, group: Sequence[ResourceChange]) -> str:
    """The resources by the ends of their paths, each with the values that change."""
    texts = []
    for change in group[:_MOST_NAMED]:
        name = change.path.partition("/")[2].removeprefix(f"{key}/") or change.logical_id
        values = changed_values(update, change) if words_of(change.kind).of_values else ""
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
