"""Stacks for a deploying role: the shipped one, and those that have what others need beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from aws_cdk import Size, Stack
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import (
    AlarmTopic,
    ComponentHost,
    ContainerImage,
    InferenceComponent,
    LoadTestFleet,
    LowLatencyEndpointStack,
    RuntimePrivateLink,
    StagedModel,
)
from low_latency_endpoint.plan.pinned_model import PinnedModel
from low_latency_endpoint.settings import parse_settings
from tests.deploy.small_stacks import (
    ENV,
    REGISTRY,
    app_in,
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)
from tests.hub_of_files import FakeHub

SHIPPED = Path(__file__).parents[2] / "endpoint.yaml"


def shipped(folder: Path, changes: Mapping[str, Any], **stack: Any) -> Path:
    """The stack of endpoint.yaml, its endpoint with changes, which warms up with four requests."""
    data = yaml.safe_load(SHIPPED.read_text("utf-8")) | stack
    endpoint = data["endpoints"]["sentiment"]
    endpoint |= {"warm_up": {**endpoint["warm_up"], "requests": 4, "last": 1}} | changes
    app = app_in(folder, flags=True)
    settings = parse_settings(yaml.safe_dump(data))
    return synthesised(
        LowLatencyEndpointStack(app, settings.stack_name, settings=settings, env=ENV)
    )


def components(folder: Path, image: str, callers: str) -> Path:
    """Components of a model, with a topic, in a network whose names another VPC resolves."""
    stack = stack_in(folder, "Components", flags=True)
    network = network_in(stack)
    peer = ec2.Vpc.from_vpc_attributes(
        stack, "Callers", vpc_id=callers, availability_zones=["us-east-1a"]
    )
    RuntimePrivateLink(stack, "Link", network=network, hosted_zone_vpcs=[peer])
    host = ComponentHost(stack, "Host", network=network, min_instances=1, max_instances=2)
    variant = variant_of(host, instance_type="ml.g5.12xlarge", instances=None)
    component = InferenceComponent(
        stack,
        "Llama",
        endpoint=endpoint_in(stack, variant),
        model=model_in(stack, network, image, role=host.role),
        accelerators=2,
        memory=Size.gibibytes(16),
        copies=1,
    )
    component.scale(min_copies=1, max_copies=2).track_concurrency(max_concurrency_per_copy=4)
    AlarmTopic(stack, "OnCall", emails=["on-call@example.com"])
    return synthesised(stack)


def fleet(folder: Path, **given: Any) -> Path:
    """The load-test fleet beside the network of another stack."""
    serving = stack_in(folder, "Serving", flags=True)
    testing = Stack(serving.node.root, "Testing", env=ENV)
    network = network_in(serving)
    LoadTestFleet(
        testing,
        "Fleet",
        network=network,
        private_link=RuntimePrivateLink(serving, "Link", network=network),
        endpoint="sentiment",
        image=ContainerImage.from_uri(f"{REGISTRY}/load-generator:1"),
        **given,
    )
    return synthesised(serving)


def staged(folder: Path, hub: FakeHub, pinned: PinnedModel) -> Path:
    """A model of the Hub, copied into a bucket of the stack's."""
    stack = stack_in(folder, "Staged", flags=True)
    StagedModel(stack, "Tiny", pinned=pinned, hub_endpoint=hub.endpoint)
    return synthesised(stack)
