"""The branch of instances with room: what in the container takes the time?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from statistics import StatisticsError, correlation

from ...account.metrics import Series
from ...report.numbers import milliseconds
from .findings import (
    GUIDE,
    KNOWLEDGE_CENTER,
    LOAD_TESTING,
    ROUTING,
    Evidence,
    Finding,
    Remedy,
    kind,
)
from .view import FULL_MEMORY_PERCENT, VariantView

WORKERS = kind(
    "LLD111",
    "Requests queue in the container: too few workers",
    (
        "instances have room; requests in flight are twice the workers in the environment, or "
        "latency follows them (correlation from 0.7, both doubled)"
    ),
    LOAD_TESTING,
)
SLOW_MODEL = kind(
    "LLD112",
    "Each request takes long on instances with room",
    ("instances have room, and nothing else fits"),
    KNOWLEDGE_CENTER,
)
SLOW_TAIL = kind(
    "LLD113",
    "Most requests are fast, some take far longer",
    "p50 is within the threshold, p99 at least three times p50",
    LOAD_TESTING,
)
GPU_IDLE = kind(
    "LLD115",
    "The GPU does nothing",
    "GPUUtilization below 3 % while slow",
    GUIDE + "monitoring-cloudwatch.html",
)
MEMORY = kind(
    "LLD117",
    "Memory is full",
    "MemoryUtilization from 90 % while slow",
    GUIDE + "monitoring-cloudwatch.html",
)
UNEVEN = kind(
    "LLD502",
    "Uneven latency under RANDOM routing",
    ("only the tail is slow, with RANDOM routing and without metrics per instance"),
    ROUTING,
)

_ROOT = ("ModelLatency high", "instances not saturated")
_TAIL_FACTOR = 3.0
#: Environment variables that set the number of workers, by the servers that read them.
_WORKER_VARIABLES = (
    "SAGEMAKER_MODEL_SERVER_WORKERS",
    "MODEL_SERVER_WORKERS",
    "TS_DEFAULT_WORKERS_PER_MODEL",
    "SAGEMAKER_NUM_MODEL_WORKERS",
    "WEB_CONCURRENCY",
)


def slow_container(view: VariantView) -> Iterator[Finding]:
    """Exactly one finding: the first cause that the measurements fit."""
    rules = (_gpu_idle, _memory, _workers, _tail)
    yield next((found for rule in rules if (found := rule(view))), None) or _slow_model(view)


def _gpu_idle(view: VariantView) -> Finding | None:
    facts = view.variant.facts
    gpu = view.utilization(view.slow_times).get("GPU")
    if gpu is None or gpu >= 3 or (facts and facts.accelerator != "nvidia"):
        return None
    images = view.variant.images
    return view.finding(
        GPU_IDLE,
        "high",
        (*_ROOT, "GPU idle"),
        *view.slow_evidence(),
        f"GPU at {gpu:.1f} % of the whole instance while requests were slow, "
        f"{view.utilization_words(view.slow_times)}",
        remedies=[
            Remedy(
                "containers[].image",
                "one for GPUs (-gpu- or cu in its tag)"
                + (f"; now {images[0].rpartition('/')[2]}" if images else ""),
            ),
            Remedy("containers[].environment", "see that the model is moved to the GPU"),
            Remedy("inference_ami", "one whose driver the image's CUDA version runs on"),
        ],
        besides="The container's log says which device the framework took.",
    )


def _memory(view: VariantView) -> Finding | None:
    used = view.get("MemoryUtilization", "Average").only(view.slow_times).mean
    if used is None or used < FULL_MEMORY_PERCENT:
        return None
    return view.finding(
        MEMORY,
        "medium",
        (*_ROOT, "memory full"),
        *view.slow_evidence(),
        f"memory at {used:.0f} % while requests were slow",
        remedies=[
            Remedy("instance_type", "one with more memory"),
            Remedy("containers[].environment", "fewer workers: each holds a copy of the model"),
        ],
    )


def _workers(view: VariantView) -> Finding | None:
    """Latency follows the requests in flight although the instances have room."""
    in_flight = view.in_flight
    latency = view.get("ModelLatency", "p50") or view.get("ModelLatency", "Average")
    slow = in_flight.only(view.slow_times).median
    if slow is None or not latency:
        return None
    stated = _stated_workers(view)
    text = f"{slow:.0f} requests in flight at once, {view.utilization_words(view.slow_times)}"
    instances = view.instances.only(view.slow_times).median or view.variant.current_instances or 1
    # Whether the metric counts a model's copies one by one is not said: the lower reading counts.
    each = slow / max(instances, 1)
    # Another slow time window may have another cause.
    elsewhere = set(view.whole.slow_times) - set(view.slow_times)
    follows = _correlation(in_flight, latency.without(elsewhere))
    if stated and each >= 2 * int(stated):
        text += f"; workers per instance by its environment: {stated}"
        sure = True
    elif follows is not None and follows >= 0.7 and _rises(view, in_flight, latency):
        text += f"; ModelLatency rises with it (correlation {follows:.2f})"
        sure = False
    else:
        return None
    facts = view.variant.facts
    by_concurrency = [
        Remedy("scaling.metric", "scales on requests in flight, queued ones too", "concurrency"),
        Remedy("scaling.concurrency_target", "what one instance works on at once", stated or ""),
    ]
    if view.concurrency_target:
        # It scales so already: a target above what is worked on at once lets requests queue.
        lower = stated if stated and int(stated) < view.concurrency_target else ""
        by_concurrency = [
            Remedy(
                "scaling.concurrency_target",
                f"what one instance works on at once; now {view.concurrency_target:g}",
                lower,
            )
        ]
    count = str(facts.vcpus) if facts and facts.vcpus and not facts.accelerator else ""
    return view.finding(
        WORKERS,
        "high" if sure else "medium",
        (*_ROOT, "requests queue in the container"),
        *view.slow_evidence(),
        text,
        remedies=[
            Remedy(
                "containers[].environment",
                "more workers, or batches; the variable's name is the server's",
                f"{{SAGEMAKER_MODEL_SERVER_WORKERS: '{count}'}}" if count else "",
            ),
            *by_concurrency,
        ],
    )


def _stated_workers(view: VariantView) -> str | None:
    """Workers on each instance, as the container's environment states them."""
    return next(
        (
            view.variant.environment[name]
            for name in _WORKER_VARIABLES
            if view.variant.environment.get(name, "").isdigit()
        ),
        None,
    )


def workers_stated_too_few(view: VariantView, times: list[datetime]) -> bool:
    """Whether twice as many requests as stated workers were in flight on an instance."""
    stated, waiting = _stated_workers(view), view.in_flight.only(times).median
    instances = view.instances.only(times).median or view.variant.current_instances or 1
    return bool(stated and waiting and waiting / max(instances, 1) >= 2 * int(stated))


def _rises(view: VariantView, in_flight: Series, latency: Series) -> bool:
    """Whether both are at least twice as high when slow as otherwise."""
    rest = latency.without(set(view.whole.slow_times)).points
    pairs = [
        (each.only(view.slow_times).median, each.only(rest).median) for each in (in_flight, latency)
    ]
    return all(slow and other and slow >= 2 * other for slow, other in pairs)


def _correlation(one: Series, other: Series) -> float | None:
    """Pearson's correlation over the common periods; ``None`` of fewer than ten or of constants.

    >>> from datetime import datetime, timedelta
    >>> times = [datetime(2026, 11, 20) + timedelta(minutes=n) for n in range(10)]
    >>> up = Series({t: float(n) for n, t in enumerate(times)})
    >>> _correlation(up, Series({t: 2 * v + 1 for t, v in up.points.items()}))
    1.0
    """
    common = [time for time in one.points if time in other.points]
    if len(common) < 10:
        return None
    try:
        found = correlation(*([each.points[time] for time in common] for each in (one, other)))
    except StatisticsError:  # one of them is constant
        return None
    return round(found, 6)


def _tail(view: VariantView) -> Finding | None:
    counts = view.get("ModelLatency", "SampleCount")
    p50 = view.get("ModelLatency", "p50").only(view.slow_times).weighted_mean(counts)
    p99 = view.get("ModelLatency", "p99").only(view.slow_times).weighted_mean(counts)
    limit = view.variant.thresholds.get(("ModelLatency", "p50"))
    if p50 is None or p99 is None or p99 < _TAIL_FACTOR * p50:
        return None
    if (limit and p50 > limit.value) or p50 > min(s.threshold for s in view.slow_model):
        return None
    evidence: tuple[Evidence | str, ...] = (
        *view.slow_evidence(),
        f"p99 {milliseconds(p99)} is {p99 / p50:.1f} times p50 {milliseconds(p50)}; "
        f"{view.utilization_words(view.slow_times)}",
    )
    path = (*_ROOT, "only the tail is slow")
    enhanced = (
        []
        if view.variant.instances
        else [
            Remedy(
                "metrics.enhanced", "shows whether one instance is slow (billed metrics)", "true"
            )
        ]
    )
    if view.variant.routing == "RANDOM" and (view.variant.current_instances or 0) > 1:
        default = "" if view.variant.routing_stated else ", AWS's default"
        return view.finding(
            UNEVEN,
            "medium",
            (*path, "RANDOM routing"),
            *evidence,
            Evidence(
                f"routing strategy RANDOM{default}, {view.variant.current_instances} instances"
            ),
            remedies=[
                Remedy(
                    "routing",
                    "requests pass by an instance that is busy or slow",
                    "least_outstanding_requests",
                ),
                *enhanced,
            ],
        )
    return view.finding(
        SLOW_TAIL,
        "low",
        path,
        *evidence,
        remedies=[
            Remedy("containers[].environment", "limit the work of one request (length, batch)"),
            *enhanced,
        ],
        besides=(
            "Profile the inference script on the slowest requests: long inputs, garbage collection, "
            "calls to other services, batches that wait to be filled."
        ),
    )


def _slow_model(view: VariantView) -> Finding:
    facts = view.variant.facts
    changes = [
        Remedy("containers[].image", "a newer framework or a faster server"),
        Remedy("containers[].environment", "the server's and framework's settings"),
    ]
    if facts is None or facts.accelerator is None:
        changes = [
            Remedy(
                "instance_type", "a GPU, if the model supports it", "ml.g5.xlarge or ml.g6.xlarge"
            ),
            Remedy(
                "instance_type",
                "Inferentia, compiled for it with Neuron: lower cost per request",
                "ml.inf2.xlarge",
            ),
            *changes,
        ]
    elif facts.accelerator == "nvidia":
        changes = [
            Remedy(
                "instance_type", "a newer GPU, or Inferentia (ml.inf2) compiled for it with Neuron"
            ),
            *changes,
        ]
    counts = view.get("ModelLatency", "SampleCount")
    p50 = view.get("ModelLatency", "p50").only(view.slow_times).weighted_mean(counts)
    typical = f"p50 {milliseconds(p50)} when slow; " if p50 is not None else ""
    return view.finding(
        SLOW_MODEL,
        "medium" if view.utilization(view.slow_times) else "low",
        (*_ROOT, "the container itself"),
        *view.slow_evidence(),
        f"{typical}{view.utilization_words(view.slow_times)} on {view.variant.instance_type}",
        remedies=changes,
        besides=(
            "Measure the container outside of SageMaker with the same requests, and profile the "
            "inference script."
        ),
    )
