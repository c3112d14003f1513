"""Counting requests into the local CloudWatch, many at a time.

Names, units, dimensions and statistics: SageMaker developer guide, "Amazon SageMaker AI metrics in
Amazon CloudWatch".
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cloudwatch.metric_api import put_service_data
from ..cloudwatch.metric_store import as_moment
from ..cloudwatch.state import state_at

INVOCATIONS = "AWS/SageMaker"
INSTANCES = "/aws/sagemaker/Endpoints"

Place = tuple[str, str]  # account and region
Dimensions = tuple[tuple[str, str], ...]

BUCKET_SECONDS = 10
"""Data is kept by ten seconds: the shortest period that a metric of SageMaker has."""


def per_one(dimensions: Dimensions) -> str:
    """Give the name of the invocations of one instance, or of one copy of a component."""
    copies = dimensions[0][0] == "InferenceComponentName"
    return "InvocationsPerCopy" if copies else "InvocationsPerInstance"


@dataclass(slots=True)
class RequestCounts:
    """What was counted for one set of dimensions in one bucket of time."""

    requests: int = 0
    shares: Counter[float] = field(default_factory=Counter)
    """1/n of each request, n being the instances of the variant."""
    model_errors: int = 0
    errors_4xx: int = 0
    errors_5xx: int = 0
    model_microseconds: list[int] = field(default_factory=list)
    overhead_count: int = 0
    overhead_sum: int = 0
    overhead_least: int = 0
    overhead_most: int = 0

    def add(self, instances: int, status: int, model: int | None, overhead: int) -> None:
        self.requests += 1
        if instances:
            self.shares[1.0 / instances] += 1
        self.errors_4xx += 400 <= status <= 499
        self.errors_5xx += 500 <= status <= 599
        if model is not None:
            self.model_errors += not 200 <= status <= 299
            self.model_microseconds.append(model)
        least = overhead if not self.overhead_count else min(self.overhead_least, overhead)
        self.overhead_least = least
        self.overhead_most = max(self.overhead_most, overhead)
        self.overhead_count += 1
        self.overhead_sum += overhead

    def data(self, per_one: str) -> list[dict[str, Any]]:
        """Write data as PutMetricData takes it, without dimensions and time; see `per_one`."""
        counted: dict[str, Mapping[float, int]] = {
            "Invocations": {1.0: self.requests},
            per_one: self.shares,
            "ModelLatency": Counter(self.model_microseconds),
        }
        for name, count in (
            ("Invocation4XXErrors", self.errors_4xx),
            ("Invocation5XXErrors", self.errors_5xx),
            ("InvocationModelErrors", self.model_errors),
        ):
            # A request without the error counts as 0, so that Average is the share of errors.
            counts = {1.0: count, 0.0: self.requests - count}
            counted[name] = {value: number for value, number in counts.items() if number}
        data: list[dict[str, Any]] = [
            {
                "MetricName": name,
                "Unit": "Microseconds" if name == "ModelLatency" else "None",
                "Values": list(counts),
                "Counts": list(counts.values()),
            }
            for name, counts in counted.items()
            if counts
        ]
        # A set without its values: AWS lists no percentiles for OverheadLatency.
        statistics = {
            "SampleCount": self.overhead_count,
            "Sum": self.overhead_sum,
            "Minimum": self.overhead_least,
            "Maximum": self.overhead_most,
        }
        name, unit = "OverheadLatency", "Microseconds"
        return [*data, {"MetricName": name, "Unit": unit, "StatisticValues": statistics}]


class Meter:
    """Collects in the runtime's loop, and puts into CloudWatch when it is flushed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._open: dict[tuple[Place, Dimensions, int], RequestCounts] = {}
        self._data: list[tuple[Place, str, Dimensions, float, list[dict[str, Any]]]] = []

    def count(
        self,
        place: Place,
        all_dimensions: Iterable[Dimensions],
        at: float,
        instances: int,
        status: int,
        model: int | None,
        overhead: int,
    ) -> None:
        """Count one request into each of some sets of dimensions; see `RequestCounts.add`."""
        bucket = int(at // BUCKET_SECONDS)
        with self._lock:
            for dimensions in all_dimensions:
                key = (place, dimensions, bucket)
                counts = self._open.setdefault(key, RequestCounts())
                counts.add(instances, status, model, overhead)

    def put(
        self,
        place: Place,
        namespace: str,
        dimensions: Dimensions,
        at: float,
        data: list[dict[str, Any]],
    ) -> None:
        """Add data of another kind; goes out with the next flush."""
        with self._lock:
            self._data.append((place, namespace, dimensions, at, data))

    def flush(self) -> None:
        """Put all that was counted into CloudWatch, whoever was putting it; any thread may."""
        with self._flushing:
            self._put_all()

    def _put_all(self) -> None:
        with self._lock:
            counted, self._open = self._open, {}
            ready, self._data = self._data, []
        for (place, dimensions, bucket), counts in counted.items():
            at = float(bucket * BUCKET_SECONDS)
            ready.append((place, INVOCATIONS, dimensions, at, counts.data(per_one(dimensions))))
        for place, namespace, dimensions, at, data in ready:
            written = [{"Name": name, "Value": value} for name, value in dimensions]
            common: Mapping[str, Any] = {"Dimensions": written, "Timestamp": as_moment(at)}
            put_service_data(state_at(place), namespace, [{**datum, **common} for datum in data])

    def forget(self) -> None:
        """Drop what was not flushed."""
        with self._lock:
            self._open, self._data = {}, []
