"""What becomes of the stack that settings describe: what its templates show, in words of its plans.

Start with :func:`described_change`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..settings.stack import Settings, region_of
from ..settings.variant_plans import planned_variants
from .app_context import unread_differences
from .capacity_warnings import lowered_ranges
from .claims import another_stack, claims, same_place
from .deployment_words import deployment_words
from .effects import ChangeRow, Effect, EndpointOutcome, StackChange
from .hub_models import lock_changes
from .refusals import endpoint_names
from .stack_change import stack_change
from .stack_update import StackUpdate, served_endpoint
from .synthesis import DescribedStack


def described_change(
    before: DescribedStack, after: DescribedStack, *, unchanged: bool
) -> StackChange:
    """What deploying one stack over the other does; no template is made where nothing differs."""
    if unchanged:
        return _unchanged(after.settings.endpoints)
    if another_stack(before.settings, after.settings):
        return _another_stack(before, after)
    return _of_templates(before, after)


def _of_templates(before: DescribedStack, after: DescribedStack) -> StackChange:
    """What the templates show, with the words that the settings and their plans have for it."""
    old, new = before.settings, after.settings
    keys = list(dict.fromkeys([*old.endpoints, *new.endpoints]))
    change = stack_change(StackUpdate(before.template, after.template, keys))
    rows = list(change.rows)
    unread = unread_differences(before.context, after.context)
    if unread:
        text = f"cdk.json differs in what only the app itself reads: {', '.join(unread)}"
        rows.append(ChangeRow(Effect.NOT_KNOWN, "", text))
    rows += [ChangeRow(Effect.DELETED, "", text) for text in _buckets_lost(old, new)]
    if _may_be_another(old, new):
        text = "the same stack only where the AWS CLI's profile says what the other file states"
        rows.append(ChangeRow(Effect.NOT_KNOWN, "", text))
    outcomes = {}
    for key, outcome in change.outcomes.items():
        if key in old.endpoints and key in new.endpoints:
            rows += lock_changes(old.endpoints[key], new.endpoints[key], key)
        if outcome.effect is Effect.NEW:
            outcome = outcome._replace(text=_new_words(new, key))
        elif outcome.effect is Effect.DEPLOYMENT:
            outcome = outcome._replace(text=_deployment(before, after, key))
        elif outcome.effect is Effect.IN_PLACE:
            lowered = "".join(f"; {text}" for text in lowered_ranges(old, new, key))
            outcome = outcome._replace(text=f"{outcome.text}{lowered}")
        outcomes[key] = outcome
    for row in rows:
        if row.effect is Effect.REFUSED and row.endpoint:
            outcomes[row.endpoint] = EndpointOutcome(Effect.REFUSED, row.text)
    return StackChange(tuple(rows), outcomes)


def _deployment(before: DescribedStack, after: DescribedStack, key: str) -> str:
    served = served_endpoint(after.template, key)
    return deployment_words(before.settings, after.settings, key, served)


def _buckets_lost(before: Settings, after: Settings) -> Iterator[str]:
    """Buckets that a narrow S3 endpoint no longer names; until the next update it still does."""
    if after.network.narrow_s3:
        for bucket in before.network.s3_buckets:
            if bucket not in after.network.s3_buckets:
                yield f"{bucket} in the S3 endpoint's policy: whoever reads it from the VPC fails"


def _may_be_another(before: Settings, after: Settings) -> bool:
    """Whether one of the two leaves open where its stack is, and the other one says so."""
    places = [(region_of(settings), settings.account) for settings in (before, after)]
    return places[0] != places[1]


def _new_words(after: Settings, key: str) -> str:
    fleets = [
        f"{variant.plan.fleet.initial} x {variant.plan.request.serving.instance_type}"
        for variant in planned_variants(after, key)
    ]
    return f"an endpoint, {', '.join(fleets)} at first"


def _unchanged(keys: Iterable[str]) -> StackChange:
    text = "it stays as it is"
    return StackChange((), {key: EndpointOutcome(Effect.NOTHING, text) for key in keys})


def _another_stack(former: DescribedStack, later: DescribedStack) -> StackChange:
    """What becomes of a stack beside the former one, which stays."""
    before, after = former.settings, later.settings
    taken: list[str] = []
    if same_place(before, after):
        theirs = set(claims(before))
        taken = [str(claim) for claim in claims(after) if claim in theirs]
        if not taken:  # names that follow from the stack's
            names = endpoint_names(former.template) & endpoint_names(later.template)
            taken = [f"an endpoint named {name}" for name in sorted(names)]
    effect = Effect.NEW
    text = (
        "another stack, in which everything is made anew; "
        f"{before.stack_name} stays until you delete it"
    )
    if taken:
        effect = Effect.REFUSED
        text = (
            f"a stack {after.stack_name} beside {before.stack_name}, which has {', '.join(taken)}"
        )
    kept = f"the new stack has no such endpoint; {before.stack_name} keeps it"
    outcomes = {key: EndpointOutcome(Effect.NOTHING, kept) for key in before.endpoints}
    for key in after.endpoints:
        outcomes[key] = EndpointOutcome(
            effect, text if effect is Effect.REFUSED else _new_words(after, key)
        )
    return StackChange((ChangeRow(effect, "", text),), outcomes)
