"""What a load test costs, and what a million requests cost at the throughput that it measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors.frozen import dataclass
from ..facts.prices import Price
from ..report.numbers import readable
from .hourly_cost import MILLION


def _usd_per_million(usd_per_hour: float, tps: float) -> float:
    """US dollars for a million requests of instances that answer so many a second."""
    return round(usd_per_hour / (tps * 3600) * MILLION, 4)


@dataclass(frozen=True, kw_only=True)
class LoadTestCost:
    """The endpoint's instances while a load test ran."""

    instance_type: str
    instances: int  # that served
    seconds: float  # from the first step to the last one
    price: Price | None  # of one instance for an hour
    tps_per_instance: float | None = None  # what one holds; None without a limit
    lower_bound: bool = False  # whether it holds more, and nobody looked how much

    @property
    def instance_hours(self) -> float:
        """Instances times hours."""
        return self.instances * self.seconds / 3600

    @property
    def usd(self) -> float | None:
        """US dollars for the instances; ``None`` without a price."""
        return round(self.instance_hours * self.price.usd, 4) if self.price else None

    @property
    def usd_per_million(self) -> float | None:
        """US dollars for a million requests at the limit; ``None`` without a price or a limit."""
        if self.price is None or not self.tps_per_instance:
            return None
        return _usd_per_million(self.price.usd, self.tps_per_instance)

    @property
    def _hours(self) -> str:
        return readable(self.instance_hours, 2) if self.instance_hours >= 0.01 else "less than 0.01"

    def lines(self) -> Iterator[str]:
        """For people."""
        million = self.usd_per_million
        if million is not None and self.price is not None:
            most = "at most " if self.lower_bound else ""
            yield (
                f"A million requests cost {most}{million:,.2f} US dollars at the limit: "
                f"{self.instance_type} for {readable(self.price.usd)} an hour ({self.price.origin})."
            )
        elif self.tps_per_instance and self.price is None:
            yield (
                f"A million requests take {readable(_usd_per_million(1, self.tps_per_instance), 3)} instance "
                "hours at the limit."
            )
        serving = f"its {self.instances} instance{'s' * (self.instances != 1)}"
        if self.usd is None:
            yield (
                f"The load test took {self._hours} instance hours. The price of "
                f"{self.instance_type or 'its instance type'} is not known: low-latency prices "
                "reads it for the settings file, or give --price."
            )
        else:
            yield (
                f"While the load test ran, {serving} cost {self.usd:,.2f} US dollars "
                f"({self._hours} instance hours)."
            )

    def to_dict(self) -> dict[str, Any]:
        """The cost as JSON-safe data."""
        return {
            "instance_hours": round(self.instance_hours, 4),
            "price": {"usd": self.price.usd, "origin": self.price.origin} if self.price else None,
            "usd": self.usd,
            "usd_per_million_requests": self.usd_per_million,
        }
