"""What the demo's stack finds in the local AWS before it comes: images, models, its own region."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from examples.demo_terminal import StepFailed
from local_sagemaker import LocalAws
from low_latency_endpoint.facts.instance_types import instance_facts
from low_latency_endpoint.facts.zones import region_of_zone
from low_latency_endpoint.operate.preflight.image_checks import ecr_image
from low_latency_endpoint.settings import Settings, load_settings, served_containers
from low_latency_endpoint.settings.yaml_editing import edit_settings_file

# What the update changes in each endpoint's settings.
NEW_SETTINGS: dict[str, str | dict[str, bool]] = {
    "routing": "random",
    "metrics": {"enhanced": True},
}


def region_of(settings: Settings) -> str:
    """The settings' region; without one that of the zones, as any other would be a mistake."""
    return settings.region or region_of_zone(settings.client_zones.zones[0]) or "us-east-1"


def refuse_what_only_your_account_has(settings: Settings, account: str) -> None:
    """The local AWS has one account, which is empty: nothing that exists elsewhere is in it.

    Raises
    ------
    StepFailed
        When the settings name another account, or a VPC that exists.
    """
    found = []
    if settings.account not in (None, account):
        found.append(f"account: {settings.account}. The local AWS has {account} only.")
    if settings.network.vpc_id:
        found.append(f"network.vpc_id: {settings.network.vpc_id}. The local AWS has no such VPC.")
    found += [
        f"private_link.hosted_zone_vpc_ids: {vpc}. The local AWS has no such VPC."
        for vpc in settings.private_link.hosted_zone_vpc_ids
    ]
    if found:
        raise StepFailed(
            "the settings name what only your AWS account has",
            found,
            "Run the demo with a copy that leaves these out: make demo "
            'ARGS="--settings copy.yaml". `make deploy` takes the file as it is.',
        )


def stand_ins_for_images(aws: LocalAws, settings: Settings) -> Iterator[str]:
    """Put the images into the local registries, as AWS or somebody's push has put them there."""
    for endpoint in settings.endpoints.values():
        facts = instance_facts(endpoint.instance_type)
        arm = facts is not None and facts.architecture == "arm64"
        for container in served_containers(endpoint, region=aws.region):
            image = ecr_image(container.image, aws.region)
            if image is not None and image.tag:
                registry = f"{image.account or aws.account}.dkr.ecr.{image.region}.amazonaws.com"
                uri = f"{registry}/{image.repository}:{image.tag}"
                aws.add_image(uri, "arm64" if arm else "amd64")
                yield uri


def model_uris(settings: Settings) -> list[str]:
    """Where the models' data lies in S3."""
    return [
        container.data.s3
        for endpoint in settings.endpoints.values()
        for container in endpoint.containers
        if container.data and container.data.s3
    ]


@contextlib.contextmanager
def uploaded(aws: LocalAws, uris: list[str], topic: str | None = None) -> Iterator[None]:
    """An object for each model, in buckets made for them, and the alarms' topic; in the end they go."""
    s3 = aws.client("s3")
    objects = []
    for uri in uris:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        objects.append({"Bucket": bucket, "Key": key + "model" * key.endswith("/")})
    buckets = {each["Bucket"] for each in objects}
    elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": aws.region}}
    for bucket in buckets:
        # S3 takes no such thing for its first region.
        s3.create_bucket(Bucket=bucket, **({} if aws.region == "us-east-1" else elsewhere))
    for each in objects:
        s3.put_object(**each, Body=b"a model")
    with contextlib.nullcontext() if topic is None else _subscribed(aws, topic):
        yield
    for each in objects:
        s3.delete_object(**each)
    for bucket in buckets:
        s3.delete_bucket(Bucket=bucket)


@contextlib.contextmanager
def _subscribed(aws: LocalAws, topic: str) -> Iterator[None]:
    """A topic with a queue for who is on call: an address would wait for its owner to confirm."""
    sns, sqs, name = aws.client("sns"), aws.client("sqs"), topic.rpartition(":")[2]
    queue = topic.replace(":sns:", ":sqs:")
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    url = sqs.create_queue(QueueName=name, Attributes={"Policy": policy})["QueueUrl"]
    sns.create_topic(Name=name)
    subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue)["SubscriptionArn"]
    yield
    sns.unsubscribe(SubscriptionArn=subscription)
    sns.delete_topic(TopicArn=topic)
    sqs.delete_queue(QueueUrl=url)


def changed_settings(settings: Path, folder: Path) -> Path:
    """A copy of the settings file with `NEW_SETTINGS` in each endpoint; comments stay."""
    endpoints = load_settings(settings).endpoints
    edit = edit_settings_file(
        settings,
        {
            ("endpoints", key, setting): value
            for key in endpoints
            for setting, value in NEW_SETTINGS.items()
        },
    )
    if not edit.changed:
        raise StepFailed(
            f"{settings.name} has the settings that the demo changes",
            [],
            "Run the demo with the endpoint.yaml that ships.",
        )
    copy = folder / settings.name
    copy.write_text(edit.after, encoding="utf-8")
    return copy
