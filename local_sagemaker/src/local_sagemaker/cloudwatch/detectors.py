"""What an anomaly detector says about the history of its metric."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .metric_store import as_seconds


def detector_key(namespace: str, name: str, dimensions: list[dict[str, str]], stat: str) -> str:
    """Write what makes a detector unique: its metric and statistic."""
    pairs = sorted((d["Name"], d["Value"]) for d in dimensions)
    return json.dumps([namespace, name, pairs, stat])


def excluded_ranges(
    detectors: Mapping[str, Mapping[str, Any]], stat: Mapping[str, Any] | None
) -> list[tuple[float, float]]:
    """Give the times that the detector of a metric, if there is one, leaves out."""
    if stat is None:
        return []
    metric = stat["Metric"]
    key = detector_key(
        metric["Namespace"], metric["MetricName"], metric.get("Dimensions") or [], stat["Stat"]
    )
    configuration = detectors.get(key, {}).get("Configuration", {})
    return [
        (as_seconds(entry["StartTime"]), as_seconds(entry["EndTime"]))
        for entry in configuration.get("ExcludedTimeRanges", [])
    ]
