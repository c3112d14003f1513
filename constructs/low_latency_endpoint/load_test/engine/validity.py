"""When a result says something about the generator instead of the endpoint."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .latencies import milliseconds

if TYPE_CHECKING:
    from .steps import StepResult

#: A process of one thread that is on the processor for longer than this has no reserve left.
CPU_SHARE = 0.90
#: A median request that starts this late, as a share of the median latency: the generator as a
#: whole does not keep up, it does not just stumble.
MEDIAN_LAG_SHARE = 0.10
#: What the 99th percentile may owe to the generator before it is no figure of the endpoint.
TAIL_LAG_SHARE = 0.25
#: What an event loop may be late before tokens of one stream wait together, and only the last one's
#: moment is known. Where the kernel tells none, a token comes when it is read.
TOKEN_LAG_SHARE = 1.0 if sys.platform == "linux" else TAIL_LAG_SHARE
#: Requests that were due and never sent.
UNSENT_SHARE = 0.001
#: From here on results are flagged: a lag of this share of the median latency.
FLAGGED_LAG_SHARE = 0.01


def client_bound(result: StepResult) -> tuple[str, ...]:
    """Why the generator was the limit; empty when it was not."""
    reasons = []
    load = result
    if load.cpu_share >= CPU_SHARE:
        reasons.append(
            f"the busiest generator process used {load.cpu_share:.0%} of a core "
            f"({CPU_SHARE:.0%} is its limit): use more processes or more machines"
        )
    unsent = result.intended - result.sent
    if unsent > UNSENT_SHARE * result.intended:
        reasons.append(f"{unsent} of {result.intended} requests that were due were never sent")
    if load.postponed > UNSENT_SHARE * result.intended:
        reasons.append(
            f"{load.postponed} of {result.intended} requests waited for a connection: as many as a "
            "process may have were waiting for answers, so the endpoint was far over its limit"
        )
    latency, lag = result.latency, result.send_lag
    if latency.count and lag.count:
        lag_p50, lag_p99 = lag.quantiles((0.5, 0.99))
        p50, p99 = latency.quantiles((0.5, 0.99))
        if lag_p50 > MEDIAN_LAG_SHARE * p50:
            reasons.append(
                f"half of the requests started {milliseconds(lag_p50)} late or "
                f"more, {lag_p50 / p50:.0%} of the median latency of "
                f"{milliseconds(p50)}"
            )
        elif lag_p99 > TAIL_LAG_SHARE * p99:
            reasons.append(
                f"one request in a hundred started {milliseconds(lag_p99)} late or "
                f"more, {lag_p99 / p99:.0%} of the p99 of {milliseconds(p99)}"
            )
    if latency.count and not lag.count:
        p99 = latency.percentile(99)
        if load.loop_lag_p99 > TAIL_LAG_SHARE * p99:
            reasons.append(
                f"the load generator's event loop woke {milliseconds(load.loop_lag_p99)} late (p99), "
                f"{load.loop_lag_p99 / p99:.0%} of the p99 of {milliseconds(p99)}"
            )
    gaps = result.tokens.inter_token if result.tokens is not None else None
    mean = gaps.mean if gaps is not None else 0.0
    if mean > 0 and load.loop_lag_p99 > TOKEN_LAG_SHARE * mean:
        reasons.append(
            f"the load generator's event loop woke {milliseconds(load.loop_lag_p99)} late (p99), "
            f"{load.loop_lag_p99 / mean:.0%} of the {milliseconds(mean)} between tokens (mean)"
        )
    return tuple(reasons)


def only_late(result: StepResult) -> bool:
    """Whether the generator did all it was to do, if late: latency, from when it was due, has that in it."""
    load = result
    return (
        result.step.arrivals is not None
        and result.sent == result.intended
        and load.cpu_share < CPU_SHARE
        and not load.postponed
    )


def warnings(result: StepResult) -> tuple[str, ...]:
    """What makes the figures less exact, in words."""
    found = []
    latency, lag = result.latency, result.send_lag
    if latency.count and lag.count:
        p50, lag_p99 = latency.percentile(50), lag.percentile(99)
        if lag_p99 > FLAGGED_LAG_SHARE * p50:
            found.append(
                f"send lag p99 is {milliseconds(lag_p99)}, {lag_p99 / p50:.1%} of the "
                f"median latency (flagged above {FLAGGED_LAG_SHARE:.0%}); "
                "latencies include it"
            )
    if result.unanswered:
        found.append(
            f"{result.unanswered} of {latency.count} requests were not answered in time "
            "and count with the time they waited: high percentiles are lower bounds"
        )
    if latency.count and result.refused.count:
        worst, p99 = result.refused.max, latency.percentile(99)
        if worst > p99:
            found.append(
                "requests that were refused or broke off took up to "
                f"{milliseconds(worst)}, more than the p99 of {milliseconds(p99)}, "
                "and are in no percentile"
            )
    if (tokens := result.tokens) is not None:
        if tokens.unstreamed:
            found.append(
                f"{tokens.unstreamed} answers of several tokens came in one chunk: their time to "
                "first token is that of the whole answer, and there is none between tokens"
            )
        if tokens.uncounted:
            found.append(
                f"{tokens.uncounted} answers did not say how many tokens they have: chunks were "
                "counted (ask for it with stream_options.include_usage)"
            )
    if result.conversations and latency.count:
        found += _overlapping(result)
    weak = [one.name for one in latency.percentiles() if not one.reliable]
    if weak:
        found.append(
            f"{', '.join(weak)} {'rest' if len(weak) > 1 else 'rests'} on fewer than ten "
            f"samples beyond: {latency.count} samples in all"
        )
    return tuple(found)


def _overlapping(result: StepResult) -> Iterator[str]:
    """Turns of one conversation that no person would have sent so."""
    users, p95 = result.step.users, result.latency.percentile(95)
    if users is None and result.between_turns < p95:
        yield (
            f"turns of a conversation came {milliseconds(result.between_turns)} apart on average, "
            f"sooner than the p95 of a whole answer, {milliseconds(p95)}: they overlap, as no "
            "person's do (more conversations are further apart)"
        )
    elif users is not None and result.conversations % users:
        yield (
            f"{result.conversations:,} conversations are not shared out evenly to {users:,} users: "
            "turns of one may overlap or change places (give a multiple of the users)"
        )
