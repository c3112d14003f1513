"""SageMaker's network interfaces outlive their endpoint, and hold what they are in meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError
from roles_under_test import give_hosting_role
from signed_requests import refusal
from stacks_under_test import resource_of, variant

from local_sagemaker import (
    DeploymentFailed,
    LocalAws,
    RuntimeOptions,
    delete_stack,
    deploy_template,
)


@dataclass(frozen=True)
class World:
    """An endpoint with three instances in two subnets."""

    aws: LocalAws
    group: str
    subnets: list[str]

    def interfaces(self, name: str, value: str) -> set[str]:
        found = self.aws.client("ec2").describe_network_interfaces(
            Filters=[{"Name": name, "Values": [value]}]
        )["NetworkInterfaces"]
        return {each["NetworkInterfaceId"] for each in found}

    @property
    def in_group(self) -> set[str]:
        return self.interfaces("group-id", self.group)

    def configure(self, name: str, instances: int) -> None:
        variants = [variant(instances, ModelName="held")]
        self.aws.client("sagemaker").create_endpoint_config(
            EndpointConfigName=name, ProductionVariants=variants
        )


@pytest.fixture
def world() -> Iterator[Callable[..., World]]:
    """Make one on a clock that stands still."""
    running: list[LocalAws] = []

    def make(**options: Any) -> World:
        runtime = RuntimeOptions(clock_speed=0, **options)
        aws = LocalAws.in_process(region="sa-east-1", runtime=runtime)
        running.append(aws)
        ec2, sagemaker = aws.client("ec2"), aws.client("sagemaker")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(
                VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=f"sa-east-1{zone}"
            )["Subnet"]["SubnetId"]
            for n, zone in enumerate("ab")
        ]
        group = ec2.create_security_group(VpcId=vpc, GroupName="model", Description="model")
        sagemaker.create_model(
            ModelName="held",
            ExecutionRoleArn=give_hosting_role(aws, "held"),
            PrimaryContainer={"Image": "123456789012.dkr.ecr.sa-east-1.amazonaws.com/model:1"},
            VpcConfig={"Subnets": subnets, "SecurityGroupIds": [group["GroupId"]]},
        )
        made = World(aws, group["GroupId"], subnets)
        made.configure("three", 3)
        sagemaker.create_endpoint(EndpointName="held", EndpointConfigName="three")
        return made

    yield make
    for aws in running:
        iam, sagemaker = aws.client("iam"), aws.client("sagemaker")
        with contextlib.suppress(ClientError):  # tests take them away
            iam.delete_role_policy(RoleName="held", PolicyName="rights")
            iam.delete_role(RoleName="held")
        for endpoint in sagemaker.list_endpoints()["Endpoints"]:
            sagemaker.delete_endpoint(EndpointName=endpoint["EndpointName"])
        for config in sagemaker.list_endpoint_configs()["EndpointConfigs"]:
            sagemaker.delete_endpoint_config(EndpointConfigName=config["EndpointConfigName"])
        sagemaker.delete_model(ModelName="held")
        aws.stop()


def test_they_stay_when_the_endpoint_is_gone_and_hold_group_and_subnets(world):
    given = world(interfaces_stay=1200)
    aws, ec2 = given.aws, given.aws.client("ec2")
    assert len(given.in_group) == 3
    assert sorted(len(given.interfaces("subnet-id", s)) for s in given.subnets) == [1, 2]
    aws.client("sagemaker").delete_endpoint(EndpointName="held")
    aws.advance(1190)
    assert len(given.in_group) == 3
    held = refusal(ec2.delete_security_group, GroupId=given.group)
    assert held[0] == "DependencyViolation"
    assert refusal(ec2.delete_subnet, SubnetId=given.subnets[0])[0] == "DependencyViolation"
    aws.advance(20)
    assert given.in_group == set()
    ec2.delete_security_group(GroupId=given.group)
    for subnet in given.subnets:
        ec2.delete_subnet(SubnetId=subnet)


def test_those_of_a_replaced_fleet_go_and_those_of_the_new_one_stay(world):
    given = world(interfaces_stay=60)
    old = given.in_group
    given.configure("two", 2)
    given.aws.client("sagemaker").update_endpoint(EndpointName="held", EndpointConfigName="two")
    assert len(given.in_group) == 5
    given.aws.advance(70)
    assert len(given.in_group) == 2
    assert not given.in_group & old


@pytest.mark.parametrize(("needed", "left"), [(True, 3), (False, 0)])
def test_without_their_role_they_may_stay_for_good(world, needed, left):
    given = world(interfaces_stay=60, interfaces_need_role=needed)
    given.aws.client("sagemaker").delete_endpoint(EndpointName="held")
    given.aws.client("iam").delete_role_policy(RoleName="held", PolicyName="rights")
    given.aws.client("iam").delete_role(RoleName="held")
    given.aws.advance(7200)
    assert len(given.in_group) == left


def test_a_role_that_goes_after_them_is_none_of_their_matter(world):
    given = world(interfaces_stay=60)
    given.aws.client("sagemaker").delete_endpoint(EndpointName="held")
    given.aws.advance(70)
    given.aws.client("iam").delete_role_policy(RoleName="held", PolicyName="rights")
    assert given.in_group == set()


def test_by_default_they_stay_for_longer_than_cloudformation_tries():
    usual = RuntimeOptions()
    assert usual.interfaces_time(30) > 900
    # Nobody waits for real minutes, and by a clock that stands still they would never go.
    assert usual.interfaces_time(1) == 1
    assert usual.interfaces_time(0) == 0
    assert RuntimeOptions(interfaces_stay=7).interfaces_time(0) == 7


NETWORK = {
    "Vpc": resource_of("AWS::EC2::VPC", CidrBlock="10.0.0.0/16"),
    "Group": resource_of("AWS::EC2::SecurityGroup", VpcId={"Ref": "Vpc"}, GroupDescription="held"),
    "Subnet": resource_of("AWS::EC2::Subnet", VpcId={"Ref": "Vpc"}, CidrBlock="10.0.0.0/24"),
}


def test_cloudformation_tries_for_fifteen_minutes_and_keeps_what_the_rest_needs():
    with LocalAws.in_process(runtime=RuntimeOptions(clock_speed=900)) as aws:
        made = deploy_template(aws, {"Resources": NETWORK}, "Held").resources
        ec2 = aws.client("ec2")
        place = {"SubnetId": made["Subnet"], "Groups": [made["Group"]]}
        interface = ec2.create_network_interface(**place)["NetworkInterface"]
        before = aws.runtime_time()
        with pytest.raises(DeploymentFailed, match="dependen"):
            delete_stack(aws, "Held")
        assert (aws.runtime_time() - before).total_seconds() >= 2 * 900
        left = aws.client("cloudformation").describe_stack_resources(StackName="Held")
        states = {r["LogicalResourceId"]: r["ResourceStatus"] for r in left["StackResources"]}
        assert states == dict.fromkeys(("Group", "Subnet"), "DELETE_FAILED") | {
            "Vpc": "CREATE_COMPLETE"
        }
        ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
        delete_stack(aws, "Held")
