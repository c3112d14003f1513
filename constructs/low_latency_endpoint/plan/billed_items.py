"""What is billed beside the instances: how much of it, in words and in US dollars."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ..errors.frozen import dataclass
from ..errors.impossible import out_of_range, refuse
from ..facts.prices import Price
from ..report.numbers import readable
from .decisions import IMPOSSIBLE


@dataclass(frozen=True, kw_only=True)
class BilledItem:
    """Something beside the instances that is billed for every hour."""

    what: str  # in words, of a number of things in the plural
    item: str  # its name among the prices
    per_hour: float  # units in an hour
    price: Price | None  # of a unit; None where nobody stated it
    assumed: str = ""  # what the number of units rests on besides the settings
    count: float | None = None  # how many, where that is not part of the words

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, self.what, out_of_range({"units per hour": self.per_hour}))

    @property
    def text(self) -> str:
        """In words, with how many."""
        if self.count is None:
            return self.what
        words = re.sub(r"s\b", "", self.what, count=1) if self.count == 1 else self.what
        return f"{readable(self.count, 4)} {words}"

    @property
    def usd(self) -> float | None:
        """US dollars per hour; ``None`` without a price."""
        return rounded(self.per_hour * self.price.usd) if self.price else None

    def with_more(self, other: BilledItem | None) -> BilledItem:
        """This and another of its kind, if there is one, as a single item."""
        if other is None:
            return self
        count = None if self.count is None else self.count + (other.count or 0)
        return replace(self, per_hour=self.per_hour + other.per_hour, count=count)

    def to_dict(self) -> dict[str, Any]:
        """The item as JSON-safe data."""
        return {
            "what": self.text,
            "item": self.item,
            "per_hour": self.per_hour,
            "price": price_data(self.price),
            "usd": self.usd,
            "assumed": self.assumed,
        }


def price_data(price: Price | None) -> dict[str, Any] | None:
    """A price as JSON-safe data."""
    return {"usd": price.usd, "origin": price.origin} if price else None


def rounded(usd: float) -> float:
    """Without the noise of binary fractions; a hundredth of a cent is kept."""
    return round(usd, 4)
