"""4XX answers that begin where more requests come than a limit lets in: throttled."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import quantiles

from ...account.metrics import Series, median
from ...report.numbers import rate
from .view import VariantView

#: Periods with refusals that are needed, and the share of refused requests that counts as one.
_PERIODS, _REFUSED = 5, 0.01
#: What a limit lets in is even: the middle half within this share; what comes differs by more.
_EVEN, _DIFFERS = 0.06, 1.2


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests a second were let in, of the whole variant or on each instance."""

    tps: float
    each: bool

    @property
    def words(self) -> str:
        """The limit as evidence."""
        where = " on each instance" if self.each else ""
        return (
            f"refused only where more than {rate(self.tps)} requests a second{where} came, and "
            "so many were let in, whatever came: as throttling does"
        )


def throttled(view: VariantView, refused: Series) -> Limit | None:
    """The limit that the refusals fit: what is let in is even, and nothing is refused below it.

    Requests that are wrong are refused in proportion to what comes, at any load.
    """
    seconds = view.period.total_seconds()
    came = Series({t: v / seconds for t, v in view.get("Invocations", "Sum").points.items() if v})
    lost = Series({t: v / seconds for t, v in refused.points.items()})
    counts = view.instances
    if counts:
        each = Series(
            {t: v / counts.points[t] for t, v in came.points.items() if t in counts.points}
        )
        gone = Series(
            {t: v / counts.points[t] for t, v in lost.points.items() if t in counts.points}
        )
        varied = len({round(v) for v in counts.points.values()}) > 1
        if varied and (tps := _limit(each, gone)):
            return Limit(tps, True)
    tps = _limit(came, lost)
    return Limit(tps, False) if tps else None


def _limit(came: Series, refused: Series) -> float | None:
    over = [t for t, v in came.points.items() if refused.points.get(t, 0) >= _REFUSED * v]
    if len(over) < _PERIODS:
        return None
    let_in = [came.points[t] - refused.points[t] for t in over]
    low, middle, high = quantiles(let_in, n=4)
    free = sorted(v for t, v in came.points.items() if t not in set(over))
    # Single periods apart: CloudWatch's minute may hold the end of a burst.
    most_free = free[int(0.95 * (len(free) - 1))] if free else 0.0
    most, least = max(came.points[t] for t in over), min(came.points.values())
    if middle <= 0 or high - low > _EVEN * middle or most_free > (1 + _EVEN) * middle:
        return None
    if most < _DIFFERS * least or (median(came.points[t] for t in over) or 0) < middle:
        return None
    # A share of wrong requests at an even load looks the same: what came must differ where refused,
    # or stay free below.
    spread = most / min(came.points[t] for t in over)
    return middle if spread >= _DIFFERS or len(free) >= _PERIODS else None
