"""Latencies as command lines state them: ``p99=200ms``, ``ttft-p95=500ms``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import ErrorRule, rule
from ..facts.limits import ALARM_THRESHOLD_MILLISECONDS

TARGET_FORM = rule(
    "LLD904",
    "a latency target is not a statistic with a time",
    fix="Write p99=200ms; repeat the option for more.",
)
CLIENT_LATENCY_FORM = rule(
    "LLD905",
    "a client latency is not a statistic with a time",
    fix="Write p99=240ms, as callers measured it in the same time window.",
)
_STATISTICS = re.compile(r"p\d{1,2}(?:\.\d{1,3})?|Average")
_LATENCY = re.compile(r"(?P<statistic>[^=]+)=(?P<value>\d+(?:\.\d+)?)(?P<unit>ms|s)")


def parse_targets(
    values: Iterable[str], rule: ErrorRule, prefixes: Iterable[str]
) -> dict[str, float]:
    """Milliseconds by statistic, of ``p99=200ms`` and of ``ttft-p95=500ms`` with its prefix.

    >>> from low_latency_endpoint.cli.latency_targets import TARGET_FORM
    >>> parse_targets(["ttft-p95=500ms", "p99=20s"], TARGET_FORM, ("ttft-", "itl-"))
    {'p99': 20000.0, 'ttft-p95': 500.0}
    """
    left, found = list(values), dict[str, float]()
    for prefix in (*prefixes, ""):
        of_kind = [text for text in left if text.startswith(prefix)]
        left = [text for text in left if not text.startswith(prefix)]
        parsed = parse_latencies([text.removeprefix(prefix) for text in of_kind], rule)
        found |= {prefix + name: value for name, value in parsed.items()}
    return dict(sorted(found.items(), key=lambda item: "-" in item[0]))


def parse_latencies(values: Iterable[str], rule: ErrorRule) -> dict[str, float]:
    """Milliseconds by statistic, of ``p99=200ms``.

    >>> from low_latency_endpoint.cli.latency_targets import TARGET_FORM
    >>> parse_latencies(["p99=200ms", "Average=0.06s"], TARGET_FORM)
    {'p99': 200.0, 'Average': 60.0}
    """
    found: dict[str, float] = {}
    for text in values:
        match = _LATENCY.fullmatch(text.strip())
        statistic = match["statistic"].strip() if match else ""
        if statistic.lower() == "average":
            statistic = "Average"
        if match is None or not _STATISTICS.fullmatch(statistic):
            raise rule.error(
                got=repr(text),
                allowed="p50, p90, p99, p99.9 or Average, then = and a time in ms or s",
            )
        value = float(match["value"]) * (1 if match["unit"] == "ms" else 1000)
        if not ALARM_THRESHOLD_MILLISECONDS.holds(value) or statistic in found:
            raise rule.error(
                got=repr(text),
                allowed=f"each statistic once, {ALARM_THRESHOLD_MILLISECONDS.allowed}",
                fix="Give each statistic once, with a time in this range.",
            )
        found[statistic] = value
    return found
