"""What is not known of AWS, both ways: CloudFormation after a rollback of SageMaker's, and more."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from botocore.exceptions import ClientError
from component_site import ROLE
from hosting_site import IMAGE, canary, taking
from roles_under_test import give_hosting_role
from stacks_under_test import CONFIG, ENDPOINT, MODEL, resource_of, variant
from waiting import until

from local_sagemaker import delete_stack, deploy_template
from local_sagemaker.model_servers import SimulatedModelServer

SERVERS = {"model": taking(0.0), "sick": SimulatedModelServer(ping_status=500)}
FAST = 600.0
NAME = "through-cloudformation"
_numbers = itertools.count(1)


def template(server: str) -> dict[str, Any]:
    """A stack with one endpoint; another server is another model and configuration."""
    primary = variant(
        ContainerStartupHealthCheckTimeoutInSeconds=60,
        ModelName={"Fn::GetAtt": [f"Model{server}", "ModelName"]},
    )
    model = {"ExecutionRoleArn": ROLE, "PrimaryContainer": {"Image": IMAGE.format(server)}}
    config = {"Fn::GetAtt": [f"Config{server}", "EndpointConfigName"]}
    return {
        "Resources": {
            f"Model{server}": resource_of(MODEL, **model),
            f"Config{server}": resource_of(CONFIG, ProductionVariants=[primary]),
            "Endpoint": resource_of(ENDPOINT, EndpointName=NAME, EndpointConfigName=config),
        }
    }


class Stack:
    """A stack with an endpoint that a healthy model serves."""

    def __init__(self, here: Any) -> None:
        self.here, self.name = here, f"Handled{next(_numbers)}"
        here.made.append(NAME)
        give_hosting_role(here.aws)
        self.deploy("model")
        self.good = here.described(NAME)["EndpointConfigName"]

    def deploy(self, server: str, **properties: Any) -> Any:
        wanted = template(server)
        wanted["Resources"]["Endpoint"]["Properties"].update(properties)
        return deploy_template(self.here.aws, wanted, self.name, expect_failure=True)

    def continue_rollback(self, *skip: str) -> str:
        cloudformation = self.here.aws.client("cloudformation")
        cloudformation.continue_update_rollback(StackName=self.name, ResourcesToSkip=list(skip))
        return until(
            lambda: cloudformation.describe_stacks(StackName=self.name)["Stacks"][0]["StackStatus"],
            lambda status: not status.endswith("IN_PROGRESS"),
        )

    def exists(self, config: str) -> bool:
        found = self.here.aws.client("sagemaker").list_endpoint_configs(NameContains=config)
        return config in [each["EndpointConfigName"] for each in found["EndpointConfigs"]]


@pytest.fixture
def deployed(site):
    made: list[Stack] = []

    def run(**options: Any) -> Stack:
        made.append(Stack(site(SERVERS, clock_speed=FAST, **options)))
        return made[-1]

    yield run
    for stack in made:
        delete_stack(stack.here.aws, stack.name)


def test_a_handler_that_only_waits_takes_a_rollback_for_success_and_deletes_what_serves(deployed):
    stack = deployed()
    assert stack.deploy("sick").status == "UPDATE_COMPLETE"
    found = stack.here.described(NAME)
    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", stack.good)
    assert "FailureReason" not in found
    assert not stack.exists(stack.good)
    assert stack.here.invoke(NAME)["Body"] == b"{}"
    # The endpoint serves, and can neither be scaled nor updated any more.
    with pytest.raises(ClientError, match="Could not find endpoint configuration"):
        stack.here.scale(NAME, 3)
    assert "Could not find endpoint configuration" in stack.deploy("model").failure_reason


def test_a_handler_that_compares_fails_and_the_former_configuration_stays(deployed):
    stack = deployed(
        endpoint_handler="compares", unchanged_configuration="ignored", keeps_failure_reason=True
    )
    failed = stack.deploy("sick")
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "did not pass the ping health check" in failed.failure_reason
    assert stack.here.invoke(NAME)["Body"] == b"{}"
    assert stack.here.described(NAME)["EndpointConfigName"] == stack.good
    assert stack.exists(stack.good)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_failure_reason_stays_until_the_next_update_or_not_at_all(deployed, keeps):
    stack = deployed(
        keeps_failure_reason=keeps, endpoint_handler="compares", unchanged_configuration="ignored"
    )
    stack.deploy("sick")
    assert ("FailureReason" in stack.here.described(NAME)) is keeps
    wanted = template("model")
    (primary,) = wanted["Resources"]["Configmodel"]["Properties"]["ProductionVariants"]
    primary["InitialInstanceCount"] = 3
    assert deploy_template(stack.here.aws, wanted, stack.name).status == "UPDATE_COMPLETE"
    assert "FailureReason" not in stack.here.described(NAME)


@pytest.mark.parametrize(
    ("unchanged", "status"),
    [
        ("refused", "UPDATE_ROLLBACK_FAILED"),
        ("ignored", "UPDATE_ROLLBACK_COMPLETE"),
        ("deployed", "UPDATE_ROLLBACK_COMPLETE"),
    ],
)
def test_the_stack_s_own_rollback_sends_the_configuration_that_serves(deployed, unchanged, status):
    stack = deployed(endpoint_handler="compares", unchanged_configuration=unchanged)
    assert stack.deploy("sick").status == status
    if unchanged == "refused":
        with pytest.raises(ClientError, match="Configmodel"):
            stack.continue_rollback("Configmodel")
        assert stack.continue_rollback("Endpoint") == "UPDATE_ROLLBACK_COMPLETE"
    found = stack.here.settled(NAME)
    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", stack.good)
    assert stack.exists(stack.good)
    listed = stack.here.aws.client("sagemaker").list_endpoint_configs(NameContains=stack.name)
    assert [each["EndpointConfigName"] for each in listed["EndpointConfigs"]] == [stack.good]


@pytest.mark.parametrize(
    "properties", [{"RetainAllVariantProperties": True}, {"DeploymentConfig": canary()}]
)
@pytest.mark.parametrize("unchanged", ["refused", "ignored", "deployed"])
def test_an_update_of_the_endpoint_alone(deployed, unchanged, properties):
    stack = deployed(unchanged_configuration=unchanged)
    before = stack.here.described(NAME)["LastModifiedTime"]
    updated = stack.deploy("model", **properties)
    if unchanged == "refused":
        assert "with its current endpoint configuration" in updated.failure_reason
        # Nothing was changed, so CloudFormation's rollback is refused as well.
        assert updated.status == "UPDATE_ROLLBACK_FAILED"
        assert stack.continue_rollback("Endpoint") == "UPDATE_ROLLBACK_COMPLETE"
    else:
        assert updated.status == "UPDATE_COMPLETE"
    deployments = stack.here.described(NAME)["LastModifiedTime"] != before
    assert deployments is (unchanged == "deployed")


def test_only_a_failed_rollback_is_continued(deployed):
    stack = deployed()
    with pytest.raises(ClientError, match="CREATE_COMPLETE state"):
        stack.continue_rollback()
