"""What a run of the load-test fleet costs, estimated before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .prices import INTERFACE_ENDPOINT, Price, list_prices

PRICES_AS_OF = "us-east-1 list prices of 2026-11-20"
"""What the estimate is made of; data/list_prices.csv has the pages."""

_REGION = "us-east-1"
_TASK = ("fargate_arm_vcpu", "fargate_arm_memory")

STARTING_SECONDS = 90.0
"""Pulling the image and starting, which AWS bills; Fargate states no number."""

_SHORTEST_BILLED_SECONDS = (
    60.0  # "with a one-minute minimum": https://aws.amazon.com/fargate/pricing/
)


@dataclass(frozen=True, slots=True)
class FleetCost:
    """An estimate in US dollars; the endpoint under test is not in it.

    Parameters
    ----------
    workers : int
        Worker tasks; the master is one more of the same size.
    cpu, memory_mib : int
        Size of each task: 1024 CPU units are one vCPU.
    seconds : float
        How long the plan takes.
    endpoint_zones : int
        Interface endpoints of the fleet's stack times the zones each is in. They cost for as
        long as the stack exists, running or not.
    prices : mapping of str to Price
        Of the Region, by item; by default AWS's list prices in us-east-1.

    Examples
    --------
    >>> cost = FleetCost(workers=4, cpu=1024, memory_mib=2048, seconds=600, endpoint_zones=8)
    >>> round(cost.tasks, 4), cost.endpoints_per_hour
    (0.0379, 0.08)
    >>> print(cost)
    about $0.04 for 5 tasks over 12 minutes, and $0.08 an hour for as long as the fleet's stack
    exists (us-east-1 list prices of 2026-11-20; an estimate)
    """

    workers: int
    cpu: int
    memory_mib: int
    seconds: float
    endpoint_zones: int
    prices: Mapping[str, Price] = field(default_factory=dict)

    @property
    def tasks(self) -> float:
        """Of all tasks, for the time of the plan and of their start."""
        processor, memory = (self._price(item) for item in _TASK)
        hourly = self.cpu / 1024 * processor.usd + self.memory_mib / 1024 * memory.usd
        return (self.workers + 1) * hourly * self._billed / 3600

    @property
    def endpoints_per_hour(self) -> float:
        """Of the interface endpoints, for every hour that the fleet's stack exists."""
        return self.endpoint_zones * self._price(INTERFACE_ENDPOINT).usd

    @property
    def origin(self) -> str:
        """Whose prices these are."""
        items = (*_TASK, *([INTERFACE_ENDPOINT] if self.endpoint_zones else []))
        whose = (
            self.prices[item].origin if item in self.prices else PRICES_AS_OF for item in items
        )
        return "; ".join(dict.fromkeys(whose))

    def _price(self, item: str) -> Price:
        return self.prices.get(item) or list_prices(_REGION)[item]

    @property
    def _billed(self) -> float:
        return max(_SHORTEST_BILLED_SECONDS, self.seconds + STARTING_SECONDS)

    def __str__(self) -> str:
        tasks = self.workers + 1
        minutes = max(1, round(self._billed / 60))
        standing = (
            f", and ${self.endpoints_per_hour:.2f} an hour for as long as the fleet's stack exists"
            if self.endpoint_zones
            else ""
        )
        dollars = f"about ${self.tasks:.2f}" if self.tasks >= 0.01 else "less than $0.01"
        return (
            f"{dollars} for {tasks} task{'s' * (tasks != 1)} "
            f"over {minutes} minute{'s' * (minutes != 1)}{standing} ({self.origin}; an estimate)"
        )
