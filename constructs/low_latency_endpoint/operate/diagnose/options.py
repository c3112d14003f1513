"""What is written on the command line: windows of time and latencies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from ...errors import ErrorRule, rule
from ...facts.limits import ALARM_THRESHOLD_MILLISECONDS

SINCE_FORM = rule(
    "LLD902",
    "the time window is not valid",
    fix="Write at least 5m and at most 455d, with m, h or d as its unit: 30m, 1h, 2d.",
    source="/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html",
)
UNTIL_FORM = rule(
    "LLD903",
    "the end of the time window is not in the past",
    fix="Give a time that has passed, such as 2026-11-20T03:30Z. Without Z or +01:00 it is local time.",
)
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
PAGE_WRITTEN = rule(
    "LLD906", "the page could not be written", fix="Give --html a file in a writable folder."
)
_KEPT = timedelta(days=455)  # CloudWatch keeps hourly values for fifteen months
_SHORTEST = timedelta(minutes=5)
_STATISTICS = re.compile(r"p\d{1,2}(?:\.\d{1,3})?|Average")
_LATENCY = re.compile(r"(?P<statistic>[^=]+)=(?P<value>\d+(?:\.\d+)?)(?P<unit>ms|s)")


def parse_window(since: str, until: str | None, now: datetime) -> tuple[datetime, datetime]:
    """Start and end of the window.

    >>> now = datetime(2026, 11, 20, 3, 30, tzinfo=UTC)
    >>> start, end = parse_window("90m", None, now)
    >>> start.isoformat(), end == now
    ('2026-11-20T02:00:00+00:00', True)
    """
    end = _until(until, now) if until else now
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(m|h|d)", since.strip())
    allowed = "5m to 455d, such as 30m, 1h or 2d"
    if match is None:
        raise SINCE_FORM.error(got=repr(since), allowed=allowed)
    number = float(match[1])
    seconds = number * {"m": 60, "h": 3600, "d": 86_400}[match[2]]
    if not _SHORTEST.total_seconds() <= seconds <= _KEPT.total_seconds():
        raise SINCE_FORM.error(got=repr(since), allowed=allowed)
    start = end - timedelta(seconds=seconds)
    if now - start > _KEPT + timedelta(minutes=1):
        raise SINCE_FORM.error(
            got=f"{since} up to {end:%Y-%m-%d}",
            allowed="at most 455 days ago, as CloudWatch keeps it",
        )
    return start, end


def _until(text: str, now: datetime) -> datetime:
    allowed = "a time in the past such as 2026-11-20T03:30Z"
    try:
        end = datetime.fromisoformat(text)
    except ValueError:
        raise UNTIL_FORM.error(got=repr(text), allowed=allowed) from None
    try:
        end = end.astimezone(UTC)
    except (OverflowError, ValueError):  # year 1 or 9999
        raise UNTIL_FORM.error(got=repr(text), allowed=allowed) from None
    if end > now + timedelta(minutes=1):
        raise UNTIL_FORM.error(got=repr(text), allowed=allowed)
    return end


def parse_targets(
    values: Iterable[str], rule: ErrorRule, prefixes: Iterable[str]
) -> dict[str, float]:
    """Milliseconds by statistic, of ``p99=200ms`` and of ``ttft-p95=500ms`` with its prefix.

    >>> from low_latency_endpoint.operate.diagnose.options import TARGET_FORM
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

    >>> from low_latency_endpoint.operate.diagnose.options import TARGET_FORM
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
