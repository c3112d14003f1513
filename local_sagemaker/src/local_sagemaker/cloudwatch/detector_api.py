"""The API operations on anomaly detectors."""

from __future__ import annotations

import uuid
from typing import Any

from moto.cloudwatch.exceptions import InvalidParameterCombination, ResourceNotFoundException

from .alarm_api import paged
from .queries import detector_key
from .state import CloudWatchState

Request = dict[str, Any]
_OLD_FORM = ("Namespace", "MetricName", "Dimensions", "Stat")


def _single(request: Request) -> Request:
    """Give the metric that a detector watches, whichever of the two forms names it."""
    if request.get("MetricMathAnomalyDetector"):
        raise InvalidParameterCombination(
            "MetricMathAnomalyDetector is not emulated by the local AWS"
        )
    single = request.get("SingleMetricAnomalyDetector") or {}
    single = single or {name: request[name] for name in _OLD_FORM if name in request}
    if not {"Namespace", "MetricName", "Stat"} <= set(single):
        raise InvalidParameterCombination("Namespace, MetricName and Stat must be specified")
    return single


def _key(request: Request) -> str:
    single = _single(request)
    return detector_key(
        single["Namespace"], single["MetricName"], single.get("Dimensions", []), single["Stat"]
    )


def put_anomaly_detector(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """PutAnomalyDetector: create or replace."""
    key, single = _key(request), _single(request)
    with state.lock:
        known = state.detectors.get(key, {})
        state.detectors[key] = {
            **single,
            "SingleMetricAnomalyDetector": single,
            "Configuration": request.get("Configuration", {}),
            "MetricCharacteristics": request.get("MetricCharacteristics", {}),
            # There is nothing to train: the band is computed from the history when asked for.
            "StateValue": "TRAINED",
            "AnomalyDetectorId": known.get("AnomalyDetectorId") or str(uuid.uuid4()),
        }
        return {"AnomalyDetectorId": state.detectors[key]["AnomalyDetectorId"]}


def describe_anomaly_detectors(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """DescribeAnomalyDetectors."""
    wanted = {d["Name"]: d["Value"] for d in request.get("Dimensions", [])}
    with state.lock:
        found = [
            detector
            for detector in state.detectors.values()
            if all(request.get(n) in (None, detector[n]) for n in ("Namespace", "MetricName"))
            and wanted.items()
            <= {d["Name"]: d["Value"] for d in detector.get("Dimensions", [])}.items()
        ]
    page, token = paged(found, {**request, "MaxRecords": request.get("MaxResults")}, 100)
    return {"AnomalyDetectors": page, "NextToken": token}


def delete_anomaly_detector(state: CloudWatchState, request: Request) -> None:
    """DeleteAnomalyDetector."""
    with state.lock:
        wanted = request.get("AnomalyDetectorId")
        keys = [k for k, d in state.detectors.items() if d["AnomalyDetectorId"] == wanted]
        key = keys[0] if keys else _key(request) if not wanted else ""
        if state.detectors.pop(key, None) is None:
            raise ResourceNotFoundException("The anomaly detector does not exist")
