"""What a difference does to what is deployed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...errors.frozen import dataclass
from ...options.effects import Effect

MEANINGS = {
    Effect.NOTHING: "the stack stays as it is; only advice, simulation or commands differ",
    Effect.IN_PLACE: "updated while the endpoint serves; callers notice nothing of the update",
    Effect.NEW: "made beside what is there",
    Effect.DEPLOYMENT: "new instances take over from the old ones, guarded; it takes minutes",
    Effect.NOT_KNOWN: "AWS does not say, and nobody of this project has seen it",
    Effect.REPLACED: "a new one is made, then the old one is deleted",
    Effect.DELETED: "it goes, and whoever uses it fails",
    Effect.REFUSED: "the deployment fails and is rolled back",
}
"""What each effect is, for people."""


class Consequence(NamedTuple):
    """One thing that a difference does."""

    effect: Effect
    text: str  # what is touched, and what callers see of it
    endpoints: tuple[str, ...] = ()  # keys of the endpoints that it is done to


def greatest(effects: Iterable[Effect]) -> Effect:
    """The one that counts; nothing of none."""
    return max(effects, default=Effect.NOTHING)


@dataclass(frozen=True)
class Difference:
    """One setting that two files state differently."""

    endpoint: str  # the endpoint's key; empty for what all share
    path: str  # the setting, below the endpoint where it is one's
    before: str  # the values as a file has them; empty where it states none
    after: str
    consequences: tuple[Consequence, ...]  # what it does

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
