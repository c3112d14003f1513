"""How traffic runs over time, as shares of its peak: shapes that ship, and the class of all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import rule
from ..facts.limit_kinds import number_range
from ..report.numbers import readable
from .decisions import contradicts
from .dispersion import Dispersion

SECONDS = number_range("LLS111", "a time of the simulation", 0, 1e9, unit="seconds", whole=False)
SHAPE = rule("LLS122", "the traffic shape does not exist", fix="Choose a built-in traffic shape.")
SHAPE_LEVELS = rule(
    "LLS131",
    "the levels of a traffic shape are not valid",
    fix="Give (end in seconds, share of the peak) for each: ends rise from above zero, no "
    "share is negative, one is above zero.",
)
SHAPES = Path(__file__).parent / "traffic_shapes.json"


@dataclass(frozen=True, slots=True)
class Shape:
    """How traffic runs over time, as shares of the peak, and what befalls the fleet meanwhile."""

    name: str  # as the command line takes it
    description: str  # a sentence on what it shows
    levels: tuple[tuple[float, float], ...]  # end in seconds, and the peak's share up to there
    deploy_at: float | None = None  # when a new version is deployed, in seconds
    zone_lost_at: float | None = None  # when the first zone fails, in seconds
    recorded_peak: float | None = None  # requests per second that were recorded at the share of 1
    dispersion: Dispersion | None = None  # of recorded counts; None where they do not tell
    # Of a recording of single requests: when each came. `levels` has their counts.
    times: tuple[float, ...] = ()
    # Of a recording with dates: when it begins, without a zone where its times have none.
    begin: datetime | None = None

    def __post_init__(self) -> None:
        ends, shares = ([level[at] for level in self.levels] for at in (0, 1))
        for end in ends:
            SECONDS.check(end, "levels")
        if (
            not ends
            or any(later <= earlier for earlier, later in pairwise((0, *ends)))
            or not any(shares)
            or not all(map(SECONDS.holds, shares))
        ):
            raise SHAPE_LEVELS.error(
                got=f"{len(ends)} levels, the first {self.levels[:3]}",
                where=f"shape {self.name}",
                allowed="ends that rise, above zero; shares of zero or more, one above zero",
            )
        for name in ("deploy_at", "zone_lost_at"):
            if getattr(self, name) is not None:
                SECONDS.check(getattr(self, name), name)

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.levels[-1][0]

    @property
    def warning(self) -> str:
        """That recorded counts are not those of independent callers, and what follows; else empty."""
        return "" if self.dispersion is None else self.dispersion.warning

    @property
    def has_mute_counts(self) -> bool:
        """Whether it has recorded counts that do not tell whether callers are independent."""
        return self.recorded_peak is not None and not self.times and self.dispersion is None

    def far_from(self, *planned: float) -> str:
        """A sentence where no planned peak is in the recording's order of magnitude, else none."""
        peak = self.recorded_peak
        if peak is None or not planned or not all(contradicts(each, peak) for each in planned):
            return ""
        return (
            f"The recorded peak of {readable(peak, 4)} requests per second is not in the order of "
            f"magnitude of the planned {readable(max(planned), 4)}: are its numbers counts of whole "
            "periods, and of this endpoint?"
        )

    def share_at(self, second: float) -> float:
        """The share of the peak at a time."""
        for end, share in self.levels:
            if second < end:
                return share
        return self.levels[-1][1]

    @property
    def mean_share(self) -> float:
        """The mean share of the peak."""
        begins = (0.0, *(end for end, _ in self.levels))
        return (
            sum(
                (end - begin) * share
                for begin, (end, share) in zip(begins, self.levels, strict=False)
            )
            / self.seconds
        )


@lru_cache(maxsize=1)
def shapes() -> dict[str, Shape]:
    """The traffic shapes that ship, by name.

    They are made, not recorded from an endpoint: see ``source`` in ``traffic_shapes.json``.

    Examples
    --------
    >>> list(shapes())
    ['steady', 'daily-wave', 'spike', 'deploy', 'zone-loss']
    """
    content: dict[str, Any] = json.loads(SHAPES.read_text(encoding="utf-8"))
    shapes = {}
    for name, entry in content["shapes"].items():
        shapes[name] = Shape(
            name,
            entry["description"],
            tuple((float(end), float(share)) for end, share in entry["levels"]),
            entry.get("deploy_at"),
            entry.get("zone_lost_at"),
        )
    return shapes


def shape(name: str) -> Shape:
    """One of the shapes that ship."""
    if name not in shapes():
        raise SHAPE.error(got=repr(name), allowed=", ".join(shapes()))
    return shapes()[name]
