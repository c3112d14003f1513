"""CloudWatch's observability admin service: the switch for resource tags on telemetry.

It comes before CloudWatch's own switch, `cloudwatch.enrichment_api`. moto does not have the service.
"""

from __future__ import annotations

from typing import Any

from .application import Caller, Operation, OwnService
from .cloudwatch.state import state_at


def _operation(tagged: bool | None) -> Operation:
    """Start it, stop it, or (None) only look; OTel enrichment that runs goes on, as AWS says nothing."""

    def operation(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
        enrichment = state_at(caller.place).enrichment
        if tagged is not None:
            enrichment.tagged = tagged
        if not enrichment.tagged:
            return {"Status": "Stopped"}
        view = f"arn:aws:resource-explorer-2:{caller.region}:{caller.account}:managed-view/"
        return {
            "Status": "Running",
            "AwsResourceExplorerManagedViewArn": f"{view}resource-tags-for-telemetry",
        }

    return operation


OBSERVABILITY_ADMIN = OwnService(
    "observabilityadmin",
    {
        "StartTelemetryEnrichment": _operation(True),
        "GetTelemetryEnrichmentStatus": _operation(None),
        "StopTelemetryEnrichment": _operation(False),
    },
    complete=True,
)
