"""The API operations on OTel enrichment: an account's switch in a Region.

moto spells these operations get_o_tel_enrichment and so on.
"""

from __future__ import annotations

from typing import Any

from moto.cloudwatch.exceptions import ValidationError

from .state import CloudWatchState

Request = dict[str, Any]


def get_o_tel_enrichment(state: CloudWatchState, request: Request) -> dict[str, Any]:
    enrichment = state.enrichment
    if not enrichment.running:
        return {"Status": "Stopped"}
    return {"Status": "Running", **_stored(state)}


def start_o_tel_enrichment(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """StartOTelEnrichment; one that runs already keeps its filters.

    "Before calling this operation, you must enable resource tags on telemetry for your account"
    (CloudWatch API reference). Nobody has told in which words it is refused otherwise.
    """
    enrichment = state.enrichment
    if not enrichment.tagged:
        raise ValidationError(
            "Resource tags on telemetry are not enabled for this account: call "
            "StartTelemetryEnrichment of observabilityadmin before StartOTelEnrichment"
        )
    if not enrichment.running:
        enrichment.created = enrichment.updated = state.present()
        # Kept as they were put: containers' metrics have no namespace that a filter could name.
        enrichment.filters = {
            name: request[name]
            for name in ("IncludeFilters", "ExcludeFilters")
            if request.get(name)
        }
    return _stored(state)


def stop_o_tel_enrichment(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """StopOTelEnrichment; one that is not running is no error."""
    state.enrichment.created = state.enrichment.updated = None
    state.enrichment.filters = {}
    return {}


def _stored(state: CloudWatchState) -> dict[str, Any]:
    enrichment = state.enrichment
    times = {"CreatedAt": enrichment.created, "UpdatedAt": enrichment.updated}
    return {**enrichment.filters, **times}
