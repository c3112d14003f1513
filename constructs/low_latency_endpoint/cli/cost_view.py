"""What to know before a deploy: what the stack costs, by the hour, the month, and per request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..options.throughput import counted_instances
from ..report.numbers import readable

if TYPE_CHECKING:
    from ..plan.hourly_cost import EndpointCost, PricedType, StackCost
    from ..plan.plan import ServedPeak
    from ..report.document import Cell, Part
    from ..settings import Settings
    from ..simulate import Shape


def with_prices(settings: Settings, given: Sequence[str]) -> Settings:
    """The settings with the prices of the command line over their own."""
    from ..facts.prices import parse_price, your_price
    from ..options.option import changed

    stated = dict(parse_price(each) for each in given)
    prices = {**settings.prices, **{item: your_price(usd) for item, usd in stated.items()}}
    return changed(settings, prices=prices)


def cost_data(settings: Settings, day: Shape | None = None) -> dict[str, Any]:
    """The cost as JSON-safe data, with that along a day where there is one."""
    from ..settings import fleets_along, stack_cost

    cost = stack_cost(settings)
    data = cost.to_dict()
    if day is not None:
        fleets = fleets_along(settings, day)
        along = cost.along(fleets)
        data["along"] = {
            "traffic": day.name,
            "hours": day.seconds / 3600,
            "instances": {key: fleet and fleet.mean for key, fleet in fleets.items()},
            "instance_types": {
                key: endpoint.types[0].instance_type for key, endpoint in cost.endpoints.items()
            },
            "warnings": list(_doubts_along(settings, cost, day)),
            **(along.to_dict() if along else {}),
        }
    return data


def total_line(cost: StackCost) -> str:
    """The whole stack in one line; without the price of an instance the instance hours."""
    from ..plan.hourly_cost import MOMENTS

    if cost.usd("at_most") is None:
        hours = ", ".join(
            f"{sum(endpoint.instances(moment) for endpoint in cost.endpoints.values())} "
            f"{moment.replace('_', ' ')}"
            for moment in MOMENTS
        )
        options = " ".join(f"--price {item}=USD" for item in cost.without_price)
        return (
            f"Instance hours per hour: {hours}. In dollars: low-latency prices reads AWS's, or "
            f"give {options}."
        )
    amounts = ", ".join(
        f"{_usd(cost.usd(moment))} {moment.replace('_', ' ')}" for moment in MOMENTS
    )
    millions = ", ".join(
        f"{key} {_usd(usd)}{_on_pool(endpoint)}"
        for key, endpoint in cost.endpoints.items()
        if (usd := cost.usd_per_million(key)) is not None
    )
    usual = "usual " if any(endpoint.other_peaks for endpoint in cost.endpoints.values()) else ""
    peak = f" For a million requests at the {usual}peak: {millions}." if millions else ""
    lacking = ""
    if cost.left_out:
        items = "1 item" if len(cost.left_out) == 1 else f"{len(cost.left_out)} items"
        lacking = f" Without {items} of unknown price (plan --cost)."
    return f"The stack, in US dollars per hour: {amounts}.{peak}{lacking}"


def cost_parts(settings: Settings, cost: StackCost, day: Shape | None = None) -> Iterator[Part]:
    """A table of instances and dollars, what a million requests cost, whose prices these are."""
    from ..plan.hourly_cost import MOMENTS, NOT_IN_IT
    from ..report.document import Cell, Sentence, Table

    rows: list[list[str | Cell]] = []
    for key, endpoint in cost.endpoints.items():
        rows += [_row(key, endpoint, kind) for kind in endpoint.types]
    known = [item.usd for item in cost.items if item.usd is not None]
    beside = _usd(sum(known)) if known or not cost.items else _usd(None)
    rows.append(["what stands beside them", *[beside] * len(MOMENTS)])
    if cost.usd("at_most") is not None:
        totals = [_usd(cost.usd(moment)) for moment in MOMENTS]
        rows.append([Cell(text, "strong") for text in ("together", *totals)])
        rows.append(
            [
                "a month of 730 hours of it",
                *(
                    "-"  # no update lasts a month
                    if moment == "in_an_update"
                    else f"{cost.usd_per_month(moment):,.0f}"
                    for moment in MOMENTS
                ),
            ]
        )
    yield Table(
        ["What", *(moment.replace("_", " ") for moment in MOMENTS)],
        rows,
        f"{settings.stack_name}: US dollars per hour",
    )
    said = [*_pools(cost), *_beside(cost), *_per_million(cost)]
    if day is not None:
        said.append(along_line(settings, cost, day))
    elif cost.usd("at_most") is not None:
        said.append(
            "What a usual month costs follows from traffic: --traffic-from with a recorded day, or "
            "--traffic daily-wave."
        )
    said += _whose_prices(cost)
    if cost.without_price:
        said.append(_how_to_give(cost.without_price))
    yield from map(Sentence, (*said, NOT_IN_IT))


def _row(key: str, cost: EndpointCost, kind: PricedType) -> list[str | Cell]:
    """An endpoint's instances and what they cost, if all of them are of one type."""
    from ..plan.billed_items import rounded
    from ..plan.hourly_cost import MOMENTS

    name = f"all of {kind.instance_type}" if cost.pools else kind.instance_type
    numbers = [cost.instances(moment) for moment in MOMENTS]
    if kind.price is None:
        return [f"{key}: {name}, price not known", *(f"{number} x" for number in numbers)]
    usd = kind.price.usd
    return [
        f"{key}: {name}",
        *(f"{number} x {readable(usd)} = {_usd(rounded(number * usd))}" for number in numbers),
    ]


def _pools(cost: StackCost) -> Iterator[str]:
    """Which of several instance pools the sums count, of each endpoint that has some."""
    for key, endpoint in cost.endpoints.items():
        if not endpoint.pools:
            continue
        if endpoint.without_price:
            missing = " and ".join(endpoint.without_price)
            yield (
                f"{key}: any of its pools may serve, and {missing}, whose price is not known, may be "
                "dearer than the others."
            )
            continue
        yield (
            f"{key}: any of its pools may serve. The sums count {endpoint.pool_text('at_least')}, at "
            f"least; {endpoint.pool_text('at_first')}, at first; {endpoint.pool_text('at_most')}, at "
            "most and in an update."
        )


def _on_pool(cost: EndpointCost) -> str:
    """The pool that a number of instances counts as, in words; nothing without pools."""
    pool = cost.pool_text("at_first")
    return f" on {pool}" if pool else ""


def _beside(cost: StackCost) -> Iterator[str]:
    """What stands beside the instances, each with its price for an hour."""
    groups = {"": cost.shared, **{key: endpoint.others for key, endpoint in cost.endpoints.items()}}
    parts = [
        f"{key}: {counted}".removeprefix(": ")
        for key, items in groups.items()
        if (counted := ", ".join(f"{item.text} {_usd(item.usd)}" for item in items if item.price))
    ]
    if parts:
        yield f"Beside the instances: {'; '.join(parts)}."


def _per_million(cost: StackCost) -> Iterator[str]:
    for key, endpoint in cost.endpoints.items():
        for peak in endpoint.peaks:
            yield from _at_a_peak(cost, key, peak)
        yield from _data(key, endpoint)


def _at_a_peak(cost: StackCost, key: str, peak: ServedPeak) -> Iterator[str]:
    """What a million requests cost at one of the peaks of an endpoint, where it is known."""
    endpoint = cost.endpoints[key]
    usd = cost.usd_per_million(key, peak.instances, peak.tps, peak.label)
    if usd is None:
        return
    sent = endpoint.request_gb
    copied = sum(shadow.serving(peak.label) for shadow in cost.shadows_of(key))
    pool = endpoint.pool_text("at_first")
    serving = counted_instances(peak.instances) + (f" of {pool}" if pool else "")
    way = f" and {counted_instances(copied)} of its shadow" if copied else ""
    way += ", and their data through the interface endpoint" if sent and sent.price else ""
    rest = f"{'its share of ' if cost.called > 1 else ''}the rest of the stack"
    during = f" during {peak.label}" if peak.label else ""
    if endpoint.other_peaks and not peak.label:
        during = " at the usual peak"
    yield (
        f"{key}: a million requests cost {_usd(usd)} US dollars{during} at {readable(peak.tps)} "
        f"requests a second on {serving}, with {rest}{way}."
    )


def _data(key: str, cost: EndpointCost) -> Iterator[str]:
    """What requests bring through the interface endpoint at the peak; of unknown size, each KB."""
    highest = cost.highest_tps
    if highest is None:
        return
    data = cost.data_per_hour
    gb = data.per_hour if data else highest * 3600 / 1e6
    usd = "at a price that is not known"
    if cost.data_price:
        usd = f"{_usd(cost.data_price.usd * gb)} US dollars"
    unknown = " for each KB of a request, whose size payload_bytes or warm_up.payload says"
    size = f" ({data.what})" if data else ""
    which = "highest peak" if cost.other_peaks else "peak"
    yield (
        f"{key}: {readable(gb, 3)} GB of requests in an hour at the {which} come through the interface "
        f"endpoint{'' if data else unknown}: {usd}, beside the sums above{size}."
    )


def _doubts_along(settings: Settings, cost: StackCost, day: Shape) -> Iterator[str]:
    """Why a day may not be that of the plan: its order of magnitude, and its rises."""
    from ..settings import rises_along

    planned = [peak.tps for endpoint in cost.endpoints.values() for peak in endpoint.peaks]
    if said := day.far_from(*planned):
        yield said
    yield from rises_along(settings, day)


def along_line(settings: Settings, cost: StackCost, day: Shape) -> str:
    """The fleet along a day that repeats, and what it costs."""
    from ..facts.prices import HOURS_PER_MONTH
    from ..settings import fleets_along, set_times_along

    fleets = fleets_along(settings, day)
    recorded = "" if day.recorded_peak is None else f"; {day.description}"
    hours = readable(day.seconds / 3600, 4)
    days = f"Along {day.name} ({hours} h, repeated, its peak the planned one{recorded})"
    doubts = "".join(f" {said.rstrip('.')}." for said in _doubts_along(settings, cost, day))
    counted = [
        f"{key} {fleet.least} to {fleet.most} instances, {readable(fleet.mean, 4)} on average, "
        f"{fleet.mean * HOURS_PER_MONTH:,.0f} instance hours a month"
        for key, fleet in fleets.items()
        if fleet
    ]
    counted += [
        f"{key} counted as {pool}"
        for key, endpoint in cost.endpoints.items()
        if (pool := endpoint.pool_text("at_first"))
    ]
    unknown = [
        f"{key} scales on requests in flight, which traffic alone does not tell"
        for key, fleet in fleets.items()
        if not fleet
    ]
    counted += set_times_along(settings, day)
    along = cost.along(fleets)
    if along is None:
        return f"{days}: {'; '.join([*counted, *unknown])}.{doubts}"
    million = along.usd_per_million
    return (
        f"{days}: {'; '.join(counted)}. {_usd(along.usd_per_hour)} US dollars per hour, "
        f"{along.usd_per_month:,.0f} a month of 730 hours"
        + (f", {_usd(million)} for a million requests." if million is not None else ".")
        + doubts
    )


def _whose_prices(cost: StackCost) -> Iterator[str]:
    """Where each price is from; how old; what the sum lacks."""
    from datetime import UTC, datetime

    from ..plan.price_file import days_old

    origins: dict[str, list[str]] = {}
    for item, price in cost.prices.items():
        origins.setdefault(price.origin, []).append(item)
    if origins:
        yield (
            "Prices: "
            + "; ".join(f"{', '.join(items)}: {origin}" for origin, items in origins.items())
            + "."
        )
    if days := days_old(cost.prices.values(), datetime.now(UTC).date()):
        yield f"The oldest of these prices was read {days} days ago: low-latency prices reads anew."
    assumed = dict.fromkeys(item.assumed for item in cost.items if item.assumed and item.price)
    if assumed:
        yield f"Assumed: {'; '.join(assumed)}."
    if cost.left_out:
        yield (
            "Not in these amounts, as their price is not known: "
            f"{', '.join(each.text for each in cost.left_out)}. "
            "low-latency prices reads it."
        )


def _how_to_give(items: Sequence[str]) -> str:
    from ..facts.prices import HOSTING_PRICES

    given = ", ".join(f"{item}: USD" for item in items)
    options = " ".join(f"--price {item}=USD" for item in items)
    pairs = " ".join(f"{item}=USD" for item in items)
    return (
        f"Price not known: {', '.join(items)}. low-latency prices reads it from AWS's Price List; "
        f"or take it from {HOSTING_PRICES} and state it in the settings file, prices: "
        f'{{{given}}}, or with {options}; make deploy takes PRICES="{pairs}".'
    )


def _usd(amount: float | None) -> str:
    if amount is None:
        return "not known"
    if not amount:
        return "0"
    if amount < 0.0001:
        return "less than 0.0001"
    return f"{amount:,.2f}" if amount >= 0.01 else f"{amount:.4f}"
