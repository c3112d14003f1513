"""The branch of instances with room: what in the container takes the time?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from ...account.metrics import Series
from ...errors import AWS_DOCS
from ...report.numbers import milliseconds, readable
from .events import after_starts, named
from .findings import (
    GUIDE,
    KNOWLEDGE_CENTER,
    LOAD_TESTING,
    ROUTING,
    Confidence,
    Evidence,
    Finding,
    Remedy,
    kind,
)
from .saturated import GPU_WAITS
from .view import FULL_MEMORY_PERCENT, IDLE_PERCENT, PERIODS, VariantView

WORKERS = kind(
    "LLD111",
    "Requests queue in the container: too few workers",
    (
        "instances have room; requests in flight are twice the workers in the environment, or both "
        "they and latency doubled after the rate rose by a tenth, or a whole number of up to four "
        "CPUs is busy (within a tenth of one) and half as many requests more are in work (CPU and "
        "GPU idle: LLD108)"
    ),
    LOAD_TESTING,
)
WAITING = kind(
    "LLD123",
    "Requests wait for something other than the processor: a slow dependency",
    (
        "latency and requests in flight doubled while neither rate nor CPU nor GPU rose by a tenth; "
        "or CPUs work for less than half of the time of the requests in work, without an accelerator"
    ),
    KNOWLEDGE_CENTER,
)
BASELINE = kind(
    "LLD124",
    "A burstable type has used up its CPU credits",
    "slow on a T2 whose CPU is within a tenth of its size's baseline, while more is in work",
    AWS_DOCS + "/AWSEC2/latest/UserGuide/burstable-credits-baseline-concepts.html",
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

#: Percent of each vCPU by size of T2, without credits (AWS: CPU credits and baseline utilization).
_BASELINES = {"medium": 20.0, "large": 30.0, "xlarge": 22.5, "2xlarge": 17.0}
#: Rate or utilization is the same; a number of CPUs is whole.
_SAME, _WHOLE = 1.1, 0.1
#: From the first to the last third of slow periods: a queue that grows, and no warm-up.
_GROWS = 1.5
#: Workers that a whole number of CPUs may show; more in work than these by so many times wait.
_FEW, _MORE = 4, 1.5
_ROOT = ("ModelLatency high", "instances not saturated")
_TAIL_FACTOR, _DOUBLED = 3.0, 2.0
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
    rules = (_gpu_idle, _memory, _baseline, _waiting, _workers, _tail, _idle)
    yield next((found for rule in rules if (found := rule(view))), None) or _slow_model(view)


def _gpu_idle(view: VariantView) -> Finding | None:
    facts = view.variant.facts
    gpu = view.utilization(view.slow_times).get("GPU")
    # A GPU that worked at the same load until the container began to wait is no idle one.
    if gpu is None or gpu >= 3 or (facts and facts.accelerator != "nvidia") or _waiting(view):
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


class _Slower(NamedTuple):
    """When a request usually took more than half of what it does when slow, and when less."""

    worse: list[datetime]
    calm: list[datetime]

    def times(self, series: Series) -> float:
        """How many times as high it was when worse; 1 where nobody knows."""
        high, low = series.only(self.worse).median, series.only(self.calm).median
        return high / low if high is not None and low else 1.0


def _slower(view: VariantView) -> _Slower:
    # Another slow time window may have another cause.
    elsewhere = set(view.whole.slow_times) - set(view.slow_times)
    latency = view.typical.without(elsewhere)
    half = (latency.only(view.slow_times).median or 0) / 2
    calm = [time for time, value in latency.points.items() if value <= half]
    return _Slower([t for t in view.slow_times if t not in set(calm)], calm)


def _baseline(view: VariantView) -> Finding | None:
    """A T2 without credits has its baseline, however much is asked of it."""
    facts, worse = view.variant.facts, _slower(view).worse
    share = _BASELINES.get(facts.size) if facts and facts.burstable else None
    used, waiting = view.get("CPUUtilization", "Average").only(worse).median, view.in_work(worse)
    if not facts or share is None or used is None or abs(used / share - 1) > _WHOLE:
        return None
    if waiting is None or waiting < _MORE * share / 100 * (facts.vcpus or 1):
        return None
    return view.finding(
        BASELINE,
        "medium",
        (*_ROOT, "burstable", "CPU at its baseline"),
        *view.slow_evidence(),
        f"CPU at {used:.0f} %, and {readable(share)} % is the baseline of {view.variant.instance_type}, with "
        f"{readable(waiting, 2)} requests in work on an instance",
        remedies=[Remedy("instance_type", "one that is not burstable", "ml.m5.large")],
    )


def _waiting(view: VariantView) -> Finding | None:
    """Little's law: at the same rate latency and requests in flight rise together; no queue yet."""
    slower = _slower(view)
    used = [slower.times(view.get(f"{name}Utilization", "Average")) for name in ("CPU", "GPU")]
    rate, flight = slower.times(view.load or view.tps), slower.times(view.in_flight)
    same = max(used) <= _SAME and (rate <= _SAME or max(used) < 1 / _SAME)
    if len(slower.calm) < PERIODS or not same or (view.in_flight and flight < _DOUBLED):
        return None
    return _waits(
        view, f"{readable(rate, 2)} times the rate, {readable(used[0], 2)} times the CPU", "medium"
    )


def _idle(view: VariantView) -> Finding | None:
    """The CPUs work for a small part of the time that requests take."""
    facts, times = view.variant.facts, view.slow_times
    cores, waiting = view.busy_cores(times), view.in_work(times)
    if not facts or facts.accelerator or not waiting or cores is None or cores >= waiting / 2:
        return None
    return _waits(
        view,
        f"{readable(cores, 2)} CPUs busy for {readable(waiting, 2)} requests in work at once",
        "low",
    )


def _waits(view: VariantView, words: str, confidence: Confidence) -> Finding:
    return view.finding(
        WAITING,
        confidence,
        (*_ROOT, "the container waits"),
        *view.slow_evidence(),
        f"{words} when slow; {view.utilization_words(view.slow_times)}",
        remedies=[Remedy("containers[].environment", "time limits of what the model calls")],
        besides="Measure what the container calls (a database, a feature store, another service), its "
        "locks, and how long batches wait to be filled. More in flight only follows from that: more or larger instances, and scaling by "
        "concurrency, send more to what is slow.",
    )


def one_core(view: VariantView, times: list[datetime]) -> str:
    """What shows that as many single-threaded workers as CPUs are busy, while requests wait."""
    cores, waiting = view.busy_cores(times), view.in_work(times)
    count = round(cores or 0)
    if cores is None or not waiting or not 1 <= count <= _FEW or waiting < _MORE * count:
        return ""
    vcpus = view.variant.facts.vcpus if view.variant.facts else None
    if abs(cores - count) > _WHOLE or count == vcpus:
        return ""
    return f"{cores:.2f} of {vcpus} CPUs busy, with {readable(waiting, 2)} requests in work on an instance"


def _workers(view: VariantView) -> Finding | None:
    """Requests queue although the instances have room."""
    slower = _slower(view)
    rate, flight = slower.times(view.load or view.tps), slower.times(view.in_flight)
    follows = rate > _SAME and flight >= _DOUBLED
    text = f"{readable(rate, 2)} times the rate, and latency rose with it" if follows else ""
    return queueing(view, slower.worse, *view.slow_evidence(), more=text)


def queueing(
    view: VariantView, times: list[datetime], *evidence: Evidence, more: str = ""
) -> Finding | None:
    """Too few workers at these times, by what shows it or else by ``more``."""
    stated, slow = _stated_workers(view), view.in_flight.only(times).median
    sure, core = workers_stated_too_few(view, times), one_core(view, times)
    if not (core or sure or more):
        return None
    feeding = bool(core) and view.utilization(times).get("GPU", IDLE_PERCENT) < IDLE_PERCENT
    texts = [core, f"{slow:.0f} requests in flight at once" if slow is not None else ""]
    texts += [view.utilization_words(times), more]
    texts += [f"workers per instance by its environment: {stated}" if stated else ""]
    facts = view.variant.facts
    target = view.concurrency_target
    by_concurrency = [
        Remedy(
            "scaling.concurrency_target",
            "what one instance works on at once" + (f"; now {readable(target)}" if target else ""),
            stated if stated and (not target or int(stated) < target) else "",
        )
    ]
    if not target:
        words = "scales on requests in flight, queued ones too"
        by_concurrency.insert(0, Remedy("scaling.metric", words, "concurrency"))
    count = str(facts.vcpus) if facts and facts.vcpus and not facts.accelerator else ""
    return view.finding(
        GPU_WAITS if feeding else WORKERS,
        "high" if sure else "medium",
        (*_ROOT, "requests queue in the container"),
        *evidence,
        "; ".join(filter(None, texts)),
        times=times,
        remedies=[
            Remedy(
                "containers[].environment",
                "more workers, or batches; the variable's name is the server's",
                f"{{SAGEMAKER_MODEL_SERVER_WORKERS: '{count}'}}" if count else "",
            ),
            *by_concurrency,
        ],
    )


def growing_queue(view: VariantView) -> Iterator[Finding]:
    """What looks like a cold start, but gets worse at the same rate: more is asked than fits."""
    slow = view.slow_times
    starts = after_starts(view, slow)
    third = max(len(slow) // 3, 1)
    if not starts or len(slow) < PERIODS:
        return
    rate, latency, flight = (
        (series.only(slow[:third]).median or 0, series.only(slow[-third:]).median or 0)
        for series in (view.tps, view.typical, view.in_flight)
    )
    if min(flight[1] / (flight[0] or 1), latency[1] / (latency[0] or 1)) < _GROWS or (
        not flight[0] or rate[1] > _SAME * rate[0]
    ):
        return
    words = (
        f"{flight[0]:.0f} requests in flight at first and {flight[1]:.0f} at last, at the same rate: "
        "more come than the instances work off"
    )
    found = queueing(view, slow, *view.slow_evidence(), more=words)
    new = [each for each in starts if each.deployment]
    if found:
        more = Remedy("instances.min", "more instances work off more")
        found = replace(found, changes=(*found.changes, more))
    if found and new and not any(each.first for each in view.measurements.deployments):
        words = f"Since {named(view, new)}: roll back if the version before held this load."
        found = replace(found, besides=words)
    yield from [found] if found else []


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
    # Whether the metric counts a model's copies one by one is not said: the lower reading counts.
    instances = view.instances.only(times).median or view.variant.current_instances or 1
    return bool(stated and waiting and waiting / max(instances, 1) >= 2 * int(stated))


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
