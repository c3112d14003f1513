"""What simulated fleets cost: an hour of them, a month, and a million requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..facts.prices import HOURS_PER_MONTH
from ..options.throughput import counted_instances
from ..plan.hourly_cost import MILLION, StackCost
from ..report.numbers import readable


@dataclass(frozen=True)
class SimulatedCost:
    """One endpoint of a settings file, with numbers of instances that a simulation gives."""

    stack: StackCost
    key: str

    @property
    def known(self) -> bool:
        """Whether its instances have a price."""
        return self.stack.endpoints[self.key].price is not None

    def sentence(self, instances: float, tps: float, *, month: bool = False) -> str:
        """What so many instances cost at so many requests a second; by the month of a day."""
        counted = counted_instances(instances)
        hour = self.stack.usd_for(self.key, instances)
        million = self.stack.usd_per_million(self.key, instances, tps)
        if hour is None or million is None:
            kind = self.stack.endpoints[self.key].instance_type
            return (
                f"{counted}: {readable(instances / tps / 3600 * MILLION, 3)} instance hours for a million "
                f"requests; the price of {kind} "
                f"is not known: low-latency prices reads it, or --price {kind}=USD states it."
            )
        monthly = f"{hour * HOURS_PER_MONTH:,.0f} a month of 730 hours, " if month else ""
        return (
            f"{counted}: {hour:,.2f} US dollars per hour, {monthly}{million:,.2f} for a million "
            "requests."
        )

    def cells(self, instances: float, tps: float) -> dict[str, str]:
        """US dollars per hour and for a million requests, for a table; nothing without a price."""
        hour = self.stack.usd_for(self.key, instances)
        million = self.stack.usd_per_million(self.key, instances, tps)
        found = {"USD/h": hour, "USD per million": million} if self.known else {}
        return {head: f"{usd or 0:,.2f}" for head, usd in found.items()}

    def to_dict(self, instances: float, tps: float) -> dict[str, Any]:
        return {
            "instances": instances,
            "usd_per_hour": self.stack.usd_for(self.key, instances),
            "usd_per_million_requests": self.stack.usd_per_million(self.key, instances, tps),
        }


def simulated_cost(path: Path, key: str, given: Sequence[str] = ()) -> SimulatedCost:
    """Of a settings file, with the prices of the command line over its own."""
    from ..settings import load_settings, stack_cost
    from .cost_view import with_prices

    return SimulatedCost(stack_cost(with_prices(load_settings(path), given)), key)
