"""From settings to the deployment that a simulation runs."""

from __future__ import annotations

from datetime import timedelta

from ..facts.durations import seconds_of
from ..simulate.fleet_changes import Rollout
from .endpoint import EndpointSettings


def simulated_deployment(endpoint: EndpointSettings) -> Rollout | None:
    """How a new version of an endpoint takes over, from time zero; ``None`` for the default.

    All at once has nothing between two steps: its wait, in which the alarms watch the new fleet,
    and ``termination_wait`` are the time for which the old fleet is kept.
    """
    stated = endpoint.deployment
    if stated is None:
        return None
    wait, kept = seconds_of(stated.wait), seconds_of(stated.termination_wait or timedelta())
    if stated.kind == "ALL_AT_ONCE":
        return Rollout(at=0.0, bake_seconds=wait + kept)
    return Rollout(
        at=0.0,
        kind=stated.kind.lower(),
        step_share=stated.percent / 100,
        wait_seconds=wait,
        bake_seconds=kept,
    )
