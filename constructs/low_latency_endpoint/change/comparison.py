"""Two settings of a stack compared: what deploying the one over the other does, and costs.

Start with :func:`review`. What becomes of resources is read from the two synthesised templates; from
the settings and their plans come words, warnings and costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors.frozen import dataclass
from ..options.option import changed
from ..options.rules import NO_SUCH_ENDPOINT
from ..plan.decisions import Explanation, changed_decisions
from ..plan.hourly_cost import StackCost
from ..settings.plan_report import explain_variants
from ..settings.stack import Settings, region_of
from ..settings.stack_cost import stack_cost_of_a_day
from .app_context import NO_CONTEXT, AppContext, account_of, changed_lookups
from .capacity_warnings import lowered_ranges, shifted_loads, stale_measurements
from .claims import another_stack
from .described_change import described_change
from .effects import Effect, EndpointOutcome, StackChange
from .former_measurements import LOADS, MEASURED, as_loaded_before, as_measured_before
from .hub_models import hub_warnings, lock_warnings
from .settings_differences import SettingDifference, assets_of, settings_differences
from .stack_update import served_endpoint
from .synthesis import DescribedStack

_NUMBERED = re.compile(r"-\d+$")  # IDs of warnings by a place in a list, not by what they say


@dataclass(frozen=True)
class SettingsComparison:
    """What deploying one stack over another, former one does: templates are made when asked for."""

    former: DescribedStack
    later: DescribedStack
    only: str | None = None  # the endpoint that it is limited to

    @property
    def before(self) -> Settings:
        """The settings that are deployed."""
        return self.former.settings

    @property
    def after(self) -> Settings:
        """The settings that shall be."""
        return self.later.settings

    @property
    def keys(self) -> list[str]:
        """The endpoints that it is about: those of both files, or the one that was asked for."""
        every = dict.fromkeys([*self.before.endpoints, *self.after.endpoints])
        return [key for key in every if self.only in (None, key)]

    def of(self, key: str) -> SettingsComparison:
        """What concerns one endpoint: its own differences and those of what all share."""
        if key not in self.keys:
            raise NO_SUCH_ENDPOINT.error(got=key, allowed=", ".join(self.keys))
        return replace(self, only=key)

    @cached_property
    def differences(self) -> tuple[SettingDifference, ...]:
        """The settings that differ: what all endpoints share first, then endpoint by endpoint."""
        roots = self.former.context.root, self.later.context.root
        every = settings_differences(self.before, self.after)
        return tuple(one.told_from(roots) for one in every if one.endpoint in ("", *self.keys))

    @cached_property
    def stack(self) -> StackChange:
        """What becomes of the stack, and of each endpoint.

        Raises
        ------
        ConfigurationError
            What the constructs refuse of either; ``LLE227`` where the CDK cannot synthesise.
        """
        change = described_change(self.former, self.later, unchanged=self.is_unchanged)
        rows = tuple(row for row in change.rows if row.endpoint in ("", *self.keys))
        outcomes = {key: change.outcomes[key] for key in self.keys}
        return StackChange(rows, outcomes)

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether nothing differs that a template is made of; then none has to be made."""
        was, now = self.former.context, self.later.context
        same_app = replace(was, root=None) == replace(now, root=None)
        return same_app and not list(settings_differences(self.before, self.after))

    @property
    def not_looked_up(self) -> list[str]:
        """The VPCs that a template has a stand-in for."""
        if self.is_unchanged or another_stack(self.before, self.after):
            return []
        return sorted({*self.former.not_looked_up, *self.later.not_looked_up})

    @property
    def changed_lookups(self) -> bool:
        """Whether cdk.context.json says something else of a VPC."""
        return bool(changed_lookups(self.former.context, self.later.context))

    @property
    def effect(self) -> Effect:
        """The greatest of all that it does."""
        return self.stack.effect

    @property
    def differs(self) -> bool:
        """Whether a setting differs, or anything that is deployed."""
        return bool(self.differences) or self.effect is not Effect.NOTHING

    @property
    def outcomes(self) -> Mapping[str, EndpointOutcome]:
        """What becomes of each endpoint, by its key."""
        return self.stack.outcomes

    @property
    def is_doubtful(self) -> bool:
        """Whether a change that goes well lowers capacity, or brings a warning."""
        lowered = any(text for key in self.keys for text in self.lowered(key))
        return lowered or bool(self.warnings["gained"])

    def lowered(self, key: str) -> Iterator[str]:
        """What lowers the minimum or maximum of an endpoint's variants, by a schedule or at all."""
        return lowered_ranges(self.before, self.after, key)

    @cached_property
    def explanations(self) -> tuple[dict[str, Explanation], dict[str, Explanation]]:
        """The plans of both, by endpoint."""
        return self._explained(self.before), self._explained(self.priced)

    def _explained(self, settings: Settings) -> dict[str, Explanation]:
        explained: dict[str, Explanation] = {}
        for key in settings.endpoints:
            if key in self.keys:
                explained |= explain_variants(settings, key)
        return explained

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The plan's decisions that differ."""
        return changed_decisions(*self.explanations)

    @property
    def warnings(self) -> dict[str, list[tuple[str, str]]]:
        """Endpoint and text of the warnings that are ``gained``, ``lost`` and ``changed``."""
        before, after = self.explanations
        warnings: dict[str, list[tuple[str, str]]] = {"gained": [], "lost": [], "changed": []}
        for key in dict.fromkeys([*before, *after]):
            old, new = (_warnings_by_id(plans.get(key)) for plans in (before, after))
            for name in dict.fromkeys([*old, *new]):
                former, later = old.get(name, []), new.get(name, [])
                if len(former) == len(later) == 1 and not _NUMBERED.search(name):
                    warnings["changed"] += [(key, text) for text in later if text not in former]
                else:
                    warnings["lost"] += [(key, text) for text in former if text not in later]
                    warnings["gained"] += [(key, text) for text in later if text not in former]
        for key in self.keys:
            warnings["gained"] += [(key, text) for text in self._warnings_of_change(key)]
        return warnings

    def _warnings_of_change(self, key: str) -> Iterator[str]:
        """What neither of the two settings alone warns of."""
        was, now = self.before.endpoints.get(key), self.after.endpoints.get(key)
        if was is None or now is None:
            return
        yield from lock_warnings(was, now)
        yield from hub_warnings(was, now)
        yield from stale_measurements(was, now)
        shifted = list(shifted_loads(self.before, self.after, key))
        if shifted and served_endpoint(self.later.template, key).keeps_counts:
            yield from shifted

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
        restated = {
            "with the former load-test result": measured,
            "at the former load": as_loaded_before(self.before, self.priced),
            "with the former load-test result at the former load": as_loaded_before(
                self.before, measured
            ),
        }
        texts: dict[str, Settings] = {}
        for text, settings in restated.items():
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
        texts = []
        for difference in self.differences:
            of_prices = not difference.endpoint and difference.path.split(".")[0] == "prices"
            if of_prices or difference.name in ("throughput", *MEASURED, *LOADS):
                owner = f"{difference.endpoint}: " if difference.endpoint else ""
                was, now = difference.before or "none", difference.after or "none"
                texts.append(f"{owner}{difference.path} {was} -> {now}")
        return texts

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
            "differences": [difference.to_dict() for difference in self.differences],
            "resources": [row.to_dict() for row in self.stack.rows],
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
            "not_compared": [str(asset) for asset in self.unread],
            "not_looked_up": self.not_looked_up,
            "changed_lookups": self.changed_lookups,
        }


def review(
    before: Settings,
    after: Settings,
    contexts: tuple[AppContext, AppContext] = (NO_CONTEXT, NO_CONTEXT),
) -> SettingsComparison:
    """What deploying settings over those that are deployed does, and costs.

    ``contexts`` are those of the CDK app, before and after: each has the other's lookups where it
    has none of its own.
    """
    was, now = contexts
    keys = changed_lookups(was, now) or list(now.lookups) or list(was.lookups)
    account = account_of(keys)
    return SettingsComparison(
        DescribedStack(before, was.completed(now), account),
        DescribedStack(after, now.completed(was), account),
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
