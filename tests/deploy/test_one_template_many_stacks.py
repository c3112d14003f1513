"""One template, launched as several stacks: each has names of its own, and the first keeps its."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import DefaultStackSynthesizer
from roles_under_test import give_role

from local_sagemaker import DeployedStack, LocalAws, delete_stack, deploy_template
from low_latency_endpoint import AlarmOptions, LatencyTarget, LowLatencyEndpoint
from low_latency_endpoint.operate.preflight.deploying_role import (
    DeploymentPlace,
    deploying_statements,
)
from low_latency_endpoint.plan.launched_names import as_named
from tests.deploy.small_stacks import ACCOUNT, REGION, container, network_in, stack_in, synthesised

OWN = "Serving"
CASES = {"roles", "network", "links", "objectives"}
FURTHER = ("SC-123456789012-pp-UpperCase", "x" * 120)


@pytest.fixture
def aws(clean_aws: LocalAws) -> LocalAws:
    return clean_aws


@pytest.fixture
def template(tmp_path: Path) -> dict[str, Any]:
    """Of an endpoint with alarms, dashboard and objective, none of which has a stated name."""
    synthesizer = DefaultStackSynthesizer(generate_bootstrap_version_rule=False)
    stack = stack_in(tmp_path, OWN, synthesizer=synthesizer)
    LowLatencyEndpoint(
        stack,
        "Ranking" + "WithALongName" * 4,
        network=network_in(stack),
        instance_type="ml.m5.xlarge",
        containers=[container("server:1")],
        latency=LatencyTarget(p99="200ms"),
        alarms=AlarmOptions(service_level_objective=0.99),
    )
    made: dict[str, Any] = json.loads((synthesised(stack) / stack.template_file).read_text())
    return made


def endpoints(aws: LocalAws) -> dict[str, str]:
    """Name -> status."""
    listed = aws.client("sagemaker").list_endpoints()["Endpoints"]
    return {endpoint["EndpointName"]: endpoint["EndpointStatus"] for endpoint in listed}


def launching_role(aws: LocalAws, stack_name: str) -> str:
    """A role for CloudFormation with what docs/reference/deploying-role.md lists for such a stack."""
    # CloudFormation shortens a stack's name in those of roles and functions.
    place = DeploymentPlace(f"{stack_name[:20]}*", ACCOUNT, REGION)
    statements = [
        statement.in_policy(place)
        for statement in deploying_statements()
        if not statement.when or CASES.intersection(statement.when)
    ]
    name = f"launches-{stack_name[:20]}"
    return give_role(aws, name, *statements, services=("cloudformation",))


def watched(aws: LocalAws, stack: DeployedStack) -> set[str]:
    """The endpoints that the stack's alarms watch."""
    alarms = aws.client("cloudwatch").describe_alarms(
        AlarmNames=[name for key, name in stack.resources.items() if "Alarm" in key],
        AlarmTypes=["MetricAlarm"],
    )
    text = json.dumps(alarms["MetricAlarms"], default=str)
    return {name for name in endpoints(aws) if f'"{name}"' in text}


def test_each_launch_has_an_endpoint_of_its_own(aws, template):
    """``aws cloudformation deploy --stack-name``, Service Catalog and StackSets choose the name."""
    launched = [
        deploy_template(aws, template, name, role_arn=launching_role(aws, name))
        for name in (OWN, *FURTHER)
    ]
    for stack in launched:
        (name,) = watched(aws, stack)
        assert name == name.lower()
        assert len(name) <= 63
        arn = next(each for each in stack.resources.values() if ":endpoint/" in each)
        assert arn.endswith(f":endpoint/{name}")
        assert name in json.dumps(policies(aws, stack))
    objectives = {
        physical
        for stack in launched
        for logical, physical in stack.resources.items()
        if "Objective" in logical
    }
    assert len(objectives) == len(endpoints(aws)) == len(launched)
    for stack in launched:
        delete_stack(aws, stack.name)
    assert not endpoints(aws)


def policies(aws: LocalAws, stack: DeployedStack) -> list[dict[str, Any]]:
    """Those of the stack's interface endpoints for the runtime."""
    named = [physical for physical in stack.resources.values() if physical.startswith("vpce-")]
    found = aws.client("ec2").describe_vpc_endpoints(VpcEndpointIds=named)["VpcEndpoints"]
    return [
        json.loads(endpoint["PolicyDocument"])
        for endpoint in found
        if endpoint["ServiceName"].endswith("sagemaker.runtime")
    ]


def test_what_was_deployed_with_a_constant_keeps_its_name(aws, template):
    """CloudFormation compares the values that functions give: nothing of the endpoint changes."""
    former = as_named({key: part for key, part in template.items() if key != "Conditions"})
    assert "Fn::If" not in json.dumps(former)
    before = deploy_template(aws, former, OWN)
    (made,) = aws.client("sagemaker").list_endpoints()["Endpoints"]
    former["Outputs"] = template["Outputs"] = {"Changed": {"Value": "so that there is an update"}}
    after = deploy_template(aws, template, OWN)
    assert after.resources == before.resources
    assert aws.client("sagemaker").list_endpoints()["Endpoints"] == [made]
    delete_stack(aws, OWN)
