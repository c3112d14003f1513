"""The decision tree: from measurements to findings, one variant after the other."""

from __future__ import annotations

from collections.abc import Iterator

from .events import cold_start, endpoint_state, new_version
from .failures import errors, multi_model, silence
from .findings import Finding, most_certain_first
from .measurements import Measurements
from .overhead import client, overhead
from .saturated import at_the_limit, saturated
from .skew import skew
from .slow_container import slow_container
from .view import VariantView

__all__ = ["walk"]


def walk(measurements: Measurements) -> list[Finding]:
    """All findings, faults before risks and the most certain first.

    Follows `AWS's knowledge center <https://repost.aws/knowledge-center/sagemaker-endpoint-latency>`_:
    the model's time or SageMaker's; if the model's, whether the instances were full or had room.
    Each slow stretch gets one cause. Errors, traffic and deployments are looked at besides.
    """
    found = list(endpoint_state(measurements))
    for variant in measurements.variants:
        found += _variant(VariantView(measurements, variant))
    return most_certain_first(found)


def _variant(view: VariantView) -> Iterator[Finding]:
    models = list(multi_model(view))
    yield from models
    model_time = [] if models else list(_model_latency(view))
    yield from model_time
    if not any(each.id in ("LLD102", "LLD103") for each in model_time):
        yield from at_the_limit(view)
    # Waiting for a model, or for a full instance, shows as overhead too: one cause, one finding.
    if not models and not view.saturation(view.slow_times):
        yield from overhead(view)
    yield from errors(view)
    yield from silence(view)
    yield from client(view)


def _model_latency(view: VariantView) -> Iterator[Finding]:
    apart = list(skew(view))
    if apart:
        yield from apart
        return
    if not view.slow_times:
        # Nobody said how fast it must be, or it is fast enough: full instances are still news.
        full = view.saturation(view.busy_times)
        if full and not view.has_model_threshold:
            yield from saturated(view, full)
        return
    full = view.saturation(view.slow_times)
    if full:
        yield from saturated(view, full)
        return
    for rule in (new_version, cold_start, slow_container):
        found = list(rule(view))
        if found:
            yield from found
            return
