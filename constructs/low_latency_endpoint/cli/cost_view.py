"""What to know before a deploy: what the stack costs for an hour, and how long AWS takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..plan.hourly_cost import StackCost
    from ..settings import Settings


def with_prices(settings: Settings, given: Sequence[str]) -> Settings:
    """The settings with the prices of the command line over their own.

    Raises
    ------
    ConfigurationError
        ``LLE882``, ``LLE883``, ``LLE884``.
    """
    from ..plan.prices import parse_price, your_price

    stated = dict(parse_price(each) for each in given)
    prices = {**settings.prices, **{item: your_price(usd) for item, usd in stated.items()}}
    return settings.model_copy(update={"prices": prices})


def total_line(cost: StackCost) -> str:
    """The whole stack in one line; empty where an instance's price is missing."""
    from ..plan.hourly_cost import MOMENTS

    if cost.usd("at_most") is None:
        return ""
    amounts = ", ".join(
        f"{_usd(cost.usd(moment))} {moment.replace('_', ' ')}" for moment in MOMENTS
    )
    return f"All endpoints and their interface endpoints, in US dollars per hour: {amounts}."


def cost_parts(settings: Settings, cost: StackCost) -> Iterator[RenderableType]:
    """A table of instances and dollars, what is not in it, and how to give what is missing."""
    from rich.text import Text

    from ..plan.hourly_cost import MOMENTS, NOT_IN_IT
    from ..report.tables import Cell, Table

    rows: list[list[str | Cell]] = []
    for key, each in cost.endpoints.items():
        price = (
            f"{each.price.usd:g} each, {each.price.origin}" if each.price else ("price not known")
        )
        rows.append(
            [
                f"{key}: {each.instance_type}, {price}",
                *(
                    f"{each.instances(moment)} x"
                    if each.price is None
                    else f"{each.instances(moment)} x {each.price.usd:g} = {_usd(each.usd(moment))}"
                    for moment in MOMENTS
                ),
            ]
        )
    if cost.endpoint_zones:
        price = (
            f"{cost.zone_price.usd:g} each, {cost.zone_price.origin}"
            if cost.zone_price
            else ("price not known")
        )
        rows.append(
            [
                f"interface endpoints: {cost.endpoint_zones} zones, {price}",
                *[_usd(cost.link_usd)] * len(MOMENTS),
            ]
        )
    if cost.usd("at_most") is not None:
        rows.append(
            [
                Cell(text, "strong")
                for text in ("together", *(_usd(cost.usd(moment)) for moment in MOMENTS))
            ]
        )
    table = Table(
        ["What", *(moment.replace("_", " ") for moment in MOMENTS)],
        rows,
        f"{settings.stack_name}: US dollars per hour",
    )
    yield table
    if cost.without_price:
        yield Text(_how_to_give(cost.without_price))
    yield Text(NOT_IN_IT)


def _how_to_give(items: Sequence[str]) -> str:
    from ..plan.prices import HOSTING_PRICES, INTERFACE_ENDPOINT, LINK_PRICES

    pages = [LINK_PRICES if item == INTERFACE_ENDPOINT else HOSTING_PRICES for item in items]
    given = ", ".join(f"{item}: USD" for item in items)
    options = " ".join(f"--price {item}=USD" for item in items)
    pairs = " ".join(f"{item}=USD" for item in items)
    return (
        f"Price not known: {', '.join(items)}. AWS has it for each Region on "
        f"{' and '.join(dict.fromkeys(pages))}; state it in the settings file, prices: "
        f'{{{given}}}, or with {options}; make deploy takes PRICES="{pairs}".'
    )


def _usd(amount: float | None) -> str:
    return "?" if amount is None else f"{amount:,.2f}"
