"""Real updates of an endpoint under traffic, and what its alarms do then and later."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from botocore.exceptions import ClientError

from local_sagemaker import LocalAws, RuntimeOptions, deploy_template
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from low_latency_endpoint import AlarmOptions, DeploymentPolicy, LatencyAlarms
from tests.deploy.small_stacks import (
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)

pytestmark = pytest.mark.realtime

NAME = "updated"
ROLLBACK = "RollbackprimaryInvocation5XXErrorsRate"
FAST = ServiceTime.constant(0.0)
FINE = SimulatedModelServer(service_time=FAST)
FAILING = SimulatedModelServer(service_time=FAST, failure_share=1.0)


@dataclass
class Updated:
    """An endpoint with three groups of alarms: loud, quiet during deployments, for rollback."""

    aws: LocalAws
    out: Path
    topic: str
    logical_ids: dict[str, str] = field(default_factory=dict)

    def synthesized(self, version: int) -> Path:
        """The stack, with an image of this version; made once for all tests."""
        out = self.out / str(version)
        if out.exists():
            return out
        stack = stack_in(out, "Updated", flags=True)
        network = network_in(stack)
        model = model_in(stack, network, f"model:{version}", "s3://models/m.tar.gz")
        endpoint = endpoint_in(
            stack,
            variant_of(model, 2),
            endpoint_name=NAME,
            deployment=DeploymentPolicy.canary(size_percent=50, wait=cdk.Duration.minutes(6)),
        )
        page = actions.SnsAction(sns.Topic.from_topic_arn(stack, "Topic", self.topic))
        silent = replace(AlarmOptions.none(), error_rate=0.01, minimum_failures=1)
        loud = replace(silent, actions=[page])
        held = replace(loud, quiet_during_deployments=True)
        LatencyAlarms(stack, "Loud", endpoint=endpoint, options=loud)
        LatencyAlarms(stack, "Held", endpoint=endpoint, options=held)
        rollback = LatencyAlarms(
            stack, "Rollback", endpoint=endpoint, options=silent, new_fleet_only=True
        )
        endpoint.roll_back_on(*rollback.alarms.values())
        return synthesised(stack)

    def created(self) -> str:
        """The stack's status after its creation, for which the clock has to move."""
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(self.deployed, 1)
            while not work.done():
                self.aws.advance(30)
                time.sleep(0.05)
            return work.result()

    def deployed(self, version: int) -> str:
        """The stack's status after a deployment."""
        found = deploy_template(self.aws, self.synthesized(version), "Updated")
        # Without the hash at the end.
        self.logical_ids |= {name: logical_id[:-8] for logical_id, name in found.resources.items()}
        return found.status

    def minutes(self, count: int, *failing: int) -> None:
        """Traffic for some minutes, in which the models of some versions fail."""
        self.aws.set_model_servers(
            {f"model:{version}": FAILING if version in failing else FINE for version in (1, 2)}
        )
        runtime = self.aws.client("sagemaker-runtime")
        for _ in range(count):
            for _ in range(10):
                with contextlib.suppress(ClientError if failing else ()):
                    runtime.invoke_endpoint(EndpointName=NAME, Body=b"{}")["Body"].read()
            self.aws.advance(60)

    def status(self) -> str:
        """Of the endpoint, or what its deployment is doing."""
        found = self.aws.client("sagemaker").describe_endpoint(EndpointName=NAME)
        pending = found.get("PendingDeploymentSummary", {}).get("ProductionVariants")
        return str(pending[0]["VariantStatus"][0]["Status"] if pending else found["EndpointStatus"])

    def until(self, status: str, work: Future[str], *failing: int) -> None:
        """Traffic until the endpoint's deployment does something; real time for the stack's."""
        while self.status() != status:
            assert not work.done(), work.result()
            self.minutes(1, *failing)
            time.sleep(0.05)

    def pages(self) -> dict[str, int]:
        """How often each group of alarms has paged."""
        took = [
            self.logical_ids[action["AlarmName"]]
            for action in self.aws.alarm_actions()
            if action["StateValue"] == "ALARM"
        ]
        return {group: took.count(f"{group}Composite") for group in ("Loud", "Held")}

    def on(self) -> set[str]:
        """The alarms in ALARM, by their logical IDs."""
        found = self.aws.client("cloudwatch").describe_alarms(
            StateValue="ALARM", AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        return {
            self.logical_ids[alarm["AlarmName"]]
            for alarm in found["MetricAlarms"] + found["CompositeAlarms"]
        }

    def own_requests(self) -> float:
        """Of the last minute, in the series with the configuration's name."""
        self.aws.flush_metrics()
        config = self.aws.client("sagemaker").describe_endpoint(EndpointName=NAME)[
            "EndpointConfigName"
        ]
        dimensions = {"EndpointName": NAME, "VariantName": "primary", "EndpointConfigName": config}
        end = self.aws.runtime_time().replace(second=0, microsecond=0)
        points = self.aws.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/SageMaker",
            MetricName="Invocations",
            Statistics=["Sum"],
            Period=60,
            StartTime=end - timedelta(minutes=2),
            EndTime=end,
            Dimensions=[{"Name": n, "Value": v} for n, v in dimensions.items()],
        )["Datapoints"]
        return sum(point["Sum"] for point in points)


@pytest.fixture(params=[True, False], ids=["series from create", "series from an update"])
def from_create(request) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("assemblies")


@pytest.fixture
def updated(from_create, assemblies) -> Iterator[Updated]:
    servers = {"model:1": FINE, "model:2": FINE}
    options = RuntimeOptions(
        clock_speed=0.0, seed=1, provision_time=120, configuration_metrics_from_create=from_create
    )
    with LocalAws.in_process(model_servers=servers, runtime=options) as aws:
        aws.reset()
        topic = aws.client("sns").create_topic(Name="Updated")["TopicArn"]
        here = Updated(aws, assemblies, topic)
        assert here.created() == "CREATE_COMPLETE"
        yield here
        aws.reset()


def test_incidents_page_after_an_update_too(updated, from_create):
    updated.minutes(5)
    assert (updated.own_requests() > 0) == from_create
    with ThreadPoolExecutor(1) as pool:
        update = pool.submit(updated.deployed, 2)
        updated.until("Baking", update)
        # The old fleet fails: whoever is not quiet pages, and nothing is rolled back.
        updated.minutes(4, 1)
        assert updated.pages() == {"Loud": 1, "Held": 0}
        assert updated.on() >= {"HeldComposite", "HeldQuiet", "HeldprimaryDeploying"}
        updated.until("InService", update)
        assert update.result() == "UPDATE_COMPLETE"
    updated.minutes(12)
    assert updated.own_requests() > 0
    assert updated.on() == set()
    updated.minutes(5, 2)
    assert updated.pages() == {"Loud": 2, "Held": 1}


def test_an_incident_of_the_former_fleet_does_not_roll_the_fix_back(updated, from_create):
    """The rollback alarm watches the new configuration from the update on, and is judged again
    while instances start.
    """
    updated.minutes(5, 1)
    assert (ROLLBACK in updated.on()) == from_create
    with ThreadPoolExecutor(1) as pool:
        update = pool.submit(updated.deployed, 2)
        updated.until("Baking", update, 1)
        updated.until("InService", update, 1)
        assert update.result() == "UPDATE_COMPLETE"
    updated.minutes(5)
    assert updated.on() == set()
