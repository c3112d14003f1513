"""An endpoint that was never in service: a container's first line makes its log group."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ...account.calls import Account
from ...account.endpoints import DeployedEndpoint
from ...facts.images import cuda_words, driver_doubts, needed_inference_ami
from .causes import finding
from .findings import Finding, Remedy
from .measurements import Measurements, Unstarted

_SOON = timedelta(minutes=10)  # a large image may take so long to arrive
_LONG = timedelta(minutes=30)


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


def not_started(measurements: Measurements) -> Iterator[Finding]:
    """The driver where it may not fit an image; else, after a while, whatever else it may be."""
    unstarted, status = measurements.unstarted, measurements.status
    if unstarted is None or (status == "Creating" and unstarted.since < _SOON):
        return
    state = status
    if status != "Failed":
        state += f" for {unstarted.since.total_seconds() / 60:.0f} min"
    seen = f"the endpoint is {state} and there is no log group {unstarted.log_group}"
    found = False
    for variant in measurements.variants:
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
    if not found and (status == "Failed" or unstarted.since >= _LONG):
        yield finding("LLD120", seen)
