"""Patterns over time: what explains slow periods by when they come, before the decision tree."""

from __future__ import annotations

from collections.abc import Iterator

from ..view import VariantView
from .after_idle import after_idle
from .flapping import flapping
from .growing import growing
from .lost_instances import lost_instances
from .periodic import periodic
from .saw_tooth import saw_tooth
from .scattered import scattered
from .yardstick import Pattern

__all__ = ["Pattern", "patterns"]


def patterns(view: VariantView) -> Iterator[Pattern]:
    """All patterns, the most specific first; each sees what those before leave unexplained."""
    for rule in (flapping, saw_tooth, lost_instances, after_idle, growing, periodic, scattered):
        for found in rule(view):
            yield found
            view = view.without(found.explains)
