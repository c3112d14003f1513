"""How a new endpoint configuration takes over from the one that serves, in words."""

from __future__ import annotations

from datetime import timedelta

from ..facts.durations import duration_text, seconds_of
from ..options.deployment import DeploymentPolicy
from ..plan.deployment_time import (
    deployment_of,
    deployment_time,
    errors_seen,
    fewest_while_rising,
    first_part_words,
)
from ..settings.stack import Settings
from ..settings.variant_plans import plan_endpoint, planned_variants
from .stack_update import ServedEndpoint


def deployment_words(before: Settings, after: Settings, key: str, served: ServedEndpoint) -> str:
    """How the new configuration of an endpoint takes over; ``served`` is the later endpoint."""
    plan = plan_endpoint(after, key)
    policy = deployment_of(plan)
    fleets = [
        sum(policy.instances_in_update(variant.plan.largest_fleet) for variant in variants)
        for variants in (list(planned_variants(one, key)) for one in (before, after))
    ]
    plans = [variant.plan for variant in planned_variants(after, key)]
    fewest = max(fewest_while_rising(one) for one in plans)
    rising = f": begin with {fewest:,} instances or more while load rises" if fewest else ""
    kept = "; as many instances as run now stay" if served.keeps_counts else ""
    words = (
        f"{policy_words(policy)}: {_time_words(after, key)}; {first_part_words(plan)}nothing scales "
        f"meanwhile{rising}; up to {max(fleets)} instances run; "
        f"{_rollback_words(after, key, served.rollback_alarms)}{kept}"
    )
    if before.endpoints[key].variant_name != after.endpoints[key].variant_name:
        words += ". SageMaker excludes it from guarded deployments, as the variant has another name"
    return words


def policy_words(stated: DeploymentPolicy) -> str:
    """How a new version takes over."""
    percent, wait = stated.percent, duration_text(timedelta(seconds=seconds_of(stated.wait)))
    return {
        "CANARY": f"a canary of {percent} % for {wait}, then all of it",
        "LINEAR": f"{percent} % more every {wait}",
        "ROLLING": f"batches of {percent} %, {wait} each",
        "ALL_AT_ONCE": "all at once",
    }[stated.kind]


def _time_words(after: Settings, key: str) -> str:
    times = [deployment_time(variant.plan) for variant in planned_variants(after, key)]
    known = [time for time in times if time is not None]
    if not known:
        return "a time that is known at deployment only"
    return max(known, key=lambda time: time.seconds).text


def _rollback_words(after: Settings, key: str, alarms: int) -> str:
    if not alarms:
        return "no alarm rolls it back"
    words = "one alarm rolls it back" if alarms == 1 else f"{alarms} alarms roll it back"
    errors = errors_seen(plan_endpoint(after, key))
    return f"{words} ({errors})" if errors else words
