"""Inference components: models whose copies share the instances of an endpoint."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from alarms_under_test import dimensions, put_alarm
from botocore.exceptions import ClientError
from component_site import MANAGED, NEEDS, ROLE, Components, component_endpoint, refused
from hosting_site import IMAGE, Scaled, taking

from local_sagemaker.model_servers import SimulatedModelServer

NEEDED = {"ComputeResourceRequirements": NEEDS}
_numbers = itertools.count(1)


@pytest.fixture
def on(site):
    """Give a local AWS with an endpoint for components; they go before it does."""
    made = []

    def start(
        servers: dict[str, Any] | None = None,
        managed: dict[str, Any] | None = MANAGED,
        **options: Any,
    ) -> Components:
        here = site(servers or {"model": taking(0.0)}, **options)
        found = Components(here, component_endpoint(here, managed))
        made.append(found)
        return found

    yield start
    for each in made:
        for name in each.listed(EndpointNameEquals=each.endpoint):
            each.delete(name)


# ------------------------------------------------------------------------------------ the API


def test_a_component_comes_into_service_and_is_found(on):
    it = on()
    model = it.here.model()
    name = it.create(ModelName=model, StartupParameters={"ModelDataDownloadTimeoutInSeconds": 60})
    found = it.described(name)
    assert found["InferenceComponentArn"] == (
        f"arn:aws:sagemaker:us-east-1:123456789012:inference-component/{name}"
    )
    assert found["EndpointArn"].endswith(f"endpoint/{it.endpoint}")
    assert found["VariantName"] == "primary"
    assert found["Specification"]["ModelName"] == model
    assert found["RuntimeConfig"] == {"DesiredCopyCount": 1, "CurrentCopyCount": 1}
    assert it.listed(EndpointNameEquals=it.endpoint, StatusEquals="InService") == [name]
    assert it.listed(EndpointNameEquals="another") == []
    assert it.listed(EndpointNameEquals=it.endpoint, StatusEquals="Failed") == []
    arn = found["InferenceComponentArn"]
    it.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}])
    assert it.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "a", "Value": "1"}]


def test_a_container_of_its_own(on):
    it = on()
    name = it.create(Container={"Image": IMAGE.format("model"), "Environment": {"A": "1"}})
    deployed = it.described(name)["Specification"]["Container"]
    assert deployed["DeployedImage"]["SpecifiedImage"] == IMAGE.format("model")
    assert deployed["Environment"] == {"A": "1"}
    assert it.invoke(name)["InvokedProductionVariant"] == "primary"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"RuntimeConfig": {"CopyCount": 0}}, "copy count an integer larger than 0"),
        ({"EndpointName": "nowhere"}, "Could not find endpoint"),
        ({"VariantName": "other"}, "is not present within endpoint configuration"),
        ({"Specification": {"ModelName": "none", **NEEDED}}, "find model"),
        ({"Specification": NEEDED}, "One and only one of"),
        ({"Specification": {"Container": {"Image": "x"}}}, "ComputeResourceRequirements must be"),
        ({"Specification": {"BaseInferenceComponentName": "b"}}, "not emulated"),
    ],
)
def test_a_component_without_a_place_is_refused(on, change, word):
    it = on()
    request = {
        "InferenceComponentName": "refused",
        "EndpointName": it.endpoint,
        "VariantName": "primary",
        "Specification": {"Container": {"Image": "x"}, **NEEDED},
        "RuntimeConfig": {"CopyCount": 1},
        **change,
    }
    refused(word, it.sagemaker.create_inference_component, **request)
    assert "refused" not in it.listed()


def test_a_variant_with_a_model_hosts_none(on):
    it = on()
    it.endpoint = it.here.endpoint()
    with pytest.raises(ClientError, match="has a model"):
        it.create()


def test_an_endpoint_that_is_not_in_service_hosts_none(on):
    it = on({"model": SimulatedModelServer(cold_start=60)})
    it.endpoint = it.here.endpoint(wait=False)
    with pytest.raises(ClientError, match="only be created on one that is InService"):
        it.create()
    it.here.aws.advance(60)


def configuration(**more: Any) -> dict[str, Any]:
    variant = {
        "VariantName": "primary",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
        "ManagedInstanceScaling": MANAGED,
        **more.pop("variant", {}),
    }
    name = f"config-{next(_numbers)}-c"
    request = {"EndpointConfigName": name, "ExecutionRoleArn": ROLE, **more}
    request = {key: value for key, value in request.items() if value is not None}
    return {**request, "ProductionVariants": [variant]}


def test_what_a_configuration_needs_for_components(on):
    it = on()
    create = it.sagemaker.create_endpoint_config
    refused("ExecutionRoleArn must be specified", create, **configuration(ExecutionRoleArn=None))
    of_model = configuration(variant={"ModelName": it.here.model()})
    refused("only supported for inference component endpoints", create, **of_model)
    made = configuration()
    create(**made)
    found = it.sagemaker.describe_endpoint_config(EndpointConfigName=made["EndpointConfigName"])
    assert found["ProductionVariants"][0]["ManagedInstanceScaling"] == MANAGED


def test_where_managed_scaling_does_not_reach_zero(site):
    create = site({}, managed_scaling_to_zero=False).aws.client("sagemaker").create_endpoint_config
    refused("Min instance count needs to be greater than 0", create, **configuration())
    create(**configuration(variant={"ManagedInstanceScaling": {**MANAGED, "MinInstanceCount": 1}}))


def test_the_endpoint_goes_after_its_components(on):
    it = on()
    name = it.create()
    refused("while inference components", it.sagemaker.delete_endpoint, EndpointName=it.endpoint)
    it.delete(name)
    it.sagemaker.delete_endpoint(EndpointName=it.endpoint)
    refused("Could not find", it.sagemaker.describe_endpoint, EndpointName=it.endpoint)


def test_one_that_is_creating_cannot_be_deleted(on):
    it = on({"model": SimulatedModelServer(cold_start=60)})
    name = it.create(wait=False)
    delete = it.sagemaker.delete_inference_component
    refused("in-progress", delete, InferenceComponentName=name)
    refused("no capacity", it.invoke, name=name)
    it.here.aws.advance(60)
    assert it.copies(name) == 1


def test_it_is_deleting_until_its_last_request_is_answered(on):
    it = on({"model": taking(1.0)})
    name = it.create()
    it.here.aws.client("sagemaker-runtime")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(it.invoke, name)
        time.sleep(0.3)
        it.sagemaker.delete_inference_component(InferenceComponentName=name)
        assert it.described(name)["InferenceComponentStatus"] == "Deleting"
        assert answer.result()["ResponseMetadata"]["HTTPStatusCode"] == 200
    it.gone(name)


# ------------------------------------------------------------------------------------- room


@pytest.mark.parametrize(("copies", "chips"), [(3, 1), (1, 2)], ids=["too many", "too large"])
def test_copies_without_room_fail(on, copies, chips):
    it = on()  # a GPU on each of two instances at most
    needs = {**NEEDS, "NumberOfAcceleratorDevicesRequired": chips}
    name = it.create(copies, wait=False, ComputeResourceRequirements=needs)
    found = it.settled(name)
    assert found["InferenceComponentStatus"] == "Failed"
    assert "not enough hardware resources" in found["FailureReason"]
    assert it.copies(it.create(1)) == 1
    if chips == 1:  # a failed one may be tried again
        assert it.copies(name, 1) == 1


def test_other_components_take_room_too(on):
    it = on(managed=None)
    first = it.create(1)
    second = it.create(1, wait=False)
    assert it.settled(second)["InferenceComponentStatus"] == "Failed"
    without_gpu = it.create(1, ComputeResourceRequirements={"MinMemoryRequiredInMb": 15000})
    assert it.copies(without_gpu, 2) == 1  # 16 GiB
    found = it.described(without_gpu)
    assert found["InferenceComponentStatus"] == "InService"
    assert "not enough hardware resources" in found["FailureReason"]
    it.delete(first)
    it.delete(without_gpu)
    assert it.copies(second, 1) == 1


def test_managed_instances_follow_the_copies(on):
    it = on()
    name = it.create(1)
    assert it.instances() == 1
    assert (it.copies(name, 2), it.instances()) == (2, 2)
    assert (it.copies(name, 0), it.instances()) == (0, 0)


def test_a_container_that_is_not_healthy_fails_it(on):
    it = on({"model": SimulatedModelServer(), "broken": SimulatedModelServer(ping_status=500)})
    name = it.create(wait=False, ModelName=it.here.model("broken"))
    it.here.aws.advance(300)
    found = it.settled(name)
    assert found["InferenceComponentStatus"] == "Failed"
    words = f"inference component {name} did not pass the ping health check"
    assert words in found["FailureReason"]
    assert it.copies(it.create(2)) == 2  # it takes no room


# ------------------------------------------------------------------------------- invocations


def test_two_models_behind_one_endpoint(on):
    it = on({"model": SimulatedModelServer(), "other": SimulatedModelServer(failure_share=1.0)})
    good, bad = it.create(), it.create(ModelName=it.here.model("other"))
    assert it.invoke(good, b"hello")["ResponseMetadata"]["HTTPStatusCode"] == 200
    with pytest.raises(ClientError, match="ModelError"):
        it.invoke(bad)
    events = it.here.aws.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
        EndpointName=it.endpoint, InferenceComponentName=good, Body=b"streamed"
    )["Body"]
    assert b"".join(event["PayloadPart"]["Bytes"] for event in events)
    assert (it.sum(good, "Invocations"), it.sum(bad, "InvocationModelErrors")) == (2.0, 1.0)


def test_copies_outlive_an_update_of_their_endpoint(on):
    it = on()
    name = it.create()
    made = configuration(variant={"ManagedInstanceScaling": {**MANAGED, "MaxInstanceCount": 3}})
    it.sagemaker.create_endpoint_config(**made)
    it.here.update(it.endpoint, made["EndpointConfigName"])
    assert it.here.settled(it.endpoint)["EndpointConfigName"] == made["EndpointConfigName"]
    assert it.invoke(name)["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert it.copies(name, 3) == 3


def test_the_instances_are_in_the_network_of_the_configuration(on):
    it = on()
    ec2 = it.here.aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    place = {"CidrBlock": "10.0.0.0/24", "AvailabilityZone": "us-east-1c"}
    subnet = ec2.create_subnet(VpcId=vpc, **place)["Subnet"]["SubnetId"]
    group = ec2.create_security_group(VpcId=vpc, GroupName="c", Description="c")["GroupId"]
    network = {"SecurityGroupIds": [group], "Subnets": [subnet]}
    enhanced = {"EnableEnhancedMetrics": True}
    it.endpoint = component_endpoint(it.here, VpcConfig=network, MetricsConfig=enhanced)
    held = ec2.describe_network_interfaces(Filters=[{"Name": "subnet-id", "Values": [subnet]}])
    assert len(held["NetworkInterfaces"]) == 1
    name = it.create()
    it.invoke(name)
    it.here.aws.flush_metrics()
    by_zone = it.here.aws.client("cloudwatch").list_metrics(
        Namespace="AWS/SageMaker",
        MetricName="Invocations",
        Dimensions=dimensions(InferenceComponentName=name, AvailabilityZone="us-east-1c"),
    )["Metrics"]
    assert len(by_zone) == 1


def test_the_component_must_be_named_and_known(on):
    it = on()
    it.create()
    refused("header is required", it.here.invoke, name=it.endpoint)
    refused("not found", it.invoke, name="unknown")
    refused("not found", it.invoke, name=on().create())


def test_a_session_stays_with_its_component(on):
    it = on()
    name, other = it.create(), it.create()
    session = it.invoke(name, SessionId="NEW_SESSION")["NewSessionId"]
    assert it.invoke(name, SessionId=session)["ResponseMetadata"]["HTTPStatusCode"] == 200
    with pytest.raises(ClientError, match=r"Session .* not found"):
        it.invoke(other, SessionId=session)


def test_metrics_are_the_components_own(on):
    it = on()
    name = it.create(2)
    for _ in range(4):
        it.invoke(name)
    assert it.sum(name, "Invocations") == 4
    assert it.sum(name, "InvocationsPerCopy") == 2
    assert it.sum(name, "OverheadLatency") > 0
    assert it.sum(name, "ModelLatency") is not None
    assert it.sum(name, "InvocationsPerInstance") is None
    assert it.here.statistics(it.endpoint, "Invocations", "Sum") == {}
    group = f"/aws/sagemaker/InferenceComponents/{name}"
    groups = it.here.aws.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    assert [found["logGroupName"] for found in groups] == [group]


def test_another_model_in_place(on):
    it = on({"model": SimulatedModelServer(), "broken": SimulatedModelServer(ping_status=500)})
    name, former = it.create(), it.here.model()
    update = it.sagemaker.update_inference_component
    wanted = {"ModelName": former, **NEEDED}
    update(InferenceComponentName=name, Specification=wanted, RuntimeConfig={"CopyCount": 2})
    assert it.copies(name) == 2
    assert it.described(name)["Specification"]["ModelName"] == former
    broken = {**wanted, "ModelName": it.here.model("broken")}
    update(InferenceComponentName=name, Specification=broken)
    assert it.described(name)["InferenceComponentStatus"] == "Updating"
    assert it.invoke(name)["ResponseMetadata"]["HTTPStatusCode"] == 200  # the former copies serve
    it.here.aws.advance(300)
    found = it.settled(name)
    assert found["InferenceComponentStatus"] == "InService"
    assert "ping health check" in found["FailureReason"]
    assert found["Specification"]["ModelName"] == former


# ----------------------------------------------------------------------------------- scaling


class ScaledCopies(Scaled):
    """A component that Application Auto Scaling moves."""

    def __init__(self, it: Components, name: str, least: int = 0, most: int = 2) -> None:
        super().__init__(it.here, f"inference-component/{name}")
        self.it, self.name = it, name
        self.register(least, most)

    def from_zero(self, **more: Any) -> None:
        """Add a copy for each alarm about requests that found none, as AWS's guide shows it."""
        one_more = {"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}
        arn = self.step(one_more, MetricAggregationType="Maximum", **{"Cooldown": 60, **more})
        put_alarm(
            self.here.aws.client("cloudwatch"),
            f"no-capacity-{self.name}",
            "NoCapacityInvocationFailures",
            AlarmActions=[arn],
            Namespace="AWS/SageMaker",
            Dimensions=dimensions(InferenceComponentName=self.name),
        )

    def minute(self, requests: int = 0) -> int:
        for _ in range(requests):
            self.it.invoke(self.name)
        self.here.aws.advance(60)
        return self.it.copies(self.name)


def test_only_a_component_that_exists_is_a_target(on):
    it = on()
    refused("names no inference component", ScaledCopies, it=it, name="none")
    key = Scaled(it.here, f"inference-component/{it.create()}").key
    wrong = {**key, "ScalableDimension": "sagemaker:variant:DesiredInstanceCount"}
    register = it.here.aws.client("application-autoscaling").register_scalable_target
    refused("Unsupported", register, **wrong, MinCapacity=1, MaxCapacity=2)


def test_nobody_calls_and_only_the_endpoint_tells_zero(on):
    """Seen (recorded, R5): an endpoint has a zero for each minute, a component has no data."""
    it = on()
    name, here = it.create(), it.here
    endpoint = here.endpoint()
    here.aws.advance(300)
    assert it.sum(name, "Invocations") is None
    assert here.statistics(endpoint, "Invocations", "Sum") == {"Sum": 0.0}
    it.invoke(name)
    assert it.sum(name, "Invocations") == 1


def test_copies_follow_the_traffic_to_zero_and_an_alarm_brings_them_back(on):
    it = on()
    scaled = ScaledCopies(it, it.create())
    scaled.track(6.0, "InferenceComponentInvocationsPerCopy", ScaleInCooldown=0)
    scaled.from_zero()
    assert [scaled.minute(12) for _ in range(3)] == [1, 1, 2]
    assert [scaled.minute() for _ in range(15)][-1] == 0
    assert it.instances() == 0
    assert refused("no capacity", it.invoke, name=scaled.name) == "ValidationError"
    assert it.sum(scaled.name, "NoCapacityInvocationFailures") == 1
    assert scaled.minute() == 1
    assert it.invoke(scaled.name)["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert [a["Description"] for a in scaled.activities] == [
        f"Setting desired copy count to {count}." for count in (1, 0, 2)
    ]
    assert {a["StatusCode"] for a in scaled.activities} == {"Successful"}


def test_the_ten_second_metric_of_copies(on):
    it = on({"model": taking(0.1, concurrency=8)})
    scaled = ScaledCopies(it, it.create(), least=1)
    scaled.track(2.0, "InferenceComponentConcurrentRequestsPerCopyHighResolution")
    found = []
    for _ in range(3):
        it.here.invoke_many(it.endpoint, 4, at_once=4, InferenceComponentName=scaled.name)
        it.here.aws.advance(10)
        found.append(it.copies(scaled.name))
    assert found == [1, 1, 2]


def test_a_step_waits_for_its_cooldown_and_a_full_house_fails_the_activity(on):
    it = on()
    scaled = ScaledCopies(it, it.create(), most=5)
    scaled.from_zero(Cooldown=150)
    assert it.copies(scaled.name, 0) == 0

    def failing_minute() -> int:
        # Without capacity the alarm has its metric; later ones put it themselves.
        data = {
            "MetricName": "NoCapacityInvocationFailures",
            "Value": 1.0,
            "Dimensions": dimensions(InferenceComponentName=scaled.name),
            "Timestamp": it.here.aws.runtime_time(),
        }
        it.here.aws.client("cloudwatch").put_metric_data(
            Namespace="AWS/SageMaker", MetricData=[data]
        )
        return scaled.minute()

    assert [failing_minute() for _ in range(5)] == [1, 1, 1, 2, 2]
    assert [failing_minute() for _ in range(2)] == [2, 2]  # a third copy has no GPU
    activity = scaled.activities[0]
    assert activity["StatusCode"] == "Failed"
    assert "not enough hardware resources" in activity["StatusMessage"]
