"""A deployment of an endpoint in words: how, how long, how many instances, and what ends it."""

from __future__ import annotations

from ...plan.deployments import instances_in_update
from ..deployment import DeploymentSettings
from ..fields import duration_text
from ..planned import planned_variants
from ..stack import Settings
from .endpoint_fields import PLANNED, deployment_of


def deployment_words(before: Settings, after: Settings, key: str) -> str:
    """How a new configuration of an endpoint takes over."""
    endpoint = after.endpoints[key]
    stated = deployment_of(endpoint)
    percent = stated.rolling.batch_percent if stated.rolling else None
    most = max(
        sum(
            instances_in_update(variant.plan.largest_fleet, percent)
            for variant in planned_variants(each, key)
        )
        for each in (before, after)
    )
    waits = f"{duration_text(stated.waits)} of watching" if stated.waits else "no watching"
    alarms = PLANNED["rollback_alarms"].of(after, key)
    back = {0: "no alarm rolls it back", 1: "one alarm rolls it back"}.get(
        len(alarms), f"{len(alarms)} alarms roll it back"
    )
    words = (
        f"{policy_words(stated)}: {waits} besides the start of new instances; up to {most} "
        f"instances meanwhile; {back}"
    )
    if before.endpoints[key].variant_name != endpoint.variant_name:
        words += ". SageMaker excludes it from guarded deployments, as the variant has another name"
    return words


def policy_words(stated: DeploymentSettings) -> str:
    """How a new version takes over."""
    if stated.canary:
        part = stated.canary
        return f"a canary of {part.size_percent} % for {duration_text(part.wait)}, then all of it"
    if stated.linear:
        return f"{stated.linear.step_percent} % more every {duration_text(stated.linear.wait)}"
    if stated.rolling:
        return (
            f"batches of {stated.rolling.batch_percent} %, {duration_text(stated.rolling.wait)} "
            "each"
        )
    return "all at once"
