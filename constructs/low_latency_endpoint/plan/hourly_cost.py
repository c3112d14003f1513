"""What a stack costs for an hour: at least, at first, at most, and while it is updated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .decisions import Decision
from .prices import HOSTING_PRICES, INTERFACE_ENDPOINT, Price

MOMENTS = {
    "at_least": "the fewest instances that scaling leaves; all of them where nothing scales",
    "at_first": "the instances that the first deployment starts",
    "at_most": "the most instances that scaling reaches; all of them where nothing scales",
    "in_an_update": "the most instances while a new version takes over: two fleets with "
    "blue/green, the fleet and a batch when rolling",
}
"""The four numbers of instances that a cost is given for, and what each is."""

NOT_IN_IT = (
    "Not in it: disks, data in and out, CloudWatch (alarms, metrics, logs), Lambda, S3; taxes and "
    "discounts. Most of it is cents beside the instances; data grows with your traffic."
)
"""What is left out, for people."""

UNIT = "USD per hour"


@dataclass(frozen=True, kw_only=True)
class EndpointCost:
    """Instances of one endpoint and what they cost.

    Parameters
    ----------
    instance_type : str
        What the endpoint runs on.
    at_least, at_first, at_most, in_an_update : int
        Instances; see :data:`MOMENTS`.
    price : Price or None
        Of one instance for an hour; ``None`` where nobody stated it.

    Examples
    --------
    >>> cost = EndpointCost(instance_type="ml.g5.xlarge", at_least=2, at_first=8, at_most=12,
    ...                     in_an_update=24, price=Price(1.5, "yours"))
    >>> cost.usd("at_least"), cost.usd("in_an_update")
    (3.0, 36.0)
    """

    instance_type: str
    at_least: int
    at_first: int
    at_most: int
    in_an_update: int
    price: Price | None

    def instances(self, moment: str) -> int:
        """How many there are at one of the moments."""
        return int(getattr(self, moment))

    def usd(self, moment: str) -> float | None:
        """US dollars per hour; ``None`` without a price."""
        return _rounded(self.instances(moment) * self.price.usd) if self.price else None

    def decisions(self) -> Iterator[Decision]:
        """The costs as decisions of the plan; without a price one that says what is missing."""
        if self.price is None:
            yield Decision(
                name="hourly_cost",
                value=None,
                unit=UNIT,
                rule="instances x the price of one for an hour, which nobody has stated",
                inputs={
                    f"instances {moment.replace('_', ' ')}": self.instances(moment)
                    for moment in MOMENTS
                },
                source=HOSTING_PRICES,
                note=f"look up {self.instance_type} on SageMaker's page of prices and state it "
                f"under prices, or with --price {self.instance_type}=USD",
            )
            return
        for moment, what in MOMENTS.items():
            yield Decision(
                name=f"hourly_cost_{moment}",
                value=self.usd(moment),
                unit=UNIT,
                rule=f"{what}, x the price of one for an hour",
                inputs={
                    "instances": self.instances(moment),
                    "price of one": self.price.usd,
                    "price is": self.price.origin,
                },
                source=HOSTING_PRICES,
                note="the interface endpoints, which all endpoints share, come to it"
                if moment == "at_least"
                else "",
            )

    def to_dict(self) -> dict[str, Any]:
        """The cost as JSON-safe data."""
        return {
            "instance_type": self.instance_type,
            "price": self.price and {"usd": self.price.usd, "origin": self.price.origin},
            **{
                moment: {"instances": self.instances(moment), "usd": self.usd(moment)}
                for moment in MOMENTS
            },
        }


@dataclass(frozen=True, kw_only=True)
class StackCost:
    """What all endpoints of a stack and their interface endpoints cost for an hour.

    Parameters
    ----------
    endpoints : mapping of str to EndpointCost
        By the endpoint's key.
    endpoint_zones : int
        Interface endpoints that the stack makes, times the zones that each is in.
    zone_price : Price or None
        Of an interface endpoint in one zone for an hour.

    Examples
    --------
    >>> fleet = EndpointCost(instance_type="ml.g5.xlarge", at_least=2, at_first=8, at_most=12,
    ...                      in_an_update=24, price=Price(1.5, "yours"))
    >>> cost = StackCost(endpoints={"mood": fleet}, endpoint_zones=2,
    ...                  zone_price=Price(0.01, "list price"))
    >>> cost.usd("at_least"), cost.usd("at_most"), cost.without_price
    (3.02, 18.02, ())
    """

    endpoints: Mapping[str, EndpointCost]
    endpoint_zones: int
    zone_price: Price | None

    @property
    def link_usd(self) -> float | None:
        """US dollars per hour for the interface endpoints; ``None`` without a price."""
        if not self.endpoint_zones:
            return 0.0
        return _rounded(self.endpoint_zones * self.zone_price.usd) if self.zone_price else None

    @property
    def without_price(self) -> tuple[str, ...]:
        """The items whose price nobody stated, each once."""
        types = [each.instance_type for each in self.endpoints.values() if each.price is None]
        return (*dict.fromkeys(types), *([INTERFACE_ENDPOINT] if self.link_usd is None else []))

    def usd(self, moment: str) -> float | None:
        """US dollars per hour for all of it; ``None`` when an instance's price is missing.

        Interface endpoints whose price is not known are cents, and are left out.
        """
        total = self.link_usd or 0.0
        for each in self.endpoints.values():
            part = each.usd(moment)
            if part is None:
                return None
            total += part
        return _rounded(total)

    def to_dict(self) -> dict[str, Any]:
        """The costs as JSON-safe data, keys always in the same order."""
        return {
            "unit": UNIT,
            **{moment: self.usd(moment) for moment in MOMENTS},
            "endpoints": {key: each.to_dict() for key, each in self.endpoints.items()},
            "interface_endpoints": {
                "zones": self.endpoint_zones,
                "price": self.zone_price
                and {"usd": self.zone_price.usd, "origin": self.zone_price.origin},
                "usd": self.link_usd,
            },
            "without_price": list(self.without_price),
            "note": NOT_IN_IT,
        }


def _rounded(usd: float) -> float:
    """Without the noise of binary fractions; a hundredth of a cent is kept."""
    return round(usd, 4)
