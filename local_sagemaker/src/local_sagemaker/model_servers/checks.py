"""What the numbers of a model server's settings must be."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any


def check_numbers(settings: Any) -> None:
    """Refuse infinity and what is no number among the fields of a dataclass."""
    for one in dataclasses.fields(settings):
        value = getattr(settings, one.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{one.name} must be a finite number: {value}")


def check_ranges(settings: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse what is no number, and what lies outside of its range; None goes for any."""
    check_numbers(settings)
    for name, (least, most) in ranges.items():
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:
            up_to = f" and at most {most}" if most < math.inf else ""
            raise ValueError(f"{name} must be at least {least}{up_to}: {value}")


def check_places(slow_instances: Mapping[int, float]) -> None:
    """Refuse factors for instances that cannot be."""
    for place, factor in slow_instances.items():
        if place < 0 or not 0 <= factor < math.inf:
            raise ValueError(
                f"slow_instances are places from 0 with a factor of at least 0: {place}: {factor}"
            )
