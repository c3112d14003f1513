"""Each right of each of our functions is needed, and none is missing.

A stack with every function that the library makes is created, updated, kept warm and deleted, while
the local AWS judges each call. A right that none of them needed is too much, unless `NOT_REACHED`
says why it cannot be seen here; a call that was denied lacks one. So a right that is taken out of a
function's policy fails the first test: its call is denied, or `NOT_REACHED` names what is not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from moto.ec2.models import EC2Backend
from waiting import wait_for

import low_latency_endpoint
from local_sagemaker import (
    DeployedStack,
    LocalAws,
    RuntimeOptions,
    delete_stack,
    deploy_template,
    lambda_runner,
)
from local_sagemaker.permissions.evaluator import Statement, read_policy
from low_latency_endpoint import (
    ClientZones,
    EndpointOptions,
    KeepWarmOptions,
    LowLatencyEndpoint,
    Safeguards,
    StagedModel,
    WarmUpOptions,
    WarmUpPayload,
)
from low_latency_endpoint.plan.pinned_model import PinnedModel
from tests.deploy.small_stacks import REGION, REGISTRY, container, newest, stack_in, synthesised
from tests.deploy.watched_rights import Watch
from tests.depth import sampled
from tests.hub_of_files import FakeHub, FakeModel

STACK, MODEL, TOKEN = "Serving", "acme/tiny", "hf_granted"
STAY = 3600.0
"""Seconds by the clock for which interfaces outlive the endpoint: until the test moves it."""
FILES = {"config.json": b"{}", "model.safetensors": bytes(17 * 1024 * 1024)}
"""One file of several parts, for which S3 asks more of its writer."""
NEWER = {"config.json": b'{"newer": 1}'}
LIBRARY = Path(low_latency_endpoint.__file__).parent

WhoseRight = tuple[str, str]
"""Whose right it is, and its action: the function's, or that of all to use a certain key."""

_ADDRESSES = "Lambda documents that it asks for it; the local AWS's Lambda does not."
_LOGS = "CloudWatch Logs asks for it of who writes; the local AWS's asks for the log group alone."
_DEAD_LETTERS = "SQS asks for it once Lambda sends a dead letter; the local AWS's sends none."
ADDRESSES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""Of a function in a VPC."""
NOT_REACHED: dict[WhoseRight, str] = {
    **{("WarmUpSender", action): _ADDRESSES for action in ADDRESSES},
    ("WarmUpSender", "kms:GenerateDataKey"): _DEAD_LETTERS,
    ("WarmUpController", "kms:GenerateDataKey"): _DEAD_LETTERS,
    ("HubModelStaging", "kms:Encrypt"): "SageMaker asks for it where its roles write; S3 does not.",
    ("the token's key", "kms:Decrypt"): "The local AWS's Secrets Manager does not ask for the key.",
    ("the logs' key", "kms:Decrypt"): _LOGS,
    ("the logs' key", "kms:DescribeKey"): _LOGS,
    ("the logs' key", "kms:Encrypt"): _LOGS,
    ("the logs' key", "kms:GenerateDataKey"): _LOGS,
    ("the logs' key", "kms:GenerateDataKeyWithoutPlaintext"): _LOGS,
    ("the logs' key", "kms:ReEncryptFrom"): _LOGS,
    ("the logs' key", "kms:ReEncryptTo"): _LOGS,
}


@pytest.fixture(autouse=True)
def _born_as_on_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default group lets its members in, which moto's does not."""
    make = EC2Backend.create_security_group

    def made(self: Any, *arguments: Any, **given: Any) -> Any:
        group = make(self, *arguments, **given)
        if group.is_default:
            members = [{"GroupId": group.id}]
            self.authorize_security_group_ingress(
                group.id, "-1", None, None, ip_ranges=[], source_groups=members
            )
        return group

    monkeypatch.setattr(EC2Backend, "create_security_group", made)


# --- the stack ------------------------------------------------------------------------------------


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub({MODEL: FakeModel(files=FILES, gated="manual", tokens=(TOKEN,))}) as running:
        yield running


class Site:
    """The stack with all functions, in one version after the other; maybe in a team's subnet."""

    def __init__(self, aws: LocalAws, hub: FakeHub, folder: Path, *, guarded: bool = False) -> None:
        self.aws, self.hub, self.folder = aws, hub, folder
        self.placed = _guardrails(aws) if guarded else ()
        self.key, self.token_key = (
            aws.client("kms").create_key()["KeyMetadata"]["Arn"] for _ in range(2)
        )
        self.secret = aws.client("secretsmanager").create_secret(
            Name="hf", SecretString=TOKEN, KmsKeyId=self.token_key
        )["ARN"]

    def committed(self, files: dict[str, bytes]) -> PinnedModel:
        """Have the model's newest commit with these files, and pin it."""
        self.hub.commit(MODEL, files)
        return newest(self.hub, MODEL, files)

    def synthesise(self, pinned: PinnedModel, *, image: int = 1, name: str = "sentiment") -> Path:
        """Make a version of the stack; gives its template's file."""
        out = self.folder / name
        stack = stack_in(out, STACK)
        guards = Safeguards(encryption_key=kms.Key.from_key_arn(stack, "Key", self.key))
        if self.placed:
            subnet, group, signing = self.placed
            guards = replace(
                guards,
                function_subnets=[ec2.Subnet.from_subnet_id(stack, "Subnet", subnet)],
                function_security_groups=[
                    ec2.SecurityGroup.from_security_group_id(stack, "Group", group, mutable=False)
                ],
                code_signing_config_arn=signing,
            )
        guards.apply_to(stack)
        StagedModel(
            stack,
            "Tiny",
            pinned=pinned,
            token=secretsmanager.Secret.from_secret_attributes(
                stack,
                "Token",
                secret_complete_arn=self.secret,
                encryption_key=kms.Key.from_key_arn(stack, "TokenKey", self.token_key),
            ),
            hub_endpoint=self.hub.endpoint,
        )
        LowLatencyEndpoint(
            stack,
            "Pattern",
            client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
            instance_type="ml.m5.xlarge",
            containers=[container(f"server:{image}")],
            endpoint=EndpointOptions(endpoint_name=name),
            warm_up=WarmUpOptions(
                payload=WarmUpPayload(text="hello"), requests=4, last=1, keep_warm=KeepWarmOptions()
            ),
        )
        return synthesised(stack) / stack.template_file

    def deploy(self, template: Path, *, expect_failure: bool = False) -> DeployedStack:
        return deploy_template(
            self.aws, template.parent, STACK, expect_failure=expect_failure, timeout=100
        )


def _guardrails(aws: LocalAws) -> tuple[str, str, str]:
    """Make what a platform team has for functions: a subnet, a group, a code signing configuration."""
    client = aws.client("ec2")
    vpc = client.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = client.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    group = client.create_security_group(VpcId=vpc, GroupName="functions", Description="HTTPS out")
    profile = f"arn:aws:signer:{REGION}:123456789012:/signing-profiles/platform/0123456789"
    signing = aws.client("lambda").create_code_signing_config(
        AllowedPublishers={"SigningProfileVersionArns": [profile]},
        CodeSigningPolicies={"UntrustedArtifactOnDeployment": "Warn"},
    )["CodeSigningConfig"]
    return str(subnet), str(group["GroupId"]), str(signing["CodeSigningConfigArn"])


@pytest.fixture
def site(request: pytest.FixtureRequest, hub: FakeHub, tmp_path: Path) -> Iterator[Site]:
    guarded = getattr(request, "param", None)
    options = RuntimeOptions(interfaces_stay=0 if guarded is None else STAY)
    with LocalAws.in_process(region=REGION, runtime=options) as aws:
        aws.reset()
        for image in (1, 2):
            aws.add_image(f"{REGISTRY}/server:{image}")
        yield Site(aws, hub, tmp_path, guarded=bool(guarded))
        aws.reset()


Template = dict[str, Any]


def read(template: Path) -> Template:
    return dict(json.loads(template.read_text(encoding="utf-8")))


def edit(template: Path, change: Callable[[Template], None]) -> None:
    document = read(template)
    change(document)
    template.write_text(json.dumps(document), encoding="utf-8")


def of_type(template: Template, type: str) -> dict[str, dict[str, Any]]:
    """Logical ID -> properties."""
    found = template["Resources"].items()
    return {name: each["Properties"] for name, each in found if each["Type"] == type}


def function_roles(template: Template) -> list[str]:
    """The logical IDs of the roles that Lambda may assume."""
    return [
        name
        for name, role in of_type(template, "AWS::IAM::Role").items()
        if "lambda.amazonaws.com" in json.dumps(role["AssumeRolePolicyDocument"])
    ]


def function_statements(template: Template) -> list[dict[str, Any]]:
    """What these roles are allowed, in themselves and in policies on them."""
    roles = function_roles(template)
    own = [each for role in roles for each in template["Resources"][role]["Properties"]["Policies"]]
    attached = [
        each
        for each in of_type(template, "AWS::IAM::Policy").values()
        if any({"Ref": role} in each["Roles"] for role in roles)
    ]
    statements = [
        each for policy in (*own, *attached) for each in policy["PolicyDocument"]["Statement"]
    ]
    return [each for each in statements if each["Effect"] == "Allow"]


def physical(made: DeployedStack, template: Template, type: str, part: str = "") -> str:
    """The physical ID of the one resource of a type with that in its logical ID."""
    (found,) = [name for name in of_type(template, type) if part in name]
    return made.resources[found]


# --- each right is needed, and none is missing ------------------------------------------------------


@dataclass(frozen=True)
class Granted:
    """A statement of a function's role, as it stands in IAM."""

    function: str
    role: str
    statement: Statement

    def whose(self, token_key: str) -> str:
        """Whose rights they are: the function's, or those to a certain key."""
        if any(key == "kms:ViaService" for _, key, _ in self.statement.conditions):
            return "the logs' key"
        return "the token's key" if self.statement.resources == (token_key,) else self.function


def granted(aws: LocalAws, made: DeployedStack, template: Template) -> list[Granted]:
    """All that the stack's functions are allowed at this moment."""
    iam, found = aws.client("iam"), []
    for logical_id in function_roles(template):
        name = made.resources[logical_id]
        arn = iam.get_role(RoleName=name)["Role"]["Arn"]
        function = re.sub(r"^Pattern|Role[0-9A-F]{8}$", "", logical_id)
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
            document = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
            found += [
                Granted(function, arn, each)
                for each in read_policy(json.dumps(document)).statements
                if not each.denies
            ]
    return found


def missing_functions(template: Template) -> list[str]:
    """The library's functions that are not in a template: inline files, and packages."""
    functions = of_type(template, "AWS::Lambda::Function").values()
    inline = {each["Code"].get("ZipFile") for each in functions}
    packages = {part for each in functions for part in each["Handler"].split(".")}
    files = (LIBRARY / "synthesis/custom_resource_functions").glob("*.py")
    folders = {each.parent for each in LIBRARY.glob("*/*_function/__init__.py")}
    return [
        *(each.name for each in files if each.read_text(encoding="utf-8") not in inline),
        *(each.name for each in folders if each.name not in packages),
    ]


def goes_on_at_once(template: Template) -> None:
    """Give the drain so little time that it hands over to itself as soon as it has looked once."""
    functions = of_type(template, "AWS::Lambda::Function")
    (drain,) = [name for name in functions if name.startswith("LowLatencyEndpointDrain")]
    functions[drain]["Timeout"] = 16


def keep_warm(aws: LocalAws, made: DeployedStack, template: Template) -> None:
    """What the schedule does each minute, and the requests that it sends."""
    rule = physical(made, template, "AWS::Events::Rule", "KeepWarm")
    (to,) = aws.client("events").list_targets_by_rule(Rule=rule)["Targets"]
    answer = aws.client("lambda").invoke(FunctionName=to["Arn"], Payload=to["Input"])
    assert json.loads(answer["Payload"].read()) == "sent"
    wait_for(lambda: not lambda_runner.is_running())


def delete_while_interfaces_stay(aws: LocalAws, made: DeployedStack, watch: Watch) -> None:
    """Delete the stack, whose interfaces go once the drain has handed over to itself."""
    cloudformation = aws.client("cloudformation")
    cloudformation.delete_stack(StackName=STACK)
    wait_for(lambda: watch.has_called("Drain", "lambda:InvokeFunction"))
    aws.advance(STAY)
    waiter = cloudformation.get_waiter("stack_delete_complete")
    waiter.wait(StackName=made.id, WaiterConfig={"Delay": 0.1, "MaxAttempts": 600})


def assert_guarded(site: Site, made: DeployedStack, template: Template) -> None:
    """Every function is in a VPC and signed; all but the sender in the team's subnet."""
    subnet, group, signing = site.placed
    subnets: list[list[str]] = []
    for logical_id in of_type(template, "AWS::Lambda::Function"):
        name = made.resources[logical_id]
        client = site.aws.client("lambda")
        signed = client.get_function_code_signing_config(FunctionName=name)
        assert signed["CodeSigningConfigArn"] == signing
        network = client.get_function_configuration(FunctionName=name)["VpcConfig"]
        subnets.append(network["SubnetIds"])
        assert subnets[-1] != [subnet] or network["SecurityGroupIds"] == [group]
    (elsewhere,) = [each for each in subnets if each != [subnet]]
    assert elsewhere


@pytest.mark.parametrize(
    "site", [False, True], indirect=True, ids=["own subnets", "in a team's subnet, signed"]
)
def test_each_right_of_each_function_is_needed_and_none_is_missing(site, watch):
    rights: list[Granted] = []
    first = site.synthesise(site.committed(FILES))
    assert not missing_functions(read(first))
    edit(first, goes_on_at_once)
    made = site.deploy(first)
    rights += granted(site.aws, made, read(first))
    if site.placed:
        assert_guarded(site, made, read(first))

    newer = site.committed(NEWER)
    # As of a function that was killed: the staging ends it.
    site.aws.client("s3").create_multipart_upload(
        Bucket=physical(made, read(first), "AWS::S3::Bucket"), Key=f"{newer.prefix}config.json"
    )
    second = site.synthesise(newer, image=2, name="sentiment-v2")
    edit(second, goes_on_at_once)
    made = site.deploy(second)
    rights += granted(site.aws, made, read(second))
    keep_warm(site.aws, made, read(second))
    delete_while_interfaces_stay(site.aws, made, watch)

    roles = {each.role for each in rights}
    assert {each for each in watch.denied if each[0] in roles} == set()
    unneeded: set[WhoseRight] = set()
    needed: set[WhoseRight] = set()
    for each in rights:
        for action in each.statement.actions:
            used = watch.has_needed(each.role, each.statement, action)
            (needed if used else unneeded).add((each.whose(site.token_key), action))
    not_reached = set(NOT_REACHED)
    if site.placed:
        not_reached |= {(each.function, action) for each in rights for action in ADDRESSES}
        # Two statements allow it: what the function does, and what Lambda does to run it there.
        not_reached.add(("LowLatencyEndpointDrain", "ec2:DescribeNetworkInterfaces"))
    assert unneeded - not_reached == set(), "no call needs them"
    assert not_reached - unneeded == set(), "they are not in the policies, or are needed"
    assert needed & not_reached == set(), "calls need them"


# --- without one the deployment fails ---------------------------------------------------------------


IMPATIENT = {"PAUSE = 5\n": "PAUSE = 0.5\n", "PAUSE, PATIENCE = 5, 60": "PAUSE, PATIENCE = 0.5, 1"}
"""How long inline functions wait for rights that are new."""


def impatient(template: Template) -> None:
    """Have nobody wait for a right that does not come."""
    changed = set()
    for name, function in of_type(template, "AWS::Lambda::Function").items():
        code = function["Code"].get("ZipFile", "")
        for text, shorter in IMPATIENT.items():
            if text in code:
                function["Code"]["ZipFile"] = code.replace(text, shorter)
                changed.add(text)
        if name.startswith("EndpointServingCheck"):
            function["Timeout"] = 33  # of which it keeps 30 for its answer
    assert changed == set(IMPATIENT)
    (warm_up,) = of_type(template, "Custom::WarmUp").values()
    warm_up["TimeoutSeconds"] = 2


def take_out(action: str) -> Callable[[Template], None]:
    """Allow the functions another action in its stead, so that no policy is empty."""

    def change(template: Template) -> None:
        holding = [each for each in function_statements(template) if action in each["Action"]]
        assert holding
        for each in holding:
            each["Action"] = ["sts:GetCallerIdentity", *(a for a in each["Action"] if a != action)]

    return change


@pytest.mark.parametrize(
    "action",
    sampled(
        [
            "sagemaker:DescribeEndpoint",
            "ec2:RevokeSecurityGroupEgress",
            "lambda:InvokeFunction",
            "s3:PutObject",
            "sagemaker:InvokeEndpoint",
        ],
        3,
    ),
)
def test_without_a_right_the_deployment_fails_with_the_denial(site, watch, action):
    template = site.synthesise(site.committed(NEWER))
    edit(template, impatient)
    edit(template, take_out(action))
    failed = site.deploy(template, expect_failure=True)
    assert failed.status == "ROLLBACK_COMPLETE"
    denial = r"(AccessDenied|UnauthorizedOperation).* is not authorized to p"
    assert re.search(denial, failed.failure_reason)
    assert {what for _, what in watch.denied} == {action}
    delete_stack(site.aws, STACK, timeout=100)
