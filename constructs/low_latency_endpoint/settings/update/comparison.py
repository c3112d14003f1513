"""Two settings files compared: every difference, and what it does to what is deployed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import ConfigurationError
from ...plan.decisions import Explanation
from ...plan.hourly_cost import StackCost
from ..plans import explain_endpoint, plan_endpoint, stack_cost
from ..rules import NO_SUCH_ENDPOINT
from ..stack import Settings
from .effects import Consequence, Effect, greatest
from .endpoint_fields import ENDPOINT_FIELDS, NAME, PLANNED, VARIANT, keeps_counts, scales
from .outcomes import deployment_words
from .shared_fields import SHARED_FIELDS, another_stack, endpoint_names, subnets
from .stated_values import Stated, assets_of, both_texts, differences, with_value

_MOST_PRICES = 5  # more of them differ by a file of prices
_BY_DEFAULT = Consequence(Effect.NOTHING, "what it is by default, so nothing changes")
_AS_PLANNED = Consequence(Effect.NOTHING, "the plan comes out the same")
_SAME_CONFIGURATION = (
    "an update with the configuration that serves already, which SageMaker may refuse, ignore or "
    "deploy: change it together with the configuration (docs/updates.md)"
)


@dataclass(frozen=True)
class Difference:
    """One setting that two files state differently.

    Attributes
    ----------
    endpoint : str
        The endpoint's key; empty for what all share.
    path : str
        The setting, below the endpoint where it is one's.
    before, after : str
        The values as a file has them; empty where it states none.
    consequences : tuple of Consequence
        What it does.
    """

    endpoint: str
    path: str
    before: str
    after: str
    consequences: tuple[Consequence, ...]

    @property
    def effect(self) -> Effect:
        """The greatest of what it does."""
        return greatest(each.effect for each in self.consequences)

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON-safe data."""
        return {
            "endpoint": self.endpoint or None,
            "setting": f"endpoints.{self.endpoint}.{self.path}".rstrip(".")
            if self.endpoint
            else self.path,
            "before": self.before or None,
            "after": self.after or None,
            "effect": self.effect.word,
            "consequences": [
                {"effect": each.effect.word, "what": each.text, "endpoints": list(each.endpoints)}
                for each in self.consequences
            ],
        }


@dataclass(frozen=True)
class Comparison:
    """What deploying ``after`` over a deployed ``before`` does.

    Attributes
    ----------
    before, after : Settings
    differences : tuple of Difference
        What all endpoints share first, then endpoint by endpoint.
    only : str or None
        The endpoint that it is limited to.
    """

    before: Settings
    after: Settings
    differences: tuple[Difference, ...]
    only: str | None = None

    @property
    def keys(self) -> list[str]:
        """The endpoints that it is about: those of both files, or the one that was asked for."""
        every = dict.fromkeys([*self.before.endpoints, *self.after.endpoints])
        return [key for key in every if self.only in (None, key)]

    def of(self, key: str) -> Comparison:
        """What concerns one endpoint: its own differences and those of what all share.

        Raises
        ------
        ConfigurationError
            ``LLE933`` when neither file has it.
        """
        if key not in self.keys:
            raise NO_SUCH_ENDPOINT.error(got=key, allowed=", ".join(self.keys))
        kept = tuple(each for each in self.differences if each.endpoint in ("", key))
        return replace(self, differences=kept, only=key)

    @property
    def effect(self) -> Effect:
        """The greatest of all differences."""
        return greatest(each.effect for each in self.differences)

    @cached_property
    def outcomes(self) -> dict[str, Consequence]:
        """What becomes of each endpoint, by its key."""
        found = {}
        for key in self.keys:
            own = [
                each
                for difference in self.differences
                for each in difference.consequences
                if key in each.endpoints
            ]
            effect = greatest(each.effect for each in own)
            text = next((each.text for each in own if each.effect == effect), "it stays as it is")
            if effect is Effect.DEPLOYMENT:
                text = deployment_words(self.before, self.after, key)
            elif effect is Effect.IN_PLACE:
                text = "it serves on with the instances that it has"
            elif effect is Effect.NOTHING:
                text = "it stays as it is"
            found[key] = Consequence(effect, text, (key,))
        return found

    @cached_property
    def explanations(self) -> tuple[dict[str, Explanation], dict[str, Explanation]]:
        """The plans of both, by endpoint."""
        before, after = (
            {key: explain_endpoint(each, key) for key in each.endpoints if key in self.keys}
            for each in (self.before, self.after)
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
            old, new = (
                {each.id: str(each) for each in plans[key].warnings} if key in plans else {}
                for plans in (before, after)
            )
            found["lost"] += [(key, text) for name, text in old.items() if name not in new]
            found["gained"] += [(key, text) for name, text in new.items() if name not in old]
            found["changed"] += [
                (key, text) for name, text in new.items() if old.get(name, text) != text
            ]
        return found

    @cached_property
    def costs(self) -> tuple[StackCost, StackCost]:
        """What both cost for an hour."""
        return stack_cost(self.before), stack_cost(self.after)

    @property
    def unread(self) -> list[Path]:
        """Files and folders that both name: what was in them when it was deployed, nobody knows."""
        before = set(assets_of(self.before))
        return [each for each in dict.fromkeys(assets_of(self.after)) if each in before]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-safe data."""
        before, after = self.costs
        return {
            "effect": self.effect.word,
            "differences": [each.to_dict() for each in self.differences],
            "endpoints": {
                key: {"effect": each.effect.word, "what": each.text}
                for key, each in self.outcomes.items()
            },
            "changes": self.decisions,
            "warnings": {
                name: [{"endpoint": key, "warning": text} for key, text in texts]
                for name, texts in self.warnings.items()
            },
            "cost": {"before": before.to_dict(), "after": after.to_dict()},
            "not_compared": [str(each) for each in self.unread],
        }


def compare(before: Settings, after: Settings) -> Comparison:
    """Every difference of two settings files, and what it does.

    Parameters
    ----------
    before : Settings
        What is deployed.
    after : Settings
        What would be.

    Raises
    ------
    ConfigurationError
        As :func:`~low_latency_endpoint.settings.plan_endpoint`; not for settings that were loaded.
    """
    found = [*_shared(before, after)]
    for key in dict.fromkeys([*before.endpoints, *after.endpoints]):
        found += _of_endpoint(before, after, key)
    return Comparison(before, after, tuple(_together(before, after, found)))


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


def _shared(before: Settings, after: Settings) -> Iterator[Difference]:
    for name in type(before).model_fields:
        if name == "endpoints":
            continue
        was, now = getattr(before, name), getattr(after, name)
        found = [*differences(was, now, (name,))]
        if name == "prices" and len(found) > _MOST_PRICES:  # a whole list, read anew
            found = [Stated((name,), f"{len(was)} prices", f"{len(now)}, {len(found)} differ")]
        for stated in found:
            consequences = _longest(SHARED_FIELDS, stated)(before, after)
            yield _difference("", stated, tuple(consequences) or (_BY_DEFAULT,))


def _of_endpoint(before: Settings, after: Settings, key: str) -> Iterator[Difference]:
    was, now = before.endpoints.get(key), after.endpoints.get(key)
    if was is None or now is None:
        consequences = _added(before, after, key) if was is None else _removed(before, after, key)
        old, new = ("" if each is None else each.instance_type for each in (was, now))
        yield Difference(key, "", old, new, tuple(consequences))
        return
    for stated in differences(was, now):
        touched = _longest(ENDPOINT_FIELDS, stated)
        found: list[Consequence] = []
        for part in touched.parts:
            if part is NAME:
                found.append(_renamed(before, after, key))
            elif part is VARIANT and scales(before, key):
                found.append(_of_scaled(stated, key))
            else:
                found.append(Consequence(part.effect, part.text, (key,)))
        alone = _alone(before, key, stated)
        found += _follows(before, after, key, touched.planned, alone)
        if not found or (not touched.parts and not touched.planned):
            found = [_AS_PLANNED]
        yield _difference(key, stated, tuple(found))


def _follows(
    before: Settings, after: Settings, key: str, names: tuple[str, ...], alone: Settings | None
) -> Iterator[Consequence]:
    """What the plan makes of a setting.

    Of what several settings decide, only what this one alone changes too; unless none of them does
    alone (``alone`` is None).
    """
    for name in names:
        if name == "subnets":
            if not any(_same_shared(before, after)):
                yield from subnets(before, after)
            continue
        planned = PLANNED[name]
        was, now = planned.of(before, key), planned.of(after, key)
        if was == now or (alone is not None and planned.of(alone, key) == was):
            continue
        text = f"{planned.words} {both_texts(was, now)}"
        if name == "initial" and keeps_counts(after, key):
            text += "; as many instances as run now stay"
            if after.endpoints[key].instances.initial is None:
                text += f" (instances.initial: {was} spares the deployment)"
        yield Consequence(planned.effect, text, (key,))


def _alone(before: Settings, key: str, stated: Stated) -> Settings | None:
    """The former settings with this one as it is now; None where they do not hold together."""
    place = ("endpoints", key, *stated.place)
    try:
        made: Settings = with_value(before, place, stated.after)
        plan_endpoint(made, key)
    except ConfigurationError:
        return None
    return made


def _renamed(before: Settings, after: Settings, key: str) -> Consequence:
    was, now = before.endpoints[key].endpoint_name, after.endpoints[key].endpoint_name
    if now is not None and now.lower() in endpoint_names(before):
        return _taken(now, key)
    old, new = was or "the endpoint with the derived name", now or "one with a derived name"
    return Consequence(
        Effect.REPLACED,
        f"the endpoint: {new} comes up beside {old}, then {old} is deleted; whoever invokes it "
        "by that name fails from then on",
        (key,),
    )


def _taken(name: str, key: str) -> Consequence:
    return Consequence(
        Effect.REFUSED,
        f"SageMaker refuses a second endpoint {name}: CloudFormation makes the new one before it "
        "deletes the old one; take another name, or delete first and deploy again",
        (key,),
    )


def _of_scaled(stated: Stated, key: str) -> Consequence:
    what = "the instance type" if stated.path == "instance_type" else "the name"
    return Consequence(
        Effect.REFUSED,
        f"UpdateEndpoint refuses to change {what} of a variant that scales; in two deployments: "
        "scaling: {enabled: false, keep_counts: true} first (docs/updates.md)",
        (key,),
    )


def _added(before: Settings, after: Settings, key: str) -> Iterator[Consequence]:
    stated = after.endpoints[key]
    if stated.endpoint_name and stated.endpoint_name.lower() in endpoint_names(before):
        yield _taken(stated.endpoint_name, key)
    fleet = plan_endpoint(after, key).fleet
    yield Consequence(
        Effect.NEW, f"an endpoint, {fleet.initial} x {stated.instance_type} at first", (key,)
    )
    if not any(_same_shared(before, after)):
        yield from subnets(before, after)


def _removed(before: Settings, after: Settings, key: str) -> Iterator[Consequence]:
    name = before.endpoints[key].endpoint_name or "the endpoint"
    text = f"{name}, with its model, alarms and dashboard: whoever invokes it fails"
    if any(other not in before.endpoints for other in after.endpoints):
        text += "; a key names the resources, so that another key makes another endpoint"
    yield Consequence(Effect.DELETED, text, (key,))
    if not any(_same_shared(before, after)):
        yield from subnets(before, after)


def _same_shared(before: Settings, after: Settings) -> Iterator[bool]:
    """Whether a shared setting differs that says itself what becomes of the subnets."""
    yield before.client_zones != after.client_zones
    yield any(
        getattr(before.network, name) != getattr(after.network, name)
        for name in ("vpc_id", "subnets", "cidr", "subnet_prefix_length")
    )


def _together(before: Settings, after: Settings, found: list[Difference]) -> Iterator[Difference]:
    """What the differences make of each other: a new endpoint starts with all of them, and a
    deployment takes along what alone would have been an update of unknown effect."""
    moved = another_stack(before, after)
    consequences = [each for one in found for each in one.consequences]
    renamed = {
        key
        for one in found
        if one.path == "endpoint_name" and one.effect is Effect.REPLACED
        for key in [one.endpoint]
    }
    deployed = {
        key for each in consequences if each.effect is Effect.DEPLOYMENT for key in each.endpoints
    }

    def changed(difference: Difference, each: Consequence) -> Consequence:
        if each.effect is Effect.NOTHING:
            return each
        if moved:
            stays = difference.path in ("stack_name", "region", "account")
            return each if stays else each._replace(effect=Effect.NEW)
        own = difference.endpoint
        if own in renamed and difference.path != "endpoint_name":
            if each.effect in (Effect.DEPLOYMENT, Effect.NOT_KNOWN, Effect.REFUSED):
                return Consequence(Effect.NEW, "the new endpoint starts with it", (own,))
        elif each.effect is Effect.NOT_KNOWN and set(each.endpoints) & deployed:
            return each._replace(effect=Effect.DEPLOYMENT)
        elif each.effect is Effect.NOT_KNOWN and each.endpoints:
            return each._replace(text=f"{each.text}; {_SAME_CONFIGURATION}")
        return each

    for one in found:
        yield replace(one, consequences=tuple(changed(one, each) for each in one.consequences))


def _difference(key: str, stated: Stated, consequences: tuple[Consequence, ...]) -> Difference:
    return Difference(key, stated.path, *stated.texts, consequences)


def _longest(table: Mapping[str, Any], stated: Stated) -> Any:
    """The row of the longest beginning of a setting's path.

    Raises
    ------
    KeyError
        When no row names it; a test sees to it that one does.
    """
    names = [str(part) for part in stated.place if isinstance(part, str)]
    for length in range(len(names), 0, -1):
        row = table.get(".".join(names[:length]))
        if row is not None:
            return row
    raise KeyError(stated.path)
