"""Metrics in functions' logs: CloudWatch's embedded metric format.

Source: CloudWatch user guide, "Specification: Embedded metric format". A document that breaks a MUST
gives no metric.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ..protocols import read_json, service_model
from .metric_api import put_metric_data
from .metric_store import as_moment
from .state import CloudWatchState

_OLDEST, _NEWEST = 14 * 86_400.0, 2 * 3_600.0
"""Seconds before and after the present. Source: CloudWatch user guide, "Metrics concepts"."""

_Name = Annotated[str, Field(min_length=1, max_length=255)]
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_VALUES = TypeAdapter(Annotated[list[_Number], Field(max_length=100)])
_TEXT = TypeAdapter(Annotated[str, Field(strict=True)])


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Metric(_Strict):
    Name: _Name
    Unit: str = "None"
    StorageResolution: Literal[1, 60] = 60


class _Directive(_Strict):
    Namespace: _Name
    Dimensions: list[Annotated[list[_Name], Field(max_length=30)]] = Field(min_length=1)
    Metrics: list[_Metric] = Field(max_length=100)


class _Metadata(_Strict):
    Timestamp: int
    CloudWatchMetrics: list[_Directive]


def put_embedded(state: CloudWatchState, log: str, ahead: float) -> None:
    """Put the metrics of a log's documents, whose times count from a clock so many seconds behind."""
    for line in log.splitlines():
        if '"_aws"' not in line:
            continue
        try:
            # What Lambda's loggers put before it does no harm.
            root = read_json(line[line.index("{") :].encode())
            data = list(_data(root, _Metadata.model_validate(root["_aws"]), ahead))
        except (ValueError, LookupError, RecursionError):
            continue
        for namespace, datum in data:
            put_metric_data(state, namespace, [datum])


def _data(
    root: dict[str, Any], metadata: _Metadata, ahead: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give namespaces with elements of PutMetricData's MetricData."""
    units = service_model("cloudwatch").shape_for("StandardUnit").enum
    at = metadata.Timestamp / 1000
    if not -_OLDEST <= at - time.time() <= _NEWEST:
        raise ValueError("the time stamp is too old or too new")
    for directive in metadata.CloudWatchMetrics:
        for dimensions in directive.Dimensions:
            named = [{"Name": n, "Value": _TEXT.validate_python(root[n])} for n in dimensions]
            for metric in directive.Metrics:
                if metric.Unit not in units:
                    raise ValueError(f"no unit: {metric.Unit}")
                given = root[metric.Name]
                values = _VALUES.validate_python(given if isinstance(given, list) else [given])
                if values:
                    yield (
                        directive.Namespace,
                        {
                            "MetricName": metric.Name,
                            "Dimensions": named,
                            "Timestamp": as_moment(at + ahead),
                            "Unit": metric.Unit,
                            "StorageResolution": metric.StorageResolution,
                            "Values": values,
                        },
                    )
