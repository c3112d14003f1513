"""``low-latency compare-instance-types``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Html, Json, Markdown, Prices, grouped, option
from .process import check_packages

if TYPE_CHECKING:
    from ..plan.prices import Price


@dataclass
class TypeComparisonOptions:
    """Whose prices count, and what is shown."""

    price: Prices = None
    prices: Path | None = option(
        "A file of prices, as low-latency prices writes it.", metavar="FILE"
    )
    settings: Path | None = option("A settings file that states prices.", metavar="FILE")
    statistic: str | None = option(
        "Of the load tests' target. Default: its highest percentile.", metavar="STAT"
    )
    html: Html = None
    json: Json = False
    markdown: Markdown = False

    @property
    def all_prices(self) -> dict[str, Price]:
        """The settings' prices, over them the file's, over them those of the command line."""
        from ..plan.price_file import read_price_file
        from ..plan.prices import parse_price, your_price

        found: dict[str, Price] = {}
        if self.settings is not None:
            from ..settings import load_settings

            found |= load_settings(self.settings).prices
        if self.prices is not None:
            found |= read_price_file(self.prices)
        return found | {item: your_price(usd) for item, usd in map(parse_price, self.price or ())}


@grouped
def compare_instance_types(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT",
            show_default=False,
            help="Result files of low-latency load-test, each of another instance type.",
        ),
    ],
    options: TypeComparisonOptions,
) -> None:
    """Set load tests on several instance types against each other: latency against cost.

    Every step of a load test is a point: what its requests waited, and what a million of them cost.
    On the frontier is what nothing else beats in both.

    \b
    Exit codes:
      0  compared
      1  none held the target
      2  usage, other targets, or no price

    \b
    Examples:
      low-latency compare-instance-types g5.json g6.json --prices prices-us-east-1.csv
      low-latency compare-instance-types *.json --price ml.g5.xlarge=1.00 --price ml.g6.xlarge=0.90
      low-latency compare-instance-types *.json --settings endpoint.yaml --html types.html
    """
    if options.html is not None:
        check_packages("jinja2")
    if len(set(results)) < 2:
        raise typer.BadParameter("give two or more result files")
    check_packages("hdrh")
    from rich.text import Text

    from ..load_test.compare.instance_types import compare_instance_types as compared
    from .output import print_json, print_parts

    found = compared(list(dict.fromkeys(results)), options.all_prices, options.statistic)
    if options.html is not None:
        found.write_page(options.html)
        typer.echo(f"wrote {options.html}", err=True)
    if options.json:
        print_json(found.to_dict())
    else:
        print_parts(
            Text(found.sentence, style="bold"),
            found.table(),
            *map(Text, found.remarks()),
            markdown=options.markdown,
        )
    if not found.front:
        raise typer.Exit(1)
