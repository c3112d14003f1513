"""What a change does to a stack, its endpoints and its resources: from harmless to what fails."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from ..errors.frozen import dataclass


class Effect(IntEnum):
    """From harmless to what fails; of several the greatest counts."""

    NOTHING = 0
    IN_PLACE = 1
    NEW = 2
    DEPLOYMENT = 3
    NOT_KNOWN = 4
    REPLACED = 5
    DELETED = 6
    REFUSED = 7

    @property
    def word(self) -> str:
        """As it is printed."""
        return self.name.lower().replace("_", " ")


MEANINGS = {
    Effect.NOTHING: "the stack stays as it is; only advice, simulation or commands differ",
    Effect.IN_PLACE: "updated while the endpoint serves; callers notice nothing of the update",
    Effect.NEW: "made beside what is there",
    Effect.DEPLOYMENT: "new instances take over from the old ones, guarded; it takes minutes",
    Effect.NOT_KNOWN: "AWS does not say, and nobody of this project has seen it",
    Effect.REPLACED: "a new one is made, then the old one is deleted",
    Effect.DELETED: "it goes, and whoever uses it fails",
    Effect.REFUSED: "the deployment fails, and its rollback may fail, too: docs/how-to/roll-back.md",
}
"""What each effect is, for people."""


class EndpointOutcome(NamedTuple):
    """What becomes of an endpoint."""

    effect: Effect
    text: str  # what is done, and what callers see of it


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
