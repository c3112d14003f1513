"""The file of prices: how it is written and read, and how old its prices are.

::

    # AWS's on-demand list prices in us-east-1, in US dollars, ...
    item,region,usd,unit,published,version,read,source
    ml.g5.xlarge,us-east-1,1.408,instance-hour,2026-09-20,20260920170512,2026-11-23,https://...
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import fields
from datetime import date
from pathlib import Path

from ..errors import rule
from ..errors.frozen import dataclass
from ..errors.given_files import check_csv, text_of
from ..facts.prices import HOSTING_PRICES, PRICE, PRICED_ITEM, Price

PRICE_FILE = rule(
    "LLE890",
    "a price file cannot be read",
    fix="Create the file with `low-latency prices`.",
    source=HOSTING_PRICES,
)
STALE_AFTER_DAYS = 90
"""From this age on the cost says how old its prices are; AWS promises no such time."""


@dataclass(frozen=True, kw_only=True)
class ListedPrice:
    """One line of the file."""

    item: str  # what, and where the price holds
    region: str
    usd: float  # US dollars for one unit
    unit: str  # of what
    published: str  # of the offer file that has it
    version: str
    read: str  # the day on which it was read
    source: str  # the offer file

    @property
    def price(self) -> Price:
        """The price with where it is from."""
        return Price(
            self.usd,
            f"AWS's Price List in {self.region}, published {self.published}, read {self.read}",
            self.region,
            self.read,
        )


_COLUMNS = tuple(field.name for field in fields(ListedPrice))


def price_file_text(prices: Iterable[ListedPrice]) -> str:
    """The file's text, items in order."""
    ordered = sorted(prices, key=lambda price: price.item)
    text = io.StringIO()
    places = ", ".join(dict.fromkeys(price.region for price in ordered))
    text.write(
        f"# AWS's on-demand list prices in {places}, in US dollars, as low-latency prices read\n"
        "# them. Discounts, Savings Plans, free tiers and taxes are not in it.\n"
    )
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([_cell(getattr(price, name)) for name in _COLUMNS] for price in ordered)
    return text.getvalue()


def _cell(value: object) -> object:
    # A price of a request has seven decimals, and 2e-07 is not what people read.
    return f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def read_price_file(path: str | Path) -> dict[str, Price]:
    """The prices of a file by item."""
    return parse_price_file(text_of(path, PRICE_FILE), str(path))


def parse_price_file(text: str, where: str = "") -> dict[str, Price]:
    """The same from the file's text."""
    prices: dict[str, Price] = {}
    try:
        check_csv(text)
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        reader = csv.DictReader(lines, strict=True)
        columns = tuple(reader.fieldnames or ())
        rows = list(reader) if columns == _COLUMNS else []  # each row has a place for each column
    except (ValueError, csv.Error) as problem:
        raise PRICE_FILE.error(got=str(problem), allowed=", ".join(_COLUMNS), where=where) from None
    if columns != _COLUMNS:
        raise PRICE_FILE.error(
            got=f"columns {', '.join(columns) or 'none'}"[:100],
            allowed=", ".join(_COLUMNS),
            where=where,
        )
    regions = set()
    for number, row in enumerate(rows, 1):
        place = f"{where}, price {number}".removeprefix(", ")
        try:
            if None in row:
                raise ValueError("more cells than columns")
            usd = float(row["usd"])
            date.fromisoformat(row["read"])
        except (TypeError, ValueError) as problem:
            raise PRICE_FILE.error(
                got=str(problem), allowed=", ".join(_COLUMNS), where=place
            ) from None
        line = ListedPrice(**{**row, "usd": PRICE.check(usd, place)})
        if PRICED_ITEM.check(line.item, place) in prices:
            raise PRICE_FILE.error(got=f"{line.item} twice", allowed="each once", where=place)
        regions.add(line.region)
        prices[line.item] = line.price
    if len(regions) > 1:
        raise PRICE_FILE.error(
            got=", ".join(sorted(regions)), allowed="the prices of one Region", where=where
        )
    return prices


def days_old(prices: Iterable[Price], today: date) -> int | None:
    """The age of the oldest price that was read, from the day on that it should be told."""
    read = [date.fromisoformat(price.read) for price in prices if price.read]
    oldest = (today - min(read)).days if read else 0
    return oldest if oldest > STALE_AFTER_DAYS else None
