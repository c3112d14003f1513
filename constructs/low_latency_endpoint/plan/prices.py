"""Prices: AWS's, where a page of AWS's states them, and those that the user gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ..errors import rule
from .limits import INSTANCE_TYPE, Pattern, number_range
from .tables import rows

HOSTING_PRICES = "https://aws.amazon.com/sagemaker/ai/pricing/"
"""AWS's page on what an instance of an endpoint costs in each Region."""

LINK_PRICES = "https://aws.amazon.com/privatelink/pricing/"
"""AWS's page on what an interface endpoint costs in each Region."""

INTERFACE_ENDPOINT = "interface_endpoint"
"""The item that is an hour of an interface endpoint in one Availability Zone."""

PRICED_ITEM = Pattern(
    rule(
        "LLE882",
        "there is no such item to give a price of",
        fix="Give the price of an instance type, such as ml.g5.xlarge, or of "
        "interface_endpoint, which is counted once for each zone.",
        source=HOSTING_PRICES,
    ),
    "the item",
    rf"{INTERFACE_ENDPOINT}|{INSTANCE_TYPE.regex}",
    f"an instance type such as ml.g5.xlarge, or {INTERFACE_ENDPOINT}",
)
PRICE = number_range(
    "LLE883",
    "a price",
    0,
    100_000,
    unit="USD per hour",
    whole=False,
    source=HOSTING_PRICES,
    fix="Give what one costs for one hour, in US dollars, as a number.",
)
PRICE_FORM = rule(
    "LLE884",
    "--price has another form",
    fix="Write the item, =, and US dollars per hour: --price ml.g5.xlarge=1.00.",
    source=HOSTING_PRICES,
)


@dataclass(frozen=True, slots=True)
class Price:
    """What one item costs.

    Attributes
    ----------
    usd : float
        US dollars for one hour of one item.
    origin : str
        Whose number it is: ``yours``, or AWS's with place and date.
    """

    usd: float
    origin: str


@cache
def list_prices(region: str) -> dict[str, Price]:
    """AWS's list prices in a Region by item; empty where none was read.

    Examples
    --------
    >>> list_prices("us-east-1")["interface_endpoint"]
    Price(usd=0.01, origin='list price in us-east-1 of 2026-11-20')
    """
    return {
        row["item"]: Price(float(row["usd"]), f"list price in {region} of {row['read']}")
        for row in rows("list_prices")
        if row["region"] == region
    }


def price_of(item: str, region: str | None, given: Mapping[str, float]) -> Price | None:
    """The price of an item; ``None`` where nobody has stated it, never a guess.

    Parameters
    ----------
    item : str
        An instance type, or ``interface_endpoint``.
    region : str, optional
        Where; prices of another Region are not taken.
    given : mapping of str to float
        The user's prices, which win.

    Examples
    --------
    >>> price_of("interface_endpoint", "us-east-1", {}).usd
    0.01
    >>> price_of("ml.g5.xlarge", "us-east-1", {"ml.g5.xlarge": 1.5})
    Price(usd=1.5, origin='yours')
    >>> price_of("ml.g5.xlarge", "us-east-1", {}) is None
    True
    """
    if item in given:
        return Price(float(given[item]), "yours")
    return list_prices(region).get(item) if region else None


def parse_price(text: str) -> tuple[str, float]:
    """An item and its price from ``ITEM=USD``.

    Raises
    ------
    ConfigurationError
        ``LLE882``, ``LLE883``, ``LLE884``.

    Examples
    --------
    >>> parse_price("ml.g5.xlarge=1.5")
    ('ml.g5.xlarge', 1.5)
    """
    item, _, number = text.partition("=")
    try:
        usd = float(number)
    except ValueError:
        raise PRICE_FORM.error(got=text, allowed="ITEM=USD", where="--price") from None
    return PRICED_ITEM.check(item, "--price"), PRICE.check(usd, "--price")
