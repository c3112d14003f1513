"""Components of two models on one fleet, deployed: called by name, scaled to none and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from aws_cdk import Size
from botocore.exceptions import ClientError

from local_sagemaker import LocalAws, RuntimeOptions, delete_stack, deploy_template
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from low_latency_endpoint import ComponentHost, InferenceComponent
from tests.deploy.small_stacks import (
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)

STACK = "Models"


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    server = SimulatedModelServer(service_time=ServiceTime.constant(0.002), concurrency=8)
    options = RuntimeOptions(interfaces_stay=0, seed=1)
    with LocalAws.start(model_servers={"*": server}, runtime=options) as running:
        yield running


@pytest.fixture(scope="module")
def deploy(
    aws: LocalAws, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., None]]:
    def deployed(image: str) -> None:
        stack = stack_in(tmp_path_factory.mktemp("assembly"), STACK)
        network = network_in(stack)
        host = ComponentHost(stack, "Host", network=network, min_instances=0, max_instances=2)
        variant = variant_of(host, instance_type="ml.g5.12xlarge")
        endpoint = endpoint_in(stack, variant, endpoint_name="models")
        for name, own in (("llama", image), ("bert", "bert:1")):
            model = model_in(stack, network, own, id=f"{name}-model", role=host.role)
            component = InferenceComponent(
                stack,
                name,
                endpoint=endpoint,
                model=model,
                component_name=name,
                accelerators=2,
                memory=Size.gibibytes(16),
                copies=1,
                placement="SPREAD",
            )
            scaling = component.scale(min_copies=0, max_copies=2)
            scaling.track_concurrency(max_concurrency_per_copy=4).from_zero()
        deploy_template(aws, synthesised(stack), STACK)

    deployed("llama:1")
    yield deployed
    delete_stack(aws, STACK)
    assert aws.client("sagemaker").list_inference_components()["InferenceComponents"] == []


def invoke(aws: LocalAws, **more: str) -> Any:
    return aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="models", Body=b"{}", **more
    )


def copies(aws: LocalAws, name: str) -> int:
    described = aws.client("sagemaker").describe_inference_component(InferenceComponentName=name)
    count: int = described["RuntimeConfig"]["CurrentCopyCount"]
    return count


def until(aws: LocalAws, reached: Callable[[], bool], minutes: int) -> None:
    """Let the local AWS's clock run until something is so."""
    for _ in range(minutes):
        if reached():
            return
        aws.advance(60)
        time.sleep(0.02)  # for what was begun in that minute
    assert reached()


def test_each_model_answers_by_its_name_and_none_without(
    aws: LocalAws, deploy: Callable[..., None]
) -> None:
    for name in ("llama", "bert"):
        with suppress(ClientError):  # idle, if another test let time pass
            invoke(aws, InferenceComponentName=name)
        until(aws, lambda name=name: copies(aws, name) > 0, minutes=10)
        assert invoke(aws, InferenceComponentName=name)["InvokedProductionVariant"] == "primary"
    with pytest.raises(ClientError, match="ValidationError"):
        invoke(aws)


def test_idle_copies_go_and_a_request_brings_the_first_one_back(
    aws: LocalAws, deploy: Callable[..., None]
) -> None:
    until(aws, lambda: copies(aws, "llama") == 0, minutes=60)
    with pytest.raises(ClientError, match="no capacity"):
        invoke(aws, InferenceComponentName="llama")
    until(aws, lambda: copies(aws, "llama") == 1, minutes=10)
    assert invoke(aws, InferenceComponentName="llama")["InvokedProductionVariant"] == "primary"


def test_another_image_comes_into_the_component_in_place(
    aws: LocalAws, deploy: Callable[..., None]
) -> None:
    sagemaker = aws.client("sagemaker")
    former = sagemaker.describe_inference_component(InferenceComponentName="llama")
    deploy("llama:2")
    now = sagemaker.describe_inference_component(InferenceComponentName="llama")
    assert now["InferenceComponentArn"] == former["InferenceComponentArn"]
    assert now["Specification"]["ModelName"] != former["Specification"]["ModelName"]
    models = {each["ModelName"] for each in sagemaker.list_models()["Models"]}
    assert now["Specification"]["ModelName"] in models
    assert former["Specification"]["ModelName"] not in models
