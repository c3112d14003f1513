"""The endpoint itself: was it ever in service, did a deployment fail, is the way to it open?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from ...account.calls import Account
from ...account.endpoints import DeployedEndpoint
from ...account.network import adopted_interface_endpoint, https_sources
from ...account.stacks import stack_ids, template_resources
from ...facts.images import cuda_words, driver_doubts, needed_inference_ami
from .causes import finding
from .findings import Evidence, Finding, Remedy
from .measurements import Measurements, Unstarted
from .thresholds import CREATING, CREATING_LONG


def endpoint_state(m: Measurements) -> Iterator[Finding]:
    """What is wrong with the endpoint, whatever its metrics say."""
    yield from _not_started(m)
    if m.failure_reason or m.status in ("Failed", "UpdateRollbackFailed", "RollingBack"):
        because = f': "{m.failure_reason}"' if m.failure_reason else ""
        yield finding("LLD701", f"the endpoint is {m.status}{because}")
    else:
        if m.status == "OutOfService":
            yield finding("LLD705", "the endpoint is OutOfService: it takes no requests")
        if m.broken_paths:
            yield finding("LLD606", *m.broken_paths, stack=m.plan.stack if m.plan else "STACK")
        for variant in m.variants:
            wanted, there = variant.desired_instances, variant.current_instances
            if m.status == "InService" and wanted and there is not None and there < wanted:
                words = f"{there} of {wanted} instances in service while the endpoint is InService"
                yield finding("LLD703", Evidence(words, m.end, m.end), variant=variant.name)
    if doubted := [each for each in m.alarms or () if each.doubt]:
        yield finding("LLD604", *(f"{each.name}: {each.doubt}" for each in doubted), risk=True)


def _not_started(m: Measurements) -> Iterator[Finding]:
    """The driver where it may not fit an image; else, after a while, whatever else it may be."""
    unstarted, status = m.unstarted, m.status
    if unstarted is None or (status == "Creating" and unstarted.since < CREATING):
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
            words += ami or "no inference AMI chosen"
            needed = needed_inference_ami([(images, variant.instance_type)]) or ""
            driver = Remedy("inference_ami", "the driver that the image's CUDA needs", needed)
            shown = (seen, words, doubts[0])
            yield finding("LLD119", *shown, variant=variant.name, first=[driver])
    if not found and (status == "Failed" or unstarted.since >= CREATING_LONG):
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
            name: each.configured.get("InferenceAmiVersion")
            for name, each in endpoint.variants.items()
            if each.configured
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
        yield f"{id} has no private DNS: the runtime's name goes around it"
    elif not https_sources(account, [each["GroupId"] for each in link.get("Groups", ())]):
        yield f"the security groups of {id} let nobody in on port 443"
