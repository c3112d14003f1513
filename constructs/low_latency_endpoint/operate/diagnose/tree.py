"""The decision tree: from measurements to findings, one variant after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import groupby

from ...account.metrics import Series, median
from ...plan.alarm_windows import share_beyond
from ...report.numbers import milliseconds, percent
from . import thresholds as const
from .alarm_causes import unexplained_alarms
from .cold_starts import cold_start, cold_start_at_full
from .contrast import contrast, step, with_step
from .effects import with_effective_changes
from .endpoint_state import drifted, endpoint_state, unless_deployed
from .failures import Failure, errors, multi_model, silence, times_of_full, with_reason
from .findings import Evidence, Finding, most_certain_first
from .hardware import use_of_hardware
from .measurements import Measurements
from .new_version import new_version, with_deployment
from .overhead import after_each_pause, overhead
from .paths import paths
from .patterns.fleet import cold_batches, flapping, lost_instances
from .patterns.growth import growing, saw_tooth
from .patterns.pattern import Matched, all_slow
from .patterns.recurring import after_idle, periodic, scattered
from .saturated import SATURATED, at_the_limit, saturated, target_too_low
from .skew import only_in_parts, skew
from .slow_container import growing_queue, slow_container
from .thresholds import OUTSIDE, OUTSIDE_MS
from .tokens import token_times
from .updates import OF_UPDATES, noted, of_update, rolling_back
from .view import VariantView, runs, times_of

#: The most specific first: each sees the slow periods that those before leave unexplained.
_PATTERNS = (
    flapping,
    saw_tooth,
    lost_instances,
    after_idle,
    growing,
    periodic,
    scattered,
    cold_batches,
)
#: Of these the number of instances is the pattern: no single one has it.
_OF_THE_FLEET = (flapping, lost_instances, cold_batches)
#: What :func:`at_the_limit` would find again as a risk.
_OF_SCALING = ("LLD102", "LLD103", "LLD110", "LLD144", "LLD145", "LLD401")
#: Slow causes that remain when no other fits: they do not say why requests reach the time limit.
_RESIDUAL = ("LLD112", "LLD113", "LLD502")
#: Of the requests of a window, by which its highest periods are judged.
_ALL_BUT_FEW = 0.99
#: Time windows that one finding shows beside each other.
_SHOWN = 3


def slow_windows(view: VariantView, times: list[datetime]) -> list[list[datetime]]:
    """Split slow periods where it was fast or fleets changed; single ones are in no window."""
    counts = view.get("ModelLatency", "SampleCount") or view.get("Invocations", "Sum")
    judged = counts.times
    position = {time: index for index, time in enumerate(judged)}
    gap = view.gap
    if (median(counts.points.get(time, 0) for time in times) or 0) < const.ENOUGH_REQUESTS:
        # A percentile is the slowest request then: slow periods come and go by chance.
        gap /= const.SPARSE_SHARE
    windows: list[list[datetime]] = []
    for first, last in runs(times, gap):
        part = [time for time in times if first <= time <= last]
        places = {position.get(time, 0) for time in part}
        late = [place in places for place in range(min(places), max(places) + 1)]
        if view.seen_by_alarms(late):
            windows += _by_fullness(view, part)
    return windows


def _by_fullness(view: VariantView, part: list[datetime]) -> list[list[datetime]]:
    """Split one time window where the instances become full or stop to be."""
    if len(part) < 2 * const.PERIODS:
        return [part]
    full = [view.saturation([time]) is not None for time in part]
    nearly = [
        flag or view.used_up([time], const.NEARLY_FULL_PERCENT)
        for flag, time in zip(full, part, strict=True)
    ]
    # The way up to full instances and down from them belongs to them.
    for order in (range(1, len(part)), range(len(part) - 2, -1, -1)):
        step = order.step
        for index in order:
            full[index] = full[index] or (nearly[index] and full[index - step])
    pieces = [
        (flag, [time for _, time in group])
        for flag, group in groupby(zip(full, part, strict=True), key=lambda each: each[0])
    ]
    clear = [(flag, piece) for flag, piece in pieces if len(piece) >= const.PERIODS]
    if sum(len(piece) for _, piece in clear) < const.MOST * len(part):
        return [part]
    joined = [
        (flag, [time for _, piece in group for time in piece])
        for flag, group in groupby(clear, key=lambda each: each[0])
    ]
    if len(joined) == 1 and joined[0][0] == (view.saturation(part) is not None):
        return [part]
    return [piece for _, piece in joined]


def each_cause(
    view: VariantView,
    parts: list[list[datetime]],
    causes: Callable[[VariantView], Iterator[Finding]],
) -> Iterator[Finding]:
    """Look for the cause of each time window; time windows with the same cause are one finding."""
    found: dict[str, list[tuple[list[datetime], Finding]]] = {}
    for part in parts:
        for finding in causes(view.within(part)):
            found.setdefault(finding.id, []).append((part, finding))
    for name, same in found.items():
        if len(same) == 1:
            yield same[0][1]
            continue
        together = list(causes(view.within(sorted({t for part, _ in same for t in part}))))
        if [finding.id for finding in together] == [name]:
            yield together[0]
        else:
            yield _beside(same)


def _beside(same: list[tuple[list[datetime], Finding]]) -> Finding:
    """One finding of several whose time windows cannot be looked at as one."""
    longest = sorted(same, key=lambda each: -len(each[0]))[:_SHOWN]
    shown = sorted(longest, key=lambda each: each[0][0])
    evidence = [each for _, finding in shown for each in finding.evidence]
    if len(same) > _SHOWN:
        evidence.append(
            Evidence(
                f"and {len(same) - _SHOWN} shorter similar stretches",
                same[0][0][0],
                same[-1][0][-1],
            )
        )
    return replace(longest[0][1], evidence=tuple(dict.fromkeys(evidence)))


def walk(measurements: Measurements) -> list[Finding]:
    """All findings, faults before risks and the most certain first.

    As `AWS's knowledge center <https://repost.aws/knowledge-center/sagemaker-endpoint-latency>`_ does:
    the model's time or SageMaker's; if the model's, whether the instances were full or had room.
    """
    findings = [*endpoint_state(measurements), *paths(measurements)]
    for variant in measurements.variants:
        view = VariantView(measurements, variant)
        found = list(_variant(view))
        found += use_of_hardware(view, found)
        findings += (noted(view, with_effective_changes(variant, finding)) for finding in found)
    if not any(finding.id == "LLD707" for finding in findings):
        findings += rolling_back(measurements)
    by_hand = list(drifted(measurements, findings))
    findings = [unless_deployed(measurements, finding) for finding in findings]
    findings += unexplained_alarms(measurements, findings)
    return most_certain_first([*by_hand, *findings])


def _variant(view: VariantView) -> Iterator[Finding]:
    models = list(multi_model(view))
    patterns = []
    failing = view
    for judged in () if models else of_update(view):
        patterns.append(judged.finding)
        view, failing = view.without(judged.slow), failing.without(judged.failing)
        view = view.without_instances(judged.instances)
    # Waiting for models comes and goes with them: one cause.
    for rule in () if models else _PATTERNS:
        for pattern in rule(view):
            patterns.append(pattern.finding if rule in _OF_THE_FLEET else _located(view, pattern))
            view = view.without(pattern.explains)
            failing = failing.without(pattern.explains) if pattern.errors else failing
    parts = slow_windows(view, view.slow_times) or [view.slow_times]
    model_time = [] if models else list(_model_latency(view, parts))
    causes = _one_each([*models, *patterns, *model_time])
    requests = list(_together(view, causes, list(errors(failing))))
    yield from requests
    yield from token_times(view)
    yield from target_too_low(view)
    if not any(each.id in _OF_SCALING for each in requests):
        yield from at_the_limit(view)
    # Waiting for a model, or for a full instance, shows as overhead too: one cause, one finding.
    if not models:
        yield from _overhead(view, parts)
    yield from silence(view)
    yield from client(view)


def _located(view: VariantView, pattern: Matched) -> Finding:
    """A pattern's finding, or that of the instances or the zone that alone have it."""
    slow = set(all_slow(view)) & pattern.explains
    times = sorted(slow or pattern.explains)
    if not times and pattern.finding.span:
        # It grows, and is within its limit still: its end shows who has it.
        since, until = pattern.finding.span
        times = view.typical.between(until - (until - since) / 3, until).times
    return (times and only_in_parts(view, pattern.finding, times)) or pattern.finding


def _one_each(findings: list[Finding]) -> list[Finding]:
    """Findings of the same cause as one, with what each has shown."""
    by_cause: dict[str, list[Finding]] = {}
    for finding in findings:
        by_cause.setdefault(finding.id, []).append(finding)
    return [
        replace(
            same[0],
            evidence=tuple(dict.fromkeys(shown for each in same for shown in each.evidence)),
            risk=all(each.risk for each in same),
        )
        for same in by_cause.values()
    ]


def _together(view: VariantView, slow: list[Finding], failing: list[Failure]) -> Iterator[Finding]:
    """What is slow and fails of one cause is one finding, and so is what ends at the time limit."""
    slow = [finding for finding in slow if not _is_overload(view, finding, failing)]
    left = _without_residuals(view, slow, failing)
    shown: dict[str, list[Evidence]] = {}
    alone = []
    for failure in failing:
        cause = next((each for each in left if _explains(each, failure)), None)
        if cause is None:
            alone.append(with_reason(view, failure))
        else:
            shown.setdefault(cause.id, []).extend(failure.finding.evidence)
    for finding in left:
        evidence = (*finding.evidence, *shown.get(finding.id, ()))
        yield replace(finding, evidence=tuple(dict.fromkeys(evidence)))
    yield from alone


def _is_overload(view: VariantView, finding: Finding, failing: list[Failure]) -> bool:
    """Whether most requests of a slow cause came while full instances failed: they are its cause."""
    failed = [failure.errors for failure in failing if failure.finding.id == "LLD401"]
    if not failed or not finding.span or "instances not saturated" not in finding.path:
        return False
    start, end = finding.span
    slow = view.requests.only(view.slow_times).between(start, end)
    full = {time for series in failed for time in times_of_full(view, series)}
    return bool(full) and slow.only(full).sum >= const.MOST * slow.sum


def _explains(cause: Finding, failure: Failure) -> bool:
    """Whether errors are what this cause leads to: they show it then, and need no other advice."""
    name = failure.finding.id
    if name == cause.id:
        return True
    if name == "LLD401":
        of_full = SATURATED in cause.path or cause.id in OF_UPDATES
        return of_full and failure.is_consequence_of(cause)
    waited = name in ("LLD111", "LLD405")
    return waited and cause.id not in _RESIDUAL and failure.is_consequence_of(cause)


def _without_residuals(
    view: VariantView, slow: list[Finding], failing: list[Failure]
) -> list[Finding]:
    """Slow causes without those that say less than that requests reach the time limit."""
    typical = view.typical.only(view.slow_times).median or 0
    vague = [finding for finding in slow if _is_vague(finding, typical)]
    clear = [finding for finding in slow if finding not in vague]
    time_outs = [failure for failure in failing if failure.finding.id == "LLD405"]
    for failure in time_outs:
        if not any(_explains(cause, failure) for cause in clear):
            return clear
    return slow


def _is_vague(finding: Finding, typical: float) -> bool:
    """Whether a finding says only that requests are slow, of which the time limit is the reason."""
    if finding.id in ("LLD113", "LLD502"):
        return True
    waits = finding.id == "LLD123" and finding.confidence == "low"
    return typical >= const.LATE_MS and (waits or finding.id == "LLD112")


def _model_latency(view: VariantView, parts: list[list[datetime]]) -> Iterator[Finding]:
    if view.slow_times:
        yield from each_cause(view, parts, _cause)
        return
    # Nobody said how fast it must be: full instances are news. Fast enough ones are LLD147's.
    apart = list(skew(view, full=False))
    yield from apart
    # A GPU that makes tokens is busy whenever it does; its tokens are judged themselves.
    if not apart and not view.has_model_threshold and not view.variant.has_tokens:
        busy = view.busy_times
        yield from each_cause(view, slow_windows(view, busy) or [busy], _cause_of_full)


def _cause(view: VariantView) -> Iterator[Finding]:
    """The cause of one slow time window: the first that fits."""
    skewed = partial(skew, full=view.full is not None)
    rules = (
        skewed,
        cold_start_at_full,
        _cause_of_full,
        new_version,
        growing_queue,
        cold_start,
        slow_container,
    )
    for rule in rules:
        found = list(rule(view))
        if found:
            yield from found
            return


def _cause_of_full(view: VariantView) -> Iterator[Finding]:
    """Why instances were full: a version that asks more of them at the same load, else the fleet."""
    if not view.full:
        return
    if versions := list(new_version(view)):
        yield from versions
        return
    compared = contrast(view)
    for finding in saturated(view):
        told = with_deployment(view, finding, view.bad_times)
        # As full while it was fast: more instances may help, but do not say what changed.
        as_full = told is finding and compared.known and view.saturation(compared.calm) is not None
        yield with_step(told, step(view)) if as_full else told


def _overhead(view: VariantView, parts: list[list[datetime]]) -> Iterator[Finding]:
    full = {time for part in parts if view.saturation(part) for time in part}
    times = [time for time in times_of(view.slow_of("OverheadLatency")) if time not in full]
    if not times:
        yield from after_each_pause(view)
        return
    parts = slow_windows(view, times)
    if not full:
        parts = parts or [times]
    yield from each_cause(view, parts, overhead)


def _highest_in_model(view: VariantView, statistic: str, counts: Series) -> float | None:
    """The most that a statistic of ModelLatency over the whole window can be.

    The percentile of a window is not the mean of its periods' percentiles: where half of the window is
    slow, it is nearly that of the slow half. It is never above the highest of them; periods with one
    request in a hundred are left out.
    """
    periods = view.get("ModelLatency", statistic)
    if share_beyond(statistic) is None:
        return periods.weighted_mean(counts)
    return periods.weighted_percentile(counts, _ALL_BUT_FEW)


def client(view: VariantView) -> Iterator[Finding]:
    """What the caller measured, less what SageMaker measured: at most one finding."""
    m, counts = view.measurements, view.get("ModelLatency", "SampleCount")
    added = view.get("OverheadLatency", "Average").weighted_mean(counts)
    inside: dict[str, float] = {}
    outside: dict[str, float] = {}
    for statistic, measured in m.client_latency.items():
        model = _highest_in_model(view, statistic, counts)
        if model is None or added is None:
            continue
        inside[statistic] = model + added
        left = measured - inside[statistic]
        if left >= max(OUTSIDE * measured, OUTSIDE_MS):
            outside[statistic] = left
    for statistic in outside:
        if died := _dead_connections(view, statistic, inside):
            yield died
            return
    if view.refused_share(view.requests.times) >= const.NOTABLE:
        return  # the callers' percentiles may be of the answers alone
    for statistic, left in outside.items():
        measured = m.client_latency[statistic]
        words = (
            f"client {statistic} {milliseconds(measured)} = ModelLatency "
            f"{milliseconds(inside[statistic] - (added or 0))} (of its slowest periods) + OverheadLatency "
            f"{milliseconds(added)} (average) + {milliseconds(left)}, {percent(left / measured)}, outside of SageMaker"
        )
        yield view.cause("LLD801", Evidence(words, m.start, m.end))
        return


def _dead_connections(
    view: VariantView, statistic: str, inside: Mapping[str, float]
) -> Finding | None:
    """A few calls that end at a usual time limit of callers, while most are fast and none is in the model."""
    m, measured = view.measurements, view.measurements.client_latency[statistic]
    usual = min(m.client_latency.values())
    longest = view.get("ModelLatency", "Maximum").max or inside[statistic]
    limits = [limit for limit in const.READ_TIMEOUTS_MS if limit <= measured]
    if not limits or usual > inside[statistic] + measured / 10 or longest > limits[-1] / 2:
        return None
    limit = limits[-1]
    # A new connection and, where the call is repeated, an answer come after it.
    if measured > limit * const.TO_THE_DIGIT + usual:
        return None
    fast = next(name for name, value in m.client_latency.items() if value == usual)
    if fast == statistic:
        return None
    words = (
        f"client {statistic} {milliseconds(measured)} is a time limit of {milliseconds(limit, 4)}, "
        f"client {fast} {milliseconds(usual)}; the longest request took the model {milliseconds(longest)}"
    )
    return view.cause("LLD809", Evidence(words, m.start, m.end))
