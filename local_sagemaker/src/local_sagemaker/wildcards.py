"""Patterns with wildcards, matched in linear time whatever their stars.

A regular expression with several stars goes back to each of them, for years, and Python's engine lets
no other thread run meanwhile.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

ANY = "any letters"
SEGMENT = "any letters but colons"
ONE = "any letter"
NO_COLON = "any letter but a colon"


@dataclass
class _Automaton:
    """Its states are the places between a pattern's letters, each a bit; a star stays in its place.

    Source: Baeza-Yates and Gonnet, "A new approach to text searching" (1992), "shift-and".
    """

    end: int = 1
    stays: int = 0
    stays_in_segment: int = 0
    steps: int = 0
    steps_in_segment: int = 0
    letters: dict[str, int] = field(default_factory=dict)

    def matches(self, value: str) -> bool:
        states = 1
        for letter in value:
            steps, stays = self.steps | self.letters.get(letter, 0), self.stays
            if letter != ":":
                steps, stays = steps | self.steps_in_segment, stays | self.stays_in_segment
            states = (states & steps) << 1 | states & stays
            if not states:
                return False
        return bool(states & self.end)


@functools.lru_cache(8192)
def _automaton(parts: tuple[str, ...]) -> _Automaton:
    made = _Automaton()
    for part in parts:
        if part == ANY:
            made.stays |= made.end
        elif part == SEGMENT:
            made.stays_in_segment |= made.end
        else:
            made.letters[part] = made.letters.get(part, 0) | made.end
            made.end <<= 1
    made.steps, made.steps_in_segment = (made.letters.pop(part, 0) for part in (ONE, NO_COLON))
    return made


def matches(parts: tuple[str, ...], value: str) -> bool:
    """Say whether wildcards and letters, in this order, match all of a value."""
    return _automaton(parts).matches(value)
