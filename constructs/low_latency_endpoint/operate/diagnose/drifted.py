"""What was changed by hand: told first, and no setting that is right already is asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...account.calls import Account
from ...account.drift import (
    POLICY,
    REVERT,
    TARGET,
    Drift,
    changed_by,
    drifts,
    stated_configuration,
    stated_targets,
)
from ...account.scaling import tracked_metric
from ...account.stacks import StackEndpoint, owner_of, stack_endpoints, template_resources
from .causes import finding
from .findings import Evidence, Finding, Remedy
from .measurements import DeployedSettings, Measurements, ObservedDrift

_SET_TO = re.compile(r"(m(?:in|ax))imum capacity was set to (\d+)")
#: The properties that a setting becomes in the template: a change of one says nothing of the setting.
_PROPERTY = {
    "instances.max": "MaxCapacity",
    "instances.min": "MinCapacity",
    "routing": "EndpointConfigName",
    "scaling.concurrency_target": "TargetValue",
    "scaling.scale_in_cooldown": "ScaleInCooldown",
    "scaling.scale_out_cooldown": "ScaleOutCooldown",
    "throughput.peak_tps": "MaxCapacity",
    "throughput.safety_factor": "TargetValue",
    "throughput.tps_per_instance": "TargetValue",
}
#: Numbers that full instances advise: more than what is deployed says nothing of it.
_AT_MOST = ("scaling.concurrency_target", "throughput.tps_per_instance")


def read_drift(
    account: Account, endpoint_arn: str
) -> tuple[tuple[ObservedDrift, ...], Mapping[str, DeployedSettings]]:
    """What differs from the template, who changed it, and what the template has by setting."""
    owner = owner_of(account, endpoint_arn)
    stated = owner and next(
        (each for each in stack_endpoints(account, owner[0]) if each.logical_id == owner[1]), None
    )
    if not owner or not stated:
        return (), {}
    found = []
    for drift in drifts(account, owner[0], stated):
        by = account.known("who changed it by hand", changed_by, drift)
        asked = "who changed it by hand" not in {each.what for each in account.unknown}
        found.append(ObservedDrift(drift, by, asked))
    return tuple(found), _deployed(account, owner[0], stated)


def _deployed(account: Account, stack: str, stated: StackEndpoint) -> dict[str, dict[str, Any]]:
    """Variant name to settings of ``endpoint.yaml`` as the template has them."""
    deployment = stated.properties.get("DeploymentConfig") or {}
    rolls_back = "true" if deployment.get("AutoRollbackConfiguration") else ""
    configuration, _ = stated_configuration(account, stack, stated)
    resources = template_resources(account, stack)
    properties = resources.get(configuration, {}).get("Properties") or {}
    found: dict[str, dict[str, Any]] = {}
    for each in properties.get("ProductionVariants") or ():
        routing = (each.get("RoutingConfig") or {}).get("RoutingStrategy", "RANDOM")
        found[each["VariantName"]] = {
            "routing": str(routing).lower(),
            "deployment.rollback_on_alarms": rolls_back,
        }
    for variant, (target, policies) in stated_targets(account, stack, stated).items():
        tracking: Mapping[str, Any] = {}
        for policy in policies.values():
            tracking = policy.get("TargetTrackingScalingPolicyConfiguration") or tracking
        metrics = " ".join(tracked_metric(each) or "" for each in policies.values())
        found.setdefault(variant, {}).update(
            {
                "instances.max": target.get("MaxCapacity"),
                "instances.min": target.get("MinCapacity"),
                "scaling.enabled": "true",
                "scaling.metric": "concurrency" if "Concurrent" in metrics else "invocations",
                "scaling.scale_out_cooldown": tracking.get("ScaleOutCooldown"),
                "scaling.concurrency_target": tracking.get("TargetValue"),
                "throughput.tps_per_instance": tracking.get("TargetValue", math.inf) / 60,
            }
        )
    return found


def drifted(m: Measurements) -> Iterator[Finding]:
    """At most one finding."""
    if not m.drifts:
        return
    reverted = [each for each in m.drifts if REVERT in each.drift.repair]
    others = dict.fromkeys(each.drift.repair for each in m.drifts if each not in reverted)
    why = "puts it back; without the option a deployment leaves it"
    yield finding(
        "LLD704",
        *(_evidence(m, each) for each in m.drifts),
        first=[Remedy(REVERT, why, command=True)] if reverted else (),
        risk=True,
        repairs="".join(f"{each} " for each in others),
    )


def _evidence(m: Measurements, each: ObservedDrift) -> Evidence:
    drift, time = each.drift, each.by.time if each.by else each.drift.since
    words = f"{drift.variant}: {drift.text}" if drift.variant else drift.text
    if each.by:
        words += f"; {each.by.call} by {each.by.who}"
    elif each.asked:
        words += "; CloudTrail names nobody in 90 days, and its events come minutes late"
    set_to = {(change.path, str(change.found)) for change in drift.differences}
    for variant in m.variants if time is None else ():
        for activity in variant.activities:
            for end, count in _SET_TO.findall(activity.cause):
                if variant.name == drift.variant and (f"{end.title()}Capacity", count) in set_to:
                    time = activity.start
    return Evidence(words, time, time)


def unless_deployed(measurements: Measurements, finding: Finding) -> Finding:
    """The finding without changes of settings that the template has as advised, or better."""
    of_any = next(iter(measurements.deployed.values()), {})
    settings = measurements.deployed.get(finding.variant, of_any if not finding.variant else {})
    changed = [
        each.drift for each in measurements.drifts if each.drift.variant in ("", finding.variant)
    ]
    kept: dict[Remedy, None] = {}
    for change in finding.changes:
        value = settings.get(change.key)
        stands = _stands(change, value)
        of_setting = [each for each in changed if _changes(each, change.key)]
        if of_setting and (stands or not change.value):
            words = f"{change.key} is {value} in what is deployed" if value else change.key
            back = REVERT if any(REVERT in each.repair for each in of_setting) else "see LLD704"
            change = Remedy(back, f"{words}: it was changed by hand, see LLD704", command=True)
        elif stands and change.value and change.key not in _AT_MOST:
            continue
        kept[change] = None
    return replace(finding, changes=tuple(kept))


def _changes(drift: Drift, key: str) -> bool:
    """Whether a drift changes what a setting becomes, or takes all of it away."""
    if _PROPERTY.get(key) in drift.properties:
        return True
    of_scaling = key.startswith(("scaling.", "throughput", "instances."))
    return of_scaling and drift.type in (TARGET, POLICY) and (not drift.differences or drift.paused)


def _stands(change: Remedy, deployed: Any) -> bool:
    """Whether the template has a setting as advised, or better."""
    if deployed in (None, ""):
        return False
    if not change.value:
        return True
    if change.key.startswith("instances."):
        return float(change.value) <= float(deployed)
    if change.key.endswith("out_cooldown") or change.key in _AT_MOST:
        return float(deployed) <= float(change.value.rstrip("s"))
    return bool(change.value == str(deployed))
