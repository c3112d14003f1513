"""From settings to the deployment that a simulation runs."""

from __future__ import annotations

from datetime import timedelta

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
    kept = _seconds(stated.termination_wait)
    if stated.canary:
        kind, percent, wait = "canary", stated.canary.size_percent, stated.canary.wait
    elif stated.linear:
        kind, percent, wait = "linear", stated.linear.step_percent, stated.linear.wait
    elif stated.rolling:
        kind, percent, wait = "rolling", stated.rolling.batch_percent, stated.rolling.wait
    else:
        watched = stated.all_at_once.wait if stated.all_at_once else None
        return Rollout(at=0.0, bake_seconds=_seconds(watched) + kept)
    return Rollout(
        at=0.0, kind=kind, step_share=percent / 100, wait_seconds=_seconds(wait), bake_seconds=kept
    )


def _seconds(wait: timedelta | None) -> float:
    return wait.total_seconds() if wait else 0.0
