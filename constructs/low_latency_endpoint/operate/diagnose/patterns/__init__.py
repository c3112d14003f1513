"""Patterns over time: what explains slow periods by when they come, before the decision tree."""

from __future__ import annotations

from collections.abc import Iterator

from ..view import VariantView
from .fleet import flapping, lost_instances
from .growth import growing, saw_tooth
from .pattern import Pattern
from .recurring import after_idle, periodic, scattered

__all__ = ["Pattern", "patterns"]


def patterns(view: VariantView) -> Iterator[Pattern]:
    """All patterns, the most specific first; each sees what those before leave unexplained."""
    for rule in (flapping, saw_tooth, lost_instances, after_idle, growing, periodic, scattered):
        for found in rule(view):
            yield found
            view = view.without(found.explains)
