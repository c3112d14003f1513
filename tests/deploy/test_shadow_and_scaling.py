"""A shadow variant, its comparison, set times and steps: deployed, called and read on the local AWS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling

from local_sagemaker import LocalAws, RuntimeOptions, delete_stack, deploy_template
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from low_latency_endpoint import (
    AlarmOptions,
    LatencyAlarms,
    LatencyDashboard,
    ProductionVariant,
    ShadowAlarms,
)
from low_latency_endpoint.hosting.scaling import ScalingStep
from tests.deploy.small_stacks import (
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)
from tests.load_test.locust_runs import until

SERVERS = {
    "now": SimulatedModelServer(service_time=ServiceTime.constant(0.002)),
    # A hundred times the time of what serves now, that no busy machine makes up for.
    "next": SimulatedModelServer(service_time=ServiceTime.constant(0.2), concurrency=8),
}
NAME, STACK = "shadowed", "Shadowed"


def assembly(folder: Path) -> Path:
    stack = stack_in(folder, STACK)
    network = network_in(stack)

    def variant(name: str, server: str, count: int) -> ProductionVariant:
        return variant_of(model_in(stack, network, f"{server}:1", id=server), count, name=name)

    endpoint = endpoint_in(
        stack,
        variant("primary", "now", 2),
        shadow=variant("candidate", "next", 1),
        endpoint_name=NAME,
        confirm_updates=False,
    )
    candidate = endpoint.variant("candidate")
    scaling = endpoint.scale("candidate", min_instances=1, max_instances=4).track_invocations(
        max_tps_per_instance=100
    )
    scaling.on_schedule(
        "morning",
        schedule=appscaling.Schedule.expression("cron(45 7 ? * MON-FRI *)"),
        time_zone="Europe/Berlin",
        min_instances=2,
        max_instances=6,
    )
    scaling.step_on_metric(
        "Steps",
        metric=candidate.metric("ConcurrentRequestsPerModel", statistic="Maximum"),
        threshold=8,
        steps=[ScalingStep(lower=0, change=2)],
    )
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(AlarmOptions.none(), model_latency={"p99": Duration.seconds(1)}),
    )
    ShadowAlarms(
        stack,
        "Candidate",
        endpoint=endpoint,
        latency_ratio={"p99": 2},
        error_rate=0.01,
        evaluation_periods=1,
        datapoints_to_alarm=1,
    )
    LatencyDashboard(stack, "Dashboard", endpoint=endpoint, alarms=alarms)
    return synthesised(stack)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    options = RuntimeOptions(clock_speed=0, interfaces_stay=0, seed=1)
    with LocalAws.in_process(model_servers=SERVERS, runtime=options) as running:
        yield running


@pytest.fixture(scope="module")
def first_counts(
    aws: LocalAws, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, int]]:
    """The instances of each variant right after the deployment; later tests make them scale."""
    folder = assembly(tmp_path_factory.mktemp("shadowed"))
    deploy_template(aws, folder, STACK)
    endpoint = aws.client("sagemaker").describe_endpoint(EndpointName=NAME)
    variants = endpoint["ProductionVariants"] + endpoint["ShadowProductionVariants"]
    yield {variant["VariantName"]: variant["CurrentInstanceCount"] for variant in variants}
    delete_stack(aws, STACK)


@pytest.fixture(scope="module")
def deployed(aws: LocalAws, first_counts: dict[str, int]) -> LocalAws:
    return aws


def copies(aws: LocalAws) -> float:
    """How many copies of requests the candidate has answered in this minute."""
    aws.flush_metrics()
    now = aws.runtime_time()
    points = aws.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName="ModelLatency",
        Dimensions=[
            {"Name": "EndpointName", "Value": NAME},
            {"Name": "VariantName", "Value": "candidate"},
        ],
        StartTime=now.replace(second=0, microsecond=0),
        EndTime=now + timedelta(minutes=1),
        Period=60,
        Statistics=["SampleCount"],
    )["Datapoints"]
    return sum(each["SampleCount"] for each in points)


def test_both_variants_run(first_counts: dict[str, int]) -> None:
    assert first_counts == {"primary": 2, "candidate": 1}


def test_the_comparison_alarms_on_a_slower_candidate_and_pages_stay_quiet(
    deployed: LocalAws,
) -> None:
    runtime = deployed.client("sagemaker-runtime")
    deployed.advance(60.001 - deployed.runtime_time().timestamp() % 60)
    for _ in range(40):
        answer = runtime.invoke_endpoint(EndpointName=NAME, Body=b"{}")
        assert answer["InvokedProductionVariant"] == "primary"
    cloudwatch = deployed.client("cloudwatch")
    until(lambda: copies(deployed) >= 40, 60)
    deployed.advance(60)
    states = {
        alarm["AlarmName"]: alarm["StateValue"]
        for alarm in cloudwatch.describe_alarms(AlarmTypes=["MetricAlarm"])["MetricAlarms"]
    }
    on = [name for name, state in states.items() if state == "ALARM"]
    (slow,) = [name for name in on if "Candidate" in name]
    assert "ModelLatency" in slow
    pages = cloudwatch.describe_alarms(AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]
    assert [page["StateValue"] for page in pages] == ["OK"]


def test_the_shadow_scales_by_policies_and_set_times(deployed: LocalAws) -> None:
    scaling = deployed.client("application-autoscaling")
    where = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/candidate"}
    kinds = {
        policy["PolicyType"]
        for policy in scaling.describe_scaling_policies(**where)["ScalingPolicies"]
    }
    assert kinds == {"TargetTrackingScaling", "StepScaling"}
    (action,) = scaling.describe_scheduled_actions(**where)["ScheduledActions"]
    assert action["Schedule"] == "cron(45 7 ? * MON-FRI *)"
    assert action["Timezone"] == "Europe/Berlin"
    assert action["ScalableTargetAction"] == {"MinCapacity": 2, "MaxCapacity": 6}
