"""Inference components: what stands in the template, and what the library says of them."""

from __future__ import annotations

from random import Random

import aws_cdk as cdk
import pytest
from aws_cdk import Size
from aws_cdk import aws_iam as iam

from low_latency_endpoint import (
    ComponentHost,
    Container,
    ContainerImage,
    DeploymentPolicy,
    Endpoint,
    InferenceComponent,
    LatencyAlarms,
    LatencyDashboard,
    ProductionVariant,
    RuntimePrivateLink,
    VariantAttributes,
)
from low_latency_endpoint.errors import ConfigurationError
from tests.refusals import refused

from .conftest import ACKNOWLEDGED, warnings_after_synth, warnings_in


class Parts:
    """An endpoint of four GPUs on each of up to three instances, and components on it."""

    def __init__(self, stack, parts, **host):
        self.stack, self.parts = stack, parts
        self.network = parts.network(stack, max_instances=20)
        self.host = ComponentHost(
            stack, "Host", network=self.network, **{"max_instances": 3, **host}
        )
        self.variant = ProductionVariant(
            model=self.host, instance_type="ml.g5.12xlarge", initial_instance_count=2
        )
        self.endpoint = parts.endpoint(stack, endpoint_name="Gpu", variants=[self.variant])

    def component(self, id="Llama", **given):
        model = given.pop("model", None) or self.parts.model(
            self.stack, f"{id}Model", network=self.network, role=self.host.role
        )
        return InferenceComponent(
            self.stack,
            id,
            **{
                "endpoint": self.endpoint,
                "model": model,
                "memory": Size.gibibytes(16),
                "component_name": id.lower(),
                **given,
            },
        )


@pytest.fixture
def made(new_stack, parts):
    return Parts(new_stack(), parts)


def test_two_components_have_two_names(made):
    made.component("Llama")
    with refused("LLE931", got="llama"):
        made.component("Bert", component_name="llama")


def test_two_models_share_a_fleet_in_the_networks_subnets(made, template_of):
    made.component("Llama", accelerators=2, copies=2)
    made.component("Bert", cpus=4, max_memory=Size.gibibytes(20), copies=3)
    template = template_of(made.stack)
    config = template.only("AWS::SageMaker::EndpointConfig")
    models = list(template.of_type("AWS::SageMaker::Model").values())
    assert [model["VpcConfig"] for model in models] == [config["VpcConfig"]] * 2
    assert {str(model["ExecutionRoleArn"]) for model in models} == {str(config["ExecutionRoleArn"])}
    assert config["EnableNetworkIsolation"] is False
    components = {
        each["InferenceComponentName"]: each
        for each in template.of_type("AWS::SageMaker::InferenceComponent").values()
    }
    assert {name: each["RuntimeConfig"] for name, each in components.items()} == {
        "llama": {"CopyCount": 2},
        "bert": {"CopyCount": 3},
    }
    assert components["bert"]["Specification"]["ComputeResourceRequirements"] == {
        "MinMemoryRequiredInMb": 16384,
        "MaxMemoryRequiredInMb": 20480,
        "NumberOfCpuCoresRequired": 4,
    }
    assert "role" not in "".join(warnings_in(made.stack))


def test_placement_and_cache_are_left_to_sagemaker_unless_stated(made, template_of):
    made.component("Plain")
    made.component("Spread", placement="SPREAD", cache_artifacts=True)
    stated = {
        each["InferenceComponentName"]: each["Specification"]
        for each in template_of(made.stack).of_type("AWS::SageMaker::InferenceComponent").values()
    }
    assert not {"SchedulingConfig", "DataCacheConfig"} & set(stated["plain"])
    assert stated["spread"]["SchedulingConfig"] == {
        "PlacementStrategy": "SPREAD",
        "AvailabilityZoneBalance": {"EnforcementMode": "PERMISSIVE", "MaxImbalance": 0},
    }
    assert stated["spread"]["DataCacheConfig"] == {"EnableCaching": True}


@pytest.mark.parametrize(
    ("stated", "policy"),
    [
        ({}, None),
        ({"scale_in": "IDLE_RELEASE"}, {"Strategy": "IDLE_RELEASE"}),
        (
            {
                "scale_in": "CONSOLIDATION",
                "consolidation_cooldown": cdk.Duration.hours(2),
                "consolidation_step": 3,
            },
            {"Strategy": "CONSOLIDATION", "CooldownInMinutes": 120, "MaximumStepSize": 3},
        ),
    ],
)
def test_how_instances_are_released(new_stack, parts, template_of, stated, policy):
    """API reference, ProductionVariantManagedInstanceScalingScaleInPolicy."""
    made = Parts(new_stack(), parts, **stated)
    (variant,) = template_of(made.stack).only("AWS::SageMaker::EndpointConfig")[
        "ProductionVariants"
    ]
    assert variant["ManagedInstanceScaling"].get("ScaleInPolicy") == policy


def test_a_component_without_a_gpu_is_warned_of_on_gpus(made):
    made.component("Cpu")
    made.component("Gpu", accelerators=1)
    assert "reserves no accelerator of ml.g5.12xlarge" in str(
        warnings_in(made.stack.node.find_child("Cpu"))
    )
    assert "accelerator" not in str(warnings_in(made.stack.node.find_child("Gpu")))


def test_a_second_variant_of_a_host_is_warned_of(made, parts):
    second = ProductionVariant(
        model=made.host, name="b", instance_type="ml.g5.12xlarge", initial_instance_count=2
    )
    assert not warnings_in(made.stack, "Several variants use one ComponentHost")
    parts.configuration(made.stack, "Two", variants=[made.variant, second])
    assert warnings_in(made.stack, "Several variants use one ComponentHost")


def test_the_order_of_things(made, template_of):
    """The role's rights before the configuration, the component before its scalable target."""
    scaling = made.component().scale(min_copies=1, max_copies=4)
    template = template_of(made.stack)
    (config,) = template.of_type("AWS::SageMaker::EndpointConfig")
    rights = [
        name
        for name in template.depends_on(config)
        if template["Resources"][name]["Type"] == "AWS::IAM::Policy"
    ]
    assert len(rights) == 2
    (component,) = template.of_type("AWS::SageMaker::InferenceComponent")
    target = made.stack.get_logical_id(scaling.cfn_scalable_target)
    assert component in template.depends_on(target)


def test_the_subnets_keep_room_for_the_most_instances_twice(new_stack, parts):
    """Not for the initial ones, and twice, since an update may bring a second fleet."""
    Parts(new_stack(), parts, max_instances=20)
    with refused("LLE157", "800"):
        Parts(new_stack(), parts, max_instances=400)


def test_deployments_are_all_at_once_unless_stated(made, template_of):
    routing = template_of(made.stack).deployment["BlueGreenUpdatePolicy"][
        "TrafficRoutingConfiguration"
    ]
    assert routing["Type"] == "ALL_AT_ONCE"


def test_a_stated_deployment_is_the_teams(new_stack, parts, template_of):
    made = Parts(new_stack(), parts)
    Endpoint(
        made.stack,
        "Canary",
        configuration=made.endpoint.configuration,
        deployment=DeploymentPolicy.canary(),
    )
    types = {
        each["DeploymentConfig"]["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]["Type"]
        for each in template_of(made.stack).of_type("AWS::SageMaker::Endpoint").values()
    }
    assert types == {"ALL_AT_ONCE", "CANARY"}


def test_rights_to_call_name_endpoint_and_component(made, template_of):
    caller = iam.Role(made.stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    made.component().grant_invoke(caller)
    (policy,) = [
        each
        for name, each in template_of(made.stack).of_type("AWS::IAM::Policy").items()
        if name.startswith("Caller")
    ]
    (statement,) = policy["PolicyDocument"]["Statement"]
    component, endpoint = statement["Resource"]
    assert list(endpoint) == ["Ref"]
    assert str(component).endswith(":inference-component/llama']]}")


def test_a_narrow_private_link_lets_components_through(made, template_of):
    link = RuntimePrivateLink(made.stack, "Link", network=made.network)
    link.serve("gpu", components=["llama", "bert"])
    template = template_of(made.stack)
    resources = str(template.interface()["PolicyDocument"]["Statement"][0]["Resource"])
    for name in ("endpoint/gpu", "inference-component/llama", "inference-component/bert"):
        assert name in resources
    assert "*" not in resources


def test_metrics_are_by_component(made):
    llama = made.component()
    metric = llama.metric("ModelLatency", statistic="p99")
    assert metric.dimensions == {"InferenceComponentName": "llama"}
    fast = llama.metric("ConcurrentRequestsPerCopy", statistic="Maximum")
    assert fast.period.to_seconds() == 10


def test_what_watches_whole_endpoints_says_that_components_are_watched_one_by_one(made):
    for watch in (LatencyAlarms, LatencyDashboard):
        with pytest.raises(ConfigurationError, match="LLE447"):
            watch(made.stack, watch.__name__, endpoint=made.endpoint)
    assert made.endpoint.variant("primary").metric("CPUUtilization", statistic="Average")


def test_zero_instances_warn(new_stack, parts):
    made = Parts(new_stack(), parts, min_instances=0)
    (warning,) = warnings_in(made.stack)
    assert "fail for several minutes" in warning


def test_two_roles_warn(made, parts):
    made.component(model=parts.model(made.stack, "Own", network=made.network))
    assert "Model(role=host.role)" in "".join(warnings_in(made.stack))


def test_a_component_goes_without_waiting_for_the_fleets_interfaces(made, parts, template_of):
    """Under the host's role; a model with a role of its own waits, so the endpoint goes before it."""
    made.component("Llama")
    own = parts.model(made.stack, "Own", network=made.network)
    made.component("Bert", model=own)
    template = template_of(made.stack)
    drained = list(template.of_type("Custom::DrainedInterfaces"))
    assert [name[:3] for name in sorted(drained)] == ["Hos", "Own"]
    (endpoint,) = template.of_type("AWS::SageMaker::Endpoint")
    assert made.stack.get_logical_id(own.cfn_model) in template.depends_on(endpoint)


def test_an_image_that_cannot_run_there_is_refused(made):
    container = Container(
        image=ContainerImage.from_dlc(
            "huggingface-pytorch-inference-neuronx",
            "2.8.0-transformers4.55.4-neuronx-py310-sdk2.26.0-ubuntu22.04",
        )
    )
    model = made.parts.model(made.stack, "Neuron", network=made.network, containers=[container])
    with pytest.raises(ConfigurationError, match="LLE33"):
        made.component(model=model)


def test_on_an_endpoint_made_elsewhere(stack, parts, template_of):
    endpoint = Endpoint.from_endpoint_attributes(
        stack,
        "Shared",
        endpoint_name="shared",
        variants=[
            VariantAttributes(
                name="AllTraffic", shape="inference-component", max_instances=2, instance_types=[]
            )
        ],
    )
    InferenceComponent(
        stack, "Mine", endpoint=endpoint, model=parts.model(stack), memory=Size.gibibytes(1)
    )
    component = template_of(stack).only("AWS::SageMaker::InferenceComponent")
    assert (component["EndpointName"], component["VariantName"]) == ("shared", "AllTraffic")
    assert component["InferenceComponentName"].startswith("serving-mine-")


@pytest.mark.parametrize("fewest", [1, 2])
def test_copies_fit_at_every_number_that_can_be_reached(made, fewest):
    """Twelve GPUs: what the constructor refuses, scaling refuses too, whatever comes first."""
    made.component("Six", accelerators=2).scale(min_copies=fewest, max_copies=6)
    for accelerators, copies in ((1, 13), (2, 7), (4, 4)):
        name = f"Of{accelerators}"
        with refused("LLE446", "on 3 instances at most"):
            made.component(name, accelerators=accelerators, copies=copies)
        with refused("LLE446", "on 3 instances at most"):
            made.component(f"{name}Scaled", accelerators=accelerators, copies=1).scale(
                min_copies=1, max_copies=copies
            )


def test_components_fit_together_with_their_first_copies(made):
    """Eight and four of twelve GPUs; their maximums may share what is there."""
    made.component("Eight", accelerators=4, copies=2).scale(min_copies=1, max_copies=3)
    made.component("Four", accelerators=2, copies=2).scale(min_copies=1, max_copies=6)
    with refused("LLE446", "3 components whose copies need 13 accelerators"):
        made.component("One", accelerators=1, copies=1)


TOGETHER = "At their most copies"
# An ml.g5.12xlarge (https://aws.amazon.com/ec2/instance-types/g5/); of these Parts has three.
RESOURCES = {"accelerators": 4, "vCPUs": 48, "MiB of memory": 192 * 1024}


@pytest.mark.parametrize("seed", range(16))
def test_the_most_copies_are_held_against_the_instances_at_synth(made, seed):
    """Each resource that components exceed together is named, whatever the order of calls."""
    random = Random(seed)
    needed = dict.fromkeys(RESOURCES, 0)
    unscaled = []
    for number in range(random.randint(2, 3)):
        of_copy = {
            "accelerators": random.choice([1, 1, 2, 4]),
            "vCPUs": random.choice([1, 8, 16]),
            "MiB of memory": 1024 * random.choice([8, 32, 96]),
        }
        fitting = 3 * min(has // of_copy[what] for what, has in RESOURCES.items())
        most = random.choice([1, fitting // 2 or 1, fitting])
        for what, need in of_copy.items():
            needed[what] += need * most
        component = made.component(
            f"Model{number}",
            accelerators=of_copy["accelerators"],
            cpus=of_copy["vCPUs"],
            memory=Size.mebibytes(of_copy["MiB of memory"]),
            copies=1,
        )
        unscaled.append((component, most))
    random.shuffle(unscaled)
    for component, most in unscaled:
        component.scale(min_copies=1, max_copies=most)
    assert not warnings_in(made.stack, TOGETHER)
    short = [what for what, has in RESOURCES.items() if needed[what] > 3 * has]
    found = warnings_after_synth(made.stack, TOGETHER)
    assert len(found) == bool(short)
    for what, has in RESOURCES.items():
        said = f"{needed[what]:g} of {3 * has:g} {what}"
        assert (said in "".join(found)) == (what in short)


@ACKNOWLEDGED
def test_instances_that_are_meant_to_be_shared_are_acknowledged(made, acknowledge):
    """Three times four and six times two GPUs are 24, of twelve; said once over two syntheses."""
    made.component("Four", accelerators=4, copies=1).scale(min_copies=1, max_copies=3)
    made.component("Two", accelerators=2, copies=1).scale(min_copies=1, max_copies=6)
    for _ in range(2):
        (warning,) = warnings_after_synth(made.stack, TOGETHER)
        assert "ask for 24 of 12 accelerators on 3 instances" in warning
    acknowledge(made.endpoint, "low-latency-endpoint:copiesTogether")
    assert not warnings_after_synth(made.stack, TOGETHER)


def test_tokens_pass(made, template_of):
    copies = cdk.CfnParameter(made.stack, "Copies", type="Number", default=1)
    memory = cdk.CfnParameter(made.stack, "Memory", type="Number", default=1024)
    made.component(
        copies=copies.value_as_number, accelerators=1, memory=Size.mebibytes(memory.value_as_number)
    ).scale(min_copies=0, max_copies=copies.value_as_number)
    component = template_of(made.stack).only("AWS::SageMaker::InferenceComponent")
    needs = component["Specification"]["ComputeResourceRequirements"]
    assert needs["MinMemoryRequiredInMb"] == {"Ref": "Memory"}
    assert component["RuntimeConfig"]["CopyCount"] == {"Ref": "Copies"}
