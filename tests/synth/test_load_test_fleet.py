"""The load-test fleet: who may do what, who reaches whom, what exists only while it does."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App
from aws_cdk import aws_iam as iam
from packaging.requirements import Requirement

import app as entry
from low_latency_endpoint import LoadTestFleet, RuntimePrivateLink
from low_latency_endpoint.load_test_fleet.image import write_build_context
from tests.pinned import pins_of
from tests.refusals import refused

from .conftest import by_action
from .iam_decisions import text

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "constructs/low_latency_endpoint/load_test/container"


@pytest.fixture
def fleet(stack, parts) -> LoadTestFleet:
    return parts.fleet(stack)


@pytest.fixture
def template(smallest):
    return smallest("fleet")


def allowed(template, logical_id):
    """Action -> resources of a role's inline policies."""
    rights = by_action(template.rights_of(logical_id))
    return {action: statement["Resource"] for action, statement in rights.items()}


def named(template, part):
    """The one logical ID that has this in it, but for roles' policies."""
    (logical_id,) = [
        name
        for name, each in template["Resources"].items()
        if part in name and each["Type"] != "AWS::IAM::Policy"
    ]
    return logical_id


# --- rights ---------------------------------------------------------------------------------------


def test_workers_may_invoke_this_endpoint_and_nothing_else(template):
    rights = allowed(template, named(template, "FleetWorkerRole"))
    assert set(rights) == {
        "sagemaker:InvokeEndpoint",
        "sagemaker:InvokeEndpointWithResponseStream",
        "s3:GetObject",
    }
    # ARNs of endpoints are in lower case whatever the name's.
    assert text(rights["sagemaker:InvokeEndpoint"]) == (
        "arn:aws:sagemaker:us-east-1:123456789012:endpoint/sentiment"
    )
    assert text(rights["s3:GetObject"]).endswith("/runs/*")


def test_the_master_invokes_nothing(template):
    rights = allowed(template, named(template, "FleetMasterRole"))
    assert {action.partition(":")[0] for action in rights} == {"s3"}
    assert text(rights["s3:PutObject"]).endswith("/runs/*")


def test_only_tasks_of_this_account_take_the_roles(template):
    for part in ("FleetMasterRole", "FleetWorkerRole"):
        role = template["Resources"][named(template, part)]["Properties"]
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "ecs-tasks.amazonaws.com"}
        assert statement["Condition"]["StringEquals"] == {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"}
        }


def test_who_runs_a_test_may_use_these_tasks_and_pass_their_roles_only(fleet, stack, template_of):
    tester = iam.Role(stack, "Tester", assumed_by=iam.AccountPrincipal("123456789012"))
    fleet.grant_run(tester).assert_success()
    template = template_of(stack)
    (policy,) = (
        policy
        for name, policy in template.of_type("AWS::IAM::Policy").items()
        if name.startswith("Tester")
    )
    rights = by_action(policy["PolicyDocument"]["Statement"])
    run = rights["ecs:RunTask"]
    assert len(run["Resource"]) == 2
    assert "ecs:cluster" in run["Condition"]["ArnEquals"]
    passed = rights["iam:PassRole"]
    assert len(passed["Resource"]) == 3
    assert passed["Condition"] == {
        "StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
    }
    assert {
        "ssm:GetParametersByPath",
        "ecs:StopTask",
        "ecs:DescribeTasks",
        "ecs:ListTasks",
        "s3:GetObject",
        "logs:GetLogEvents",
    } <= set(rights)
    paths = [text(each) for each in rights["ssm:GetParametersByPath"]["Resource"]]
    assert paths[0].endswith(":parameter/low-latency-endpoint/load-test-fleet/Sentiment")
    assert paths[1] == f"{paths[0]}/*"


# --- tasks ----------------------------------------------------------------------------------------


def test_nothing_runs_while_idle(template):
    assert "AWS::ECS::Service" not in template.types


@pytest.mark.parametrize("kind", ["master", "worker"])
def test_tasks_run_unprivileged_on_arm(template, kind):
    (task,) = [
        t
        for t in template.of_type("AWS::ECS::TaskDefinition").values()
        if t["ContainerDefinitions"][0]["Name"] == kind
    ]
    (container,) = task["ContainerDefinitions"]
    assert task["RuntimePlatform"]["CpuArchitecture"] == "ARM64"
    assert (task["Cpu"], task["Memory"]) == ("1024", "2048")
    assert container["User"].split(":")[0] not in ("", "0", "root")
    assert container["ReadonlyRootFilesystem"] is True
    assert container["LinuxParameters"]["Capabilities"] == {"Drop": ["ALL"]}
    assert "Privileged" not in container
    assert "Environment" not in container  # comes with each run
    assert container["LogConfiguration"]["LogDriver"] == "awslogs"
    assert container["Command"] == [kind]


def test_description_says_what_a_run_needs(template):
    parameter = template.only("AWS::SSM::Parameter")
    assert re.fullmatch(
        "/low-latency-endpoint/load-test-fleet/Sentiment/serving-fleet-[0-9a-f]{8}",
        parameter["Name"],
    )
    content = json.loads(text(parameter["Value"]))
    assert content["zones"] == ["use1-az1", "use1-az2"]
    assert len(content["subnets"]) == 2
    assert content["cluster"] == f"<{template.only_id('AWS::ECS::Cluster')}>"


# --- network --------------------------------------------------------------------------------------


def test_nothing_comes_in_but_from_the_fleet_itself(template):
    (group,) = [
        name
        for name in template.of_type("AWS::EC2::SecurityGroup")
        if name.startswith("FleetSecurityGroup")
    ]
    own = {"Fn::GetAtt": [group, "GroupId"]}
    assert "SecurityGroupIngress" not in template["Resources"][group]["Properties"]
    into = [
        rule
        for rule in template.of_type("AWS::EC2::SecurityGroupIngress").values()
        if rule["GroupId"] == own
    ]
    assert [(rule["SourceSecurityGroupId"], rule["FromPort"]) for rule in into] == [(own, 5557)]
    # From here to the private link and to the fleet's own interface endpoints, on HTTPS.
    onward = [
        rule
        for rule in template.of_type("AWS::EC2::SecurityGroupIngress").values()
        if rule.get("SourceSecurityGroupId") == own and rule["GroupId"] != own
    ]
    assert [rule["FromPort"] for rule in onward] == [443, 443]


def services(template):
    names = [text(e["ServiceName"]) for e in template.of_type("AWS::EC2::VPCEndpoint").values()]
    return sorted(
        name.rpartition("us-east-1.")[2]
        for name in names
        if not name.endswith((".s3", "sagemaker.runtime"))
    )


def test_interface_endpoints_for_isolated_subnets(template):
    assert services(template) == ["ecr.api", "ecr.dkr", "logs"]


def test_none_where_the_subnets_reach_the_services_already(stack, parts, template_of):
    parts.fleet(stack, interface_endpoints=False)
    assert services(template_of(stack)) == []


def test_a_second_fleet_shares_them(fleet, stack, parts, template_of):
    link = stack.node.find_child("Link")
    parts.fleet(stack, "Second", private_link=link, endpoint="ranker", interface_endpoints=fleet)
    template = template_of(stack)
    assert len(services(template)) == 3
    (endpoints,) = [
        name
        for name in template.of_type("AWS::EC2::SecurityGroup")
        if "EndpointsSecurityGroup" in name
    ]
    entering = [
        rule
        for rule in template.of_type("AWS::EC2::SecurityGroupIngress").values()
        if rule["GroupId"] == {"Fn::GetAtt": [endpoints, "GroupId"]}
    ]
    assert len({str(rule["SourceSecurityGroupId"]) for rule in entering}) == 2


def test_results_are_private_and_outlive_the_fleet(template):
    logical_id = template.only_id("AWS::S3::Bucket")
    bucket = template.only("AWS::S3::Bucket")
    assert template["Resources"][logical_id]["DeletionPolicy"] == "Retain"
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert "BucketEncryption" in bucket
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == 90
    statements = template.only("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    assert any(
        s["Effect"] == "Deny" and s["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for s in statements
    )


def test_an_endpoint_of_the_app_is_taken_by_its_name(stack, parts, template_of):
    endpoint = parts.endpoint(stack, endpoint_name="Ranker-1")
    fleet = parts.fleet(stack, network=stack.node.find_child("Network"), endpoint=endpoint)
    assert fleet.endpoint_name == "Ranker-1"


def test_workers_call_a_fips_link_by_its_name(stack, parts, template_of):
    network = parts.network(stack)
    link = RuntimePrivateLink(stack, "Link", network=network, fips=True)
    parts.fleet(stack, network=network, private_link=link)
    stated = {
        task["ContainerDefinitions"][0]["Name"]: task["ContainerDefinitions"][0].get("Environment")
        for task in template_of(stack).of_type("AWS::ECS::TaskDefinition").values()
    }
    assert stated["master"] is None
    (variable,) = stated["worker"]
    assert variable["Name"] == "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"  # botocore's own
    assert text(variable["Value"]).startswith("https://runtime-fips.sagemaker.us-east-1.")


# --- beside the endpoints' stack ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "stacks", "endpoints"),
    [
        ({}, 1, 0),
        ({"load-test-fleet": "true"}, 2, 3),
        ({"load-test-fleet": True}, 2, 3),
        ({"load-test-fleet": "true", "load-test-fleet-endpoints": False}, 2, 0),
    ],
    ids=["default", "-c", "cdk.json", "no endpoints"],
)
def test_the_app_makes_it_on_demand_only(tmp_path, monkeypatch, context, stacks, endpoints):
    flags = json.loads((ROOT / "cdk.json").read_text())["context"]
    monkeypatch.chdir(ROOT)
    # As the CDK CLI tells a process of its own by variables.
    monkeypatch.setattr(
        entry, "App", lambda: App(outdir=str(tmp_path), context={**flags, **context})
    )
    entry.main()
    templates = sorted(tmp_path.glob("*.template.json"))
    assert len(templates) == stacks
    if stacks == 2:
        resources = json.loads(templates[0].read_text())["Resources"].values()
        made = [r for r in resources if r["Type"] == "AWS::EC2::VPCEndpoint"]
        assert len(made) == endpoints


# --- the image ------------------------------------------------------------------------------------


def pins(path: Path) -> dict[str, str]:
    """Versions, markers and hashes by name."""
    return {name: pin.text for name, pin in pins_of(path).items()}


def test_the_images_pins_are_the_repositorys():
    """`make pins` writes them: versions, and the hashes that pip then asks for."""
    image, repository = pins(CONTAINER / "requirements.txt"), pins(ROOT / "requirements-dev.txt")
    assert {name: repository.get(name) for name in image} == image
    assert all("--hash=sha256:" in text for text in image.values())


def test_the_images_pins_are_complete():
    """pip installs them with --no-deps: whatever one of them needs has to be there."""
    image = pins(CONTAINER / "requirements.txt")
    for name in image:
        for stated in importlib.metadata.distribution(name).requires or []:
            requirement = Requirement(stated)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed = re.sub(r"[-_.]+", "-", requirement.name).lower()
                assert needed in image, f"{name} needs {needed}"


# In an interpreter that refuses every distribution that the image does not have.
IN_THE_IMAGE = """
import importlib.metadata, importlib.abc, json, re, sys
allowed = set(json.loads(sys.argv[1]))
owners = importlib.metadata.packages_distributions()
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        named = {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners.get(top, [])}
        if named and not named & {*allowed, "cdk-low-latency-endpoint", "low-latency-client"}:
            raise ModuleNotFoundError(f"{top} is not in the image", name=top)
sys.meta_path.insert(0, Refuse())
ours = ("/constructs", "/client/src")
sys.path[:] = [sys.argv[2], *(p for p in sys.path if not p.endswith(ours))]
import low_latency_client, low_latency_endpoint
for package in (low_latency_client, low_latency_endpoint):
    assert package.__file__.startswith(sys.argv[2])
exec(sys.argv[3])
try:
    import aws_cdk
except ModuleNotFoundError as problem:
    print(problem)
"""
MASTER = """
import boto3
from low_latency_endpoint.load_test.fleet import task
from low_latency_endpoint.load_test.engine import generator_process, payloads, target
boto3.client("s3", region_name="us-east-1")
"""
GENERATOR = """
import locust
from low_latency_endpoint.load_test.engine import conversation_sessions, generator
"""


@pytest.mark.parametrize("process", [MASTER, GENERATOR], ids=["master", "generator"])
def test_the_image_holds_what_its_processes_import(tmp_path, process):
    write_build_context(tmp_path)
    wheels = sorted(tmp_path.glob("*.whl"))
    others = {path.name for path in tmp_path.iterdir()} - {wheel.name for wheel in wheels}
    assert others == {"Dockerfile", "requirements.txt"}
    installed = tmp_path / "site-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-compile", f"--target={installed}", *wheels], check=True)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            IN_THE_IMAGE,
            json.dumps(sorted(pins(CONTAINER / "requirements.txt"))),
            str(installed),
            process,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "aws_cdk is not in the image"


def test_the_same_files_give_the_same_image(tmp_path):
    """A second synthesis, a minute later, builds and pushes nothing."""
    contexts = [tmp_path / "first", tmp_path / "second"]
    for folder in contexts:
        folder.mkdir()
        write_build_context(folder)
    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in contexts
    )
    assert first == second
    assert len(first) == 4


def test_without_the_client_there_is_no_image(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "low_latency_client", None)
    with refused("LLE567", got="import of low_latency_client halted; None in sys.modules"):
        write_build_context(tmp_path)


def test_the_dockerfile_copies_only_what_the_context_has(tmp_path):
    write_build_context(tmp_path)
    dockerfile = (tmp_path / "Dockerfile").read_text()
    for line in dockerfile.splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            assert list(tmp_path.glob(line.split()[1])), line
    assert "USER 10001:10001" in dockerfile
