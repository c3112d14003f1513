"""The branch of instances with room: what in the container takes the time?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from ...report.numbers import milliseconds, readable
from . import thresholds as const
from .arrivals import batch_delay, bursts, fewer_requests
from .cold_starts import after_starts
from .contrast import Contrast, contrast, step, with_step
from .findings import KINDS, Confidence, Evidence, Finding, Remedy
from .starts import named
from .view import VariantView

#: Environment variables that set the number of workers, by the servers that read them.
_WORKER_VARIABLES = (
    "SAGEMAKER_MODEL_SERVER_WORKERS",
    "MODEL_SERVER_WORKERS",
    "TS_DEFAULT_WORKERS_PER_MODEL",
    "SAGEMAKER_NUM_MODEL_WORKERS",
    "WEB_CONCURRENCY",
)


_NOT_BOUND = (
    "Nothing shows that the processors take this time: a larger or faster instance type would wait as "
    "long."
)
_OTHER_TYPES = "`low-latency recommend` load-tests instance types with your requests."
_QUEUE_OR_DEPENDENCY = (
    "If the container calls nothing that can be slow, and its own code does not wait, requests queue for "
    "its workers: then more workers or instances help. A longer window (--since) with quiet hours in it tells the two apart."
)


def slow_container(view: VariantView) -> Iterator[Finding]:
    """Exactly one finding: the first cause that the measurements fit.

    What changed with latency is the cause; what was the same while requests were fast is none.
    """
    compared = contrast(view)
    for rule in _RULES:
        finding = rule(view, compared)
        if finding is not None:
            if finding.id not in _SAY_WHAT_CHANGED:
                finding = with_step(finding, step(view))
            yield finding
            return


def _gpu_idle(view: VariantView, compared: Contrast) -> Finding | None:
    facts, images = view.variant.facts, view.variant.images
    gpu = view.utilization(view.slow_times).get("GPU")
    if gpu is None or gpu >= const.IDLE_GPU_PERCENT or (facts and facts.accelerator != "nvidia"):
        return None
    # It was fast with an idle GPU, or the GPU worked until the container began to wait.
    if compared.known and compared.rate <= const.SAME_RATE:
        return None
    return view.cause(
        "LLD115",
        *view.slow_evidence(),
        f"GPU at {gpu:.1f} % of the whole instance while requests were slow, "
        f"{view.utilization_words(view.slow_times)}",
        now=f"; now {images[0].rpartition('/')[2]}" if images else "",
    )


def _memory(view: VariantView, compared: Contrast) -> Finding | None:
    memory = view.get("MemoryUtilization", "Average")
    used = memory.only(view.slow_times).mean
    if used is None or used < const.FULL_MEMORY_PERCENT:
        return None
    fast = memory.only(compared.calm).mean
    if compared.known and fast is not None and fast >= const.FULL_MEMORY_PERCENT:
        return None  # as full while requests were fast
    words = f"memory at {used:.0f} % while requests were slow"
    return view.cause("LLD117", *view.slow_evidence(), words)


def _baseline(view: VariantView, compared: Contrast) -> Finding | None:
    """A T2 instance without CPU credits runs at its baseline at any load."""
    facts, worse = view.variant.facts, compared.worse
    share = const.T2_BASELINES.get(facts.size) if facts and facts.burstable else None
    used, waiting = view.get("CPUUtilization", "Average").only(worse).median, view.in_work(worse)
    if not facts or share is None or used is None or abs(used / share - 1) > const.WHOLE:
        return None
    if waiting is None or waiting < const.WAITING * share / 100 * (facts.vcpus or 1):
        return None
    return view.cause(
        "LLD124",
        *view.slow_evidence(),
        f"CPU at {used:.0f} %, and {readable(share)} % is the baseline of {view.variant.instance_type}, with "
        f"{readable(waiting, 2)} requests in progress on an instance",
    )


def _waiting(view: VariantView, compared: Contrast) -> Finding | None:
    """Little's law: at the same rate latency and requests in flight rise together; no queue yet."""
    idler = compared.most_used < 1 / const.SAME_RATE
    same = compared.most_used <= const.SAME_RATE and (compared.rate <= const.SAME_RATE or idler)
    # Of less than one request in work, neither the most that are in flight nor idle processors say it.
    many = (view.in_work(compared.worse) or 0) >= 1
    works = max(view.utilization(compared.calm).values(), default=0) >= const.AT_REST_PERCENT
    if not compared.known or not same or not (many or works):
        return None
    if many and view.in_flight and compared.flight < const.DOUBLED:
        return None
    return _waits(view, compared, compared.words, "medium")


def _idle(view: VariantView, compared: Contrast) -> Finding | None:
    """The processors work for a small part of the time that requests take."""
    times = view.slow_times
    busy, waiting = view.busy_processors(times), view.in_work(times)
    if not waiting or busy is None or busy >= waiting / 2:
        return None
    if view.utilization(times).get("GPU", 0) >= const.IDLE_PERCENT:
        return None  # a batch of many requests is worked on at once
    words = (
        f"{_processors(view, times)} busy for {readable(waiting, 2)} requests in progress at once"
    )
    finding = _waits(view, compared, words, "low")
    if compared.known:
        return finding
    return replace(finding, besides=f"{finding.besides} {_QUEUE_OR_DEPENDENCY}")


def _processors(view: VariantView, times: list[datetime]) -> str:
    """How many CPUs and GPUs are busy, in words."""
    parts = [(view.busy_cores(times), "CPUs"), (view.busy_gpus(times), "GPUs")]
    return " and ".join(
        f"{readable(count, 2)} {name}" for count, name in parts if count is not None
    )


def _waits(view: VariantView, compared: Contrast, words: str, confidence: Confidence) -> Finding:
    words += f" when slow; {view.utilization_words(view.slow_times)}"
    return view.cause("LLD123", *view.slow_evidence(), words, confidence=confidence)


def busy_workers(view: VariantView, times: list[datetime]) -> str:
    """Evidence that a whole number of single-threaded workers is busy while requests wait."""
    cores, waiting = view.busy_cores(times), view.in_work(times)
    count = round(cores or 0)
    if (
        cores is None
        or not waiting
        or not 1 <= count <= const.FEW_CPUS
        or waiting < const.WAITING * count
    ):
        return ""
    vcpus = view.variant.facts.vcpus if view.variant.facts else None
    # Workers that queue are busy for 95 % of the time and more.
    idle = max(const.WHOLE, const.SPARE_OF_WORKERS * count)
    if not count - idle <= cores <= count + const.WHOLE or count == vcpus:
        return ""
    return f"{cores:.2f} of {vcpus} CPUs busy, with {readable(waiting, 2)} requests in progress on an instance"


def _workers(view: VariantView, compared: Contrast) -> Finding | None:
    """Requests queue although the instances have room."""
    follows = compared.rate > const.SAME_RATE and compared.flight >= const.DOUBLED
    text = (
        f"{readable(compared.rate, 2)} times the rate, and latency rose with it" if follows else ""
    )
    return queueing(view, compared.worse, *view.slow_evidence(), more=text)


def queueing(
    view: VariantView, times: list[datetime], *evidence: Evidence, more: str = ""
) -> Finding | None:
    """Too few workers at these times, by what shows it or else by ``more``."""
    stated, slow = _stated_workers(view), view.in_flight.only(times).median
    sure, core = workers_stated_too_few(view, times), busy_workers(view, times)
    if not (core or sure or more):
        return None
    texts = [core, f"{slow:.0f} requests in flight at once" if slow is not None else ""]
    texts += [view.utilization_words(times), more]
    texts += [f"workers per instance in the environment: {stated}" if stated else ""]
    facts, target = view.variant.facts, view.concurrency_target
    count = str(facts.vcpus) if facts and facts.vcpus and not facts.accelerator else ""
    changes = [
        Remedy(
            "containers[].environment",
            "more workers, or batches; the variable's name depends on the server",
            f"{{SAGEMAKER_MODEL_SERVER_WORKERS: '{count}'}}" if count else "",
        )
    ]
    if target:
        why = f"the requests one instance works on at once; now {readable(target)}"
        lower = stated if stated and int(stated) < target else ""
        changes.append(Remedy("scaling.concurrency_target", why, lower))
    elif view.variant.scaling and view.variant.scaling.maximum:
        why = "scales on requests in flight, queued ones too; the target is what one instance works on"
        by_concurrency = f"{{metric: concurrency, concurrency_target: {stated or '...'}}}"
        changes.append(Remedy("scaling", why, by_concurrency))
    changes += _of_random_routing(view)
    confidence = "high" if sure else "medium"
    words = "; ".join(filter(None, texts))
    finding = view.cause(
        "LLD111", *evidence, words, times=times, confidence=confidence, first=changes
    )
    finding = _with_unreached_target(view, finding, times)
    feeding = core and view.utilization(times).get("GPU", const.IDLE_PERCENT) < const.IDLE_PERCENT
    return replace(finding, kind=KINDS["LLD108"]) if feeding else finding


def _with_unreached_target(view: VariantView, finding: Finding, times: list[datetime]) -> Finding:
    """A queue below the scaling target: scaling does not act however long the queue is."""
    tracked = view.tracked
    most = tracked.peak(times) if tracked and not tracked.concurrency else None
    if tracked is None or most is None or most >= tracked.target:
        return finding
    why = (
        "lower, as a load test measures it: scaling acts above the target alone, and requests queue "
        "below it"
    )
    changes = [*finding.changes, Remedy("throughput.tps_per_instance", why)]
    serving = round(view.instances.only(times).max or 0)
    if serving:
        changes.append(view.at_least(serving + 1, "until then, at least: one more than now"))
    words = (
        f"only {tracked.words(most)} while requests queued: scaling had no reason to add instances"
    )
    shown = (*finding.evidence, view.over(times, words))
    return replace(finding, evidence=shown, changes=tuple(changes))


def growing_queue(view: VariantView) -> Iterator[Finding]:
    """What looks like a cold start, but gets worse at the same rate: more is asked than fits."""
    slow = view.slow_times
    starts = after_starts(view, slow)
    third = max(len(slow) // 3, 1)
    if not starts or len(slow) < const.PERIODS:
        return
    rate, latency, flight = (
        (series.only(slow[:third]).median or 0, series.only(slow[-third:]).median or 0)
        for series in (view.tps, view.typical, view.in_flight)
    )
    if min(flight[1] / (flight[0] or 1), latency[1] / (latency[0] or 1)) < const.GROWN_QUEUE or (
        not flight[0] or rate[1] > const.SAME_RATE * rate[0]
    ):
        return
    words = (
        f"{flight[0]:.0f} requests in flight at first and {flight[1]:.0f} at last, at the same rate: "
        "more arrive than the instances can process"
    )
    if found := queueing(view, slow, *view.slow_evidence(), more=words):
        more = Remedy("instances.min", "more instances process more requests")
        found = replace(found, changes=(*found.changes, more))
        new = [each for each in starts if each.new == "fleet"]
        if new:
            words = f"Since {named(view, new)}: roll back if the previous version served this load."
            found = replace(found, besides=words)
        yield found


def _of_random_routing(view: VariantView) -> list[Remedy]:
    """The other strategy, where requests may wait at one instance while another is free."""
    if view.variant.routing != "RANDOM" or (view.variant.current_instances or 0) <= 1:
        return []
    why = (
        f"{view.routing_words}, sends requests to an instance where others wait, too; `low-latency "
        "compare-routing` measures both on your model"
    )
    return [Remedy("routing", why, "least_outstanding_requests")]


def _stated_workers(view: VariantView) -> str | None:
    """Workers on each instance, as the container's environment states them."""
    stated = (view.variant.environment.get(name, "") for name in _WORKER_VARIABLES)
    return next(filter(str.isdigit, stated), None)


def workers_stated_too_few(view: VariantView, times: list[datetime]) -> bool:
    """Whether twice as many requests as stated workers were in flight on an instance."""
    stated = _stated_workers(view)
    if not stated:
        return False
    waiting = max(view.in_flight_of_one(times) or 0, view.in_work(times) or 0)
    return waiting >= const.DOUBLED * int(stated)


def _tail(view: VariantView, compared: Contrast) -> Finding | None:
    p50, p99, variant = view.when_slow("p50"), view.when_slow("p99"), view.variant
    limit = variant.thresholds.get(("ModelLatency", "p50"))
    if p50 is None or p99 is None or p99 < const.TAIL * p50:
        return None
    if view.refused_share(view.slow_times) >= const.REFUSING:
        return None  # p50 may be that of refusals
    if (limit and p50 > limit.value) or p50 > min(s.threshold for s in view.slow_model):
        return None
    if _waits_typically(view, p50):
        return None
    shown: tuple[Evidence | str, ...] = (
        *view.slow_evidence(),
        f"p99 {milliseconds(p99)} is {p99 / p50:.1f} times p50 {milliseconds(p50)}; "
        f"{view.utilization_words(view.slow_times)}",
    )
    why = "shows whether one instance is slow (billed metrics)"
    enhanced = [] if variant.instances else [Remedy("metrics.enhanced", why, "true")]
    if variant.routing != "RANDOM" or (variant.current_instances or 0) <= 1:
        return view.cause("LLD113", *shown, more=enhanced)
    words = f"{view.routing_words}, {variant.current_instances} instances"
    return view.cause("LLD502", *shown, Evidence(words), more=enhanced)


def _waits_typically(view: VariantView, p50: float) -> bool:
    """Whether the typical request, too, spends most of its time without a CPU: no tail alone."""
    facts, cores = view.variant.facts, view.busy_cores(view.slow_times)
    load = view.load.only(view.slow_times).median
    if facts is None or facts.accelerator or cores is None or load is None:
        return False
    return load / 60 * p50 / 1000 >= max(const.DOUBLED * cores, const.WAITING)


def _since(view: VariantView, compared: Contrast) -> Finding | None:
    """What remains, but began at one time: hardware did not change then."""
    rise = step(view)
    if rise is None:
        return None
    words = "; ".join(filter(None, [compared.words, view.utilization_words(view.slow_times)]))
    shown = view.slow_evidence()
    return view.cause("LLD127", rise.evidence, *shown, words, question=rise.question)


def _slow_model(view: VariantView, compared: Contrast) -> Finding:
    facts, p50, times = view.variant.facts, view.when_slow("p50"), view.slow_times
    changes = []
    # The same instances were fast at this load: faster ones may be slow in the same way.
    bound = "" if compared.known and compared.rate <= const.SAME_RATE else _bound(view, times)
    if bound and facts and facts.accelerator is None:
        why = "a GPU, if the model supports it; ml.g6.xlarge is another"
        changes.append(Remedy("instance_type", why, "ml.g5.xlarge"))
        why = (
            "Inferentia, with the model compiled by Neuron: cheaper per request than GPUs, says AWS"
        )
        changes.append(Remedy("instance_type", why, "ml.inf2.xlarge"))
    elif bound and facts and facts.accelerator == "nvidia":
        why = "a newer GPU, or Inferentia (ml.inf2) with the model compiled by Neuron"
        changes.append(Remedy("instance_type", why))
    typical = f"p50 {milliseconds(p50)} when slow; " if p50 is not None else ""
    words = f"{typical}{view.utilization_words(times)} on {view.variant.instance_type}"
    shown = [Evidence(each) for each in (bound, compared.words) if each]
    confidence = "medium" if bound else "low"
    finding = view.cause(
        "LLD112",
        *view.slow_evidence(),
        words,
        *shown,
        confidence=confidence,
        first=[*changes, *_of_random_routing(view)],
    )
    if not bound:
        return replace(finding, besides=f"{_NOT_BOUND} {finding.besides}")
    return replace(finding, besides=f"{finding.besides} {_OTHER_TYPES}") if changes else finding


def _bound(view: VariantView, times: list[datetime]) -> str:
    """What shows that the processors work for most of the requests' time; empty where nothing does."""
    used, waiting = max(view.utilization(times).values(), default=0.0), view.in_work(times)
    busy = view.busy_processors(times)
    # Below that it is the instance's own work.
    if used < const.AT_REST_PERCENT or busy is None or not waiting:
        return ""
    if _by_requests(view, times) < const.HALF * busy:
        return ""
    if used < const.IDLE_PERCENT and busy < waiting / 2:
        return ""
    words = _processors(view, times)
    return f"{words} busy for {readable(waiting, 2)} requests in progress on an instance"


def _by_requests(view: VariantView, times: list[datetime]) -> float:
    """How many busy processors the requests may explain: at most all, for as long as they take.

    Nor do they explain what is as busy in periods without requests.
    """
    facts, waiting = view.variant.facts, view.in_work(times) or 0.0
    most = ((facts.vcpus or 1) + (facts.accelerator_count or 0)) * waiting if facts else math.inf
    used = view.get("CPUUtilization", "Average").times
    quiet = [time for time in used if not view.requests.points.get(time)]
    idle = view.busy_processors(quiet) if len(quiet) >= const.PERIODS else None
    return min(most, (view.busy_processors(times) or 0.0) - (idle or 0.0))


#: The most specific first; the last one always has an answer.
_RULES = (
    batch_delay,
    _gpu_idle,
    _memory,
    _baseline,
    fewer_requests,
    _waiting,
    _workers,
    bursts,
    _tail,
    _idle,
    _since,
    _slow_model,
)
#: Causes that say themselves what changed when they began.
_SAY_WHAT_CHANGED = ("LLD125", "LLD126", "LLD127")
