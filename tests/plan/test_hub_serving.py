"""Licences are accepted by name, and one container serves a model on all of its types."""

from __future__ import annotations

from dataclasses import replace

import pytest

from low_latency_endpoint.options.variant import FurtherOptions, PlannedPool
from low_latency_endpoint.plan.hub_serving import HubModel, also_on, hub_serving
from low_latency_endpoint.plan.latency_plan import make_plan
from low_latency_endpoint.plan.variant_shares import further_request, shares_of
from tests.pinned_models import EMBEDDER, LLAMA, QWEN
from tests.refusals import refused

from .conftest import requested

ZONES = ("use1-az1", "use1-az2")


@pytest.mark.parametrize(
    ("pinned", "accepted"),
    [(QWEN, None), (QWEN, "apache-2.0"), (LLAMA, "llama3.1"), (replace(QWEN, license=None), None)],
)
def test_a_licence_is_taken_when_it_is_permissive_or_named(pinned, accepted) -> None:
    assert HubModel(pinned=pinned, accept_license=accepted).pinned is pinned


@pytest.mark.parametrize(
    ("pinned", "accepted", "allowed"),
    [
        (LLAMA, None, "accept_license llama3.1"),
        (LLAMA, "llama3", "llama3.1"),
        (QWEN, "mit", "apache-2.0"),
        (replace(QWEN, gated=True), None, "accept_license apache-2.0"),
        (replace(QWEN, license=None), "mit", "none: the model states no licence"),
        (replace(LLAMA, license=None), None, "a model that states its licence"),
    ],
)
def test_another_licence_is_refused(pinned, accepted, allowed) -> None:
    with refused("LLE346", allowed=allowed):
        HubModel(pinned=pinned, accept_license=accepted)


def test_a_model_without_a_licence_is_doubtful() -> None:
    serving = hub_serving(HubModel(pinned=replace(QWEN, license=None)), ["ml.g6e.xlarge"])
    assert [text for text in serving.warnings if "licence" in text]
    assert not [
        text
        for text in hub_serving(HubModel(pinned=QWEN), ["ml.g6e.xlarge"]).warnings
        if "licence" in text
    ]


def test_all_types_get_the_context_that_all_have_room_for() -> None:
    # g6.2xlarge: one GPU of 22,888 MiB, too small for the 40,960 tokens that an L40S holds
    both = hub_serving(HubModel(pinned=QWEN), ["ml.g6e.xlarge", "ml.g6.2xlarge"])
    alone = hub_serving(HubModel(pinned=QWEN), ["ml.g6.2xlarge"])
    told = alone.container.environment["SM_VLLM_MAX_MODEL_LEN"]
    assert [each.environment["SM_VLLM_MAX_MODEL_LEN"] for each in both.containers] == [told, told]
    large = hub_serving(HubModel(pinned=QWEN), ["ml.g6e.xlarge"])
    assert large.container.environment.get("SM_VLLM_MAX_MODEL_LEN") != told


def test_types_with_another_number_of_gpus_need_another_container() -> None:
    for pinned, types, got in (
        (QWEN, ["ml.g6.2xlarge", "ml.g6.12xlarge"], "SM_VLLM_TENSOR_PARALLEL_SIZE"),  # one and four
        (EMBEDDER, ["ml.g6.xlarge", "ml.c7i.xlarge"], "the image"),
    ):
        with refused("LLE393") as caught:
            hub_serving(HubModel(pinned=pinned), types)
        assert got in caught.value.got


def test_a_further_type_takes_the_container_as_it_is() -> None:
    large = hub_serving(HubModel(pinned=QWEN), ["ml.g6e.xlarge"])
    assert also_on(large, ["ml.g6e.xlarge"], volume_gib=None, where="") is large
    further = also_on(large, ["ml.g6e.2xlarge"], volume_gib=None, where="")
    assert further.instance_types == ("ml.g6e.2xlarge",)
    assert further.container.fit.instance_type == "ml.g6e.2xlarge"
    both = also_on(large, ["ml.g6e.xlarge", "ml.g6e.2xlarge"], volume_gib=None, where="")
    assert [each.fit.instance_type for each in both.containers] == list(both.instance_types)
    with refused("LLE393", fix="Set context_length to the allowed number."):
        also_on(large, ["ml.g6.2xlarge"], volume_gib=None, where="")
    small = hub_serving(HubModel(pinned=QWEN, context_length=8192), ["ml.g6e.xlarge"])
    assert (
        also_on(small, ["ml.g6.2xlarge"], volume_gib=None, where="").container.fit.context == 8192
    )


def test_the_plan_says_what_there_is_room_for() -> None:
    serving = hub_serving(HubModel(pinned=QWEN), ["ml.g6.2xlarge"])
    container = serving.container
    request = requested(
        client_zones=ZONES,
        instance_type="ml.g6.2xlarge",
        images=[f"{container.repository}:{container.tag}"],
        hub=serving,
    )
    plan = make_plan(request)
    assert hash(plan.request) == hash(replace(request))
    said = plan.explanation["hugging_face_model"]
    assert said.value == f"Qwen/Qwen3-8B at {'9' * 12}"
    assert said.inputs["licence"] == "apache-2.0"
    assert plan.explanation["concurrent_requests"].value == 1
    line = next(each for each in plan.explanation.summary if each.title == "Model")
    assert "of the model's 40,960" in line.text


def test_the_ami_of_a_neuron_image_is_the_plans() -> None:
    compiled = replace(QWEN, files=(*QWEN.files, *(replace_path(each) for each in QWEN.files[:1])))
    serving = hub_serving(HubModel(pinned=compiled), ["ml.inf2.24xlarge"])
    request = requested(client_zones=ZONES, instance_type="ml.inf2.24xlarge", hub=serving)
    assert request.serving.needed_ami == serving.container.inference_ami
    assert request.serving.needed_ami is not None


def replace_path(file):
    return file._replace(path="compiled/model.neuron")


def test_a_variant_that_shares_the_model_shares_its_container() -> None:
    large = hub_serving(HubModel(pinned=QWEN), ["ml.g6e.xlarge"])
    request = requested(client_zones=ZONES, instance_type="ml.g6e.xlarge", hub=large)
    share = shares_of([("primary", 1), ("b", 1)], None)["b"]

    def served(**given):
        return further_request(request, FurtherOptions(), share, **given).serving.hub

    assert served(instance_type="ml.g6e.2xlarge").instance_types == ("ml.g6e.2xlarge",)
    with refused("LLE393"):
        served(instance_type="ml.g6.2xlarge")
    assert served(instance_type="ml.m5.large", images=["a:1"]) is None
    pools = [
        PlannedPool(instance_type="ml.g6e.2xlarge", priority=1, tps_per_instance=9),
        PlannedPool(instance_type="ml.g6e.4xlarge", priority=2, tps_per_instance=9),
    ]
    on_pools = served(instance_type="ml.g6e.2xlarge", instance_pools=pools)
    assert on_pools.instance_types == ("ml.g6e.2xlarge", "ml.g6e.4xlarge")
