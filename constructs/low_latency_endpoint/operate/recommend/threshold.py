"""From the settings' latency target to the one threshold that a load test of AWS's takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import rule
from ...plan.limits import GUIDE
from ...settings.fields import duration_of

#: What bounds a load test of AWS's.
STOPPING = rule(
    "LLR106",
    "a limit of the job is out of range",
    fix="Change --max-duration, --max-invocations, --max-parallel or --target.",
    source=GUIDE + "inference-recommender-load-test.html",
)
#: The statistics of a target, in the order in which one stands in for P95.
_NEAREST = ("p95", "p99", "p99.9", "p90", "p50", "Average")


@dataclass(frozen=True, slots=True)
class LatencyThreshold:
    """A percentile and the whole milliseconds at which AWS stops a test.

    ``note`` says where it differs from the settings' target.
    """

    percentile: str
    milliseconds: int
    note: str = ""


def threshold_of(targets: Mapping[str, float]) -> LatencyThreshold:
    """The threshold for a latency target.

    AWS's page on ``ModelLatencyThreshold`` takes P95 and P99, and asks for P95 in custom load
    tests. The target's own p95 is used where there is one; else the target next above, which is
    looser for p95, or next below, which is stricter.

    Parameters
    ----------
    targets : mapping of str to float
        Statistic to milliseconds, as :class:`~low_latency_endpoint.plan.latency_target.\
LatencyTarget` holds them.

    Raises
    ------
    ConfigurationError
        ``LLR106`` without a target.

    Examples
    --------
    >>> threshold_of({"p95": 120.0, "p99": 200.0})
    LatencyThreshold(percentile='P95', milliseconds=120, note='')
    >>> threshold_of({"p99": 200.0}).milliseconds
    200
    """
    if not targets:
        raise STOPPING.error(
            got="no latency target in the settings",
            allowed="--target p95=200ms, or latency in the settings",
            where="--target",
        )
    name = next(statistic for statistic in _NEAREST if statistic in targets)
    milliseconds = max(int(targets[name]), 1)
    if name == "p95":
        note = ""
    elif name.startswith("p99"):
        note = (
            f"AWS's load tests stop on p95 only: at {milliseconds} ms of p95 your {name} is "
            "already beyond its target. Confirm the choice with low-latency load-test."
        )
    else:
        note = (
            f"AWS's load tests stop on p95 only: the target of {name.lower()} is stricter "
            "for it. Pass --target p95=... for another."
        )
    if targets[name] < 1:
        note += " AWS takes whole milliseconds, 1 at least."
    return LatencyThreshold("P95", milliseconds, note.strip())


def parse_threshold(text: str) -> LatencyThreshold:
    """A threshold from ``p95=150ms``.

    Raises
    ------
    ConfigurationError
        LLR106 for anything but P95 or P99 and whole milliseconds.

    Examples
    --------
    >>> parse_threshold("p95=0.2s")
    LatencyThreshold(percentile='P95', milliseconds=200, note='')
    """
    match = re.fullmatch(r"[pP](95|99)=(.+)", text)
    duration = duration_of(match[2]) if match else None
    milliseconds = duration.total_seconds() * 1000 if duration else 0.0
    whole = round(milliseconds)
    if match is None or whole < 1 or abs(milliseconds - whole) > 1e-6 or whole >= 2**31:
        raise STOPPING.error(got=text, allowed="p95=150ms, in whole milliseconds", where="--target")
    return LatencyThreshold(f"P{match[1]}", whole)
