"""``low-latency prices``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import ENDPOINT_YAML, Json, Region, flag, grouped, option
from .output import print_document, print_json, progress_on_terminal, say

if TYPE_CHECKING:
    from ..operate.price_list import FoundPrices


@dataclass
class PriceOptions:
    """What is read, from where, and where it is written."""

    region: Region = None
    instance_type: list[str] | None = option(
        "Another instance type to look up. Can be repeated.", metavar="TYPE", short="-t"
    )
    all: bool = flag("Look up all instance types that can host.")
    from_: list[str] | None = option(
        "CSV offer file that you downloaded from AWS, or base URL of a mirror of AWS's Price List. "
        "Can be repeated. Default: AWS's public Price List.",
        names="--from",
        metavar="FILE|URL",
    )
    timeout: str = option(
        "Time limit for all downloads. SageMaker's file is large.", "15m", metavar="TIME"
    )
    output: Path | None = option(
        "File to write. Default: prices-REGION.csv next to the settings file.",
        metavar="FILE",
        short="-o",
    )
    json: Json = False
    settings: Path | None = option(
        "Settings file with the instance types to look up. Default: endpoint.yaml, unless --region "
        "and instance types are given.",
        metavar="FILE",
    )


@grouped
def prices(options: PriceOptions) -> None:
    """Write current prices from AWS's Price List to a file. Needs no credentials.

    Name the file in the settings under prices; plan, simulate and load-test then use it.

    \b
    Exit codes:
      0  all prices found
      1  file written, but some prices are missing
      2  usage error, or nothing written

    \b
    Examples:
      low-latency prices
      low-latency prices -t ml.g5.xlarge -t ml.g6.xlarge
      low-latency prices --region eu-west-1 --all -o prices.csv
      low-latency prices --from AmazonSageMaker.csv --from AmazonVPC.csv
    """
    from datetime import UTC, datetime

    from ..facts.limits import INSTANCE_TYPE
    from ..operate.price_list import PRICE_LIST, Wanted, read_price_list
    from ..plan.price_file import price_file_text
    from .load_inputs import seconds_of

    settings = options.settings
    if settings is None and not (options.region and (options.instance_type or options.all)):
        settings = ENDPOINT_YAML
    region, types = _region_and_types(settings, options)
    for type_ in types:
        INSTANCE_TYPE.check(type_, "--instance-type")
    wanted = Wanted(region, None if options.all else frozenset(types), datetime.now(UTC).date())
    with progress_on_terminal("Reading AWS's prices") as progress:
        prices = read_price_list(
            wanted,
            options.from_ or (PRICE_LIST,),
            seconds=seconds_of(options.timeout, "--timeout"),
            say=progress,
        )
    missing = _missing(prices, types)
    if not prices.prices:
        raise typer.BadParameter(f"nothing has a price there in {region}: {', '.join(missing)}")
    output = options.output or Path(settings.parent if settings else ".", f"prices-{region}.csv")
    try:
        output.write_text(price_file_text(prices.prices), encoding="utf-8")
    except OSError as problem:
        raise typer.BadParameter(f"{output}: {problem.strerror}") from None
    _show(prices, output, missing, as_json=options.json)
    for each in missing:
        say(f"No price: {each}.", err=True)
    if missing:
        raise typer.Exit(1)


def _region_and_types(settings: Path | None, options: PriceOptions) -> tuple[str, list[str]]:
    types = list(options.instance_type or ())
    region = options.region
    if settings is not None:
        from ..settings import load_settings, planned_variants, region_of

        loaded = load_settings(settings, without=("prices",))  # which may name what is not yet
        region = region or region_of(loaded)
        for variant in planned_variants(loaded):
            types += variant.plan.request.serving.types
    if region is None:
        raise typer.BadParameter("the settings do not say where they deploy: give --region")
    return region, list(dict.fromkeys(types))


def _missing(found: FoundPrices, types: list[str]) -> list[str]:
    """What was looked for in vain, in words."""
    from ..facts.prices import priced_items

    there = {price.item for price in found.prices}
    return [
        f"{item} (AWS's Price List has {found.unclear[item]})" if item in found.unclear else item
        for item in (*types, *priced_items())
        if item not in there
    ]


def _show(found: FoundPrices, output: Path, missing: list[str], *, as_json: bool) -> None:
    if as_json:
        there = [
            {
                "item": price.item,
                "usd": price.usd,
                "unit": price.unit,
                "published": str(price.published),
            }
            for price in found.prices
        ]
        print_json({"output": str(output), "prices": there, "missing": missing})
        return
    from ..report.document import Document, Sentence, Table

    say(f"wrote {output}", err=True)
    rows = [
        [price.item, f"{price.usd:.10f}".rstrip("0").rstrip("."), price.unit, str(price.published)]
        for price in sorted(found.prices, key=lambda price: price.item)
    ]
    title = f"{found.prices[0].region}: on-demand list prices"
    text = (
        "Discounts, Savings Plans, free tiers and taxes are not in it. In the settings file: "
        f"`prices: {{file: {output.name}}}`"
    )
    table = Table(["What", "US dollars", "for one", "published"], rows, title)
    print_document(Document("", [table, Sentence(text)]))
