"""What the pages of MetricDataQuery, Dimension and MetricDatum refuse, beyond types and lengths.

CloudWatch, Application Auto Scaling and Application Signals have them in the same words. The words
of the refusals are ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .metric_store import parse_statistic

LARGEST = 2.0**360
MOST_VALUES = 150
_ID = re.compile("[a-z][A-Za-z0-9_]*")
_CONTROL = re.compile("[\x00-\x1f\x7f]")


def problems_of_queries(queries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say what is wrong with the queries of one request."""
    for query in queries:
        if not _ID.fullmatch(query["Id"]):
            yield f"Id {query['Id']} is not letters, digits and _ after a lowercase letter"
        if bool(query.get("Expression")) == bool(query.get("MetricStat")):
            yield f"{query['Id']} must have one of Expression and MetricStat"
        yield from problems_of_stat(query.get("MetricStat") or {})
    if len({query["Id"] for query in queries}) < len(queries):
        yield "The Ids of the metrics list must be unique"


def problems_of_stat(stat: Mapping[str, Any]) -> Iterator[str]:
    """Say what is wrong with a MetricStat; an empty one is none."""
    period = int(stat.get("Period") or 60)
    if period % 60 and period not in (1, 5, 10, 20, 30):
        yield f"Period of {period} must be 1, 5, 10, 20, 30 or a multiple of 60"
    name = stat.get("Stat")
    if name is not None and parse_statistic(name) is None:
        yield f"The statistic '{name}' does not exist"
    metric = stat.get("Metric") or {}
    if stat and not metric.get("MetricName"):
        yield "MetricName must be specified"
    yield from problems_of_dimensions(metric.get("Dimensions") or [])


def problems_of_dimensions(dimensions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say what is wrong with the dimensions of a metric."""
    for dimension in dimensions:
        name, value = str(dimension["Name"]), str(dimension.get("Value") or "-")
        if not (name + value).isascii() or not name.strip() or not value.strip():
            yield f"Dimension {name} must have ASCII characters, and more than white space"
        if name.startswith(":"):
            yield f"Dimension {name} cannot start with a colon"
        if has_control_characters(name + value):
            yield f"Dimension {name!r} must not have control characters"


def has_control_characters(text: str) -> bool:
    return _CONTROL.search(text) is not None
