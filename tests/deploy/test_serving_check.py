"""A rollback of SageMaker's fails the deployment, whatever CloudFormation makes of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from local_sagemaker import LocalAws, delete_stack, deploy_template
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_endpoint import (
    DeploymentPolicy,
    RuntimePrivateLink,
    WarmUp,
    WarmUpOptions,
    WarmUpPayload,
)
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.stuck_stacks import way_out
from tests.deploy.small_stacks import (
    ACCOUNT,
    REGION,
    Assemblies,
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)

pytestmark = pytest.mark.realtime
SERVERS = {
    "good": SimulatedModelServer(service_time=ServiceTime.constant(0.0)),
    "sick": SimulatedModelServer(ping_status=500),
}
NAME, STACK = "checked", "Checked"
ROOT = Path(__file__).parents[2]
_ALLOWED = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def synthesise(
    out: Path,
    server: str = "good",
    *,
    warm_up: bool = False,
    scaled: bool = False,
    watched: bool = False,
    instances: int = 2,
    **given: Any,
) -> None:
    stack = stack_in(out, STACK)
    network = network_in(stack)
    model = model_in(stack, network, f"{server}:1")
    if watched:
        name = {"EndpointName": NAME}
        errors = cloudwatch.Metric(
            namespace="AWS/SageMaker", metric_name="Invocation5XXErrors", dimensions_map=name
        )
        given["rollback_alarms"] = [
            errors.create_alarm(stack, "Errors", threshold=1, evaluation_periods=1)
        ]
    patience = {"startup_health_check_timeout": Duration.seconds(60)}
    endpoint = endpoint_in(
        stack, variant_of(model, instances, **patience), endpoint_name=NAME, **given
    )
    if scaled:
        endpoint.scale("primary", min_instances=2, max_instances=8).track_invocations(
            max_tps_per_instance=100
        )
    if warm_up:
        WarmUp(
            stack,
            "WarmUp",
            endpoint=endpoint,
            private_link=RuntimePrivateLink(stack, "Link", network=network),
            network=network,
            options=WarmUpOptions(payload=WarmUpPayload(data={"inputs": "x"}), requests=4, last=1),
        )
    synthesised(stack)


def policy_of(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class Site:
    """The stack with one endpoint in a local AWS of the test's own."""

    def __init__(self, aws: LocalAws, assemblies: Assemblies) -> None:
        self.aws, self.assemblies = aws, assemblies

    def deploy(self, *which: str, **given: Any) -> Any:
        return deploy_template(
            self.aws, self.assemblies.of(*which, **given), STACK, expect_failure=True
        )

    def described(self) -> dict[str, Any]:
        return dict(self.aws.client("sagemaker").describe_endpoint(EndpointName=NAME))

    def configurations(self) -> list[str]:
        found = self.aws.client("sagemaker").list_endpoint_configs(NameContains=STACK)
        return [each["EndpointConfigName"] for each in found["EndpointConfigs"]]

    def bootstrap(self) -> None:
        """Make the role of the bootstrap stack that a rollback by the CDK CLI needs."""
        iam = self.aws.client("iam")
        service = {"Service": "cloudformation.amazonaws.com"}
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": service}
        role = f"cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-{REGION}"
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=policy_of(trust))
        iam.put_role_policy(RoleName=role, PolicyName="all", PolicyDocument=policy_of(_ALLOWED))

    def continue_rollback(self, failed: Any) -> None:
        """Go on without the endpoint, which is the documented way out."""
        (endpoint,) = [name for name, arn in failed.resources.items() if ":endpoint/" in arn]
        cloudformation = self.aws.client("cloudformation")
        cloudformation.continue_update_rollback(StackName=STACK, ResourcesToSkip=[endpoint])
        cloudformation.get_waiter("stack_rollback_complete").wait(
            StackName=STACK, WaiterConfig={"Delay": 0.05}
        )


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Assemblies:
    return Assemblies(tmp_path_factory.mktemp("assemblies"), synthesise)


@pytest.fixture
def site(assemblies: Assemblies) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def start(**options: Any) -> Site:
        # What outlives endpoints has tests of its own (test_drained_interfaces.py).
        settings = RuntimeOptions(clock_speed=600.0, seed=1, interfaces_stay=0, **options)
        aws = LocalAws.in_process(model_servers=SERVERS, runtime=settings)
        made.append(Site(aws, assemblies))
        return made[-1]

    yield start
    for one in made:
        delete_stack(one.aws, STACK)
        one.aws.stop()


@pytest.mark.parametrize(
    ("handler", "keeps", "unchanged"),
    [
        ("waits", False, "refused"),  # the worst, and the default
        ("waits", True, "ignored"),
        ("compares", True, "refused"),
        ("compares", False, "deployed"),
    ],
)
def test_an_update_that_sagemaker_rolls_back_fails_while_the_old_configuration_exists(
    site, handler, keeps, unchanged
):
    here = site(
        endpoint_handler=handler, keeps_failure_reason=keeps, unchanged_configuration=unchanged
    )
    first = here.deploy()
    assert first.status == "CREATE_COMPLETE"
    good = here.described()["EndpointConfigName"]
    failed = here.deploy("sick")
    assert failed.failure_reason.startswith("Endpoint")
    assert good in failed.failure_reason or handler == "compares"
    if unchanged == "refused":
        # CloudFormation goes back with the configuration that serves: the documented way out.
        assert failed.status == "UPDATE_ROLLBACK_FAILED"
        here.continue_rollback(failed)
    else:
        assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    found = here.described()
    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", good)
    assert here.configurations() == [good]
    # The next good version deploys, and nothing of the failure is left.
    again = here.deploy(instances=3)
    assert again.status == "UPDATE_COMPLETE", again.failure_reason
    assert here.described()["EndpointConfigName"] != good
    assert here.configurations() == [here.described()["EndpointConfigName"]]


def test_the_cdk_cli_goes_on_without_the_endpoint(site):
    """docs/how-to/roll-back.md, with the command that LLV101 and LLP104 print."""
    here = site()
    here.deploy()
    good = here.described()["EndpointConfigName"]
    failed = here.deploy("sick")
    assert failed.status == "UPDATE_ROLLBACK_FAILED"
    here.bootstrap()
    account = Account(here.aws.client, REGION)
    advice = way_out(account, {"StackName": STACK, "StackStatus": failed.status})
    assert "--orphan" in advice, advice
    (command,) = re.findall("`npx (cdk rollback .*?)`", advice)
    arguments = [*shlex.split(command)[1:], "--app", here.assemblies.of("sick")]
    done = subprocess.run(
        [ROOT / "node_modules" / ".bin" / "cdk", *arguments],
        cwd=here.assemblies.folder,
        env={**os.environ, **here.aws.environment()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    stacks = here.aws.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    assert stacks[0]["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert here.described()["EndpointConfigName"] == good
    again = here.deploy(instances=3)
    assert again.status == "UPDATE_COMPLETE", again.failure_reason


def test_an_alarm_that_is_set_by_hand_ends_a_deployment(site):
    """docs/how-to/roll-back.md: what rolls back at once while the new fleet bakes."""
    here = site(unchanged_configuration="ignored")
    bakes = {"deployment": DeploymentPolicy.canary(wait=Duration.hours(1)), "watched": True}
    here.deploy(**bakes)
    good = here.described()["EndpointConfigName"]
    with ThreadPoolExecutor() as pool:
        deploying = pool.submit(here.deploy, instances=3, **bakes)
        while here.described()["EndpointStatus"] != "Updating":
            assert not deploying.done()
            time.sleep(0.01)
        cloudwatch = here.aws.client("cloudwatch")
        (alarm,) = cloudwatch.describe_alarms(AlarmNamePrefix=STACK)["MetricAlarms"]
        while not deploying.done():
            cloudwatch.set_alarm_state(
                AlarmName=alarm["AlarmName"], StateValue="ALARM", StateReason="Roll back"
            )
            time.sleep(0.02)
        failed = deploying.result()
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE", failed.failure_reason
    assert "SageMaker rolled the update back" in failed.failure_reason
    assert here.described()["EndpointConfigName"] == good


def test_without_the_check_the_same_update_is_a_success_that_deletes_what_serves(site):
    here = site()
    here.deploy(confirm_updates=False)
    good = here.described()["EndpointConfigName"]
    assert here.deploy("sick", confirm_updates=False).status == "UPDATE_COMPLETE"
    assert here.described()["EndpointConfigName"] == good
    assert good not in here.configurations()


def test_the_old_fleet_is_not_warmed_up_for_the_new_one(site):
    here = site(unchanged_configuration="ignored")
    first = here.deploy(warm_up=True)
    assert first.status == "CREATE_COMPLETE"
    failed = here.deploy("sick", warm_up=True)
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    warm_up = [event for event in failed.events if event["ResourceType"] == "Custom::WarmUp"]
    assert [event["ResourceStatus"] for event in warm_up] == [
        "CREATE_IN_PROGRESS",
        "CREATE_COMPLETE",
    ]


# ---------------------------------------------------------------------- scaling turned off and on


@pytest.mark.parametrize("unchanged", ["refused", "ignored", "deployed"])
def test_turning_scaling_off_and_on_sends_no_update_when_counts_are_kept(site, unchanged):
    here = site(unchanged_configuration=unchanged)
    here.deploy(scaled=True)
    before = here.described()
    off = here.deploy(scaled=False, keep_instance_counts=True)
    assert off.status == "UPDATE_COMPLETE", off.failure_reason
    assert here.described()["LastModifiedTime"] == before["LastModifiedTime"]
    targets = here.aws.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker", ResourceIds=[f"endpoint/{NAME}/variant/primary"]
    )
    assert targets["ScalableTargets"] == []
    on = here.deploy(scaled=True)
    assert on.status == "UPDATE_COMPLETE", on.failure_reason
    assert here.described()["LastModifiedTime"] == before["LastModifiedTime"]


def test_turning_scaling_off_without_a_word_is_such_an_update_and_may_be_refused(site):
    here = site()
    here.deploy(scaled=True)
    off = here.deploy(scaled=False)
    assert off.status == "UPDATE_ROLLBACK_FAILED"
    assert "with its current endpoint configuration" in off.failure_reason
    here.continue_rollback(off)


@pytest.mark.parametrize(("keeps", "count"), [(True, 2), (None, 3), (False, 3)])
def test_a_fleet_of_a_fixed_size_follows_its_initial_number_unless_counts_are_kept(
    site, keeps, count
):
    here = site()
    here.deploy(keep_instance_counts=keeps)
    assert here.deploy(instances=3, keep_instance_counts=keeps).status == "UPDATE_COMPLETE"
    assert here.described()["ProductionVariants"][0]["CurrentInstanceCount"] == count
