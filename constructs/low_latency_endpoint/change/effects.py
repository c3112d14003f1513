"""What a change does to an endpoint, and to the stack: from harmless to what fails."""

from __future__ import annotations

from enum import IntEnum


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
