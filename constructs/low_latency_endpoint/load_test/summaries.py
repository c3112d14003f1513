"""A step's result in the lines of a terminal."""

from __future__ import annotations

import math

from .latencies import LatencyHistogram
from .steps import StepResult

__all__ = ["summary_lines"]


def summary_lines(result: StepResult) -> list[str]:
    """Percentiles with what they rest on, send lag, the generator's own load, and its verdict.

    Examples
    --------
    >>> from .arrivals import ConstantArrivals
    >>> from .steps import Step
    >>> some = LatencyHistogram.of([0.020] * 999 + [0.080])
    >>> result = StepResult(Step("s", 10, ConstantArrivals(100)), 0, 10, 1000, 1000, 1000, 1000,
    ...                     {}, some, some, None, LatencyHistogram.of([0.0001] * 1000))
    >>> print(*summary_lines(result)[:3], sep="\\n")
    1,000 of 1,000 requests that were due were sent, 1,000 answered well, 0 failed
    latency from the intended start, of 1,000 answers, ms: mean 20.06, max 80.00
      p50 20.00 (500 samples beyond)
    """
    lines = [f"{result.sent:,} of {result.intended:,} requests that were due were sent, "
             f"{result.completed:,} answered well, {result.failed:,} failed"]
    lines += [f"  {count:,} times {kind}" for kind, count in result.errors.items()]
    lines += _histogram(f"latency from the intended start, of {_counted(result)}", result.latency)
    if result.first_byte is not None:
        lines += _histogram("first byte from the intended start", result.first_byte)
    if result.refused.count:
        p50, worst = (1000 * seconds for seconds in result.refused.quantiles((0.5, 1)))
        lines.append(f"in none of these percentiles: {result.refused.count:,} requests that were "
                     f"refused or broke off, after, ms: p50 {p50:.2f}, max {worst:.2f}")
    if result.send_lag.count:
        p50, p99, worst = (1000 * seconds for seconds in result.send_lag.quantiles((0.5, 0.99, 1)))
        lines.append(f"requests started late by, ms: p50 {p50:.3f}, p99 {p99:.3f}, max {worst:.3f}")
    load = result.generator
    lines.append(f"generator: {load.processes} process{'es' * (load.processes != 1)}, busiest "
                 f"{load.cpu_share:.0%} of a core, "
                 f"{1e6 * load.cpu_seconds_per_request:.0f} us of processor time a request")
    lines += [f"warning: {one}" for one in result.warnings]
    lines += [f"client-bound: result invalid: {one}" for one in result.client_bound]
    return lines


def _counted(result: StepResult) -> str:
    """What the percentiles are of."""
    waited = result.unanswered
    answers = f"{result.latency.count - waited:,} answers"
    return f"{answers} and {waited:,} requests that waited in vain" if waited else answers


def _histogram(name: str, latencies: LatencyHistogram) -> list[str]:
    if not latencies.count or math.isnan(latencies.mean):
        return []
    lines = [f"{name}, ms: mean {1000 * latencies.mean:.2f}, max {1000 * latencies.max:.2f}"]
    for one in latencies.percentiles():
        doubt = "" if one.reliable else ", too few to rely on"
        lines.append(f"  {one.name} {1000 * one.seconds:.2f} "
                     f"({one.samples_beyond:,} samples beyond{doubt})")
    return lines
