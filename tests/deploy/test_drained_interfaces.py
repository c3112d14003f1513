"""A stack with an endpoint goes in one go, though SageMaker's network interfaces outlive it."""

from __future__ import annotations

import io
import itertools
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from local_sagemaker import (
    DeploymentFailed,
    LocalAws,
    RuntimeOptions,
    delete_stack,
    deploy_template,
)
from local_sagemaker.model_servers.specifications import CommandModelServer
from tests.deploy.small_stacks import (
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)

pytestmark = pytest.mark.realtime
DRAIN = "Custom::DrainedInterfaces"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """Twenty minutes of its clock, for which interfaces stay, are a second and a half."""
    crashing = CommandModelServer(("false",))
    with LocalAws.start(
        model_servers={"crashing": crashing}, runtime=RuntimeOptions(clock_speed=800)
    ) as running:
        yield running


@pytest.fixture
def synthesise(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The template of a small endpoint without assets."""

    def make(name: str, image: str = "model", key: str = "model.tar.gz") -> dict[str, Any]:
        stack = stack_in(
            tmp_path / f"cdk.out.{next(_numbers)}",
            name,
            flags=True,
            synthesizer=cdk.DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
        )
        model = model_in(stack, network_in(stack), f"{image}:1", f"s3://models/{key}")
        endpoint_in(stack, variant_of(model, 2))
        written = synthesised(stack) / f"{name}.template.json"
        template: dict[str, Any] = json.loads(written.read_text())
        return template

    return make


def without_drain(template: dict[str, Any]) -> dict[str, Any]:
    resources = template["Resources"]
    gone = {name for name, resource in resources.items() if resource["Type"] == DRAIN}
    assert gone
    for name in gone:
        del resources[name]
    for resource in resources.values():
        if "DependsOn" in resource:
            resource["DependsOn"] = [n for n in resource["DependsOn"] if n not in gone]
    return template


def events(aws: LocalAws, stack: str) -> list[tuple[str, str]]:
    """(logical ID, status), from the first to the last."""
    answer = aws.client("cloudformation").describe_stack_events(StackName=stack)
    return [
        (event["LogicalResourceId"], event["ResourceStatus"])
        for event in reversed(answer["StackEvents"])
    ]


def one(names: Any, prefix: str) -> str:
    (found,) = [name for name in names if re.fullmatch(rf"{prefix}[0-9A-Fa-f]+", name)]
    return str(found)


def test_a_stack_goes_in_one_go(aws, synthesise):
    made = deploy_template(aws, synthesise("Goes"), "Goes")
    group = made.resources[one(made.resources, "NetworkModelSecurityGroup")]
    found = aws.client("ec2").describe_network_interfaces(
        Filters=[{"Name": "group-id", "Values": [group]}]
    )["NetworkInterfaces"]
    assert len(found) == 2
    before = aws.runtime_time()
    delete_stack(aws, "Goes")
    assert (aws.runtime_time() - before).total_seconds() > 1200
    happened = events(aws, made.id)
    drained = happened.index((one(made.resources, "ModelDrained"), "DELETE_COMPLETE"))
    # Whatever the interfaces are held by or need goes after them.
    for prefix in (
        "NetworkModelSecurityGroup",
        "NetworkSubnetuse1az1",
        "NetworkSubnetuse1az2",
        "ModelRole",
        "ModelHosting",
        "ModelVersion",
    ):
        assert happened.index((one(made.resources, prefix), "DELETE_IN_PROGRESS")) > drained
    assert aws.leftovers() == []


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("model.txt"))
    return packed.getvalue()


def test_a_first_create_that_fails_is_rolled_back_in_one_go(aws, synthesise):
    s3 = aws.client("s3")  # what the crashing server is started with
    s3.create_bucket(Bucket="models")
    s3.put_object(Bucket="models", Key="model.tar.gz", Body=archive())
    made = deploy_template(
        aws, synthesise("Crashes", image="crashing"), "Crashes", expect_failure=True
    )
    assert "ping health check" in str(made.failure_reason)
    assert made.status == "ROLLBACK_COMPLETE"
    delete_stack(aws, "Crashes")
    s3.delete_object(Bucket="models", Key="model.tar.gz")
    s3.delete_bucket(Bucket="models")
    assert aws.leftovers() == []


def test_rights_to_one_version_stay_until_the_endpoint_has_the_next(aws, synthesise):
    first = deploy_template(aws, synthesise("Versions"), "Versions")
    second = deploy_template(aws, synthesise("Versions", key="next.tar.gz"), "Versions")
    old, new = (one(made.resources, "ModelVersion") for made in (first, second))
    assert old != new
    happened = events(aws, "Versions")[len(first.events) :]
    endpoint = one(second.resources, "Endpoint")
    assert happened.index((new, "CREATE_COMPLETE")) < happened.index(
        (endpoint, "UPDATE_IN_PROGRESS")
    )
    assert happened.index((old, "DELETE_IN_PROGRESS")) > happened.index(
        (endpoint, "UPDATE_COMPLETE")
    )
    iam = aws.client("iam")
    role = second.resources[one(second.resources, "ModelRole")]
    hosting, version = sorted(iam.list_role_policies(RoleName=role)["PolicyNames"])
    assert hosting == "Hosting"
    assert f"Model{version}" in new
    may = json.dumps(iam.get_role_policy(RoleName=role, PolicyName=version)["PolicyDocument"])
    assert "next.tar.gz" in may
    assert "model.tar.gz" not in may
    delete_stack(aws, "Versions")
    assert aws.leftovers() == []


def test_without_it_the_first_delete_fails(aws, synthesise):
    """The last one here: what it leaves behind, nobody can take away but by hand."""
    deploy_template(aws, without_drain(synthesise("Stays")), "Stays")
    aws.set_clock_speed(300)  # CloudFormation gives up minutes before the interfaces go
    with pytest.raises(DeploymentFailed, match="dependen"):
        delete_stack(aws, "Stays")
    left = aws.leftovers()
    # Role and policies went first.
    assert not [each for each in left if each.startswith("iam: Stays-ModelRole")]
    assert len([each for each in left if each.startswith("ec2: eni-")]) == 2
