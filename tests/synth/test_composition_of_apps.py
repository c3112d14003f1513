"""What is done to a whole app reaches the pattern, and what it is made of can be another's.

The rest of what CDK apps do with constructs is in ``test_composition``.
"""

from __future__ import annotations

import hashlib
import json
import os
import pydoc
import subprocess
import sys
from typing import Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import assertions
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from low_latency_endpoint import (
    CanaryOptions,
    ClientZones,
    ConfigurationOptions,
    DataCapture,
    EndpointOptions,
    InstanceCounts,
    LowLatencyEndpoint,
    MeasuredThroughput,
    ModelOptions,
    Safeguards,
    ScalingOptions,
)
from tests.cdk_features import needs_cdk
from tests.refusals import refused

from .team_apps import (
    ACCOUNT,
    OTHER,
    SUBNETS,
    WARMED,
    A,
    B,
    an_app,
    arguments,
    only,
    resources,
    serve,
    stack_of,
)

BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/boundary"


# --- what is done to a whole app -----------------------------------------------------------------


def test_tags_of_the_app_reach_all_that_takes_tags():
    app = an_app()
    stack = stack_of(app, "Ml")
    serve(stack, warm_up=WARMED, endpoint=EndpointOptions(tags={"team": "search"}))
    cdk.Tags.of(app).add("cost-centre", "4711")
    taggable = {
        cdk.Stack.of(each).resolve(each.logical_id)
        for each in stack.node.find_all()
        if cdk.CfnResource.is_cfn_resource(each) and _takes_tags(each)
    }
    assert len(taggable) > 15
    for name, resource in resources(stack).items():
        if name in taggable:
            assert "4711" in json.dumps(resource["Properties"].get("Tags")), name
    assert "search" in json.dumps(only(stack, "AWS::SageMaker::Endpoint")["Tags"])


def _takes_tags(resource: Any) -> bool:
    return cdk.TagManager.is_taggable(resource) or hasattr(resource, "cdk_tag_manager")


def test_a_permissions_boundary_reaches_every_role():
    """As ``cdk.json`` sets it for all stacks."""
    app = an_app(**{"@aws-cdk/core:permissionsBoundary": {"arn": BOUNDARY}})
    stack = stack_of(app, "Ml")
    serve(stack, warm_up=WARMED)
    roles = resources(stack, "AWS::IAM::Role")
    assert len(roles) >= 5
    assert {role["Properties"].get("PermissionsBoundary") for role in roles.values()} == {BOUNDARY}


@jsii.implements(cdk.IAspect)
class PathOfTheTeam:
    def visit(self, node: IConstruct) -> None:
        if isinstance(node, iam.CfnRole):
            node.path = "/team/"


def test_an_aspect_that_changes_roles():
    app = an_app()
    stack = stack_of(app, "Ml")
    serve(stack, warm_up=WARMED)
    cdk.Aspects.of(app).add(PathOfTheTeam(), priority=cdk.AspectPriority.MUTATING)
    roles = resources(stack, "AWS::IAM::Role")
    assert {role["Properties"].get("Path") for role in roles.values()} == {"/team/"}


@needs_cdk("RemovalPolicies")
def test_everything_can_be_retained():
    stack = stack_of(an_app(), "Ml")
    serve(stack, warm_up=WARMED)
    cdk.RemovalPolicies.of(stack).retain()
    for name, resource in resources(stack).items():
        assert resource.get("DeletionPolicy") == "Retain", name


def test_logical_ids_can_be_kept():
    """A stack that is moved into this library keeps what CloudFormation knows already."""
    stack = stack_of(an_app(), "Ml")
    endpoint = serve(stack, warm_up=WARMED)
    endpoint.endpoint.node.default_child.override_logical_id("Endpoint")
    endpoint.configuration.node.default_child.override_logical_id("EndpointConfig")
    endpoint.model.node.default_child.override_logical_id("Model")
    made = resources(stack)
    assert made["Endpoint"]["Properties"]["EndpointConfigName"] == {
        "Fn::GetAtt": ["EndpointConfig", "EndpointConfigName"]
    }
    variants = made["EndpointConfig"]["Properties"]["ProductionVariants"]
    assert variants[0]["ModelName"] == {"Fn::GetAtt": ["Model", "ModelName"]}


# --- roles that somebody else makes --------------------------------------------------------------


def an_immutable_role(stack: cdk.Stack, name: str = "hosting") -> iam.IRole:
    return iam.Role.from_role_arn(
        stack, f"Role-{name}", f"arn:aws:iam::{ACCOUNT}:role/{name}", mutable=False
    )


def _network_of(stack: cdk.Stack, *, in_new_vpc: bool) -> dict[str, Any]:
    """The arguments for an existing VPC; none for a new one."""
    if in_new_vpc:
        return {}
    return {
        "vpc": ec2.Vpc.from_vpc_attributes(
            stack,
            "Vpc",
            vpc_id="vpc-0123456789abcdef0",
            availability_zones=[A, B],
            private_subnet_ids=SUBNETS,
        )
    }


@pytest.mark.parametrize("in_new_vpc", [False, True])
def test_with_roles_of_others_no_role_is_made(in_new_vpc):
    stack = stack_of(an_app(), "Ml")
    given = _network_of(stack, in_new_vpc=in_new_vpc)
    serve(
        stack,
        **given,
        warm_up=WARMED,
        model=ModelOptions(role=an_immutable_role(stack)),
        safeguards=Safeguards(
            function_role=an_immutable_role(stack, "functions"),
            flow_log_role=an_immutable_role(stack, "flow-log"),
        ),
    )
    assert not [each for each in resources(stack).values() if "::IAM::" in each["Type"]]


ROLES = ("hosting", "functions", "flow-log")


def _with_given_roles(*, mutable: bool, in_new_vpc: bool) -> cdk.Stack:
    """An endpoint whose roles are all imported."""
    stack = stack_of(an_app(), "Ml")
    hosting, functions, flow_log = (
        iam.Role.from_role_arn(
            stack, f"Role-{name}", f"arn:aws:iam::{ACCOUNT}:role/{name}", mutable=mutable
        )
        for name in ROLES
    )
    given = _network_of(stack, in_new_vpc=in_new_vpc)
    serve(
        stack,
        **given,
        warm_up=WARMED,
        canary=CanaryOptions(),
        configuration=ConfigurationOptions(data_capture=DataCapture(s3="s3://captured/here")),
        model=ModelOptions(role=hosting),
        safeguards=Safeguards(
            encryption_key=kms.Key(stack, "Key"), function_role=functions, flow_log_role=flow_log
        ),
    )
    return stack


def _needed(stack: cdk.Stack) -> dict[str, set[str]]:
    """By role, the actions that the template's policies allow it."""
    found: dict[str, set[str]] = {}
    for each in resources(stack).values():
        if each["Type"] == "AWS::IAM::Policy":
            for role in each["Properties"]["Roles"]:
                for statement in each["Properties"]["PolicyDocument"]["Statement"]:
                    action = statement["Action"]
                    actions = [action] if isinstance(action, str) else action
                    found.setdefault(role, set()).update(actions)
    return found


@pytest.mark.parametrize("in_new_vpc", [False, True])
def test_a_role_that_cannot_be_changed_is_one_warning_that_names_what_it_needs(in_new_vpc):
    """The actions are those that a role which can be changed is allowed, whatever needs them."""
    needed = _needed(_with_given_roles(mutable=True, in_new_vpc=in_new_vpc))
    assert set(needed) == {name for name in ROLES if in_new_vpc or name != "flow-log"}
    stack = _with_given_roles(mutable=False, in_new_vpc=in_new_vpc)
    said = [
        str(message.entry.data)
        for message in assertions.Annotations.from_stack(stack).find_warning(
            "*", assertions.Match.any_value()
        )
    ]
    warned = [text for text in said if "roleCannotBeChanged" in text]
    assert len(warned) == len(needed)
    for role, actions in needed.items():
        (text,) = [text for text in warned if f"Role-{role} cannot be changed" in text]
        named = text.partition("It must be allowed: ")[2].partition(". A template")[0]
        assert set(named.split(", ")) == actions


def test_roles_that_can_be_changed_are_no_warning():
    stack = _with_given_roles(mutable=True, in_new_vpc=True)
    warnings = assertions.Annotations.from_stack(stack).find_warning(
        "*", assertions.Match.string_like_regexp("roleCannotBeChanged")
    )
    assert warnings == []


def test_customized_roles_are_made_by_somebody_else():
    """CDK then writes down which roles the stack needs, and makes none of them itself."""
    stack = stack_of(an_app(), "Ml")
    names = {"Ml/Hosting": "hosting", "Ml/Functions": "functions", "Ml/FlowLog": "flow-log"}
    iam.Role.customize_roles(stack, use_precreated_roles=names)
    hosting, functions, flow_log = (
        iam.Role(stack, path.partition("/")[2], assumed_by=iam.ServicePrincipal(service))
        for path, service in zip(
            names,
            ("sagemaker.amazonaws.com", "lambda.amazonaws.com", "vpc-flow-logs.amazonaws.com"),
            strict=True,
        )
    )
    serve(
        stack,
        warm_up=WARMED,
        model=ModelOptions(role=hosting),
        safeguards=Safeguards(function_role=functions, flow_log_role=flow_log),
    )
    assert not [each for each in resources(stack).values() if "::IAM::" in each["Type"]]
    assert "role/hosting" in json.dumps(only(stack, "AWS::SageMaker::Model")["ExecutionRoleArn"])


# --- a team's own code around it -----------------------------------------------------------------


class TeamEndpoint(LowLatencyEndpoint):
    """A pattern of a platform team: its zones and its alarm, no more to state than the load."""

    def __init__(self, scope: Construct, id: str, *, peak_tps: float) -> None:
        throughput = MeasuredThroughput(peak_tps=peak_tps, tps_per_instance=50)
        super().__init__(scope, id, **arguments(throughput=throughput))
        self.busy = cloudwatch.Alarm(
            self,
            "Busy",
            metric=self.metric("Invocations", statistic="Sum"),
            threshold=peak_tps * 60,
            evaluation_periods=1,
        )


def test_a_subclass_of_the_pattern():
    stack = stack_of(an_app(), "Ml")
    made = TeamEndpoint(stack, "Team", peak_tps=100)
    alarm = resources(stack, "AWS::CloudWatch::Alarm")[
        stack.resolve(made.busy.node.default_child.logical_id)
    ]
    assert alarm["Properties"]["Threshold"] == 6000
    with refused("LLE807"):
        TeamEndpoint(stack, "Wrong", peak_tps="many")


def test_metrics_stand_in_alarms_and_expressions():
    stack = stack_of(an_app(), "Ml")
    made = serve(stack)
    share = cloudwatch.MathExpression(
        expression="errors / calls",
        using_metrics={
            "errors": made.metric_invocation_5xx_errors(),
            "calls": made.endpoint.metric_invocations(),
        },
    )
    share.create_alarm(stack, "Share", threshold=0.01, evaluation_periods=3)
    made.metric_model_latency("p99").create_alarm(
        stack, "Slow", threshold=200_000, evaluation_periods=3
    )
    alarms = resources(stack, "AWS::CloudWatch::Alarm")
    (slow,) = (each["Properties"] for name, each in alarms.items() if name.startswith("Slow"))
    assert (slow["MetricName"], slow["ExtendedStatistic"]) == ("ModelLatency", "p99")
    assert {each["Name"] for each in slow["Dimensions"]} == {"EndpointName", "VariantName"}
    (errors,) = (each["Properties"] for name, each in alarms.items() if name.startswith("Share"))
    names = {
        each["MetricStat"]["Metric"]["MetricName"]
        for each in errors["Metrics"]
        if "MetricStat" in each
    }
    assert names == {"Invocation5XXErrors", "Invocations"}


def test_one_instance_for_a_stage_of_development():
    stack = stack_of(an_app(), "Ml")
    one, fixed = InstanceCounts(initial=1), ScalingOptions(enabled=False)
    serve(stack, throughput=None, instances=one, scaling=fixed)
    (variant,) = only(stack, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert variant["InitialInstanceCount"] == 1


# --- where it is deployed ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "partition", "registry"),
    [("cn-north-1", "aws-cn", "727897471807"), ("us-gov-west-1", "aws-us-gov", "442386744353")],
)
def test_other_partitions(region, partition, registry):
    stack = stack_of(an_app(), "Ml", cdk.Environment(account=ACCOUNT, region=region))
    zones = ClientZones.of_names(f"{region}a", f"{region}b")
    made = serve(stack, client_zones=zones, warm_up=WARMED)
    made.grant_invoke(iam.User(stack, "Caller"))
    name, *parts = only(stack, "AWS::SageMaker::Model")["PrimaryContainer"]["Image"]["Fn::Join"][1]
    assert name == f"{registry}.dkr.ecr."
    assert {"Ref": "AWS::URLSuffix"} in parts  # amazonaws.com.cn in China
    text = json.dumps(resources(stack))
    assert "arn:aws:" not in text
    assert ".amazonaws.com/" not in text
    assert f"arn:{partition}:" in text or '{"Ref": "AWS::Partition"}' in text


@pytest.mark.parametrize("env", [None, cdk.Environment(region="us-east-1")], ids=["none", "region"])
def test_an_environment_that_is_open(env):
    stack = stack_of(an_app(), "Ml", env)
    serve(stack, warm_up=WARMED)
    text = json.dumps(resources(stack))
    assert ACCOUNT not in text
    assert '"AWS::AccountId"' in text
    image = only(stack, "AWS::SageMaker::Model")["PrimaryContainer"]["Image"]["Fn::Join"][1][0]
    # By region where that is open: the registry's account is another one in some of them.
    assert (image == "763104351884.dkr.ecr.") is (env is not None)


def test_a_key_of_another_account():
    """Its policy is not CDK's to change; the role's is."""
    stack = stack_of(an_app(), "Ml")
    arn = f"arn:aws:kms:us-east-1:{OTHER}:key/0123abcd-0000-4000-8000-000000000000"
    key = kms.Key.from_key_arn(stack, "Key", arn)
    serve(stack, configuration=ConfigurationOptions(encryption_key=key))
    assert only(stack, "AWS::SageMaker::EndpointConfig")["KmsKeyId"] == arn
    assert not resources(stack, "AWS::KMS::Key")
    granted = [
        statement["Action"]
        for policy in resources(stack, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Resource"] == arn
    ]
    assert granted


SNAPSHOT_APP = """
from aws_cdk import App, Duration, Environment, Stack
from low_latency_endpoint import *

app = App(analytics_reporting=False)
stack = Stack(app, "S", env=Environment(account="123456789012", region="us-east-1"))
LowLatencyEndpoint(
    stack, "X", client_zones=["use1-az1", "use1-az2"], instance_type="ml.m5.xlarge",
    containers=[Container.from_uri(
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/a:1",
        environment={"b": "1", "a": "2"},
    )],
    latency=LatencyTarget(p99=Duration.millis(200)),
    endpoint=EndpointOptions(tags={"y": "1", "x": "2"}),
    warm_up=WarmUpOptions(payload=WarmUpPayload(data={"inputs": "warm"})),
)
app.synth()
"""


@pytest.mark.nightly
def test_two_processes_make_the_same_bytes(tmp_path):
    """Snapshots of other people: sets of Python come in another order in each process."""
    (tmp_path / "app.py").write_text(SNAPSHOT_APP, encoding="utf-8")
    started = [
        subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "CDK_OUTDIR": str(tmp_path / seed)},
        )
        for seed in ("1", "7")
    ]
    assert [process.wait(timeout=120) for process in started] == [0, 0]
    first, second = (
        {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (tmp_path / seed).iterdir()
            if path.name.endswith((".template.json", ".assets.json"))
        }
        for seed in ("1", "7")
    )
    assert first == second
    assert len(first) == 2


def test_help_shows_the_real_signature():
    """Not ``(*args, **kwargs)``, which jsii's metaclass would show; a subclass has its own."""
    for made, first in (
        (LowLatencyEndpoint, "id: 'str', *, containers: 'Sequence[Container]'"),
        (TeamEndpoint, "id: 'str', *, peak_tps: 'float')"),
    ):
        said = pydoc.render_doc(made, renderer=pydoc.plaintext).splitlines()[3]
        assert said.startswith(f" |  {made.__name__}(scope: 'Construct', {first}")
