"""The endpoint itself: is it in service, is the way to it open, and was it changed by hand?"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from ...account.alarms import AlarmReading
from ...account.calls import Account
from ...account.drift import (
    CAPACITY,
    POLICY,
    REVERT,
    TARGET,
    Drift,
    changed_by,
    deleted_parts,
    drifts,
    stated_configuration,
    stated_targets,
)
from ...account.endpoints import DeployedEndpoint
from ...account.network import adopted_interface_endpoint, https_sources
from ...account.scaling import tracked_metric
from ...account.stacks import (
    StackEndpoint,
    owner_of,
    stack_endpoints,
    stack_ids,
    template_resources,
)
from ...facts.images import cuda_words, driver_doubts, needed_inference_ami
from ...report.numbers import milliseconds, readable
from .failed_deployment import failed_deployment, says_why, starts_no_container
from .findings import UNRELATED, Evidence, Finding, Remedy, container_log, finding
from .measurements import (
    DeployedSettings,
    Measurements,
    ObservedDrift,
    PlanFacts,
    Unstarted,
    VariantReading,
)
from .saturated import SATURATED
from .thresholds import CREATING, CREATING_LONG, LONGEST_MS, LOOK_BACK, WRONG_UNIT


def endpoint_state(m: Measurements) -> Iterator[Finding]:
    """What is wrong with the endpoint, whatever its metrics say."""
    yield from _not_started(m)
    failed = list(failed_deployment(m))
    yield from failed
    if not failed:
        if m.status == "OutOfService":
            log = container_log(m.endpoint, "its log says why")
            words = "the endpoint is OutOfService: it takes no requests"
            yield finding("LLD705", words, first=[log])
        if m.broken_paths:
            yield finding("LLD606", *m.broken_paths, stack=m.plan.stack if m.plan else "STACK")
        for variant in m.variants:
            wanted, there = variant.desired_instances, variant.current_instances
            if m.status == "InService" and wanted and there is not None and there < wanted:
                words = f"{there} of {wanted} instances in service while the endpoint is InService"
                yield finding("LLD703", Evidence(words, m.end, m.end), variant=variant.name)
            least = variant.scaling.minimum if variant.scaling else None
            if m.status == "InService" and wanted and least is not None and wanted < least:
                words = f"instances wanted: {wanted}; the scalable target's minimum is {least}"
                shown = Evidence(words, m.end, m.end)
                yield finding(
                    "LLD715",
                    shown,
                    variant=variant.name,
                    risk=True,
                    endpoint=m.endpoint,
                    name=variant.name,
                    least=str(least),
                )
    if doubted := [alarm for alarm in m.alarms or () if alarm.doubt]:
        yield finding("LLD604", *(f"{each.name}: {each.doubt}" for each in doubted), risk=True)


def _not_started(m: Measurements) -> Iterator[Finding]:
    """The driver where it may not fit an image; else, after a while, whatever else it may be."""
    unstarted, status = m.unstarted, m.status
    if unstarted is None or (status == "Creating" and unstarted.since < CREATING):
        return
    if starts_no_container(m):
        return
    state = status
    if status != "Failed":
        state += f" for {unstarted.since.total_seconds() / 60:.0f} min"
    seen = f"the endpoint is {state} and there is no log group {unstarted.log_group}"
    found = False
    for variant in m.variants:
        images, ami = variant.images or (), unstarted.amis.get(variant.name)
        doubts = [
            text for image in images for text in driver_doubts(image, variant.instance_type, ami)
        ]
        if doubts:
            found = True
            words = f"CUDA {cuda_words(images)} on {variant.instance_type} with "
            words += ami or "the default inference AMI"
            needed = needed_inference_ami([(images, variant.instance_type)]) or ""
            driver = Remedy("inference_ami", "a driver that supports the image's CUDA", needed)
            shown = (seen, words, doubts[0])
            yield finding("LLD119", *shown, variant=variant.name, first=[driver])
    if not found and not says_why(m) and (status == "Failed" or unstarted.since >= CREATING_LONG):
        yield finding("LLD120", seen)


def read_unstarted(account: Account, endpoint: DeployedEndpoint, now: datetime) -> Unstarted | None:
    """What is known of an endpoint without a log group; ``None`` when it has one, or has served."""
    if endpoint.status not in ("Creating", "Failed"):
        return None
    group = f"/aws/sagemaker/Endpoints/{endpoint.name}"
    if any(
        each["logGroupName"] == group
        for each in account.every(
            "logs", "describe_log_groups", "logGroups", logGroupNamePrefix=group
        )
    ):
        return None
    return Unstarted(
        log_group=group,
        since=now - endpoint.description["CreationTime"],
        amis={
            name: variant.configured.get("InferenceAmiVersion")
            for name, variant in endpoint.variants.items()
            if variant.configured
        },
    )


def broken_paths(account: Account, stack: str) -> list[str]:
    """What is wrong with each of the stack's interface endpoints for SageMaker's runtime."""
    resources = template_resources(account, stack)
    ids = stack_ids(account, stack, "AWS::EC2::VPCEndpoint")
    return [text for name, link in ids.items() for text in _broken(account, link, resources[name])]


def _broken(account: Account, id: str, resource: object) -> Iterator[str]:
    stated = json.dumps(resource)
    if "sagemaker.runtime" not in stated:
        return
    link = adopted_interface_endpoint(account, id)
    if link is None:
        yield f"{id} is gone"
    elif link["State"].lower() != "available":
        yield f"{id} is {link['State']}"
    elif '"PrivateDnsEnabled": true' in stated and not link.get("PrivateDnsEnabled"):
        yield f"{id} has no private DNS: the runtime's DNS name bypasses it"
    elif not https_sources(account, [each["GroupId"] for each in link.get("Groups", ())]):
        yield f"the security groups of {id} admit nobody on port 443"


def misread(alarm: AlarmReading, variants: Iterable[VariantReading], plan: PlanFacts | None) -> str:
    """What the threshold of a latency would be in the metric's unit; empty where it can be meant."""
    series = (v.get(alarm.metric, alarm.statistic) for v in variants if v.name == alarm.variant)
    values = sorted(value for each in series for value in each.points.values())
    stated, factor = alarm.threshold, 1.0
    planned = plan and any(
        math.isclose(stated, threshold) for threshold in plan.thresholds.values()
    )
    if alarm.unit != "ms" or not values or stated <= 0 or planned:
        return ""
    times = values[len(values) // 4] / stated
    if times >= WRONG_UNIT or (times >= 10 and stated <= 1):
        factor = 1e3 if times < WRONG_UNIT * 1e3 else 1e6
    elif stated > LONGEST_MS and times * WRONG_UNIT <= 1:
        factor = 1e-3
    right = stated * factor
    if factor == 1 or right > LONGEST_MS:
        return ""
    return (
        f"{alarm.metric} {alarm.statistic} above {readable(1000 * stated)} microseconds, which is "
        f"{milliseconds(stated)}; for {milliseconds(right)} it is {1000 * right:.0f}"
    )


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
_WHO = "who changed it by hand"
#: Numbers that full instances advise: more than what is deployed says nothing of it.
_AT_MOST = ("scaling.concurrency_target", "throughput.tps_per_instance")


def read_drift(
    account: Account, endpoint: DeployedEndpoint
) -> tuple[tuple[ObservedDrift, ...], Mapping[str, DeployedSettings]]:
    """What is deleted or differs from the template, who did that, and the template's settings."""
    deleted = account.known("whether what serves is there", deleted_parts, endpoint) or []
    drifted, deployed = account.known("what was changed by hand", _stated, endpoint) or ([], {})
    observed = []
    for drift in (*deleted, *drifted):
        by = account.known(_WHO, changed_by, drift)
        asked = _WHO not in {each.what for each in account.unknown}
        observed.append(ObservedDrift(drift, by, asked))
    return tuple(observed), deployed


def _stated(
    account: Account, endpoint: DeployedEndpoint
) -> tuple[list[Drift], Mapping[str, DeployedSettings]]:
    """The differences from the template of the stack that has the endpoint, and its settings."""
    owner = owner_of(account, endpoint.description["EndpointArn"])
    stated = owner and next(
        (
            endpoint
            for endpoint in stack_endpoints(account, owner[0])
            if endpoint.logical_id == owner[1]
        ),
        None,
    )
    if not owner or not stated:
        return [], {}
    return drifts(account, owner[0], stated), _deployed(account, owner[0], stated)


def _deployed(account: Account, stack: str, stated: StackEndpoint) -> dict[str, dict[str, Any]]:
    """Variant name to settings of ``endpoint.yaml`` as the template has them."""
    deployment = stated.properties.get("DeploymentConfig") or {}
    rolls_back = "true" if deployment.get("AutoRollbackConfiguration") else ""
    configuration, _ = stated_configuration(account, stack, stated)
    resources = template_resources(account, stack)
    properties = resources.get(configuration, {}).get("Properties") or {}
    found: dict[str, dict[str, Any]] = {}
    for production_variant in properties.get("ProductionVariants") or ():
        routing = (production_variant.get("RoutingConfig") or {}).get("RoutingStrategy", "RANDOM")
        found[production_variant["VariantName"]] = {
            "routing": str(routing).lower(),
            "deployment.rollback_on_alarms": rolls_back,
        }
    for variant, (target, policies) in stated_targets(account, stack, stated).items():
        tracking: Mapping[str, Any] = {}
        for policy in policies.values():
            tracking = policy.get("TargetTrackingScalingPolicyConfiguration") or tracking
        metrics = " ".join(tracked_metric(policy) or "" for policy in policies.values())
        found.setdefault(variant, {}).update(
            {
                "instances.max": target.get("MaxCapacity"),
                "instances.min": target.get("MinCapacity"),
                "scaling": "{enabled: true}",
                "scaling.enabled": "true",
                "scaling.metric": "concurrency" if "Concurrent" in metrics else "invocations",
                "scaling.scale_out_cooldown": tracking.get("ScaleOutCooldown"),
                "scaling.concurrency_target": tracking.get("TargetValue"),
                "throughput.tps_per_instance": tracking.get("TargetValue", math.inf) / 60,
            }
        )
    return found


def drifted(m: Measurements, findings: Iterable[Finding]) -> Iterator[Finding]:
    """At most one finding of what was changed by hand, and one of what is deleted.

    A change that explains a fault is a fault as well; any other is a risk, and comes last where it
    explains none. Beside another finding
    nothing that adds capacity is put back, and no command does so beside another change.
    """
    others = list(findings)
    if deleted := [each for each in m.drifts if each.drift.deleted]:
        repairs = dict.fromkeys(each.drift.repair for each in deleted)
        shown = (_evidence(m, drift) for drift in deleted)
        others.append(finding("LLD709", *shown, risk=True, repairs=" ".join(repairs)))
        yield others[-1]
    if changed := [each for each in m.drifts if not each.drift.deleted]:
        yield _changed_by_hand(m, changed, others)


def _changed_by_hand(
    m: Measurements, changed: Iterable[ObservedDrift], others: list[Finding]
) -> Finding:
    """The finding, first what explains another one: a fault where it explains a fault."""
    explaining: list[Drift] = []
    explained = []
    for other in others:
        if found := list(_explaining(m, other)):
            explaining += found
            explained.append(other)
    ordered = sorted(changed, key=lambda each: each.drift not in explaining)
    kept = [each.drift for each in ordered if others and each.drift.adds_capacity]
    put_back = [each.drift for each in ordered if each.drift not in kept]
    reverted = [drift for drift in put_back if REVERT in drift.repair]
    repairs = [drift.repair for drift in put_back if drift not in reverted]
    first = []
    if kept:
        # A deployment would take the capacity away as well.
        why = "puts back this alone, without a deployment"
        first = [Remedy(each.at_once, why, command=True) for each in reverted if each.at_once]
        repairs.append(_KEPT)
    elif reverted:
        why = "restores it; a deployment without the option does not"
        first = [Remedy(REVERT, why, command=True)]
    return finding(
        "LLD704",
        *(_evidence(m, drift) for drift in ordered),
        first=first,
        root=() if explaining or not others else (UNRELATED,),
        risk=all(other.risk for other in explained),
        repairs="".join(f"{each} " for each in dict.fromkeys(repairs)),
        when=" afterwards" if kept else "",
    )


_KEPT = (
    "What adds capacity may be yours, against what is found here: leave it until that is over. "
    "Scaling stops while a deployment runs."
)


def _explaining(m: Measurements, found: Finding) -> Iterator[Drift]:
    """What was changed by hand and took away what a finding asks for, or brought it."""
    for change in found.changes:
        yield from _touching(m, found, change)
    for drift in (each.drift for each in m.drifts if not each.drift.adds_capacity):
        fewer = drift.type == CAPACITY and SATURATED in found.path
        another = drift.call == "UpdateEndpoint" and _is_lately(m, drift)
        if fewer or (another and _is_of_fleet(found)):
            yield drift


def _is_lately(m: Measurements, drift: Drift) -> bool:
    """Whether it was changed where it may be felt in the window."""
    times = [each.by.time for each in m.drifts if each.drift == drift and each.by]
    changed = next(iter(times), drift.since)
    return changed is not None and changed >= m.start - LOOK_BACK


def _is_of_fleet(found: Finding) -> bool:
    """Whether the instances are slow or fail, and not the way to them."""
    return not found.risk and found.id < "LLD6"


def _evidence(m: Measurements, observed_drift: ObservedDrift) -> Evidence:
    drift, by = observed_drift.drift, observed_drift.by
    words, time = drift.words, by.time if by else drift.since
    if by:
        words += f"; {by.call} by {by.who}"
    elif observed_drift.asked:
        words += "; CloudTrail has no event for this change in 90 days; events can be minutes late"
    set_to = {(change.path, str(change.found)) for change in drift.differences}
    for variant in m.variants if time is None else ():
        for activity in variant.activities:
            for end, count in _SET_TO.findall(activity.cause):
                if variant.name == drift.variant and (f"{end.title()}Capacity", count) in set_to:
                    time = activity.start
    return Evidence(words, time, time)


def unless_deployed(measurements: Measurements, finding: Finding) -> Finding:
    """The finding without changes of settings that the template has as advised, or better."""
    settings = _settings_of(measurements, finding)
    kept: dict[Remedy, None] = {}
    besides = [finding.besides] if finding.besides else []
    for change in finding.changes:
        value = settings.get(change.key)
        if undone := _undone(measurements, finding, change, value):
            words = f"{change.key} is {value} in the deployed template" if value else change.key
            own = any(_PROPERTY.get(change.key) in drift.properties for drift in undone)
            is_scaling = change.key in ("scaling", "scaling.enabled")
            what = "it was changed" if own or is_scaling else "scaling, which uses it, was changed"
            besides.insert(0, f"{words}: {what} by hand, see LLD704.")
        elif change.value and change.key not in _AT_MOST and _stands(change, value):
            continue
        else:
            kept[change] = None
    return replace(finding, changes=tuple(kept), besides=" ".join(dict.fromkeys(besides)))


def _settings_of(m: Measurements, finding: Finding) -> DeployedSettings:
    """What the template has of the finding's variant; of any where it is of the whole endpoint."""
    of_any = next(iter(m.deployed.values()), {})
    return m.deployed.get(finding.variant, of_any if not finding.variant else {})


def _undone(m: Measurements, finding: Finding, change: Remedy, value: Any) -> list[Drift]:
    """What was changed by hand of a setting that the template has as advised."""
    if change.value and not _stands(change, value):
        return []
    return _touching(m, finding, change)


def _touching(m: Measurements, finding: Finding, change: Remedy) -> list[Drift]:
    """What was changed by hand of a setting, to its loss."""
    return [
        each.drift
        for each in m.drifts
        if each.drift.variant in ("", finding.variant) and _changes(each.drift, change.key)
    ]


def _changes(drift: Drift, key: str) -> bool:
    """Whether a drift changes or removes the property that a setting becomes, to its loss."""
    if drift.adds_capacity:
        return False
    if _PROPERTY.get(key) in drift.properties:
        return True
    of_scaling = key.split(".")[0] in ("scaling", "throughput", "instances")
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
