"""An endpoint that was never in service: a container's first line makes its log group."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ...account.calls import Account
from ...account.endpoints import DeployedEndpoint
from ...errors import AWS_DOCS
from ...facts.images import cuda_words, driver_doubts, needed_inference_ami
from .findings import GUIDE, Evidence, Finding, Remedy, kind
from .measurements import Measurements, Unstarted

DRIVER = kind(
    "LLD119",
    "No container has started: the driver may not fit the image's CUDA",
    (
        "the endpoint is Creating for 10 minutes, or Failed, without the log group "
        "`/aws/sagemaker/Endpoints/<name>`; the image's CUDA is 13 or newer on SageMaker's default "
        "AMI, or not the chosen AMI's. From public reports, not seen on AWS yet"
    ),
    AWS_DOCS + "/sagemaker/latest/APIReference/API_ProductionVariant.html",
)
NO_CONTAINER = kind(
    "LLD120",
    "No container has started",
    ("as LLD119, for 30 minutes or Failed, without a doubt about the driver"),
    GUIDE + "deployment-best-practices.html",
)

_SOON = timedelta(minutes=10)
"""A large image may take so long to arrive."""
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
    state = (
        status
        if status == "Failed"
        else (f"{status} for {unstarted.since.total_seconds() / 60:.0f} min")
    )
    seen = Evidence(f"the endpoint is {state} and there is no log group {unstarted.log_group}")
    found = False
    for variant in measurements.variants:
        images, ami = variant.images or (), unstarted.amis.get(variant.name)
        doubts = [
            text for image in images for text in driver_doubts(image, variant.instance_type, ami)
        ]
        if not doubts:
            continue
        found = True
        needed = needed_inference_ami([(images, variant.instance_type)])
        yield Finding(
            DRIVER,
            variant.name,
            (
                seen,
                Evidence(
                    f"CUDA {cuda_words(images)} on {variant.instance_type} with "
                    f"{ami or 'no inference AMI chosen'}"
                ),
                Evidence(doubts[0]),
            ),
            "medium",
            ("creation", "no log", "driver and CUDA differ"),
            (
                Remedy("inference_ami", "the driver that the image's CUDA needs", needed or ""),
                Remedy("containers[].image", "or one with the CUDA of the instances' driver"),
            ),
            "An endpoint that is being created takes no update: delete it, or wait until it has "
            "failed.",
        )
    if not found and (status == "Failed" or unstarted.since >= _LONG):
        yield Finding(
            NO_CONTAINER,
            "",
            (seen,),
            "low",
            ("creation", "no log"),
            (
                Remedy("instance_type", "a type with more supply"),
                Remedy("model_data_download_timeout", "if the model did not arrive in time"),
            ),
            "SageMaker may still look for capacity, or fetch image and model: can the role pull "
            "the image and write logs, and do the subnets reach S3? `low-latency preflight` checks "
            "most of it.",
        )
