"""Slow by how requests arrive: too few to fill a batch, fewer than before, or many at one moment."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from ...report.numbers import milliseconds, rate, readable
from . import thresholds as const
from .contrast import Contrast, contrast, step
from .findings import Evidence, Finding, Remedy
from .view import VariantView

#: How servers call the time for which a request waits until its batch is full: TorchServe
#: (SAGEMAKER_TS_MAX_BATCH_DELAY), DJL (SERVING_MAX_BATCH_DELAY), TensorFlow Serving
#: (SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS), MLServer (MLSERVER_MODEL_MAX_BATCH_TIME), Triton
#: (max_queue_delay_microseconds).
_DELAY = re.compile(r"BATCH_?(DELAY|TIMEOUT|TIME|WAIT)|QUEUE_?DELAY", re.IGNORECASE)
_MICROSECONDS = re.compile(r"MICRO|_US$", re.IGNORECASE)
_SECONDS = re.compile(r"(?<!MILLI)(?<!MICRO)SECONDS$|_SECS?$|_S$|BATCH_TIME$", re.IGNORECASE)


def batch_delay(view: VariantView, compared: Contrast) -> Finding | None:
    """The environment states how long a batch waits, and requests take hardly longer."""
    for name, value in view.variant.environment.items():
        delay = _milliseconds(name, value)
        if delay and (shown := _waits_for_batch(view, delay)):
            words = f"{shown}, and {name} is {value} in the environment"
            return _slow_for_batches(view, compared, name, words)
    return None


def _milliseconds(name: str, value: str) -> float | None:
    """The delay that a variable states; ``None`` where it states none."""
    if not _DELAY.search(name):
        return None
    try:
        stated = float(value)
    except ValueError:
        return None
    if _MICROSECONDS.search(name):
        return stated / 1000
    return 1000 * stated if _SECONDS.search(name) else stated


def _waits_for_batch(view: VariantView, delay: float) -> str:
    """The statistic of the slow periods that the delay makes up; empty without one."""
    for statistic in ("p50", "p99"):
        value = view.when_slow(statistic)
        if value and delay <= const.WHOLE_DELAY * value and value <= const.DOUBLED * delay:
            return f"{statistic} {milliseconds(value)} when slow"
    return ""


def _slow_for_batches(view: VariantView, compared: Contrast, name: str, words: str) -> Finding:
    fewer = compared.known and compared.rate <= 1 / const.DOUBLED
    shown = [words, _faster_with_more(compared)] if fewer else [words]
    why = "lower: a request waits so long for others to fill its batch"
    delay = Remedy("containers[].environment", why, f"{{{name}: ...}}")
    return view.cause(
        "LLD126",
        *view.slow_evidence(),
        f"{'; '.join(shown)}; {view.utilization_words(view.slow_times)}",
        confidence="high" if fewer else "medium",
        first=[delay],
    )


def _faster_with_more(compared: Contrast) -> str:
    """How it was fast, in words."""
    calm, worse = (
        compared.view.tps.only(times).median or 0 for times in (compared.calm, compared.worse)
    )
    fast, slow = (compared.latency.only(times).median for times in (compared.calm, compared.worse))
    return (
        f"{milliseconds(fast)} at {rate(calm)} requests a second, "
        f"{milliseconds(slow)} at {rate(worse)}"
    )


def fewer_requests(view: VariantView, compared: Contrast) -> Finding | None:
    """The same instances were fast while they had at least twice as much to do."""
    fewer = compared.known and compared.rate <= 1 / const.DOUBLED
    if not fewer or compared.most_used > const.SAME_RATE:
        return None
    # Callers that wait for each answer send as many fewer requests as these take longer.
    waiting = compared.rate * compared.times(compared.latency)
    closed = 1 / const.SAME_CALLERS <= waiting <= const.SAME_CALLERS
    began = step(view)
    when = f" at {view.measurements.clock(began.time)}" if began else " then"
    return view.cause(
        "LLD125",
        *view.slow_evidence(),
        f"{_faster_with_more(compared)}; when slow {compared.words}; "
        f"{view.utilization_words(view.slow_times)}",
        confidence="low" if closed else "medium",
        when=when,
    )


def bursts(view: VariantView, compared: Contrast) -> Finding | None:
    """Little's law: many more are in flight at once than rate and latency make in the mean."""
    times = view.slow_times
    mean, most = view.in_work(times), view.in_flight_of_one(times)
    requests = view.load.only(times).median
    if not mean or most is None or not requests or mean >= const.MANY_IN_WORK:
        return None
    if most <= _most_by_chance(mean, requests * (view.period / timedelta(minutes=1))):
        return None
    if not _may_wait_for_each_other(view, most):
        return None
    if not compared.known:
        compared = contrast(view, "p99")  # only the slowest requests are slow
    if compared.known and compared.flight < const.DOUBLED:
        return None  # as many came at once while it was fast
    words = (
        f"{readable(most, 2)} requests in flight on an instance at once, where "
        f"{rate(requests / 60)} a second make {readable(mean, 2)} in the mean: they arrive at "
        f"the same moment; {view.utilization_words(times)}"
    )
    random = view.variant.routing == "RANDOM"
    routing = [Remedy("routing", "spreads a burst evenly", "least_outstanding_requests")]
    shown = [Evidence(compared.words)] if compared.words else []
    return view.cause(
        "LLD128", *view.slow_evidence(), words, *shown, more=routing if random else ()
    )


def _may_wait_for_each_other(view: VariantView, most: float) -> bool:
    """Whether latencies are spread as in a queue: not alike, and none above all requests in turn."""
    times = view.slow_times
    p50 = view.when_slow("p50")
    p99 = view.when_slow("p99")
    in_flight = view.in_flight.only(times).median
    if not p50 or p99 is None or in_flight is None:
        return True
    if view.refused_share(times) >= const.REFUSING:
        return False
    requests = (view.tps.only(times).median or 0) * view.period.total_seconds()
    if requests >= most and p99 < const.QUEUE_SPREAD * p50:
        return False
    return p99 <= in_flight * p50


def _most_by_chance(mean: float, requests: float) -> float:
    """Most that a queue with so many in it in the mean holds while so many requests come, by chance once in 100.

    Of a queue with one server, whose length varies more than that of requests which do not wait.

    >>> round(_most_by_chance(0.25, 300), 1), round(_most_by_chance(0.05, 1), 1)
    (6.4, 1.5)
    """
    return math.log(100 * max(requests, 1)) / math.log(1 + 1 / mean)
