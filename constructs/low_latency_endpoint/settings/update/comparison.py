"""Two settings files compared: every difference, and what it does to what is deployed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors.frozen import dataclass
from ...facts.durations import seconds_of
from ...options.deployment import DeploymentPolicy
from ...options.option import Effect, changed, options_of
from ...options.rules import NO_SUCH_ENDPOINT
from ...plan.decisions import Explanation
from ...plan.deployment_time import (
    deployment_time,
    errors_seen,
    fewest_while_rising,
    first_part_words,
)
from ...plan.hourly_cost import StackCost
from ..option_models import duration_text
from ..plan_report import explain_variants
from ..stack import Settings, region_of
from ..stack_parts import stack_cost_of_a_day
from ..variant_plans import plan_endpoint, planned_variants
from .endpoint_changes import (
    UNSTATED,
    difference,
    differences_of_endpoint,
    hub_warnings,
    lock_warnings,
    longest,
    shifted_loads,
    stale_measurements,
)
from .endpoint_fields import (
    PLANNED,
    Consequence,
    SettingDifference,
    Stated,
    assets_of,
    deployment_of,
    differences,
    greatest,
)
from .former_measurements import LOADS, MEASURED, as_loaded_before, as_measured_before
from .shared_fields import SHARED_FIELDS, another_stack

_NUMBERED = re.compile(r"-\d+$")  # IDs of warnings by a place in a list, not by what they say
_MOST_PRICES = 5  # more of them differ by a file of prices
_BY_DEFAULT = Consequence(Effect.NOTHING, "what it is by default, so nothing changes")
_SAME_CONFIGURATION = (
    "an update with the configuration that serves already, which SageMaker may refuse, ignore or "
    "deploy: change it together with the configuration (docs/explanation/updates.md)"
)


@dataclass(frozen=True)
class SettingsComparison:
    """What deploying ``after`` over a deployed ``before`` does."""

    before: Settings
    after: Settings
    differences: tuple[
        SettingDifference, ...
    ]  # what all endpoints share first, then endpoint by endpoint
    only: str | None = None  # the endpoint that it is limited to

    @property
    def keys(self) -> list[str]:
        """The endpoints that it is about: those of both files, or the one that was asked for."""
        every = dict.fromkeys([*self.before.endpoints, *self.after.endpoints])
        return [key for key in every if self.only in (None, key)]

    def of(self, key: str) -> SettingsComparison:
        """What concerns one endpoint: its own differences and those of what all share."""
        if key not in self.keys:
            raise NO_SUCH_ENDPOINT.error(got=key, allowed=", ".join(self.keys))
        kept = tuple(
            setting_difference
            for setting_difference in self.differences
            if setting_difference.endpoint in ("", key)
        )
        return replace(self, differences=kept, only=key)

    @property
    def effect(self) -> Effect:
        """The greatest of all differences."""
        return greatest(setting_difference.effect for setting_difference in self.differences)

    @cached_property
    def outcomes(self) -> dict[str, Consequence]:
        """What becomes of each endpoint, by its key."""
        effects = {}
        for key in self.keys:
            own = [
                effect
                for difference in self.differences
                for effect in difference.consequences
                if key in effect.endpoints
            ]
            effect = greatest(effect.effect for effect in own)
            if effect is Effect.DEPLOYMENT:
                text = deployment_words(self.before, self.after, key)
            elif effect is Effect.IN_PLACE:
                text = "it serves on with the instances that it has"
                text += "".join(f"; {lowered}" for lowered in self.lowered(key))
            elif effect is Effect.NOTHING:
                text = "it stays as it is"
            else:
                text = next(each.text for each in own if each.effect is effect)
            effects[key] = Consequence(effect, text, (key,))
        return effects

    def lowered(self, key: str) -> Iterator[str]:
        """What lowers the minimum or maximum of an endpoint's variants, by a schedule or at all."""
        if key not in self.before.endpoints or key not in self.after.endpoints:
            return
        plans = {variant.label: variant.plan for variant in planned_variants(self.before, key)}
        for variant in planned_variants(self.after, key):
            if variant.label not in plans:
                continue
            of_variant = f" of {variant.variant}" if variant.further else ""
            for name in ("minimum", "maximum"):
                was = min(getattr(each.fleet, name) for each in plans[variant.label].under_load)
                lowest = min(variant.plan.under_load, key=lambda each: getattr(each.fleet, name))
                now = getattr(lowest.fleet, name)
                if now < was:
                    label = f" by {lowest.label}" if lowest.label else ""
                    yield f"the {name}{of_variant} falls from {was} to {now}{label}"

    @property
    def is_doubtful(self) -> bool:
        """Whether a change that goes well lowers capacity, or brings a warning."""
        lowered = any(text for key in self.keys for text in self.lowered(key))
        return lowered or bool(self.warnings["gained"])

    @cached_property
    def explanations(self) -> tuple[dict[str, Explanation], dict[str, Explanation]]:
        """The plans of both, by endpoint."""
        before, after = (
            {
                label: found
                for key in each.endpoints
                if key in self.keys
                for label, found in explain_variants(each, key).items()
            }
            for each in (self.before, self.priced)
        )
        return before, after

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The plan's decisions that differ."""
        return changed_decisions(*self.explanations)

    @property
    def warnings(self) -> dict[str, list[tuple[str, str]]]:
        """Endpoint and text of the warnings that are ``gained``, ``lost`` and ``changed``."""
        before, after = self.explanations
        found: dict[str, list[tuple[str, str]]] = {"gained": [], "lost": [], "changed": []}
        for key in dict.fromkeys([*before, *after]):
            old, new = (_warnings_by_id(plans.get(key)) for plans in (before, after))
            for name in dict.fromkeys([*old, *new]):
                former, later = old.get(name, []), new.get(name, [])
                if len(former) == len(later) == 1 and not _NUMBERED.search(name):
                    found["changed"] += [(key, text) for text in later if text not in former]
                else:
                    found["lost"] += [(key, text) for text in former if text not in later]
                    found["gained"] += [(key, text) for text in later if text not in former]
        for key in self.keys:
            was, now = self.before.endpoints.get(key), self.after.endpoints.get(key)
            if was and now:
                found["gained"] += [(key, text) for text in lock_warnings(was, now)]
                found["gained"] += [(key, text) for text in hub_warnings(was, now)]
                found["gained"] += [(key, text) for text in stale_measurements(was, now)]
                shifted = shifted_loads(self.before, self.after, key)
                found["gained"] += [(key, text) for text in shifted]
        return found

    @cached_property
    def priced(self) -> Settings:
        """What ``after`` states, with the prices of ``before`` in place of its own."""
        return at_former_prices(self.before, self.after)

    @property
    def is_moved(self) -> bool:
        """Whether the stack comes up in another Region, where other prices hold."""
        return region_of(self.before) != region_of(self.after)

    @cached_property
    def costs(self) -> tuple[StackCost, StackCost]:
        """What is deployed costs for an hour, before and after, at the prices of ``before``."""
        return stack_cost_of_a_day(self.before), self.deployed_cost(self.priced)

    @property
    def as_stated_before(self) -> dict[str, Settings]:
        """``after`` with what the former settings say of results and load, by what that is.

        Without those that say the same as ``after``.
        """
        measured = as_measured_before(self.before, self.priced)
        ways = {
            "with the former load-test result": measured,
            "at the former load": as_loaded_before(self.before, self.priced),
            "with the former load-test result at the former load": as_loaded_before(
                self.before, measured
            ),
        }
        texts: dict[str, Settings] = {}
        for text, settings in ways.items():
            if settings != self.priced and settings not in texts.values():
                texts[text] = settings
        return texts

    def deployed_cost(self, after: Settings) -> StackCost:
        """The cost of a later stack, with that of the former one where it stays beside it."""
        cost = stack_cost_of_a_day(after)
        if not another_stack(self.before, self.after):
            return cost
        return cost.beside(stack_cost_of_a_day(self.before), f"the former {self.before.stack_name}")

    @property
    def changed_measures(self) -> list[str]:
        """Prices, load-test results and loads that differ: what a cost is calculated with."""
        return [
            f"{f'{setting_difference.endpoint}: ' * bool(setting_difference.endpoint)}{setting_difference.path} "
            f"{setting_difference.before or 'none'} -> {setting_difference.after or 'none'}"
            for setting_difference in self.differences
            if (
                not setting_difference.endpoint
                and setting_difference.path.split(".")[0] == "prices"
            )
            or setting_difference.path.split(".")[-1] in ("throughput", *MEASURED, *LOADS)
        ]

    @property
    def unread(self) -> list[Path]:
        """Files and folders that both name: what was in them when it was deployed, nobody knows."""
        before = set(assets_of(self.before))
        return [asset for asset in dict.fromkeys(assets_of(self.after)) if asset in before]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-safe data."""
        before, after = self.costs
        return {
            "effect": self.effect.word,
            "differences": [
                setting_difference.to_dict() for setting_difference in self.differences
            ],
            "endpoints": {
                key: {"effect": outcome.effect.word, "what": outcome.text}
                for key, outcome in self.outcomes.items()
            },
            "changes": self.decisions,
            "warnings": {
                name: [{"endpoint": key, "warning": text} for key, text in texts]
                for name, texts in self.warnings.items()
            },
            "cost": {"before": before.to_dict(), "after": after.to_dict()},
            "changed_prices_and_measurements": self.changed_measures,
            "not_compared": [str(each) for each in self.unread],
        }


def compare(before: Settings, after: Settings) -> SettingsComparison:
    """Every difference of two settings files, and what it does."""
    found = [*_shared(before, after)]
    for key in dict.fromkeys([*before.endpoints, *after.endpoints]):
        found += differences_of_endpoint(before, after, key)
    return SettingsComparison(before, after, tuple(_together(before, after, found)))


def changed_decisions(
    before: Mapping[str, Explanation], after: Mapping[str, Explanation]
) -> list[dict[str, Any]]:
    """What differs, by endpoint and decision; values as text, none where it is not decided."""
    changes = []
    for name in dict.fromkeys([*before, *after]):
        old = {each.name: each for each in before.get(name, ())}
        new = {each.name: each for each in after.get(name, ())}
        for decision in dict.fromkeys([*old, *new]):
            was, now = old.get(decision), new.get(decision)
            if was is None or now is None or was.value != now.value:
                changes.append(
                    {
                        "endpoint": name,
                        "decision": decision,
                        "title": (now or was).title,  # type: ignore[union-attr]  # one of them is there
                        "before": was.value_text if was else None,
                        "after": now.value_text if now else None,
                    }
                )
    return changes


def _shared(before: Settings, after: Settings) -> Iterator[SettingDifference]:
    for name in (option.name for option in options_of(Settings)):
        if name == "endpoints":
            continue
        was, now = getattr(before, name), getattr(after, name)
        found = [*differences(was, now, (name,))]
        if name == "prices" and len(found) > _MOST_PRICES:  # a whole list, read anew
            found = [Stated((name,), f"{len(was)} prices", f"{len(now)}, {len(found)} differ")]
        for stated in found:
            consequences = longest(SHARED_FIELDS, stated)(before, after)
            yield difference("", stated, tuple(consequences) or (_BY_DEFAULT,))


def _together(
    before: Settings, after: Settings, found: list[SettingDifference]
) -> Iterator[SettingDifference]:
    """What the differences make of each other: a new endpoint starts with all of them, and a
    deployment takes along what alone would have been an update of unknown effect."""
    moved = another_stack(before, after)
    consequences = [effect for one in found for effect in one.consequences]
    renamed = {
        key
        for setting_difference in found
        if setting_difference.path == "endpoint_name"
        and setting_difference.effect is Effect.REPLACED
        for key in [setting_difference.endpoint]
    }
    deployed = {
        key
        for effect in consequences
        if effect.effect is Effect.DEPLOYMENT
        for key in effect.endpoints
    }

    def after_all(difference: SettingDifference, each: Consequence) -> Consequence:
        if each.effect is Effect.NOTHING or each.text == UNSTATED.text:
            return each
        if moved:
            if difference.path in ("stack_name", "region", "account") or each.effect is Effect.NEW:
                return each
            if each.effect is Effect.DELETED and not difference.path:
                text = f"the new stack has no such endpoint; {before.stack_name} keeps it"
            else:
                text = "the new stack starts with it"
            return Consequence(Effect.NEW, text, each.endpoints)
        own = difference.endpoint
        if own in renamed and difference.path != "endpoint_name":
            if each.effect in (Effect.DEPLOYMENT, Effect.NOT_KNOWN, Effect.REFUSED):
                return Consequence(Effect.NEW, "the new endpoint starts with it", (own,))
        elif each.effect is Effect.NOT_KNOWN and set(each.endpoints) & deployed:
            return each._replace(effect=Effect.DEPLOYMENT)
        elif each.effect is Effect.NOT_KNOWN and each.endpoints:
            return each._replace(text=f"{each.text}; {_SAME_CONFIGURATION}")
        return each

    for setting_difference in found:
        yield replace(
            setting_difference,
            consequences=tuple(
                after_all(setting_difference, effect) for effect in setting_difference.consequences
            ),
        )


def _warnings_by_id(explanation: Explanation | None) -> dict[str, list[str]]:
    """The texts of the warnings of each ID; several have one where a list gives rise to them."""
    texts: dict[str, list[str]] = {}
    for warning in explanation.warnings if explanation else ():
        texts.setdefault(warning.id, []).append(str(warning))
    return texts


def at_former_prices(before: Settings | None, after: Settings) -> Settings:
    """The settings with the former prices alone: whoever changes a fleet could state its price.

    What the former settings have no price of has AWS's, or none. In another Region that is so for
    all prices, as those of the former Region do not hold there.
    """
    same = before is not None and region_of(before) == region_of(after)
    return changed(after, prices=dict(before.prices) if before and same else {})


def deployment_words(before: Settings, after: Settings, key: str) -> str:
    """How a new configuration of an endpoint takes over."""
    endpoint = after.endpoints[key]
    policy = deployment_of(endpoint)
    most = max(
        sum(
            policy.instances_in_update(variant.plan.largest_fleet)
            for variant in planned_variants(settings, key)
        )
        for settings in (before, after)
    )
    times = [deployment_time(variant.plan) for variant in planned_variants(after, key)]
    longest = max(filter(None, times), key=lambda time: time.seconds, default=None)
    takes = "a time that is known at deployment only" if longest is None else longest.text
    seen = first_part_words(plan_endpoint(after, key))
    fewest = max(fewest_while_rising(variant.plan) for variant in planned_variants(after, key))
    rising = f": begin with {fewest:,} instances or more while load rises" if fewest else ""
    alarms = PLANNED["rollback_alarms"].of(after, key)
    back = {0: "no alarm rolls it back", 1: "one alarm rolls it back"}.get(
        len(alarms), f"{len(alarms)} alarms roll it back"
    )
    if alarms and (errors := errors_seen(plan_endpoint(after, key))):
        back += f" ({errors})"
    words = (
        f"{policy_words(policy)}: {takes}; {seen}nothing scales meanwhile{rising}; up to {most} "
        f"instances run; {back}"
    )
    if before.endpoints[key].variant_name != endpoint.variant_name:
        words += ". SageMaker excludes it from guarded deployments, as the variant has another name"
    return words


def policy_words(stated: DeploymentPolicy) -> str:
    """How a new version takes over."""
    percent, wait = stated.percent, duration_text(timedelta(seconds=seconds_of(stated.wait)))
    return {
        "CANARY": f"a canary of {percent} % for {wait}, then all of it",
        "LINEAR": f"{percent} % more every {wait}",
        "ROLLING": f"batches of {percent} %, {wait} each",
        "ALL_AT_ONCE": "all at once",
    }[stated.kind]
