"""Endpoints, models and stacks on the same roles, through all their updates, with rights enforced.

Since January 2026 CloudFormation refuses a policy's name that another resource has on the role, and
a right that goes too early is a call that is denied: the local AWS judges both.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from botocore.config import Config
from botocore.exceptions import ClientError
from roles_under_test import allow, document, give_role, trust

from local_sagemaker import DeployedStack, DeploymentFailed, LocalAws, delete_stack
from local_sagemaker.model_servers.specifications import SimulatedModelServer
from low_latency_endpoint import (
    EndpointOptions,
    LowLatencyEndpoint,
    ModelData,
    ModelOptions,
    RuntimePrivateLink,
    Safeguards,
)
from tests.deploy.small_stacks import (
    ACCOUNT,
    REGION,
    container,
    deploy_at_once,
    network_in,
    stack_in,
    synthesised,
)

ROLES = f"arn:aws:iam::{ACCOUNT}:role/"


IN_BOTH_ORDERS = [{"creation_order": order} for order in ("late", "late-reversed")]
#: With containers that write logs.
WITH_CONTAINERS = [
    {**order, "model_servers": {"server": SimulatedModelServer()}} for order in IN_BOTH_ORDERS
]


@pytest.fixture
def aws(clean_aws: LocalAws) -> LocalAws:
    return clean_aws


def trusting(service: str) -> str:
    return json.dumps(trust(service))


@pytest.fixture
def roles(aws) -> dict[str, str]:
    """A role for all models and one for all functions, which nobody's stack makes."""
    client = aws.client("iam")
    for name, service in (("models", "sagemaker"), ("functions", "lambda")):
        client.create_role(RoleName=name, AssumeRolePolicyDocument=trusting(service))
    client.create_role(RoleName="flow-logs", AssumeRolePolicyDocument=trusting("vpc-flow-logs"))
    return {name: f"{ROLES}{name}" for name in ("models", "functions", "flow-logs")}


def policies(aws: LocalAws, role: str) -> list[str]:
    names: list[str] = aws.client("iam").list_role_policies(RoleName=role)["PolicyNames"]
    return names


class App:
    """An app whose stack is deployed in one version after the other."""

    def __init__(self, aws: LocalAws, folder: Path, roles: dict[str, str] | None = None) -> None:
        self.aws, self.folder, self.roles = aws, folder, roles
        self._number = 0

    def deploy(
        self,
        endpoints: dict[str, dict[str, Any]],
        stack_name: str = "Serving",
        *,
        isolated: bool = False,
    ) -> DeployedStack:
        """Deploy endpoints by their keys: ``image`` (a tag), ``data``, ``key``, ``name``."""
        self._number += 1
        out = self.folder / f"{stack_name}-{self._number}"
        stack = stack_in(out, "Serving", stack_name=stack_name)
        model: dict[str, Any] = {"network_isolation": True} if isolated else {}
        if self.roles:
            given = {
                name: iam.Role.from_role_arn(stack, name, arn) for name, arn in self.roles.items()
            }
            model["role"] = given["models"]
            Safeguards(function_role=given["functions"], flow_log_role=given["flow-logs"]).apply_to(
                stack
            )
        network = network_in(stack, max_instances=20)
        link = RuntimePrivateLink(stack, "Link", network=network)
        for key, each in endpoints.items():
            uri, key_arn = each.get("data"), each.get("key")
            at = kms.Key.from_key_arn(stack, "DataKey", key_arn) if key_arn else None
            data = ModelData.from_uri(uri, key=at) if uri else None
            LowLatencyEndpoint(
                stack,
                key,
                network=network,
                private_link=link,
                instance_type="ml.m5.xlarge",
                containers=[container(f"server:{each['image']}", data)],
                model=ModelOptions(**model),
                endpoint=EndpointOptions(endpoint_name=each.get("name")),
            )
        return deploy_at_once(self.aws, synthesised(stack), stack_name, stack.template_file)

    def serving(self) -> dict[str, str]:
        """Name -> image of the endpoints that are there."""
        sagemaker = self.aws.client("sagemaker")
        found = {}
        for each in sagemaker.list_endpoints()["Endpoints"]:
            described = sagemaker.describe_endpoint(EndpointName=each["EndpointName"])
            config = sagemaker.describe_endpoint_config(
                EndpointConfigName=described["EndpointConfigName"]
            )
            model = config["ProductionVariants"][0]["ModelName"]
            image = sagemaker.describe_model(ModelName=model)["PrimaryContainer"]["Image"]
            found[each["EndpointName"]] = image.rpartition(":")[2]
        return found


@pytest.fixture(params=["stated roles", pytest.param("own roles", marks=pytest.mark.nightly)])
def app(request, aws, tmp_path, roles) -> App:
    return App(aws, tmp_path, roles if request.param == "stated roles" else None)


def test_two_endpoints_are_updated_and_one_is_removed_and_the_other_updated_again(app):
    app.deploy({key: {"image": 1, "name": key} for key in ("alpha", "beta")})
    assert app.serving() == {"alpha": "1", "beta": "1"}
    app.deploy({key: {"image": 2, "name": key} for key in ("alpha", "beta")})
    assert app.serving() == {"alpha": "2", "beta": "2"}
    app.deploy({"alpha": {"image": 2, "name": "alpha"}})
    app.deploy({"alpha": {"image": 3, "name": "alpha"}})
    assert app.serving() == {"alpha": "3"}
    delete_stack(app.aws, "Serving", timeout=100)
    assert not policies(app.aws, "models")
    assert not policies(app.aws, "functions")


@pytest.mark.parametrize("clean_aws", IN_BOTH_ORDERS, indirect=True)
def test_a_stack_of_two_endpoints_goes_in_one_go(aws, tmp_path):
    """Each model's drain waits for the interfaces of both: they have the group in common."""
    app = App(aws, tmp_path)
    app.deploy({key: {"image": 1} for key in ("alpha", "beta")})
    delete_stack(aws, "Serving", timeout=60)
    assert not app.serving()


def test_a_key_that_moves_makes_another_endpoint_and_takes_the_old_ones_rights_last(app):
    app.deploy({"alpha": {"image": 1}})
    (before,) = app.serving()
    app.deploy({"moved": {"image": 1}})
    (after,) = app.serving()
    assert after != before
    delete_stack(app.aws, "Serving", timeout=100)


def test_two_stacks_of_an_app_share_roles_and_one_that_goes_takes_nothing(aws, tmp_path, roles):
    app = App(aws, tmp_path, roles)
    for name in ("Dev", "Prod"):
        app.deploy({"alpha": {"image": 1}}, name)
    assert len(app.serving()) == 2
    of_prod = {role: [n for n in policies(aws, role) if "-Prod-" in n] for role in roles}
    delete_stack(aws, "Dev", timeout=100)
    assert {role: policies(aws, role) for role in roles} == of_prod
    app.deploy({"alpha": {"image": 2}}, "Prod")
    assert list(app.serving().values()) == ["2"]
    delete_stack(aws, "Prod", timeout=100)
    assert not any(policies(aws, role) for role in roles)


# --- what VPC endpoints let through ---------------------------------------------------------------


def policy_of(aws: LocalAws, kind: str) -> str:
    (found,) = [
        each["PolicyDocument"]
        for each in aws.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
        if each["VpcEndpointType"] == kind and each["State"] != "deleted"
    ]
    return str(found)


@pytest.fixture
def caller(aws) -> Iterator[Any]:
    """A client that calls through the interface endpoint with a role's session."""
    client = aws.client("iam")
    me = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    trusted = document({"Effect": "Allow", "Principal": me, "Action": "sts:AssumeRole"})
    client.create_role(RoleName="caller", AssumeRolePolicyDocument=json.dumps(trusted))
    give_role(aws, "caller", allow("sagemaker:InvokeEndpoint"))
    session = aws.client("sts").assume_role(
        RoleArn=f"{ROLES}caller", RoleSessionName="test", DurationSeconds=3600
    )["Credentials"]
    calling = boto3.client(
        "sagemaker-runtime",
        region_name=REGION,
        endpoint_url=aws.runtime_url("use1-az1"),
        aws_access_key_id=session["AccessKeyId"],
        aws_secret_access_key=session["SecretAccessKey"],
        aws_session_token=session["SessionToken"],
        config=Config(retries={"max_attempts": 0}),
    )
    yield calling
    calling.close()


def answer(caller: Any, name: str) -> str:
    try:
        caller.invoke_endpoint(EndpointName=name, Body=b"{}")
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "answered"


def test_callers_of_a_renamed_endpoint_are_never_denied(aws, tmp_path, caller):
    """They are served until the clean-up deletes it, and those of the new name from its first call."""
    app = App(aws, tmp_path)
    app.deploy({"alpha": {"image": 1, "name": "ranking"}})
    answers: dict[str, list[str]] = {"ranking": [], "ranking-v2": []}
    done = threading.Event()

    def call() -> None:
        while not done.is_set():
            for name, seen in answers.items():
                seen.append(answer(caller, name))
            time.sleep(0.02)

    calling = threading.Thread(target=call)
    calling.start()
    try:
        app.deploy({"alpha": {"image": 1, "name": "ranking-v2"}})
    finally:
        done.set()
        calling.join()
    assert answer(caller, "ranking-v2") == "answered"
    for name, seen in answers.items():
        assert "answered" in seen, name
    # Before the new name's policy is there nobody has the name: it is known once it serves.
    first = answers["ranking-v2"].index("answered")
    assert set(answers["ranking-v2"][first:]) == {"answered"}
    gone = (
        answers["ranking"].index("ValidationError")
        if "ValidationError" in answers["ranking"]
        else None
    )
    assert set(answers["ranking"][:gone]) == {"answered"}


def may_log(aws: LocalAws, role: str, endpoint: str) -> bool:
    """Whether a model's role may write an endpoint's logs, as IAM's simulation says."""
    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/sagemaker/Endpoints/{endpoint}"
    results = aws.client("iam").simulate_principal_policy(
        PolicySourceArn=role,
        ActionNames=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
        ResourceArns=[group, f"{group}:log-stream:primary/1"],
    )["EvaluationResults"]
    return {each["EvalDecision"] for each in results} == {"allowed"}


@pytest.mark.parametrize("clean_aws", WITH_CONTAINERS, indirect=True)
@pytest.mark.parametrize("stated", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_renamed_endpoint_writes_its_logs_until_it_has_gone(aws, tmp_path, roles, stated):
    """And no other endpoint's: neither before nor after."""
    app = App(aws, tmp_path, roles if stated else None)
    app.deploy({"alpha": {"image": 1, "name": "ranking"}})
    logs, sagemaker = aws.client("logs"), aws.client("sagemaker")
    (model,) = sagemaker.list_models()["Models"]
    role = sagemaker.describe_model(ModelName=model["ModelName"])["ExecutionRoleArn"]
    assert may_log(aws, role, "ranking")
    assert not may_log(aws, role, "ranking-v2")
    lost: list[str] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            denied = [name for name in ("ranking", "ranking-v2") if not may_log(aws, role, name)]
            lost.extend(set(denied) & app.serving().keys())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        app.deploy({"alpha": {"image": 1, "name": "ranking-v2"}})
    finally:
        done.set()
        looking.join()
    assert not lost
    assert may_log(aws, role, "ranking-v2")
    assert not may_log(aws, role, "ranking")
    groups = logs.describe_log_groups(logGroupNamePrefix="/aws/sagemaker/Endpoints/")["logGroups"]
    written = {each["logGroupName"].rpartition("/")[2] for each in groups}
    assert written == {"ranking", "ranking-v2"}


def test_the_interface_endpoints_policy_forgets_a_name_with_the_change_after(aws, tmp_path):
    app = App(aws, tmp_path)
    names = ("ranking", "ranking-v2", "ranking-v3")
    app.deploy({"alpha": {"image": 1, "name": names[0]}})
    assert f'endpoint/{names[0]}"' in policy_of(aws, "Interface")
    for old, new in ((names[0], names[1]), (names[1], names[2])):
        app.deploy({"alpha": {"image": 1, "name": new}})
        for name in names:
            let = f'endpoint/{name}"' in policy_of(aws, "Interface")
            assert let is (name in (old, new)), name


def test_the_s3_gateway_lets_the_old_fleet_read_until_the_change_after(aws, tmp_path):
    """With network isolation SageMaker loads the data through the VPC."""
    app = App(aws, tmp_path)
    s3 = aws.client("s3")
    for bucket in ("tooling-a", "tooling-b", "tooling-c"):
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="v1/model.tar.gz", Body=b"")
    for before, now in ((None, "a"), ("a", "b"), ("b", "c")):
        data = f"s3://tooling-{now}/v1/model.tar.gz"
        app.deploy({"alpha": {"image": 1, "name": "ranking", "data": data}}, isolated=True)
        let = {
            each for each in "abc" if f"arn:aws:s3:::tooling-{each}/*" in policy_of(aws, "Gateway")
        }
        assert let == {each for each in (before, now) if each}


def test_model_data_that_a_customers_key_encrypts_needs_the_key_stated(aws, tmp_path):
    """What S3 asks of KMS for the role comes through no VPC endpoint, also with isolation."""
    app, s3 = App(aws, tmp_path), aws.client("s3")
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    s3.create_bucket(Bucket="encrypted")
    s3.put_object(
        Bucket="encrypted",
        Key="model.tar.gz",
        Body=b"",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId=key,
    )
    endpoint = {"image": 1, "name": "ranking", "data": "s3://encrypted/model.tar.gz"}
    with pytest.raises(DeploymentFailed, match=r"s3:GetObject|kms:Decrypt"):
        app.deploy({"alpha": endpoint}, isolated=True)
    app.deploy({"alpha": {**endpoint, "key": key}}, isolated=True)
    assert app.serving() == {"ranking": "1"}
