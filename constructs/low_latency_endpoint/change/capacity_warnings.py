"""Where a deployment leaves less capacity than the load needs, or nobody measured what it leaves."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.token_values import is_token
from ..options.throughput import counted_instances
from ..plan.plan import Plan
from ..report.numbers import readable
from ..settings.endpoint import EndpointSettings
from ..settings.stack import Settings
from ..settings.variant_plans import planned_variants

#: What an instance holds of requests depends on these.
_DECIDE_A_MEASUREMENT = ("instance_type", "tokens", "payload_bytes")


def stale_measurements(before: EndpointSettings, after: EndpointSettings) -> Iterator[str]:
    """A throughput that stays as it was measured, for other requests or on another type."""
    if before.throughput is None or after.throughput is None:
        return
    measured = after.throughput.tps_per_instance
    if is_token(measured) or measured != before.throughput.tps_per_instance:
        return
    changed = [
        name
        for name in _DECIDE_A_MEASUREMENT
        if getattr(before, name) is not None and getattr(before, name) != getattr(after, name)
    ]
    if changed:
        yield (
            f"throughput.tps_per_instance stays {readable(measured)} while {' and '.join(changed)} "
            "changed: what an instance holds then was not measured. Load-test again"
        )


def lowered_ranges(before: Settings, after: Settings, key: str) -> Iterator[str]:
    """What lowers the minimum or maximum of an endpoint's variants, by a schedule or at all."""
    if key not in before.endpoints or key not in after.endpoints:
        return
    plans = {variant.label: variant.plan for variant in planned_variants(before, key)}
    for variant in planned_variants(after, key):
        if variant.label not in plans:
            continue
        of_variant = f" of {variant.variant}" if variant.further else ""
        former = plans[variant.label].under_load
        for name in ("minimum", "maximum"):
            was = min(getattr(load.fleet, name) for load in former)
            lowest = min(variant.plan.under_load, key=lambda load: getattr(load.fleet, name))
            now = getattr(lowest.fleet, name)
            label = f" by {lowest.label}" if lowest.label else ""
            if now < was:
                yield f"the {name}{of_variant} falls from {was} to {now}{label}"


def shifted_loads(before: Settings, after: Settings, key: str) -> Iterator[str]:
    """Variants whose former fleet gets too much in a deployment that starts as many as run.

    By another weight they get more requests at once; by another type an instance may hold fewer.
    """
    former = {variant.variant: variant.plan for variant in planned_variants(before, key)}
    for variant in planned_variants(after, key):
        plan = variant.plan
        old = former.get(variant.variant)
        measured, held = plan.request.throughput, plan.held_tps
        if old is None or measured is None or held is None or _is_shadow(plan):
            continue
        running = old.usual.serving_at_peak
        why = _why_more(variant.variant, old, plan)
        if not why or running >= plan.fleet.at_peak:
            continue
        used = readable(100 * measured.peak_tps / float(running * held.limit), 3)
        yield (
            f"{why}, and the {counted_instances(running)} that run at the peak stay until scaling "
            f"follows: {used} % of their limit. Raise its minimum to {plan.fleet.at_peak} in a deployment "
            "before, or deploy while load is low"
        )


def _is_shadow(plan: Plan) -> bool:
    return plan.request.share is not None and plan.request.share.shadow


def _why_more(name: str, old: Plan, new: Plan) -> str:
    """Why a deployment leaves each instance of a variant more to do; empty if it does not."""
    former, share = old.request.share, new.request.share
    measured, held = new.request.throughput, new.held_tps
    grows = former is not None and share is not None and share.fraction > former.fraction
    if grows and measured is not None:
        rate = readable(measured.peak_tps)
        return f"{name} gets {rate} requests per second at the peak as soon as the weights change"
    is_other = new.request.serving != old.request.serving
    if (
        is_other
        and held is not None
        and old.held_tps is not None
        and held.limit < old.held_tps.limit
    ):
        limits = [readable(float(each.limit), 4) for each in (old.held_tps, held)]
        return f"an instance of {name} holds {limits[1]} requests per second after it, {limits[0]} before"
    return ""
