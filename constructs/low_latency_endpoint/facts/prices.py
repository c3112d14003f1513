"""Prices: AWS's, where a page of AWS's or its Price List states them, and those of the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ..errors import rule
from ..report.numbers import number_of
from .limit_kinds import USE_AN_ALLOWED_VALUE, Pattern, number_range
from .limits import INSTANCE_TYPE
from .tables import rows

HOSTING_PRICES = "https://aws.amazon.com/sagemaker/ai/pricing/"
"""AWS's page on what an instance of an endpoint costs in each Region."""

OTEL_METRICS_USD = 0.50
"""US dollars for a GB of OpenTelemetry metrics that CloudWatch takes in, or that it enriches.

Source: AWS Machine Learning Blog, 2026-06-18, "Monitor and debug generative AI inference with
SageMaker detailed metrics and Insights dashboard on CloudWatch", which names no Region. How many GB
an endpoint publishes follows from its containers and from nothing that a plan knows.
"""

INTERFACE_ENDPOINT = "interface_endpoint"
"""The item that is an hour of an interface endpoint in one Availability Zone."""

HOURS_PER_MONTH = 730
"""Hours that AWS's pricing calculator counts for a month: a twelfth of a year of 365 days."""


@dataclass(frozen=True, slots=True)
class PricedItem:
    """Something that a stack is billed for."""

    unit: str  # what one price is for
    offer: str  # where AWS's Price List has it
    usage_type: str
    what: str  # in words


@cache
def priced_items() -> dict[str, PricedItem]:
    """What is billed beside the instances, by the names of settings and price files."""
    return {row.pop("item"): PricedItem(**row) for row in rows("priced_items")}


INSTANCE_HOUR = PricedItem(
    "instance-hour", "AmazonSageMaker", "Host:", "an instance behind an endpoint"
)
"""An hour of an instance; its usage type goes on with the instance type."""

PRICED_ITEM = Pattern(
    rule("LLE882", "no price item has this name", fix=USE_AN_ALLOWED_VALUE, source=HOSTING_PRICES),
    "the item",
    rf"{'|'.join(priced_items())}|{INSTANCE_TYPE.regex}",
    f"an instance type such as ml.g5.xlarge, or one of {', '.join(priced_items())}",
)
PRICE = number_range(
    "LLE883",
    "a price",
    0,
    100_000,
    unit="USD",
    whole=False,
    source=HOSTING_PRICES,
    fix="Give US dollars for one unit, such as an instance hour.",
)
PRICE_FORM = rule(
    "LLE884",
    "--price is not valid",
    fix="Write ITEM=USD, such as --price ml.g5.xlarge=1.00 for one hour.",
    source=HOSTING_PRICES,
)
PRICE_REGION = rule(
    "LLE891",
    "a price is for another Region",
    fix="Read the prices of the stack's Region with `low-latency prices`.",
    source=HOSTING_PRICES,
)


@dataclass(frozen=True, slots=True)
class Price:
    """What one item costs."""

    usd: float  # US dollars for one unit of one item; of an instance, for an hour
    origin: str  # whose number it is: yours, or AWS's with place and date
    region: str = ""  # where it holds; empty where nobody says so
    read: str = ""  # the day on which it was read, as 2026-11-23; empty for the user's own


def your_price(usd: float) -> Price:
    """A price that the user states."""
    return Price(float(usd), "yours")


@cache
def list_prices(region: str) -> dict[str, Price]:
    """AWS's list prices in a Region by item; empty where none was read."""
    return {
        row["item"]: Price(
            float(row["usd"]), f"list price in {region} of {row['read']}", region, row["read"]
        )
        for row in rows("list_prices")
        if row["region"] == region
    }


def price_of(item: str, region: str | None, given: Mapping[str, Price]) -> Price | None:
    """The price of an item; ``None`` where nobody has stated it, never a guess."""
    found = given.get(item)
    if found is None:
        return list_prices(region).get(item) if region else None
    if found.region and region and found.region != region:
        raise PRICE_REGION.error(
            got=f"{item}: {found.origin}", allowed=f"prices of {region}", where="prices"
        )
    return found


def parse_price(text: str) -> tuple[str, float]:
    """An item and its price from ``ITEM=USD``."""
    item, _, number = text.partition("=")
    try:
        usd = number_of(number)
    except ValueError:
        raise PRICE_FORM.error(got=text, allowed="ITEM=USD", where="--price") from None
    return PRICED_ITEM.check(item, "--price"), PRICE.check(usd, "--price")
