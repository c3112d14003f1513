"""The limit that a load test found, in the settings file and its plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import rule
from ...errors.findings import Place
from ...plan.contradictions import contradicts
from ...plan.decisions import Explanation, PlanWarning
from ...plan.load_test_validity import other_instance_type
from ...report.numbers import readable
from ...settings import explain_variants, load_settings, plan_endpoint
from ...settings.endpoint import EndpointSettings
from ...settings.yaml_editing import YamlEdit, checked_edit
from .endpoint_settings import endpoint_key
from .result_file import FoundLimit, read_found_limit

if TYPE_CHECKING:
    from ...settings import Settings

PEAK_NEEDED = rule(
    "LLT163",
    "the peak to plan for is not stated",
    fix="Say the highest rate that callers will send: --peak-tps 500.",
)
_INPUT = "TPS per instance"


@dataclass(frozen=True)
class AdoptedLimit:
    """A settings file with a measured throughput in it, not written yet."""

    key: str  # of the endpoint in the settings
    limit: FoundLimit
    # what changes in the file; :func:`~low_latency_endpoint.settings.yaml_editing.write_edit`
    # writes it
    edit: YamlEdit
    settings_before: Settings  # what the file says now, and with the throughput
    settings_after: Settings
    before: dict[str, Explanation]  # the plans of all endpoints, explained
    after: dict[str, Explanation]
    # stated numbers of instances that are below what the peak needs now, and are raised too
    raised: tuple[str, ...] = ()


def adopt_limit(
    settings: Path,
    result: Path,
    *,
    endpoint: str | None = None,
    peak_tps: float | None = None,
    accept_lower_bound: bool = False,
) -> AdoptedLimit:
    """Put the limit of a result file into the text of a settings file."""
    limit = read_found_limit(result, accept_lower_bound=accept_lower_bound)
    read = load_settings(settings)
    key = endpoint or endpoint_key(read, limit.endpoint)
    plan_endpoint(read, key)  # says when there is no such endpoint
    if peak_tps is None and read.endpoints[key].throughput is None:
        raise PEAK_NEEDED.error(
            got=f"endpoints.{key} without throughput", allowed="--peak-tps, or peak_tps in the file"
        )
    place: Place = ("endpoints", key, "throughput")
    values: dict[Place, Any] = {}
    if peak_tps is not None:
        values[*place, "peak_tps"] = peak_tps
    values[*place, "tps_per_instance"] = limit.tps_per_instance
    if limit.concurrency_per_instance is not None:
        values[*place, "concurrency_per_instance"] = limit.concurrency_per_instance
    edit, changed = checked_edit(settings, values)
    counts, raised = _too_few(changed, key)
    if counts:
        edit, changed = checked_edit(settings, {**values, **counts})
    after = explain_variants(changed)
    stated = read.endpoints[key].throughput
    before = stated.tps_per_instance if stated else 0.0
    after[key] = _noted(after[key], limit, changed.endpoints[key], before)
    return AdoptedLimit(key, limit, edit, read, changed, explain_variants(read), after, raised)


def _too_few(settings: Settings, key: str) -> tuple[dict[Place, Any], tuple[str, ...]]:
    """Stated numbers of instances below what holds the peak, and what they have to be."""
    needed = plan_endpoint(settings, key).fleet.at_peak
    stated = settings.endpoints[key].instances
    few = [
        (name, count)
        for name, count in (("initial", stated.initial), ("max", stated.max))
        if count is not None and count < needed
    ]
    return (
        {("endpoints", key, "instances", name): needed for name, _ in few},
        tuple(
            f"instances.{name}: {count} to {needed}, which the peak needs" for name, count in few
        ),
    )


def _noted(
    plan: Explanation, limit: FoundLimit, endpoint: EndpointSettings, before: float
) -> Explanation:
    """The plan with the source of its numbers, and what does not fit."""
    note = f"measured: {limit.source}; {limit.how}"
    decisions = tuple(
        replace(each, note=f"{each.note}; {note}" if each.note else note)
        if _INPUT in each.inputs
        else each
        for each in plan
    )
    warnings = list(plan.warnings)
    if contradicts(before, limit.tps_per_instance):
        text = f"the settings said {readable(before)} TPS per instance, and {readable(limit.tps_per_instance)} were found"
        warnings.insert(
            0, PlanWarning("contradiction-load-test", f"{text}: of the same model and load?")
        )
    if other := other_instance_type(limit.instance_type, endpoint.instance_type):
        warnings.append(PlanWarning("load-test-instance-type", other))
    if endpoint.variants and limit.variant != endpoint.variant_name:
        warnings.append(
            PlanWarning(
                "load-test-of-another-variant",
                f"the load test called {limit.variant or 'all variants'}, and its limit is taken for "
                f"that of {endpoint.variant_name}: load-test it with --variant "
                f"{endpoint.variant_name}",
            )
        )
    if limit.lower_bound:
        warnings.append(
            PlanWarning(
                "load-test-lower-bound",
                "the load test did not reach the limit: an instance may hold more than "
                f"{readable(limit.tps_per_instance)} requests a second, and fewer instances may do",
            )
        )
    return replace(plan, decisions=decisions, warnings=tuple(warnings))
