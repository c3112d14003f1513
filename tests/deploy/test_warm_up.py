"""The warm-up deployed: create, update, rollback and delete, with its functions really running.

Behind SageMaker Runtime stands a loopback server, so that a test can say how the model behaves.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from waiting import wait_for

from local_sagemaker import DeployedStack, LocalAws, delete_stack, deploy_template, lambda_runner
from local_sagemaker.runtime.http_server import Connection, Request, listening
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_endpoint import (
    KeepWarmOptions,
    LatencyTarget,
    RuntimePrivateLink,
    WarmUp,
    WarmUpOptions,
    WarmUpPayload,
)
from tests.deploy.small_stacks import (
    Assemblies,
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)

pytestmark = pytest.mark.realtime


@dataclass
class Fleet:
    """The model behind the endpoint."""

    seconds: float = 0.0
    refusal: str = ""
    bodies: list[bytes] = field(default_factory=list)

    def wait_for(self, requests: int) -> None:
        """Wait until so many have come, and no more."""
        wait_for(lambda: len(self.bodies) >= requests)
        assert len(self.bodies) == requests


@pytest.fixture(scope="module")
def model() -> Iterator[Fleet]:
    """Functions of the local AWS reach this model as SageMaker Runtime."""
    model = Fleet()

    async def answer(request: Request, connection: Connection) -> None:
        model.bodies.append(request.body)
        await asyncio.sleep(model.seconds)
        if not model.refusal:
            return connection.send(200, (), b"[]")
        refusal = {"OriginalStatusCode": 400, "OriginalMessage": model.refusal}
        body = json.dumps({"Message": "ModelError", **refusal}).encode()
        return connection.send(424, [("x-amzn-ErrorType", "ModelError")], body)

    environment = lambda_runner._environment

    def with_fleet(function: lambda_runner.PythonFunction, scratch: str) -> dict[str, str]:
        url = f"http://127.0.0.1:{listener.port}"
        return {**environment(function, scratch), "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": url}

    with listening(answer) as listener, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lambda_runner, "_environment", with_fleet)
        yield model


@pytest.fixture
def fleet(model: Fleet) -> Iterator[Fleet]:
    """The model, healthy and without requests."""
    model.bodies.clear()
    yield model
    model.seconds, model.refusal = 0.0, ""


@dataclass(frozen=True)
class Made:
    """A stack after a deployment."""

    stack: DeployedStack

    def one(self, prefix: str) -> str:
        """The physical ID of the one resource whose logical ID starts so."""
        (found,) = [
            physical
            for logical, physical in self.stack.resources.items()
            if logical.startswith(prefix)
        ]
        return found


Deploy = Callable[..., Made]


def synthesise(
    out: Path,
    name: str,
    *,
    instances: int = 1,
    keep_warm: bool = False,
    described: str = "",
    timeout: int = 30,
    p99: float | None = None,
    **warm_up: Any,
) -> None:
    """A small endpoint with a warm-up; its target in milliseconds."""
    stack = stack_in(out, name, flags=True, description=described or None)
    network = network_in(stack)
    link = RuntimePrivateLink(stack, "Link", network=network)
    model = model_in(stack, network, data="s3://models/model.tar.gz")
    endpoint = endpoint_in(stack, variant_of(model, instances))
    link.serve(endpoint.name_in(link))
    given = {"payload": WarmUpPayload(text="hello"), "requests": 20, "last": 5, **warm_up}
    warm = WarmUp(
        stack,
        "WarmUp",
        endpoint=endpoint,
        private_link=link,
        network=network,
        options=WarmUpOptions(timeout=timedelta(seconds=max(timeout, 10)), **given),
        latency=LatencyTarget(p99=cdk.Duration.millis(p99)) if p99 is not None else None,
    )
    if timeout < 10:  # less than the construct allows, so that a miss costs no 10 seconds
        resource = warm.node.find_child("Resource").node.default_child
        resource.add_property_override("TimeoutSeconds", timeout)
    if keep_warm:
        warm.keep_warm(KeepWarmOptions(requests_per_zone=2))
    for key, value in {
        "Outcome": warm.outcome,
        "Requests": warm.requests_sent,
        "Zones": warm.zones_report,
        "Failed": warm.failed_requests,
        "EndpointName": endpoint.endpoint_name,
    }.items():
        cdk.CfnOutput(stack, key, value=value)
    synthesised(stack)


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Assemblies:
    return Assemblies(tmp_path_factory.mktemp("assemblies"), synthesise)


def deploying(aws: LocalAws, assemblies: Assemblies, name: str) -> Deploy:
    def run(*, expect_failure: bool = False, **kind: Any) -> Made:
        out = assemblies.of(name, **kind)
        return Made(deploy_template(aws, out, name, expect_failure=expect_failure))

    return run


@pytest.fixture
def deploy(aws: LocalAws, assemblies: Assemblies) -> Iterator[Deploy]:
    """Deploy a small endpoint with a warm-up; the same stack again updates it."""
    yield deploying(aws, assemblies, "WarmUp")
    delete_stack(aws, "WarmUp")


@dataclass(frozen=True)
class Warm:
    """A stack that tests only read, and the requests that its creation has sent."""

    made: Made
    bodies: list[bytes]


@pytest.fixture(scope="module")
def warm(aws: LocalAws, model: Fleet, assemblies: Assemblies) -> Iterator[Warm]:
    """One with a target, kept warm."""
    model.bodies.clear()
    made = deploying(aws, assemblies, "Warm")(p99=5000, keep_warm=True)
    yield Warm(made, list(model.bodies))
    delete_stack(aws, "Warm")


def logged(aws, made: Made, function: str) -> list[dict[str, Any]]:
    """The JSON lines that a function has logged."""
    group = made.one(function.replace("Function", "Logs"))
    events = aws.client("logs").filter_log_events(logGroupName=group)["events"]
    lines = [line for event in events for line in event["message"].splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_a_create_warms_up_and_reports(aws, warm):
    made, outputs = warm.made, warm.made.stack.outputs
    assert (outputs["Outcome"], outputs["Failed"]) == ("met", "0")
    assert int(outputs["Requests"]) == len(warm.bodies) >= 20
    assert set(warm.bodies) == {b"hello"}
    zones = json.loads(outputs["Zones"])
    assert set(zones) == {"use1-az1", "use1-az2"}
    for zone in zones.values():
        assert zone["requests"] >= 10
        assert 0 < zone["last"]["p50"] <= zone["last"]["p99"] <= 5000
    (report,) = [
        line for line in logged(aws, made, "WarmUpControllerFunction") if line["event"] == "warm-up"
    ]
    assert report["endpoint"] == outputs["EndpointName"]
    served = aws.client("sagemaker").describe_endpoint(EndpointName=outputs["EndpointName"])
    assert report["configuration"] == served["EndpointConfigName"]


class TestInANewAccount:
    """AWS gives new accounts 10 concurrent executions and lets none of them be reserved."""

    @pytest.fixture(scope="class")
    @classmethod
    def aws(cls):
        with LocalAws.in_process(runtime=RuntimeOptions(concurrent_executions=10)) as running:
            yield running

    def test_the_stack_is_created_and_warms_up(self, aws, fleet, deploy):
        made = deploy()
        assert (made.stack.status, made.stack.outputs["Outcome"]) == ("CREATE_COMPLETE", "sent")


def test_a_new_configuration_warms_up_again_and_nothing_else_does(aws, fleet, deploy):
    first = deploy()
    sent = len(fleet.bodies)
    assert sent == 20
    deploy(described="another description")
    assert len(fleet.bodies) == sent
    second = deploy(instances=2)
    assert len(fleet.bodies) == 2 * sent
    assert second.one("WarmUpE31EFA2C") == first.one("WarmUpE31EFA2C")
    assert first.one("Configuration") != second.one("Configuration")


def test_a_miss_fails_the_create_and_leaves_nothing(aws, fleet, deploy):
    fleet.seconds = 0.05
    made = deploy(p99=1, timeout=2, expect_failure=True)
    assert made.stack.status == "ROLLBACK_COMPLETE"
    assert "Warm-up missed: within 2 s" in made.stack.failure_reason
    assert "p99 1 ms" in made.stack.failure_reason
    assert made.stack.resources == {}


def test_an_update_that_is_refused_rolls_back_although_the_old_fleet_refuses_too(
    aws, fleet, deploy
):
    before = deploy(p99=5000)
    fleet.refusal = "inputs: field required"
    sent = len(fleet.bodies)
    failed = deploy(p99=5000, instances=2, expect_failure=True)
    assert failed.stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "the model answered 400: inputs: field required" in failed.stack.failure_reason
    # A few for the new configuration, a few for the one that came back.
    assert sent < len(fleet.bodies) <= sent + 2 * 2 * 8
    endpoint = aws.client("sagemaker").describe_endpoint(
        EndpointName=before.stack.outputs["EndpointName"]
    )
    assert endpoint["ProductionVariants"][0]["CurrentInstanceCount"] == 1
    reports = [
        line
        for line in logged(aws, failed, "WarmUpControllerFunction")
        if line["event"] == "warm-up"
    ]
    assert [report["outcome"] for report in reports] == ["met", "refused", "refused"]
    assert [bool(report["target_ms"]) for report in reports] == [True, True, False]


def test_the_schedule_keeps_it_warm_while_traffic_is_low(aws, fleet, warm):
    made = warm.made
    events = aws.client("events")
    rule = made.one("WarmUpControllerKeepWarm4")
    assert events.describe_rule(Name=rule)["ScheduleExpression"] == "rate(1 minute)"
    (to,) = events.list_targets_by_rule(Rule=rule)["Targets"]
    lambda_ = aws.client("lambda")
    answer = lambda_.invoke(FunctionName=to["Arn"], Payload=to["Input"])
    assert json.loads(answer["Payload"].read()) == "sent"
    fleet.wait_for(2 * 2)  # the sender is started without waiting for it


def test_a_deployment_that_bakes_is_sent_to(aws, fleet, warm):
    made = warm.made
    arn = aws.client("sagemaker").describe_endpoint(
        EndpointName=made.stack.outputs["EndpointName"]
    )["EndpointArn"]
    events = aws.client("events")
    rule = made.one("WarmUpControllerDeployments1")
    event = {
        "source": "aws.sagemaker",
        "resources": [arn],
        "detail-type": "SageMaker Endpoint Deployment State Change",
        "detail": {
            "PendingDeploymentSummary": {
                "ProductionVariants": [
                    {"VariantName": "primary", "VariantStatus": [{"Status": "Baking"}]}
                ]
            }
        },
    }
    pattern = json.loads(events.describe_rule(Name=rule)["EventPattern"])
    assert pattern == {
        "source": [event["source"]],
        "detail-type": [event["detail-type"]],
        "resources": [arn],
    }
    (to,) = events.list_targets_by_rule(Rule=rule)["Targets"]
    answer = aws.client("lambda").invoke(FunctionName=to["Arn"], Payload=json.dumps(event))
    assert json.loads(answer["Payload"].read()) == "sent"
    fleet.wait_for(20)


def test_a_delete_does_not_wait_for_a_model_that_is_gone(aws, fleet, warm):
    """The last one here: the stack is gone then."""
    fleet.seconds = 3600
    delete_stack(aws, warm.made.stack.name)
    assert fleet.bodies == []
    for rule in aws.client("events").list_rules()["Rules"]:
        assert not rule["Name"].startswith(f"{warm.made.stack.name}-")
