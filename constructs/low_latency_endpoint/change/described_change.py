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
    keys = list(dict.fromkeys([*before.settings.endpoints, *after.settings.endpoints]))
    change = stack_change(StackUpdate(before.template, after.template, keys))
    rows = [*change.rows, *_rows_beside(before, after)]
    outcomes = {}
    for key, outcome in change.outcomes.items():
        outcomes[key] = outcome._replace(text=_outcome_words(before, after, key, outcome))
    for row in rows:
        if row.effect is Effect.REFUSED and row.endpoint:
            outcomes[row.endpoint] = EndpointOutcome(Effect.REFUSED, row.text)
    return StackChange(tuple(rows), outcomes)


def _rows_beside(before: DescribedStack, after: DescribedStack) -> Iterator[ChangeRow]:
    """What the two templates do not show."""
    old, new = before.settings, after.settings
    unread = unread_differences(before.context, after.context)
    if unread:
        text = f"cdk.json differs in what only the app itself reads: {', '.join(unread)}"
        yield ChangeRow(Effect.NOT_KNOWN, "", text)
    if (region_of(old), old.account) != (region_of(new), new.account):
        text = "the same stack only where the AWS CLI's profile says what the other file states"
        yield ChangeRow(Effect.NOT_KNOWN, "", text)
    for bucket in old.network.s3_buckets:
        if new.network.narrow_s3 and bucket not in new.network.s3_buckets:
            # Until the next update the policy still names it.
            text = f"{bucket} in the S3 endpoint's policy: whoever reads it from the VPC fails"
            yield ChangeRow(Effect.DELETED, "", text)
    for key, endpoint in new.endpoints.items():
        if key in old.endpoints:
            yield from lock_changes(old.endpoints[key], endpoint, key)


def _outcome_words(
    before: DescribedStack, after: DescribedStack, key: str, outcome: EndpointOutcome
) -> str:
    """The text of an outcome, with what the plans know of it."""
    if outcome.effect is Effect.NEW:
        return _new_words(after.settings, key)
    if outcome.effect is Effect.DEPLOYMENT:
        served = served_endpoint(after.template, key)
        return deployment_words(before.settings, after.settings, key, served)
    if outcome.effect is Effect.IN_PLACE:
        return "; ".join([outcome.text, *lowered_ranges(before.settings, after.settings, key)])
    return outcome.text


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
