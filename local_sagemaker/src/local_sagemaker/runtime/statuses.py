"""What DescribeEndpoint says while an endpoint is created, updated, scaled or rolled back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..hosting import Hosting, all_variants


def set_status(
    hosting: Hosting, record: dict[str, Any], at: datetime, status: str, reason: str | None = None
) -> None:
    """Write the status of an endpoint or component and, when there is one, its FailureReason."""
    kind = "InferenceComponent" if "InferenceComponentName" in record else "Endpoint"
    with hosting.lock:
        record[f"{kind}Status"] = status
        record["FailureReason"] = reason
        record["LastModifiedTime"] = at


def creating(record: dict[str, Any], at: datetime) -> None:
    """Describe an endpoint whose instances are being started."""
    record["EndpointStatus"] = "Creating"
    for variant in all_variants(record):
        variant["VariantStatus"] = [{"Status": "Creating", "StartTime": at}]
        if "CurrentInstanceCount" in variant:
            variant["CurrentInstanceCount"] = 0


def in_service(
    hosting: Hosting, record: dict[str, Any], at: datetime, reason: str | None = None
) -> None:
    """Describe an endpoint that serves as it should, or as before when there is a reason."""
    with hosting.lock:
        record["PendingDeploymentSummary"] = None
        for variant in all_variants(record):
            variant["VariantStatus"] = None
            if "DesiredInstanceCount" in variant:
                variant["CurrentInstanceCount"] = variant["DesiredInstanceCount"]
            variant["CurrentWeight"] = variant["DesiredWeight"]
    set_status(hosting, record, at, "InService", reason)


def failed(hosting: Hosting, record: dict[str, Any], at: datetime, reason: str) -> None:
    """Describe an endpoint that did not start."""
    with hosting.lock:
        for variant in all_variants(record):
            variant["VariantStatus"] = None
    set_status(hosting, record, at, "Failed", reason)


def pending(
    hosting: Hosting,
    record: dict[str, Any],
    at: datetime,
    config: Mapping[str, Any],
    described: Mapping[str, Any],
    status: str,
) -> None:
    """Describe a deployment under way: where it stands, and what comes."""
    with hosting.lock:
        before = record.get("PendingDeploymentSummary") or {}
        rolling_back = status == "RollingBack"
        record["EndpointStatus"] = "RollingBack" if rolling_back else "Updating"
        entry = [{"Status": "Updating" if rolling_back else status, "StartTime": at}]
        record["PendingDeploymentSummary"] = {
            "EndpointConfigName": config["EndpointConfigName"],
            "StartTime": before.get("StartTime") or at,
            **{
                kind: [{**variant, "VariantStatus": entry} for variant in described[kind]]
                for kind in ("ProductionVariants", "ShadowProductionVariants")
                if described.get(kind)
            },
        }
        for variant in all_variants(record):
            variant["VariantStatus"] = [{"Status": "Updating", "StartTime": at}]
