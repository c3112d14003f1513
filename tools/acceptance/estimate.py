"""What a run costs, before it starts: prices with their source, and hours from the steps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .steps import Step


@dataclass(frozen=True)
class Price:
    """US dollars for an hour of one thing, where that was read and when."""

    item: str
    usd_per_hour: float
    source: str


PRICES = {
    "instance": Price(
        "one ml.m5.large",
        0.115,
        "unverified: half of ml.m5.xlarge, which the Price List had at 0.23 in us-east-1 on "
        "2026-06-27",
    ),
    "interface endpoint": Price(
        "the interface endpoint in two zones",
        0.02,
        "https://aws.amazon.com/privatelink/pricing/, us-east-1, 2026-11-20",
    ),
    "rest": Price(
        "alarms, a KMS key, functions, logs, queues, requests, a Hub model's files in S3",
        0.10,
        "an allowance, not a price: fewer than 50 alarms at 0.10 a month, a key at 1.00 a month",
    ),
}
"""List prices; what the account's own Price List says of the instance goes before it."""

REGION_MARGIN = 1.3
"""Other Regions than us-east-1 are up to 30 % dearer; so much is put on an unread price."""


@dataclass(frozen=True)
class Estimate:
    """Hours and dollars of a run, and how they come about."""

    hours: float
    dollars: float
    lines: tuple[str, ...]


def prices_of(pricing: Any, region: str) -> dict[str, Price]:
    """`PRICES`, with the instance's from AWS's Price List where the account may read it."""
    wanted = {"component": "Hosting", "instanceName": "ml.m5.large", "regionCode": region}
    try:
        listed = pricing.get_products(
            ServiceCode="AmazonSageMaker",
            Filters=[{"Type": "TERM_MATCH", "Field": f, "Value": v} for f, v in wanted.items()],
        )["PriceList"]
        (product,) = [json.loads(each) for each in listed]
        (term,) = product["terms"]["OnDemand"].values()
        (dimension,) = term["priceDimensions"].values()
        read = Price(
            PRICES["instance"].item,
            float(dimension["pricePerUnit"]["USD"]),
            f"AWS Price List, {region}, {product['publicationDate'][:10]}",
        )
    except (BotoCoreError, ClientError, KeyError, ValueError):
        margin = 1 if region == "us-east-1" else REGION_MARGIN
        return {
            name: replace(price, usd_per_hour=price.usd_per_hour * margin)
            for name, price in PRICES.items()
        }
    return {**PRICES, "instance": read}


def estimate(steps: Iterable[Step], prices: dict[str, Price]) -> Estimate:
    """Add up the steps: instances while each lasts, everything else all the time."""
    steps = list(steps)
    hours = sum(step.minutes for step in steps) / 60
    instance_hours = sum(step.minutes / 60 * step.instances for step in steps)
    amounts = {"instance": instance_hours, "interface endpoint": hours, "rest": hours}
    costs = {name: amount * prices[name].usd_per_hour for name, amount in amounts.items()}
    lines = tuple(
        f"{prices[name].item}: {amount:.1f} h at {prices[name].usd_per_hour:.3f} = "
        f"{costs[name]:.2f} USD ({prices[name].source})"
        for name, amount in amounts.items()
    )
    return Estimate(hours, sum(costs.values()), lines)
