"""What an alarm's PromQL query watches, read from its text: CloudWatch tells no more of it."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..facts.container_metrics import container_metrics


class WatchedMetric(NamedTuple):
    """What an alarm on a container's metric watches."""

    meaning: str  # as in ``container_metrics``
    percentile: str  # such as ``p95``; empty for a gauge
    threshold: float  # in the metric's unit: seconds, requests, or a share


def watched_metric(query: str) -> WatchedMetric | None:
    """The metric that a query compares with a threshold; ``None`` where that cannot be told."""
    data = data_part(query)
    names = set(metric_names_in(data or ""))  # further conditions may ask for other metrics
    found = next(
        (
            each
            for each in container_metrics().values()
            if names & {form for name in each.names for form in (name, f"{name}_bucket")}
        ),
        None,
    )
    if found is None or data is None:
        return None
    compared = _THRESHOLD.match(query[query.index(data) + len(data) :].lstrip(") "))
    if compared is None:
        return None
    threshold = float(compared[1])
    if found.type != "histogram":
        return WatchedMetric(found.meaning, "", threshold)
    share = _QUANTILE.search(data)
    if share is None:
        return None
    return WatchedMetric(found.meaning, f"p{100 * float(share[1]):.6g}", threshold)


_THRESHOLD = re.compile(r">=?\s*([0-9.]+)")
_QUANTILE = re.compile(r"histogram_quantile\(\s*([0-9.]+)")


def data_part(query: str) -> str | None:
    """What an alarm's query compares; None but for one comparison outside parentheses."""
    parts = _at_top(query)
    comparisons = [at for at, text in parts if text in _COMPARISONS]
    words = [text for _, text in parts if text in ("and", "or", "unless")]
    if not comparisons or (len(comparisons) > 1 and words != ["and"]) or set(words) - {"and"}:
        return None
    data = query[: comparisons[0]].strip()
    if data.startswith("(") and _closes(data) == len(data) - 1:
        data = data[1:-1].strip()
    return data or None


def metric_names_in(query: str) -> tuple[str, ...]:
    """The metrics that a query selects by a quoted name, in the order of their first mention."""
    return tuple(dict.fromkeys(re.findall(r'\{\s*"([^"]+)"\s*[,}]', query)))


def label_in(query: str, label: str) -> str:
    """The value that a query's selectors want of a label; empty when they want none."""
    found = re.search(rf"""["']{re.escape(label)}["']\s*=\s*"([^"]*)\"""", query)
    return found[1] if found else ""


_COMPARISONS = (">=", "<=", "==", "!=", ">", "<")
_WORD = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")


def _at_top(query: str) -> list[tuple[int, str]]:
    """Comparisons and words of a query outside of brackets and quotes, with their places."""
    found = []
    depth, at = 0, 0
    while at < len(query):
        character = query[at]
        if character in "\"'`":
            at = _after_quote(query, at)
            continue
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0:
            token = next((each for each in _COMPARISONS if query.startswith(each, at)), "")
            word = _WORD.match(query, at)
            token = token or (word[0] if word else "")
            if token:
                found.append((at, token))
                at += len(token)
                continue
        at += 1
    return found


def _after_quote(query: str, at: int) -> int:
    quote, at = query[at], at + 1
    while at < len(query) and query[at] != quote:
        at += 2 if query[at] == "\\" and quote != "`" else 1
    return at + 1


def _closes(text: str) -> int:
    """Where the parenthesis closes that the text begins with."""
    depth, at = 0, 0
    while at < len(text):
        if text[at] in "\"'`":
            at = _after_quote(text, at)
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
        at += 1
    return -1
