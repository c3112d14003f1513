"""The model: containers, its place in the network, and a role that may what hosting needs."""

from __future__ import annotations

import json

import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from low_latency_endpoint import ContainerImage, ModelData

# "SageMaker AI Roles" in AWS's developer guide, CreateModel with a VPC, and the pull of the image;
# DescribeAlarms is what deployment guardrails read rollback alarms with.
HOSTING = {
    "cloudwatch:DescribeAlarms",
    "cloudwatch:PutMetricData",
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "ecr:GetAuthorizationToken",
    "logs:CreateLogGroup",
    "logs:CreateLogStream",
    "logs:DescribeLogStreams",
    "logs:PutLogEvents",
}
PULL = {"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"}


def granted(template):
    """Action -> (resource, condition), over all policies of the models' roles."""
    found = {}
    for statement in template.model_rights:
        actions = statement["Action"]
        assert statement["Effect"] == "Allow"
        for action in [actions] if isinstance(actions, str) else actions:
            assert action not in found, f"{action} is granted twice"
            found[action] = (statement["Resource"], statement.get("Condition"))
    return found


def model_role(template):
    model = template.only("AWS::SageMaker::Model")
    return model["ExecutionRoleArn"]["Fn::GetAtt"][0]


def test_runs_in_the_interface_endpoints_subnets(stack, parts, template_of):
    network = parts.network(stack)
    parts.model(stack, network=network)
    template = template_of(stack)
    vpc = template.only("AWS::SageMaker::Model")["VpcConfig"]
    assert vpc["Subnets"] == stack.resolve([subnet.subnet_id for subnet in network.subnets])
    assert vpc["SecurityGroupIds"] == [
        stack.resolve(network.model_security_group.security_group_id)
    ]


def test_security_groups_of_the_users_own(stack, parts, template_of):
    network = parts.network(stack)
    groups = [
        ec2.SecurityGroup.from_security_group_id(stack, f"Group{n}", f"sg-0123456789abcdef{n}")
        for n in range(5)
    ]
    model = parts.model(stack, network=network, security_groups=groups)
    ids = template_of(stack).only("AWS::SageMaker::Model")["VpcConfig"]["SecurityGroupIds"]
    assert ids == [f"sg-0123456789abcdef{n}" for n in range(5)]
    assert [group.security_group_id for group in model.connections.security_groups] == ids


def test_carries_no_fixed_name(smallest):
    assert "ModelName" not in smallest("model").only("AWS::SageMaker::Model")


def test_one_container(stack, parts, template_of):
    container = parts.container(environment={"HF_TASK": "text-classification"}, hostname="only")
    parts.model(stack, containers=[container])
    model = template_of(stack).only("AWS::SageMaker::Model")
    assert model["PrimaryContainer"]["Environment"] == {"HF_TASK": "text-classification"}
    assert model["PrimaryContainer"]["ContainerHostname"] == "only"
    assert "Containers" not in model
    assert "InferenceExecutionConfig" not in model


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, "Serial"),
        ({"inference_mode": "Serial"}, "Serial"),
        ({"inference_mode": "Direct"}, "Direct"),
    ],
)
def test_several_containers(stack, parts, template_of, given, mode):
    containers = [
        parts.container(
            image=ContainerImage.from_uri(f"111122223333.dkr.ecr.us-east-1.amazonaws.com/{name}:1"),
            data=ModelData.from_uri(f"s3://models/{name}.tar.gz"),
            hostname=name,
        )
        for name in ("tokenize", "score", "explain")
    ]
    parts.model(stack, containers=containers, **given)
    template = template_of(stack)
    model = template.only("AWS::SageMaker::Model")
    assert [part["ContainerHostname"] for part in model["Containers"]] == [
        "tokenize",
        "score",
        "explain",
    ]
    assert model["InferenceExecutionConfig"] == {"Mode": mode}
    assert "PrimaryContainer" not in model
    policy = json.dumps(template.model_rights)
    for name in ("tokenize", "score", "explain"):
        assert f"repository/{name}" in policy
        assert f":s3:::models/{name}.tar.gz" in policy


def test_containers_from_one_repository_are_granted_once(stack, parts, template_of):
    parts.model(stack, containers=[parts.container(), parts.container()])
    assert granted(template_of(stack)).keys() == HOSTING | PULL | {"s3:GetObject"}


@pytest.mark.parametrize("isolated", [False, True])
def test_network_isolation(stack, parts, template_of, isolated):
    parts.model(stack, network_isolation=isolated)
    model = template_of(stack).only("AWS::SageMaker::Model")
    assert model["EnableNetworkIsolation"] is isolated


def test_the_role_may_exactly_what_hosting_needs(smallest):
    template = smallest("model")
    assert granted(template).keys() == HOSTING | PULL | {"s3:GetObject"}
    role = template["Resources"][model_role(template)]["Properties"]
    assert set(role) == {"AssumeRolePolicyDocument"}  # no managed policy, no inline one
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    assert "AmazonSageMakerFullAccess" not in json.dumps(template)


def test_only_calls_that_take_no_resource_are_granted_on_all(smallest):
    on_all = {
        action for action, (resource, _) in granted(smallest("model")).items() if resource == "*"
    }
    assert on_all == {
        "cloudwatch:DescribeAlarms",
        "cloudwatch:PutMetricData",
        "ecr:GetAuthorizationToken",
        "ec2:DescribeDhcpOptions",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcEndpoints",
        "ec2:DescribeVpcs",
    }


def test_metrics_and_logs_are_sagemakers_own(smallest):
    actions = granted(smallest("model"))
    assert actions["cloudwatch:PutMetricData"][1] == {
        "StringLike": {"cloudwatch:namespace": "/aws/sagemaker/*"}
    }
    logs = actions["logs:PutLogEvents"][0]["Fn::Join"][1]
    assert logs[-1] == ":log-group:/aws/sagemaker/Endpoints/*"


def test_interfaces_are_made_in_these_subnets_and_groups_only(stack, parts, template_of):
    network = parts.network(stack)
    parts.model(stack, network=network)
    template = template_of(stack)
    resources, _ = granted(template)["ec2:CreateNetworkInterface"]
    tails = [resource["Fn::Join"][1] for resource in resources]
    subnets = [tail[-1] for tail in tails if tail[-2] == ":subnet/"]
    groups = [tail[-1] for tail in tails if tail[-2] == ":security-group/"]
    vpc = template.only("AWS::SageMaker::Model")["VpcConfig"]
    assert sorted(map(str, subnets)) == sorted(map(str, vpc["Subnets"]))
    assert groups == vpc["SecurityGroupIds"]
    assert [tail[-1] for tail in tails if len(tail) == 7] == [":network-interface/*"]
    assert len(tails) == 4


def test_the_model_waits_for_its_policies_and_its_way_to_s3(smallest):
    template = smallest("model")
    waits = set(template.depends_on(template.only_id("AWS::SageMaker::Model")))
    role = {"Ref": model_role(template)}
    policies = {
        name
        for name, policy in template.of_type("AWS::IAM::Policy").items()
        if policy["Roles"] == [role]
    }
    assert len(policies) == 2
    assert policies <= waits
    assert set(template.of_type("AWS::EC2::VPCEndpoint")) <= waits
    assert set(template.of_type("AWS::EC2::SubnetRouteTableAssociation")) <= waits


def test_a_role_of_the_users_own_gets_the_policy(stack, parts, template_of):
    role = iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    model = parts.model(stack, role=role)
    assert model.role is role
    template = template_of(stack)
    own = stack.resolve(role.role_name)
    policies = template.model_policies.values()
    # Hosting, the interfaces, the image, the data: what several models need stands once.
    assert [policy["Roles"] for policy in policies] == [[own]] * 4
    assert model_role(template) == own["Ref"]


def test_an_imported_role_gets_the_policy_too(stack, parts, template_of):
    role = iam.Role.from_role_arn(stack, "Own", "arn:aws:iam::123456789012:role/hosting")
    parts.model(stack, role=role)
    template = template_of(stack)
    policies = template.model_policies.values()
    assert [policy["Roles"] for policy in policies] == [["hosting"]] * 4
    model = template.only("AWS::SageMaker::Model")
    assert model["ExecutionRoleArn"] == "arn:aws:iam::123456789012:role/hosting"


def test_a_role_that_may_not_be_changed_is_left_alone(stack, parts, template_of):
    role = iam.Role.from_role_arn(
        stack, "Own", "arn:aws:iam::123456789012:role/hosting", mutable=False
    )
    parts.model(stack, role=role)
    template = template_of(stack)
    assert len(template.of_type("Custom::DrainedInterfaces")) == 1
    assert not template.model_policies
    assert "hosting" not in str(template.of_type("AWS::IAM::Policy"))
    model = template.only("AWS::SageMaker::Model")
    assert model["ExecutionRoleArn"] == "arn:aws:iam::123456789012:role/hosting"


def version_policies(template):
    """Of one model; what it is called is all that says which version it is of."""
    return {name for name in template.model_policies if "Version" in name}


def with_model(parts, template_of, make_stack, **given):
    stack = make_stack()
    bucket = s3.Bucket(stack, "Models")
    key = given.pop("key", "model.tar.gz")
    data = ModelData.from_s3(bucket, key)
    groups = [imported_group(stack, name) for name in given.pop("groups", ())]
    parts.model(
        stack, containers=[parts.container(data=data, **given)], security_groups=groups or None
    )
    return template_of(stack)


def imported_group(stack, name):
    return ec2.SecurityGroup.from_security_group_id(stack, name, name)


def test_what_one_version_needs_has_a_policy_whose_name_follows_it(parts, template_of, new_stack):
    usual = with_model(parts, template_of, new_stack)
    assert version_policies(usual) == version_policies(with_model(parts, template_of, new_stack))
    others = [
        with_model(parts, template_of, new_stack, key="next.tar.gz"),
        with_model(
            parts,
            template_of,
            new_stack,
            image=ContainerImage.from_uri("111122223333.dkr.ecr.us-east-1.amazonaws.com/other:1"),
        ),
        with_model(parts, template_of, new_stack, groups=["sg-0123456789abcdef0"]),
    ]
    names = [version_policies(template) for template in (usual, *others)]
    assert len(frozenset().union(*names)) == 4
    # What every version needs stays where it is, and says nothing of any of them.
    stable = [
        set(template.model_policies) - version_policies(template) for template in (usual, *others)
    ]
    assert all(names == stable[0] for names in stable)
    (name,) = stable[0]
    for template in others:
        assert template.model_policies[name] == usual.model_policies[name]
    (policy,) = version_policies(usual)
    # A role takes each name once, so that two versions need two names.
    assert policy.startswith(f"Model{usual.model_policies[policy]['PolicyName']}")


def test_what_is_granted_later_stays_out_of_a_versions_policy(stack, parts, template_of):
    model = parts.model(stack)
    model.grant_write("s3://captured/all")
    template = template_of(stack)
    (name,) = version_policies(template)
    assert "s3:PutObject" not in str(template.model_policies[name])
    assert "s3:PutObject" in str(template.model_rights)


def test_it_can_be_granted_more(stack, parts, template_of):
    model = parts.model(stack)
    iam.Grant.add_to_principal(
        grantee=model.grant_principal,
        actions=["dynamodb:GetItem"],
        resource_arns=["arn:aws:dynamodb:us-east-1:123456789012:table/features"],
    )
    assert "dynamodb:GetItem" in str(template_of(stack).of_type("AWS::IAM::Policy"))


def test_a_bucket_grants_it(stack, parts, template_of):
    s3.Bucket.from_bucket_name(stack, "Bucket", "features").grant_read(parts.model(stack))
    assert ":s3:::features/*" in str(template_of(stack).of_type("AWS::IAM::Policy"))
