"""CloudWatch's observability admin service: the switch for resource tags on telemetry.

It comes before CloudWatch's own switch, `cloudwatch.enrichment_api`. moto does not have the service.
"""

from __future__ import annotations

from typing import Any

from .application import Caller, OwnService
from .cloudwatch.state import OTelEnrichment, state_at


def _enrichment(caller: Caller) -> OTelEnrichment:
    return state_at((caller.account, caller.region)).enrichment


def _answer(caller: Caller) -> dict[str, Any]:
    if not _enrichment(caller).tagged:
        return {"Status": "Stopped"}
    return {
        "Status": "Running",
        "AwsResourceExplorerManagedViewArn": f"arn:aws:resource-explorer-2:{caller.region}:"
        f"{caller.account}:managed-view/resource-tags-for-telemetry",
    }


def start_telemetry_enrichment(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """StartTelemetryEnrichment; one that is running is no error."""
    _enrichment(caller).tagged = True
    return _answer(caller)


def get_telemetry_enrichment_status(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """GetTelemetryEnrichmentStatus."""
    return _answer(caller)


def stop_telemetry_enrichment(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """StopTelemetryEnrichment; OTel enrichment that runs goes on, as AWS says nothing of it."""
    _enrichment(caller).tagged = False
    return _answer(caller)


OBSERVABILITY_ADMIN = OwnService(
    "observabilityadmin",
    {
        "StartTelemetryEnrichment": start_telemetry_enrichment,
        "GetTelemetryEnrichmentStatus": get_telemetry_enrichment_status,
        "StopTelemetryEnrichment": stop_telemetry_enrichment,
    },
    complete=True,
)
