"""The decision tree: from measurements to findings, one variant after the other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from .events import cold_start, endpoint_state, new_version
from .failures import errors, multi_model, silence
from .findings import Finding, most_certain_first
from .measurements import Measurements
from .not_started import not_started
from .overhead import client, overhead
from .patterns import patterns
from .saturated import at_the_limit, saturated
from .skew import skew
from .slow_container import slow_container
from .slow_windows import each_cause, slow_windows
from .tokens import has_tokens, token_times
from .view import VariantView


def walk(measurements: Measurements) -> list[Finding]:
    """All findings, faults before risks and the most certain first.

    Follows `AWS's knowledge center <https://repost.aws/knowledge-center/sagemaker-endpoint-latency>`_:
    the model's time or SageMaker's; if the model's, whether the instances were full or had room.
    Patterns over time come first: what explains slow periods by when they come takes them out of the
    search. Each slow time window that is left gets one cause. Errors, traffic and deployments are looked at besides.
    """
    found = [*not_started(measurements), *endpoint_state(measurements)]
    for variant in measurements.variants:
        found += _variant(VariantView(measurements, variant))
    return most_certain_first(found)


def _variant(view: VariantView) -> Iterator[Finding]:
    models = list(multi_model(view))
    yield from models
    failing = view
    # Waiting for models comes and goes with them: one cause.
    for pattern in () if models else patterns(view):
        yield pattern.finding
        view = view.without(pattern.explains)
        failing = failing.without(pattern.explains) if pattern.errors else failing
    parts = slow_windows(view, view.slow_times) or [view.slow_times]
    model_time = [] if models else list(_model_latency(view, parts))
    yield from model_time
    yield from token_times(view)
    if not any(each.id in ("LLD102", "LLD103") for each in model_time):
        yield from at_the_limit(view)
    # Waiting for a model, or for a full instance, shows as overhead too: one cause, one finding.
    if not models:
        yield from _overhead(view, parts)
    yield from errors(failing)
    yield from silence(view)
    yield from client(view)


def _model_latency(view: VariantView, parts: list[list[datetime]]) -> Iterator[Finding]:
    if view.slow_times:
        yield from each_cause(view, parts, _cause)
        return
    # Nobody said how fast it must be, or it is fast enough: full instances are still news.
    apart = list(skew(view, full=False))
    yield from apart
    # A GPU that makes tokens is busy whenever it does; its tokens are judged themselves.
    if not apart and not view.has_model_threshold and not has_tokens(view):
        busy = view.busy_times
        yield from each_cause(view, slow_windows(view, busy) or [busy], _full)


def _full(view: VariantView) -> Iterator[Finding]:
    full = view.saturation(view.busy_times)
    if full:
        yield from saturated(view, full)


def _cause(view: VariantView) -> Iterator[Finding]:
    """The cause of one slow time window: the first that fits."""
    full = view.saturation(view.slow_times)
    apart = list(skew(view, full=full is not None))
    if apart:
        yield from apart
        return
    if full:
        yield from saturated(view, full)
        return
    for rule in (new_version, cold_start, slow_container):
        found = list(rule(view))
        if found:
            yield from found
            return


def _overhead(view: VariantView, parts: list[list[datetime]]) -> Iterator[Finding]:
    full = {time for part in parts if view.saturation(part) for time in part}
    times = sorted({time for slow in view.slow_overhead for time in slow.values.points} - full)
    parts = slow_windows(view, times)
    if times and not full:
        parts = parts or [times]
    yield from each_cause(view, parts, overhead)
