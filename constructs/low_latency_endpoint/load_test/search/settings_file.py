"""What a load test takes from a settings file, and the limit that it found in that file and its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import rule
from ...errors.findings import Place
from ...facts.limits import TPS_PER_INSTANCE
from ...facts.prices import Price
from ...options.latency_target import LatencyTarget
from ...options.load import TokenTraffic
from ...options.warm_up import WarmUpPayload
from ...plan.decisions import Explanation, PlanWarning, contradicts
from ...plan.load_test_validity import LIMIT_NEEDED, check_result_is_valid, read_result
from ...report.numbers import readable
from ...settings import Settings, explain_variants, load_settings, plan_endpoint, planned_variants
from ...settings.adopted_measurement import AdoptedMeasurement
from ...settings.yaml_editing import checked_edit
from ..engine.payloads import Payloads
from .bounds import CONFIDENCE
from .judging import LatencyGoal, percent_at_most
from .limit_cautions import MeasuredCase, cautions, targets_by_statistic
from .steadiness import NOT_ALIKE

SETTINGS_ENDPOINT = rule(
    "LLT111",
    "the settings file does not name the endpoint",
    fix="Set endpoint_name in the file, or name the endpoint by its key.",
)
RESULT_FILE = rule(
    "LLT113",
    "a load-test result cannot be read",
    fix="Give a file that `low-latency load-test --output` wrote.",
)
LIMIT_REACHED = rule(
    "LLT138",
    "the load test did not reach the limit of an instance",
    fix="Run `low-latency load-test --find-limit` without --up-to or with a higher value, "
    "or plan with --accept-lower-bound, which may plan too many instances.",
)
NO_CONFIDENCE = rule(
    "LLT180",
    "the load test showed no rate with a confidence",
    fix="Run `low-latency load-test --find-limit` with longer steps, such as --duration 5m, or state "
    "in throughput.tps_per_instance a rate that you answer for.",
)
PEAK_NEEDED = rule(
    "LLT163",
    "the peak rate is not given",
    fix="Give the highest rate that callers will send, such as --peak-tps 500.",
)
_INPUT = "TPS per instance"


@dataclass(frozen=True)
class StatedEndpoint:
    """One endpoint as its settings state it; ``None`` for what they do not."""

    endpoint_name: str | None  # at AWS
    region: str | None
    targets: dict[str, float]  # seconds by statistic
    peak_tps: float | None  # the usual one
    safety_factor: float | None
    payloads: Payloads | None  # the warm-up's
    content_type: str | None  # the warm-up's
    target_model: str | None
    # the highest peak of the day, and the instances that hold it; ``None`` without a throughput
    highest_tps: float | None = None
    planned_instances: int | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)  # by item
    streaming: bool = False  # whether answers are streamed
    tokens: TokenTraffic | None = None  # of a language model's requests
    payload_bytes: int | None = None  # of the callers' largest request


def endpoint_key(settings: Settings, name: str) -> str:
    """The key of an endpoint, by its name at AWS or its key; a lone one without a name is meant."""
    (key, first), *others = settings.endpoints.items()
    return key if not others and first.endpoint_name is None else settings.key_of(name)


def stated_endpoint(path: Path, name: str) -> StatedEndpoint:
    """Read what the settings file states about an endpoint."""
    settings = load_settings(path)
    key = endpoint_key(settings, name)
    one = settings.endpoints[key]
    payload = one.warm_up.payloads[0] if one.warm_up else None
    throughput = one.throughput
    return StatedEndpoint(
        endpoint_name=one.endpoint_name,
        region=settings.region,
        targets=_targets(one.latency) if one.latency else {},
        peak_tps=throughput.peak_tps if throughput else None,
        safety_factor=throughput.safety_factor if throughput else None,
        payloads=None if payload is None else _payloads(payload),
        content_type=payload.headers["ContentType"] if payload else None,
        target_model=None if payload is None else payload.target_model,
        highest_tps=throughput.highest_tps if throughput else None,
        planned_instances=sum(
            max(load.fleet.at_peak for load in variant.plan.under_load)
            for variant in planned_variants(settings, key)
            if not variant.shadow
        )
        if throughput
        else None,
        prices=settings.prices,
        streaming=bool(one.streaming)
        or one.tokens is not None
        or (one.latency is not None and one.latency.of_tokens),
        tokens=one.tokens,
        payload_bytes=one.payload_bytes,
    )


def _targets(target: LatencyTarget) -> dict[str, float]:
    """Seconds by statistic, as a load test calls them."""
    return {name: value / 1000 for name, value in targets_by_statistic(target).items()}


def _payloads(payload: WarmUpPayload) -> Payloads:
    if payload.file is not None:
        return Payloads.of_file(Path(payload.file))
    return Payloads.of_bytes(payload.body)


@dataclass(frozen=True)
class FoundLimit:
    """What a plan takes from a result file."""

    source: str
    how: str
    tps_per_instance: float  # that the plan may rest on; the limit, or below it
    measured: MeasuredCase  # what the limit is one of
    caution: str = ""  # what the plan does not rest on, where the limit has no confidence
    lower_bound: bool = False  # whether the limit is higher, and was not looked for
    # of a language model: requests under way on one instance at the limit
    concurrency_per_instance: float | None = None


def read_found_limit(path: str | Path, *, accept_lower_bound: bool = False) -> FoundLimit:
    """Read the limit in a result file."""
    content = read_result(path, RESULT_FILE)
    where, limit = str(path), content.get("limit")
    if not isinstance(limit, Mapping):
        ended = " that did not come to its end" if content.get("interrupted") else ""
        raise LIMIT_NEEDED.error(
            got=f"a run with {content.get('mode', '?')}{ended}",
            allowed="the result of --find-limit",
            where=where,
        )
    check_result_is_valid(content, where)
    tps: Any = limit.get("tps_per_instance")
    if not TPS_PER_INSTANCE.holds(tps):
        raise LIMIT_NEEDED.error(
            got=f"tps_per_instance {tps!r}", allowed="a number above 0", where=where
        )
    lower_bound = bool(limit.get("lower_bound"))
    if lower_bound and not accept_lower_bound:
        ended = " of a search that did not come to its end" if content.get("interrupted") else ""
        raise LIMIT_REACHED.error(
            got=f"at least {readable(tps)} requests per second{ended}",
            fix=_fix_of_stopped(content),
            allowed="a limit between a rate that met the target and a rate that missed it",
            where=where,
        )
    assured = _assured(limit, where)
    measured = MeasuredCase.of_result(content)
    return FoundLimit(
        source=str(content.get("source") or where),
        how=str(limit.get("how") or ""),
        tps_per_instance=float(assured["tps_per_instance"]),
        measured=measured,
        caution=_caution(measured.goal, limit, assured),
        lower_bound=lower_bound,
        concurrency_per_instance=assured.get("concurrency_per_instance"),
    )


def _assured(limit: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The rate that held with a confidence: the limit, or a lower one."""
    if limit.get("confidence") is not None:
        return limit
    assured = limit.get("assured")
    if isinstance(assured, Mapping) and TPS_PER_INSTANCE.holds(assured.get("tps_per_instance")):
        return assured
    raise NO_CONFIDENCE.error(
        got=f"{readable(limit['tps_per_instance'])} requests per second, without a confidence",
        allowed="a rate that a step held with 95 % confidence",
        where=where,
    )


def _caution(goal: LatencyGoal | None, limit: Mapping[str, Any], assured: Mapping[str, Any]) -> str:
    """What to know first of a limit without a confidence; empty for one that has it."""
    if assured is limit:
        return ""
    sure = f"{goal.confidence if goal else CONFIDENCE:.0%} confidence"
    allowed = goal.allowed_errors if goal else 0.0
    few_requests = assured.get("failures", 0.0) > allowed
    found = readable(limit["tps_per_instance"])
    used = readable(assured["tps_per_instance"])
    said = f"the limit of {found} requests per second has no confidence"
    if limit.get("unsteady"):
        said = f"{said}: {NOT_ALIKE} ({limit['unsteady']})"
    held = f"{'whose latency' if few_requests else 'which'} held with {sure}"
    said = f"{said}; the plan takes {used}, {held} {assured.get('when', '')}".rstrip()
    if few_requests:
        said = (
            f"{said}; none of {assured['requests']:,} requests failed, which shows that at most "
            f"{percent_at_most(assured['failures'])} do, not {readable(100 * allowed)} %"
        )
    return said


def adopt_limit(
    settings: Path,
    result: Path,
    *,
    endpoint: str | None = None,
    peak_tps: float | None = None,
    accept_lower_bound: bool = False,
) -> AdoptedMeasurement:
    """Put the limit of a result file into the text of a settings file."""
    limit = read_found_limit(result, accept_lower_bound=accept_lower_bound)
    read = load_settings(settings)
    key = endpoint or endpoint_key(read, limit.measured.endpoint)
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
    throughput = read.endpoints[key].throughput
    before = throughput.tps_per_instance if throughput else 0.0
    careful = tuple(cautions(limit.measured, changed, key))
    if limit.caution:
        careful = (*careful, PlanWarning("load-test-without-confidence", limit.caution))
    after[key] = _noted(after[key], limit, careful, before)
    return AdoptedMeasurement(
        key=key,
        source=limit.source,
        how=limit.how,
        edit=edit,
        settings_before=read,
        settings_after=changed,
        after=after,
        measured={"tps_per_instance": limit.tps_per_instance},
        raised=raised,
        cautions=careful,
    )


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
    plan: Explanation, limit: FoundLimit, careful: Sequence[PlanWarning], before: float
) -> Explanation:
    """The plan with the source of its numbers; the cautions come before its own warnings."""
    note = f"measured: {limit.source}; {limit.how}"
    if limit.caution:
        note = f"{note}; {limit.caution}"
    decisions = tuple(
        replace(each, note=f"{each.note}; {note}" if each.note else note)
        if _INPUT in each.inputs
        else each
        for each in plan
    )
    warnings = [*careful, *_contradiction(before, limit), *plan.warnings, *_lower_bound(limit)]
    return replace(plan, decisions=decisions, warnings=tuple(warnings))


def _fix_of_stopped(content: Mapping[str, Any]) -> str:
    """What to do about a search that something stopped; empty for one that came to its end."""
    if not content.get("interrupted"):
        return ""
    why = str(content.get("failure") or "")
    again = f"Mend what ended it ({why}), and search again" if why else "Let it run to its end"
    return (
        f"{again}: `low-latency load-test --find-limit`. Or plan with --accept-lower-bound, which may "
        "plan too many instances."
    )


def _contradiction(before: float, limit: FoundLimit) -> Iterator[PlanWarning]:
    """A throughput of the settings that is of another magnitude than the limit."""
    now = limit.tps_per_instance
    if contradicts(before, now):
        yield PlanWarning(
            "contradiction-load-test",
            f"the settings said {readable(before)} TPS per instance, and {readable(now)} were found: "
            "of the same model and load?",
        )


def _lower_bound(limit: FoundLimit) -> Iterator[PlanWarning]:
    """A limit that may be higher."""
    if limit.lower_bound:
        yield PlanWarning(
            "load-test-lower-bound",
            "the load test did not reach the limit: an instance may hold more than "
            f"{readable(limit.tps_per_instance)} requests per second, and fewer instances may do",
        )
