"""The pattern among other people's stacks: what CDK apps do with a construct works with this one.

Cases that have files of their own: callers in other stacks (``test_callers_in_other_stacks``),
imports (``test_made_elsewhere``), VPCs (``test_network_in_vpc``, ``test_zones_of_vpc``,
``test_ambiguous_subnets``), tokens (``test_token_values``), one private DNS in a VPC
(``test_private_link``), roles and keys of the user's (``test_safeguards``), cdk-nag
(``test_security_checks``, ``test_validators``), metrics' statistics (``tests/facts/test_metrics``).
"""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Fn, pipelines
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_codecommit as codecommit
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from low_latency_endpoint import (
    ClientZones,
    ConfigurationOptions,
    ModelOptions,
    RuntimePrivateLink,
    ZoneAlignedNetwork,
)
from tests.refusals import refused

from .conftest import name_at_synth
from .team_apps import (
    ACCOUNT,
    INGRESS,
    OTHER,
    SUBNETS,
    WARMED,
    A,
    B,
    a_function,
    an_app,
    only,
    resources,
    serve,
    stack_of,
    vpc_in,
)

# --- networks of others --------------------------------------------------------------------------


def test_a_vpc_of_another_stack():
    app = an_app()
    net, ml = stack_of(app, "Net"), stack_of(app, "Ml")
    vpc = vpc_in(net)
    endpoint = serve(ml, vpc=vpc)
    assert [each.node.path for each in endpoint.network.subnets] == [
        each.node.path for each in vpc.private_subnets
    ]
    subnets = only(ml, "AWS::SageMaker::Model")["VpcConfig"]["Subnets"]
    assert all(set(subnet) == {"Fn::ImportValue"} for subnet in subnets)
    assert {each.node.id for each in ml.dependencies} == {"Net"}


@pytest.mark.parametrize(
    ("vpc_id", "zones", "subnets", "in_template"),
    [
        pytest.param("vpc-0123456789abcdef0", [A, B], SUBNETS, SUBNETS, id="literals"),
        pytest.param(
            Fn.import_value("Vpc"),
            [A, B],
            [Fn.import_value("SubnetA"), Fn.import_value("SubnetB")],
            [{"Fn::ImportValue": "SubnetA"}, {"Fn::ImportValue": "SubnetB"}],
            id="exports",
        ),
        pytest.param(
            Fn.import_value("Vpc"),
            [A, B],
            Fn.split(",", Fn.import_value("Subnets"), 2),
            [
                {"Fn::Select": [index, {"Fn::Split": [",", {"Fn::ImportValue": "Subnets"}]}]}
                for index in (0, 1)
            ],
            id="an export that is a list",
        ),
    ],
)
def test_a_vpc_by_its_attributes(vpc_id, zones, subnets, in_template):
    stack = stack_of(an_app(), "Ml")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id=vpc_id, availability_zones=zones, private_subnet_ids=subnets
    )
    serve(stack, vpc=vpc)
    assert only(stack, "AWS::SageMaker::Model")["VpcConfig"]["Subnets"] == in_template
    assert only(stack, "AWS::EC2::VPCEndpoint")["SubnetIds"] == in_template


def test_subnets_and_groups_and_roles_and_keys_by_their_names():
    stack = stack_of(an_app(), "Ml")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=[A, B]
    )
    subnets = {
        zone: ec2.Subnet.from_subnet_id(stack, f"Subnet-{zone}", subnet)
        for zone, subnet in zip((A, B), SUBNETS, strict=True)
    }
    key = kms.Key.from_key_arn(stack, "Key", f"arn:aws:kms:us-east-1:{OTHER}:key/of-another")
    serve(
        stack,
        vpc=vpc,
        subnets=subnets,
        callers=[
            ec2.SecurityGroup.from_security_group_id(stack, "Shop", "sg-0123456789abcdef0"),
            ec2.Peer.prefix_list(
                ec2.PrefixList.from_prefix_list_id(stack, "Offices", "pl-1").prefix_list_id
            ),
            ec2.Peer.ipv4("10.2.0.0/16"),
        ],
        model=ModelOptions(
            role=iam.Role.from_role_arn(stack, "Role", f"arn:aws:iam::{ACCOUNT}:role/hosting")
        ),
        configuration=ConfigurationOptions(encryption_key=key),
    )
    model = only(stack, "AWS::SageMaker::Model")
    assert model["VpcConfig"]["Subnets"] == SUBNETS
    assert model["ExecutionRoleArn"] == f"arn:aws:iam::{ACCOUNT}:role/hosting"
    assert only(stack, "AWS::SageMaker::EndpointConfig")["KmsKeyId"] == key.key_arn
    rules = [each["Properties"] for each in resources(stack, INGRESS).values()]
    for group in resources(stack, "AWS::EC2::SecurityGroup").values():
        rules += group["Properties"].get("SecurityGroupIngress", [])
    let_in = {
        rule.get("SourceSecurityGroupId") or rule.get("SourcePrefixListId") or rule["CidrIp"]
        for rule in rules
    }
    assert let_in == {"sg-0123456789abcdef0", "pl-1", "10.2.0.0/16"}


# --- callers -------------------------------------------------------------------------------------


def a_fargate_service(stack: Construct, vpc: ec2.IVpc) -> ecs.FargateService:
    task = ecs.FargateTaskDefinition(stack, "Task")
    task.add_container("App", image=ecs.ContainerImage.from_registry("shop:1"))
    cluster = ecs.Cluster(stack, "Cluster", vpc=vpc)
    return ecs.FargateService(stack, "Service", cluster=cluster, task_definition=task)


def an_auto_scaling_group(stack: Construct, vpc: ec2.IVpc) -> autoscaling.AutoScalingGroup:
    return autoscaling.AutoScalingGroup(
        stack,
        "Group",
        vpc=vpc,
        instance_type=ec2.InstanceType("m7g.large"),
        machine_image=ec2.MachineImage.generic_linux({"us-east-1": "ami-0123456789abcdef0"}),
        role=iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com")),
    )


def an_imported_cluster(stack: Construct, vpc: ec2.IVpc) -> eks.ICluster:
    group = ec2.SecurityGroup(stack, "Nodes", vpc=vpc)
    return eks.Cluster.from_cluster_attributes(
        stack, "Cluster", cluster_name="shop", vpc=vpc, security_group_ids=[group.security_group_id]
    )


@pytest.mark.parametrize(
    "caller", [a_function, a_fargate_service, an_auto_scaling_group, an_imported_cluster]
)
def test_callers_of_every_kind_are_let_in(caller):
    stack = stack_of(an_app(), "All")
    vpc = vpc_in(stack)
    made = caller(stack, vpc)
    endpoint = serve(stack, vpc=vpc, callers=[made])
    rule = only(stack, INGRESS)
    (theirs,), (ours,) = (each.connections.security_groups for each in (made, endpoint))
    assert rule["SourceSecurityGroupId"] == stack.resolve(theirs.security_group_id)
    assert rule["GroupId"] == stack.resolve(ours.security_group_id)
    assert (rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == (443, 443, "tcp")


def the_task_role(stack: Construct, vpc: ec2.IVpc) -> iam.IRole:
    return a_fargate_service(stack, vpc).task_definition.task_role


def the_pods_role(stack: Construct, vpc: ec2.IVpc) -> iam.IRole:
    return iam.Role(stack, "Pod", assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com"))


@pytest.mark.parametrize(
    "grantee", [a_function, the_task_role, an_auto_scaling_group, the_pods_role]
)
def test_principals_of_every_kind_may_invoke(grantee):
    stack = stack_of(an_app(), "All")
    vpc = vpc_in(stack)
    who = grantee(stack, vpc)
    role = stack.resolve(getattr(who, "role", who).role_name)
    endpoint = serve(stack, vpc=vpc)
    endpoint.grant_invoke(who)
    (policy,) = (
        each["Properties"]
        for each in resources(stack, "AWS::IAM::Policy").values()
        if role in each["Properties"]["Roles"]
    )
    (statement,) = (
        each
        for each in policy["PolicyDocument"]["Statement"]
        if "sagemaker:InvokeEndpoint" in each["Action"]
    )
    assert statement["Effect"] == "Allow"
    (name,) = resources(stack, "AWS::SageMaker::Endpoint")
    assert statement["Resource"] == {"Ref": name}  # CloudFormation's Ref is its ARN


def test_a_fargate_service_is_no_principal():
    """CDK's own rule: its task's role is."""
    stack = stack_of(an_app(), "All")
    vpc = vpc_in(stack)
    service = a_fargate_service(stack, vpc)
    endpoint = serve(stack, vpc=vpc)
    with refused("LLE807"):
        endpoint.grant_invoke(service)


def test_the_pattern_connects_like_any_construct():
    stack = stack_of(an_app(), "All")
    vpc = vpc_in(stack)
    function = a_function(stack, vpc)
    endpoint = serve(stack, vpc=vpc)
    function.connections.allow_to(endpoint, ec2.Port.tcp(443))
    assert only(stack, INGRESS)["SourceSecurityGroupId"] == stack.resolve(
        function.connections.security_groups[0].security_group_id
    )


# --- stacks, stages, pipelines -------------------------------------------------------------------


def test_callers_in_another_region():
    """CDK carries what is known at deployment only through a parameter there."""
    app = an_app()
    ml, away = (
        cdk.Stack(
            app,
            name,
            env=cdk.Environment(account=ACCOUNT, region=region),
            cross_region_references=True,
        )
        for name, region in (("Ml", "us-east-1"), ("Away", "eu-west-1"))
    )
    endpoint = serve(ml)
    function = a_function(away, ENDPOINT_NAME=endpoint.endpoint.name_in(away))
    endpoint.grant_invoke(function)
    made = {each["Type"] for each in resources(ml).values()}
    assert "Custom::CrossRegionExportWriter" in made
    (reader,) = resources(away, "Custom::CrossRegionExportReader")
    (rights,) = (
        each["Properties"]["PolicyDocument"]["Statement"]
        for each in resources(away, "AWS::IAM::Policy").values()
    )
    (read,) = (each["Resource"] for each in rights if "sagemaker:InvokeEndpoint" in each["Action"])
    assert read["Fn::GetAtt"][0] == reader
    variables = [
        each["Properties"].get("Environment", {}).get("Variables")
        for each in resources(away, "AWS::Lambda::Function").values()
    ]
    assert {"ENDPOINT_NAME": name_at_synth(endpoint.endpoint)} in variables


class Production(cdk.Stage):
    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, env=cdk.Environment(account=OTHER, region="us-east-1"))
        self.ml = stack_of(self, "Ml", None)
        self.endpoint = serve(self.ml, warm_up=WARMED)
        self.name = cdk.CfnOutput(self.ml, "Name", value=self.endpoint.endpoint.endpoint_name)


def test_a_pipeline_into_another_account_tests_what_it_deployed():
    home = stack_of(an_app(), "Delivery")
    pipeline = pipelines.CodePipeline(
        home,
        "Pipeline",
        cross_account_keys=True,
        synth=pipelines.ShellStep(
            "Synth",
            input=pipelines.CodePipelineSource.code_commit(
                codecommit.Repository.from_repository_name(home, "Source", "team"), "main"
            ),
            commands=["cdk synth"],
        ),
    )
    stage = Production(home, "Production")
    smoke = pipelines.ShellStep(
        "Smoke",
        env_from_cfn_outputs={"ENDPOINT_NAME": stage.name},
        commands=["python smoke.py $ENDPOINT_NAME"],
    )
    pipeline.add_stage(stage, post=[smoke])
    made = only(home, "AWS::CodePipeline::Pipeline")["Stages"]
    (deployed,) = (each["Actions"] for each in made if each["Name"] == "Production")
    order = {action["Name"]: action["RunOrder"] for action in deployed}
    assert order["Ml.Deploy"] < order["Smoke"]
    (test,) = (action for action in deployed if action["Name"] == "Smoke")
    variables = json.loads(test["Configuration"]["EnvironmentVariables"])
    assert [each["name"] for each in variables if "Production" in each["value"]] == [
        "ENDPOINT_NAME"
    ]
    (deploy,) = (action for action in deployed if action["Name"] == "Ml.Deploy")
    assert OTHER in json.dumps(deploy["RoleArn"])


def test_a_nested_stack_with_a_warm_up():
    parent = stack_of(an_app(), "All")
    nested = cdk.NestedStack(parent, "Ml")
    endpoint = serve(nested, warm_up=WARMED)
    cdk.CfnOutput(parent, "Name", value=endpoint.endpoint.endpoint_name)
    there = {each["Type"] for each in resources(nested).values()}
    assert {"AWS::SageMaker::Endpoint", "AWS::Lambda::Function", "AWS::EC2::VPC"} <= there
    above = {each["Type"] for each in resources(parent).values()}
    assert above == {"AWS::CloudFormation::Stack"}


@pytest.mark.parametrize("stacks", [("All", "All"), ("First", "Second")], ids=["one", "two"])
def test_two_endpoints_share_a_network_and_a_link(stacks):
    app = an_app()
    made = {name: stack_of(app, name) for name in dict.fromkeys(stacks)}
    first = serve(made[stacks[0]], "First", network_max_instances=40)
    second = serve(
        made[stacks[1]], "Second", network=first.network, private_link=first.private_link
    )
    types = [each["Type"] for stack in made.values() for each in resources(stack).values()]
    assert types.count("AWS::SageMaker::Endpoint") == 2
    for shared in ("AWS::EC2::VPC", "AWS::EC2::Subnet"):
        assert types.count(shared) == (1 if shared.endswith("VPC") else 2)
    endpoints = [
        each["Properties"]
        for each in resources(made[stacks[0]], "AWS::EC2::VPCEndpoint").values()
        if each["Properties"].get("PrivateDnsEnabled")
    ]
    (runtime,) = endpoints
    for endpoint in (first, second):
        assert name_at_synth(endpoint.endpoint) in json.dumps(runtime["PolicyDocument"])
    if len(made) == 2:
        assert {each.node.id for each in made["Second"].dependencies} == {"First"}
        assert not made["First"].dependencies


@pytest.mark.parametrize("retired", ["First", "Second"])
def test_a_network_that_no_endpoint_made_stays_when_one_is_retired(retired):
    def made(*names: str) -> dict[str, Any]:
        stack = stack_of(an_app(), "Serving")
        network = ZoneAlignedNetwork(
            stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2")
        )
        link = RuntimePrivateLink(stack, "PrivateLink", network=network)
        for name in names:
            serve(stack, name, network=network, private_link=link)
        found = resources(stack)
        for each in found.values():
            each["Properties"].pop("PolicyDocument", None)  # of whom it is asked for
        return {name: each for name, each in found.items() if each["Type"].startswith("AWS::EC2::")}

    both = made("First", "Second")
    assert {"AWS::EC2::VPC", "AWS::EC2::VPCEndpoint", "AWS::EC2::Subnet"} <= {
        each["Type"] for each in both.values()
    }
    assert made(*{"First", "Second"} - {retired}) == both


def test_another_app_adopts_the_link():
    stack = stack_of(an_app(), "Second")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id=Fn.import_value("Vpc"),
        availability_zones=[A, B],
        private_subnet_ids=SUBNETS,
    )
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Network", vpc=vpc, client_zones=ClientZones.of_names(A, B)
    )
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
    link = RuntimePrivateLink.from_interface_endpoint(
        stack,
        "Link",
        network=network,
        interface_endpoint=ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
            stack,
            "There",
            vpc_endpoint_id="vpce-0123456789abcdef0",
            port=443,
            security_groups=[group],
        ),
    )
    serve(
        stack,
        network=network,
        private_link=link,
        callers=[ec2.Peer.ipv4("10.0.0.0/16")],
        warm_up=WARMED,
    )
    assert not resources(stack, "AWS::EC2::VPCEndpoint")
    rules = [each["Properties"] for each in resources(stack, INGRESS).values()]
    assert {rule["GroupId"] for rule in rules} == {"sg-0123456789abcdef0"}
    assert "10.0.0.0/16" in {rule.get("CidrIp") for rule in rules}
