"""AWS's Price List: its public offer files, line by line, and what of them a stack is billed for.

The files need no credentials: ``<base>/offers/v1.0/aws/<offer>/current/<region>/index.csv``. Five
lines say what the file is, the sixth names the columns, each further line is one price. SageMaker's
has a line for every instance type and use, so nothing of it is kept but what was asked for.
"""

from __future__ import annotations

import csv
import io
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from http.client import HTTPException, HTTPResponse
from typing import TextIO
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from .. import __version__
from ..errors import ConfigurationError, rule
from ..errors.opened_files import opened
from ..facts.prices import INSTANCE_HOUR, PRICE, priced_items
from ..plan.price_file import ListedPrice

PRICE_LIST = "https://pricing.us-east-1.amazonaws.com"
"""Where AWS offers the files, for all Regions of the partition aws."""

_GUIDE = (
    "/awsaccountbilling/latest/aboutv2/"
    "using-the-aws-price-list-bulk-api-fetching-price-list-files-manually.html"
)
OFFER_FILE = rule(
    "LLE892",
    "AWS's Price List cannot be read",
    fix="Try again, or download the Region's CSV files yourself: low-latency prices --from FILE.",
    source=_GUIDE,
)
_LONGEST_LINE = 1 << 20  # characters; those of AWS have some hundreds
_STANDSTILL_SECONDS = 30.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REGION_PREFIX = re.compile(r"^[A-Z]+\d*-")  # USE1-
_METADATA = ("FormatVersion", "Disclaimer", "Publication Date", "Version", "OfferCode")


@dataclass(frozen=True)
class FoundPrices:
    prices: tuple[ListedPrice, ...]
    # items that have several prices, none of which is taken, and these prices
    unclear: Mapping[str, str]


@dataclass(frozen=True)
class Wanted:
    region: str
    instance_types: frozenset[str] | None
    today: date

    def item(self, offer: str, usage_type: str) -> tuple[str, str] | None:
        """The item of a usage type with its unit; ``None`` for what is not wanted.

        >>> wanted = Wanted("us-east-1", None, date(2026, 11, 23))
        >>> wanted.item("AmazonSageMaker", "USE1-Host:ml.g5.xlarge")
        ('ml.g5.xlarge', 'instance-hour')
        >>> wanted.item("AmazonSageMaker", "USE1-AsyncInf:ml.g5.xlarge")
        >>> wanted.item("AmazonVPC", "VpcEndpoint-Hours")
        ('interface_endpoint', 'zone-hour')
        """
        usage_type = _REGION_PREFIX.sub("", usage_type)
        if offer == INSTANCE_HOUR.offer:
            name = usage_type.removeprefix(INSTANCE_HOUR.usage_type)
            known = name != usage_type and name.startswith("ml.")
            if known and (self.instance_types is None or name in self.instance_types):
                return name, INSTANCE_HOUR.unit
            return None
        for name, item in priced_items().items():
            if (item.offer, item.usage_type) == (offer, usage_type):
                return name, item.unit
        return None


def offers() -> tuple[str, ...]:
    """The offer files that have something a stack is billed for."""
    return (INSTANCE_HOUR.offer, *dict.fromkeys(item.offer for item in priced_items().values()))


def read_price_list(
    wanted: Wanted,
    sources: Iterable[str] = (PRICE_LIST,),
    *,
    seconds: float = 900.0,
    say: Callable[[str], None] = lambda text: None,
) -> FoundPrices:
    until = time.monotonic() + seconds
    found: dict[str, dict[float, ListedPrice]] = defaultdict(dict)
    for source in sources:
        path = f"{source.rstrip('/')}/offers/v1.0/aws/{{}}/current/{wanted.region}/index.csv"
        remote = "://" in source
        for place in map(path.format, offers()) if remote else [source]:
            say(place)
            with _download(place, until) if remote else _file(place) as lines:
                for price in read_offer(lines, wanted, place):
                    found[price.item][price.usd] = price
    return FoundPrices(
        tuple(next(iter(each.values())) for each in found.values() if len(each) == 1),
        {
            item: " and ".join(f"{usd:g}" for usd in each)
            for item, each in found.items()
            if len(each) > 1
        },
    )


def read_offer(lines: Iterable[str], wanted: Wanted, source: str) -> Iterator[ListedPrice]:
    """The wanted prices of one offer file, in order."""
    rows, wrong = _rows(lines, source), partial(OFFER_FILE.error, where=source)
    about = dict(row[:2] for _, row in zip(_METADATA, rows, strict=False) if len(row) == 2)
    if tuple(about) != _METADATA:
        raise wrong(
            got=f"a header with {', '.join(about) or 'nothing of an offer file'}"[:120],
            allowed=f"a CSV offer file, which begins with {', '.join(_METADATA)}",
        )
    # AWS writes some of the names in several ways: usageType, Usage Type.
    columns = [name.replace(" ", "").lower() for name in next(rows, [])]
    needed = ("termtype", "startingrange", "currency", "usagetype", "priceperunit")
    if missing := [name for name in needed if name not in columns]:
        raise wrong(got=f"no column {', '.join(missing)}", allowed="the columns of an offer file")
    term, start, currency, usage, price = map(columns.index, needed)
    region = columns.index("regioncode") if "regioncode" in columns else None
    for number, row in enumerate(rows, len(_METADATA) + 2):
        if len(row) != len(columns):
            raise wrong(
                got=f"{len(row)} cells in line {number}: the download may be incomplete",
                allowed=f"{len(columns)} cells, as in the header line",
            )
        # Tiers: the first, from which on one pays. Reserved and spot terms are other prices.
        if (
            row[term] != "OnDemand"
            or row[start] not in ("", "0")
            or row[currency] != "USD"
            or (region is not None and row[region] != wanted.region)
        ):
            continue
        item = wanted.item(about["OfferCode"], row[usage])
        if item is not None:
            try:
                usd = PRICE.check(float(row[price]))
            except (ValueError, ConfigurationError):
                got = f"price {row[price]!r} in line {number}"
                raise wrong(got=got, allowed="US dollars") from None
            yield ListedPrice(
                item=item[0],
                region=wanted.region,
                usd=usd,
                unit=item[1],
                published=about["Publication Date"][:10],
                version=about["Version"],
                read=wanted.today.isoformat(),
                source=source,
            )


def _rows(lines: Iterable[str], source: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines)
    except csv.Error as problem:
        raise OFFER_FILE.error(got=str(problem), allowed="a CSV offer file", where=source) from None


def _lines(file: TextIO, source: str) -> Iterator[str]:
    """The lines of a file, which may be large, but not one of them: a device is one without an end."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise OFFER_FILE.error(
                got=f"a line of {_LONGEST_LINE:,} characters or more",
                allowed="a CSV offer file",
                where=source,
            )
        yield line


@contextmanager
def _file(path: str) -> Iterator[Iterable[str]]:
    try:
        with io.TextIOWrapper(opened(path), encoding="utf-8-sig", newline="") as file:
            yield _lines(file, path)
    except (OSError, UnicodeDecodeError) as problem:
        raise OFFER_FILE.error(
            got=getattr(problem, "strerror", None) or str(problem),
            allowed="a CSV offer file",
            where=path,
        ) from None


@contextmanager
def _download(url: str, until: float) -> Iterator[Iterable[str]]:
    parts = urlsplit(url)
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in _LOOPBACK):
        raise OFFER_FILE.error(got=url, allowed="https, or http on this machine", where="--from")
    request = Request(url, headers={"User-Agent": f"low-latency-endpoint/{__version__}"})
    try:
        with urlopen(request, timeout=_STANDSTILL_SECONDS) as response:
            whole = io.BufferedReader(_WholeResponse(response, until), 1 << 20)
            yield _lines(io.TextIOWrapper(whole, encoding="utf-8-sig", newline=""), url)
    except (OSError, HTTPException, UnicodeDecodeError) as problem:
        raise OFFER_FILE.error(
            got=str(getattr(problem, "reason", "")) or str(problem),
            allowed="the complete file",
            where=url,
        ) from None


class _WholeResponse(io.RawIOBase):
    """A response that says so when it ends early, or takes longer than there is time."""

    def __init__(self, response: HTTPResponse, until: float) -> None:
        self._response, self._until = response, until
        length = response.headers["Content-Length"]
        self._missing = None if length is None else int(length)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if time.monotonic() > self._until:
            raise TimeoutError("it took longer than there is time")
        size = self._response.readinto(buffer)
        if self._missing is not None:
            self._missing -= size
            if not size and self._missing:
                raise OSError(f"it ended {self._missing:,} bytes early")
        return size
