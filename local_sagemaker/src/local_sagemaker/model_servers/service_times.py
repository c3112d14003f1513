"""How long a simulated model computes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_KINDS = ("constant", "lognormal", "gamma", "empirical")


@dataclass(frozen=True)
class ServiceTime:
    """A distribution of seconds per request.

    Make one with `constant`, `lognormal`, `gamma` or `empirical`.

    Examples
    --------
    >>> import random
    >>> ServiceTime.constant(0.02).draw(random.Random(1))
    0.02
    >>> law = ServiceTime.lognormal(p50=0.010, p99=0.040)
    >>> draws = sorted(law.draw(random.Random(n)) for n in range(2001))
    >>> 0.009 < draws[1000] < 0.011
    True
    """

    kind: str
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"unknown distribution {self.kind!r}: {', '.join(_KINDS)}")
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        if not self.values or any(not math.isfinite(v) or v < 0 for v in self.values):
            raise ValueError(f"times in seconds must be 0 or more: {self.values}")

    @classmethod
    def constant(cls, seconds: float) -> ServiceTime:
        """Every request takes the same time."""
        return cls("constant", (seconds,))

    @classmethod
    def lognormal(cls, *, p50: float, p99: float) -> ServiceTime:
        """Skewed to the right as most models' times are; by its median and 99th percentile."""
        if not 0 < p50 <= p99:
            raise ValueError(f"0 < p50 <= p99 is needed: {p50}, {p99}")
        return cls("lognormal", (p50, p99))

    @classmethod
    def gamma(cls, *, mean: float, variation: float) -> ServiceTime:
        """By mean and coefficient of variation; 1 is the exponential distribution."""
        if mean <= 0 or variation <= 0:
            raise ValueError(f"mean and variation must be above 0: {mean}, {variation}")
        return cls("gamma", (mean, variation))

    @classmethod
    def empirical(cls, samples: Iterable[float]) -> ServiceTime:
        """Measured times, drawn with linear interpolation between neighbours."""
        return cls("empirical", tuple(sorted(samples)))

    def draw(self, generator: random.Random) -> float:
        """Draw one time in seconds."""
        values = self.values
        match self.kind:
            case "lognormal":
                sigma = math.log(values[1] / values[0]) / 2.3263478740408408  # the normal's 99 %
                return values[0] * math.exp(sigma * generator.gauss(0.0, 1.0))
            case "gamma":
                shape = 1.0 / values[1] ** 2
                return generator.gammavariate(shape, values[0] / shape)
            case "empirical":
                return _interpolated(values, generator.random())
        return values[0]


def _interpolated(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
