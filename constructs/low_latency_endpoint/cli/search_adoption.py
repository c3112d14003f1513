"""Writes a result of a simulated search into the settings file, and plans with it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import rule
from ..errors.findings import Place
from ..errors.frozen import dataclass
from ..options.rules import EXCLUDES_ANOTHER, NEEDS_ANOTHER
from ..options.throughput import instances_at_peak
from ..plan.decisions import Decision, Explanation
from ..plan.plan import CONCURRENCY_METRIC
from ..report.numbers import milliseconds, plain_number, readable
from ..settings.endpoint import EndpointSettings
from ..settings.loading import load_settings
from ..settings.plan_report import explain_endpoint
from ..settings.variant_plans import plan_endpoint
from ..settings.yaml_editing import YamlEdit, checked_edit
from ..simulate.search_goals import Candidate, Found, SearchResult

NOT_MEASURED = rule(
    "LLS132",
    "a fleet size cannot be written without a measured service time",
    fix="Pass --from-load-test with a measurement, or --service-time.",
)
#: The decision of the plan that a setting is.
_DECISIONS: dict[Place, str] = {
    ("routing",): "routing_strategy",
    ("instances", "min"): "min_instances",
    ("instances", "initial"): "initial_instances",
    ("instances", "max"): "max_instances",
    ("scaling", "scale_out_cooldown"): "scale_out_cooldown",
}


@dataclass(frozen=True)
class AdoptedPoint:
    """A settings file with a point of a search in it, not written yet."""

    # what changes in the file; :func:`~low_latency_endpoint.settings.yaml_editing.write_edit`
    # writes it
    edit: YamlEdit
    after: Explanation  # the endpoint's plan with it


def check_measured(result: SearchResult) -> None:
    """Refuse to act on a search whose service time was made from the target itself."""
    if result.condition:
        raise NOT_MEASURED.error(
            got="a service time that was assumed from the latency target",
            allowed="a measured or stated service time",
            where="--search",
        )


def adopt_found(settings: str | Path, key: str, found: Found, result: SearchResult) -> AdoptedPoint:
    """Put a point of a search into the text of a settings file, and plan with it.

    A fixed fleet becomes the minimum and the initial number; settings that scale go on scaling
    above it.

    Whatever follows from the numbers elsewhere in the plan (subnet sizes, what an outage leaves,
    warm-up) is planned anew; the decisions that the search walked over name the simulation, its
    seed and its assumptions as their source. Where the goal's rate is not the settings' peak, or a
    load test found another throughput of an instance, these are put in too: the numbers rest on
    them.
    """
    read = load_settings(settings)
    policy = plan_endpoint(read, key).scaling  # says when there is no such endpoint
    derived = read.endpoints[key].scaling.metric is None
    in_flight = derived and policy is not None and policy.metric == CONCURRENCY_METRIC
    place: Place = ("endpoints", key)
    values = _values(
        found,
        result,
        read.endpoints[key],
        len(read.client_zones.zones),
        str(settings),
        in_flight=in_flight,
    )
    edit, changed = checked_edit(
        settings, {(*place, *path): value for path, value in values.items()}
    )
    decided = {name for path, name in _DECISIONS.items() if path in values}
    return AdoptedPoint(edit, _noted(explain_endpoint(changed, key), decided, found, result))


def _values(
    found: Found,
    result: SearchResult,
    stated: EndpointSettings,
    zones: int,
    where: str,
    *,
    in_flight: bool,
) -> dict[Place, Any]:
    """Settings by their place in the endpoint."""
    one, throughput = found.candidate, stated.throughput
    values: dict[Place, Any] = {
        ("routing",): one.routing.lower(),
        ("instances", "min"): one.minimum,
    }
    initial, largest = one.maximum, _largest(one, stated)
    if not one.fixed:
        assert one.safety_factor
        if throughput is None:
            raise NEEDS_ANOTHER.error(
                what="a scaling policy needs a measured throughput",
                where=where,
                got="no throughput in the settings",
                allowed="a scaling policy with throughput",
                fix="Set peak_tps and tps_per_instance, from a load test, or adopt a fixed fleet.",
            )
        if in_flight:
            raise EXCLUDES_ANOTHER.error(
                what="the search tries policies by throughput and safety factor",
                where=where,
                got="scaling on requests in flight, by throughput.concurrency_per_instance",
                allowed="scaling: {metric: invocations} beside it, or a fixed fleet",
                fix="Adopt a fixed fleet, or set scaling.metric: invocations.",
            )
        own_target = stated.scaling.invocations_target
        if stated.scaling.metric == "concurrency" or own_target is not None:
            raise EXCLUDES_ANOTHER.error(
                what="the search tries policies by throughput and safety factor",
                where=where,
                got=f"metric: {stated.scaling.metric}"
                if own_target is None
                else f"invocations_target: {plain_number(own_target)}",
                allowed="metric: invocations, without a target",
                fix="Remove metric and target from scaling, or adopt a fixed fleet.",
            )
        # The initial count that the plan would choose, within the policy's range.
        initial = min(
            one.maximum,
            max(
                one.minimum,
                instances_at_peak(
                    result.goal.tps, result.tps_per_instance, one.safety_factor, zones
                ),
            ),
        )
    values["instances", "initial"] = initial
    if largest is not None:
        values["instances", "max"] = largest
    if throughput is not None:
        if not math.isclose(throughput.peak_tps, result.goal.tps):
            values["throughput", "peak_tps"] = result.goal.tps
        if not math.isclose(throughput.tps_per_instance, result.tps_per_instance):
            values["throughput", "tps_per_instance"] = result.tps_per_instance
    if not one.fixed:
        values["throughput", "safety_factor"] = one.safety_factor
        values["scaling", "scale_out_cooldown"] = f"{plain_number(one.scale_out_cooldown)}s"
        if not stated.scaling.enabled:
            values["scaling", "enabled"] = True
    return values


def _largest(one: Candidate, stated: EndpointSettings) -> int | None:
    """The maximum to write; ``None`` keeps the present one if the fixed fleet fits into it."""
    if not one.fixed or not stated.scaling.enabled:
        return one.maximum
    given = stated.instances.max if stated.instances else None
    return one.maximum if given is not None and given < one.maximum else None


def _noted(plan: Explanation, decided: set[str], found: Found, result: SearchResult) -> Explanation:
    """The plan with the search as the source of the decisions that its result states."""
    rule = f"found by simulation for {result.goal}"
    on = f" on the shape '{found.shape}'" if found.shape else ""
    inputs = {
        f"simulated p{result.goal.percentile:g}{on}": f"{readable(1000 * found.latency.mean, 4)} ± {milliseconds(1000 * found.latency.half_width, 2)}",
        "holds the goal": found.verdict,
        "paid instances": round(found.cost, 2),
        "replications": found.replications,
        "seed": result.seed,
    }
    note = "simulated, not measured: confirm it with a load test. Assumed: " + "; ".join(
        result.assumed
    )

    def noted(each: Decision) -> Decision:
        if each.name in decided:
            return replace(each, rule=rule, inputs=inputs, source="", note=note, overridden=False)
        if each.name == "scaling_target":  # the rule stays, with the safety factor that was found
            return replace(each, inputs={**each.inputs, **inputs}, note=f"{rule}; {note}")
        return each

    return replace(plan, decisions=tuple(noted(each) for each in plan))
