"""What a change of an option does to a deployed stack."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


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


class Part(NamedTuple):
    """A part of an endpoint that an option changes, whatever the plan says."""

    effect: Effect
    text: str


MODEL = Part(Effect.DEPLOYMENT, "a new model and endpoint configuration")
DATA_KEY = Part(Effect.IN_PLACE, "what the model's role may decrypt with")
CONFIGURATION = Part(Effect.DEPLOYMENT, "a new endpoint configuration")
STAGING = Part(Effect.IN_PLACE, "what copies the model from the Hub; files that are there stay")
NAME = Part(Effect.REPLACED, "")  # in words of its own
VARIANT = Part(Effect.DEPLOYMENT, "a new endpoint configuration")
CHECK = Part(Effect.IN_PLACE, "the resource that fails a deployment which SageMaker rolled back")
DASHBOARD = Part(Effect.IN_PLACE, "the dashboard")
WARM_UP = Part(Effect.IN_PLACE, "the warm-up, which sends its requests again to what serves then")
TAGS = Part(Effect.IN_PLACE, "the tags")
PLAN = Part(Effect.NOTHING, "the plan alone checks it")
ADVICE = Part(Effect.NOTHING, "low-latency recommend alone reads it")


class Touched(NamedTuple):
    """What an option touches: parts in any case, and what the plan decides where that differs."""

    parts: tuple[Part, ...] = ()
    planned: tuple[str, ...] = ()  # names in settings/update/endpoint_fields.py, PLANNED
