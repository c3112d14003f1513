"""The API operations on OTel enrichment: an account's switch in a Region.

moto spells these operations get_o_tel_enrichment and so on.
"""

from __future__ import annotations

from typing import Any

from .state import CloudWatchState

Request = dict[str, Any]


def get_o_tel_enrichment(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """GetOTelEnrichment."""
    enrichment = state.enrichment
    if not enrichment.running:
        return {"Status": "Stopped"}
    return {"Status": "Running", **_stored(state)}


def start_o_tel_enrichment(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """StartOTelEnrichment."""
    state.enrichment.created = state.enrichment.created or state.present()
    return _update(state, request)


def stop_o_tel_enrichment(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """StopOTelEnrichment; one that is not running is no error."""
    state.enrichment.created = state.enrichment.updated = None
    state.enrichment.filters = {}
    return {}


def _update(state: CloudWatchState, request: Request) -> dict[str, Any]:
    state.enrichment.updated = state.present()
    # Kept as they were put: containers' metrics have no namespace that a filter could name.
    state.enrichment.filters = {
        name: request[name] for name in ("IncludeFilters", "ExcludeFilters") if request.get(name)
    }
    return _stored(state)


def _stored(state: CloudWatchState) -> dict[str, Any]:
    enrichment = state.enrichment
    times = {"CreatedAt": enrichment.created, "UpdatedAt": enrichment.updated}
    return {**enrichment.filters, **times}
