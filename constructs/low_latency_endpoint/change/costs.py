"""Whether a change costs more: at the former prices, results and loads, and where nobody knows.

Start with :func:`cost_increases`.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import zip_longest
from typing import Any

from ..errors import LowLatencyEndpointError
from ..plan.hourly_cost import StackCost
from ..plan.plan import Plan
from ..settings.endpoint import volume_of
from ..settings.stack import Settings
from ..settings.variant_plans import planned_variants
from .comparison import SettingsComparison
from .former_measurements import measured_in_the_change_alone

_STANDING = ("at_least", "at_first", "at_most")  # an update is over in minutes


def cost_increases(comparison: SettingsComparison, percent: float) -> Iterator[str]:
    """Where a change costs so many percent more; where nobody knows what more of something costs."""
    before, after = comparison.costs
    moved = comparison.is_moved
    yield from increases(before, after, percent, moved=moved)
    for text in _more_of_what_has_no_price(comparison.before, comparison.after):
        yield f"more is billed, and what that costs is not known: {text}"
    for text in _scaled_otherwise(comparison.before, comparison.after, before, after):
        yield f"what a day costs is not known, and the change scales otherwise: {text}"
    for how, settings in comparison.as_stated_before.items():
        try:
            former = comparison.deployed_cost(settings)
        except LowLatencyEndpointError as error:
            yield f"{how} the plan does not hold: {error}"
        else:
            yield from increases(before, former, percent, f" {how}", moved=moved)
    alone = [*measured_in_the_change_alone(comparison.before, comparison.after)]
    if alone:
        yield (
            "what it costs is not known without a former load-test result of one "
            f"{', one '.join(alone)}"
        )


def increases(
    before: StackCost, after: StackCost, percent: float, how: str = "", *, moved: bool
) -> Iterator[str]:
    """Where so many percent more are billed, and where more is at a price that is not known."""
    for moment in _STANDING:
        was, now = before.usd(moment), after.usd(moment)
        if was is None or now is None:
            continue
        if now > was * (1 + percent / 100) + 0.005:  # half a cent is rounding
            yield f"{moment.replace('_', ' ')} {was:,.2f} -> {now:,.2f} US dollars per hour{how}"
    was, now = _along_a_day(before, after)
    if was is not None and now is not None and now > was * (1 + percent / 100) + 0.005:
        yield (
            f"along a day of traffic like daily-wave {was:,.2f} -> {now:,.2f} US dollars per "
            f"hour{how}"
        )
    unknown = _day_not_known(before, after)
    if unknown:
        yield f"what a day costs is no longer known{how}: {', '.join(unknown)}"
    missing = _grown_without_price(before, after, moved=moved)
    if missing:
        yield (
            f"more is billed{how}, and what that costs is not known without prices of "
            f"{', '.join(missing)} in the former settings"
        )


def _along_a_day(before: StackCost, after: StackCost) -> tuple[float | None, float | None]:
    """US dollars per hour along a day, before and after, of what can be compared.

    An endpoint that only one of both knows the day of is left out: :func:`_scaled_otherwise` asks
    for it.
    """
    known = before.known_along_a_day, after.known_along_a_day
    was = [key for key in before.endpoints if key in known[0] - (after.endpoints.keys() - known[1])]
    now = [key for key in after.endpoints if key in known[1] - (before.endpoints.keys() - known[0])]
    return before.usd_on_average(was), after.usd_on_average(now)


def _day_not_known(before: StackCost, after: StackCost) -> list[str]:
    """The endpoints whose fleet along a day was known, or that are new, and is not known now."""
    settled = before.endpoints.keys() - before.known_along_a_day
    unknown = after.endpoints.keys() - after.known_along_a_day
    return [key for key in after.endpoints if key in unknown - settled]


def _scaled_otherwise(
    before: Settings, after: Settings, cost_before: StackCost, cost_after: StackCost
) -> Iterator[str]:
    """The variants that may run longer at more instances, and whose days cannot be compared.

    Those on requests in flight, and those with steps or with set times that no day counts.
    """
    known = cost_before.known_along_a_day & cost_after.known_along_a_day
    former = {variant.label: variant.plan for variant in planned_variants(before)}
    for variant in planned_variants(after):
        plan = former.get(variant.label)
        if plan is None or variant.label in known:
            continue
        if _may_scale_further(plan, variant.plan):
            yield variant.label


def _may_scale_further(before: Plan, after: Plan) -> bool:
    """Whether a fleet may stand higher within the same range, for the same requests."""
    now, was = after.scaling, before.scaling
    if now is None:
        return False
    if was is None or now.metric != was.metric or now.target < was.target:
        return True
    if now.scale_in_seconds > was.scale_in_seconds or after.schedule != before.schedule:
        return True
    if _types(after) != _types(before) or _share(after) > _share(before):
        return True
    steps = after.request.scaling.steps
    return steps is not None and steps != before.request.scaling.steps


def _types(plan: Plan) -> tuple[Any, ...]:
    """The instance types of a variant, of which each may hold another number of requests."""
    serving = plan.request.serving
    return serving.instance_type, serving.instance_pools


def _share(plan: Plan) -> Fraction:
    """The part of the endpoint's requests that a variant gets."""
    share = plan.request.share
    return Fraction(1) if share is None else share.fraction


def _more_of_what_has_no_price(before: Settings, after: Settings) -> Iterator[str]:
    """What the settings state more of, and no price of this library is for."""
    volumes = _volumes(before)
    for label, gib in _volumes(after).items():
        if gib > volumes.get(label, 0):
            yield f"the disks of {label}: {volumes.get(label, 0):,} -> {gib:,} GiB each"
    captured = _captured(before)
    for (key, body), percent in _captured(after).items():
        former = captured.get((key, body), 0)
        if percent > former:
            yield f"the captured data of {key}, {body}: {former} -> {percent} % of requests"


def _volumes(settings: Settings) -> dict[str, int]:
    """The stated GiB of each instance's disk, by variant; 0 where SageMaker chooses."""
    return {
        variant.label: volume_of(
            settings.endpoints[variant.key], variant.further.settings if variant.further else None
        )
        or 0
        for variant in planned_variants(settings)
    }


def _captured(settings: Settings) -> dict[tuple[str, str], float]:
    """Per cent of the requests of each endpoint of which input or output is captured."""
    shares: dict[tuple[str, str], float] = {}
    for key, endpoint in settings.endpoints.items():
        capture = endpoint.data_capture
        for body in capture.capture if capture else ():
            shares[key, body] = capture.sampling_percentage if capture else 0
    return shares


def _grown_without_price(before: StackCost, after: StackCost, *, moved: bool) -> list[str]:
    """The prices that are missing to know whether the change costs more; none where it cannot.

    Without the sum of either side any growth counts, as nobody knows what share of it it is.
    """
    former = {} if moved else _billed(before)  # another Region has other prices
    grown = [
        names
        for names, units in _billed(after).items()
        if any(now > was for now, was in zip_longest(units, former.get(names, ()), fillvalue=0))
    ]
    missing = [name for names in grown for name in names if name not in after.prices]
    sums = [cost.usd(moment) for cost in (before, after) for moment in _STANDING]
    if grown and None in sums:
        missing += [*before.without_price, *after.without_price]
    return list(dict.fromkeys(missing))


def _billed(cost: StackCost) -> dict[tuple[str, ...], list[float]]:
    """How much of what is billed in an hour, by its price or those of its instance types."""
    billed: dict[tuple[str, ...], list[float]] = {}
    for endpoint in cost.endpoints.values():
        names = tuple(kind.instance_type for kind in endpoint.types)
        units = [float(endpoint.instances(moment)) for moment in _STANDING]
        _add(billed, names, [*units, endpoint.on_average or 0.0])
    for item in cost.items:
        _add(billed, (item.item,), [item.per_hour])
    return billed


def _add(
    billed: dict[tuple[str, ...], list[float]], names: tuple[str, ...], units: list[float]
) -> None:
    billed[names] = [sum(pair) for pair in zip_longest(billed.get(names, ()), units, fillvalue=0)]
