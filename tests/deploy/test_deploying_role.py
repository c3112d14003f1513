"""A role with the statements of `deploying_role.yaml` deploys; without one of them it does not.

Stacks are created, changed and deleted by such a role, while the local AWS judges each call that
CloudFormation makes. What is `called` in the file is needed here, what is `documented` stands in
CloudFormation's schemas, and what the schemas list for our types is in the file, or left out below.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from local_sagemaker import LocalAws, RuntimeOptions, delete_stack, deploy_template
from local_sagemaker.deployment import DeployedStack, DeploymentFailed
from low_latency_endpoint.operate.preflight.deploying_role import (
    DeployingStatement,
    DeploymentPlace,
    deploying_cases,
    deploying_statements,
    needed_statements,
)
from low_latency_endpoint.settings import load_settings
from tests.deploy import deployed_by_role
from tests.deploy.deployed_by_role import SHIPPED
from tests.deploy.small_stacks import ACCOUNT, REGION, REGISTRY, newest
from tests.deploy.watched_rights import Watch, watching
from tests.depth import sampled
from tests.hub_of_files import FakeHub, FakeModel

ROLE = "deploying-role"
STATEMENTS = {statement.sid: statement for statement in deploying_statements()}
MODEL, FILES, NEWER = "acme/tiny", {"config.json": b"{}"}, {"config.json": b'{"newer": 1}'}
CANARY = {"canary": {"payload": {"data": {"inputs": "I am happy."}}}}
OBJECTIVE = {"alarms": {"service_level_objective": 0.99, "model_latency": {"p99": "200ms"}}}

# --- the stacks -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Site:
    """An empty account, and where assemblies go."""

    aws: LocalAws
    hub: FakeHub
    folder: Path

    def pinned(self, files: dict[str, bytes]) -> Any:
        self.hub.commit(MODEL, files)
        return newest(self.hub, MODEL, files)

    def large(self, folder: Path, team: str) -> Path:
        """The shipped stack with all that settings add, under a name of its own."""
        return deployed_by_role.shipped(
            folder,
            {**CANARY, **OBJECTIVE},
            stack_name="Large",
            parameters="/large",
            tags={"team": team},
        )

    def callers(self) -> str:
        """A VPC beside the stack's; made once."""
        ec2 = self.aws.client("ec2")
        cidr = "10.9.0.0/16"
        filters = [{"Name": "cidr", "Values": [cidr]}]
        vpcs = ec2.describe_vpcs(Filters=filters)["Vpcs"]
        return str((vpcs or [ec2.create_vpc(CidrBlock=cidr)["Vpc"]])[0]["VpcId"])


@dataclass(frozen=True)
class Life:
    """A stack in two versions, and the cases of the file that it is."""

    stack: str
    cases: frozenset[str]
    versions: tuple[Callable[[Site, Path], Path], Callable[[Site, Path], Path]]
    before: str = ""  # a stack of the assembly that others deploy first

    def needs(self, statement: DeployingStatement) -> bool:
        return not statement.when or bool(self.cases & {*statement.when})


OWN_NETWORK = frozenset({"roles", "network", "links"})
LIVES = {
    "shipped": Life(
        "LowLatencyEndpoint",
        OWN_NETWORK | {"schedules"},
        (
            lambda site, folder: deployed_by_role.shipped(folder, {}),
            lambda site, folder: deployed_by_role.shipped(
                folder, {"data_capture": {"s3": "s3://my-bucket/captured/"}}
            ),
        ),
    ),
    "large": Life(
        "Large",
        OWN_NETWORK | {"schedules", "objectives", "parameters"},
        (
            lambda site, folder: site.large(folder, "a"),
            lambda site, folder: site.large(folder, "b"),
        ),
    ),
    "components": Life(
        "Components",
        OWN_NETWORK | {"zones", "components", "topic"},
        (
            lambda site, folder: deployed_by_role.components(folder, "model:1", site.callers()),
            lambda site, folder: deployed_by_role.components(folder, "model:2", site.callers()),
        ),
    ),
    "fleet": Life(
        "Testing",
        frozenset({"roles", "links", "fleet"}),
        (
            lambda site, folder: deployed_by_role.fleet(folder),
            lambda site, folder: deployed_by_role.fleet(folder, cpu=2048, memory_mib=4096),
        ),
        before="Serving",
    ),
    "staged": Life(
        "Staged",
        frozenset({"roles", "models"}),
        (
            lambda site, folder: deployed_by_role.staged(folder, site.hub, site.pinned(FILES)),
            lambda site, folder: deployed_by_role.staged(folder, site.hub, site.pinned(NEWER)),
        ),
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    options = RuntimeOptions(interfaces_stay=0)
    with (
        FakeHub({MODEL: FakeModel(files=FILES)}) as hub,
        LocalAws.in_process(region=REGION, runtime=options) as aws,
    ):
        aws.reset()
        yield Site(aws, hub, tmp_path_factory.mktemp("assemblies"))
        aws.reset()


@cache
def assemblies(site: Site, name: str) -> list[Path]:
    """Both versions of a stack, synthesised once."""
    return [
        version(site, site.folder / f"{name}-{number}")
        for number, version in enumerate(LIVES[name].versions)
    ]


def role_with(aws: LocalAws, stack: str, statements: list[DeployingStatement]) -> str:
    """A role that CloudFormation may assume, with these statements and no more."""
    iam, place = aws.client("iam"), DeploymentPlace(stack, ACCOUNT, REGION, parameters="/large")
    trust = {"Service": "cloudformation.amazonaws.com"}
    arn = iam.create_role(
        RoleName=ROLE, AssumeRolePolicyDocument=_document(_allowing("sts:AssumeRole", trust))
    )["Role"]["Arn"]
    for statement in statements:
        iam.put_role_policy(
            RoleName=ROLE,
            PolicyName=statement.sid,
            PolicyDocument=_document(statement.in_policy(place)),
        )
    return str(arn)


def _allowing(action: str, principal: dict[str, str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Principal": principal}


def _document(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def lived(site: Site, name: str, without: str = "") -> list[str]:
    """How a stack's creation, change and deletion end, by a role that lacks one statement."""
    life, aws = LIVES[name], site.aws
    aws.reset()
    for image in ("model:1", "model:2", "load-generator:1"):
        aws.add_image(f"{REGISTRY}/{image}")
    first, second = assemblies(site, name)
    if life.before:
        deploy_template(aws, first, life.before)
    held = [each for each in STATEMENTS.values() if life.needs(each) and each.sid != without]
    role = role_with(aws, life.stack, held)
    ends: list[str] = []
    for assembly in (first, second):
        made = deploy_template(aws, assembly, life.stack, role_arn=role, expect_failure=True)
        ends.append(_end(made))
        if made.failure_reason:
            return ends
    try:
        delete_stack(aws, life.stack)
    except DeploymentFailed as failure:
        return [*ends, str(failure)]
    return [*ends, "DELETE_COMPLETE"]


def _end(made: DeployedStack) -> str:
    return made.failure_reason or made.status


# --- with the statements and without ----------------------------------------------------------------


@pytest.fixture(scope="module")
def watched(site: Site) -> tuple[dict[str, list[str]], Watch]:
    """How all stacks ended, each by a role with its statements, and what was judged meanwhile."""
    with watching() as watch:
        return {name: lived(site, name) for name in LIVES}, watch


def needed_actions(watch: Watch) -> set[tuple[str, str]]:
    """Action and resources of the statements that calls of the role needed."""
    return {
        (action, " ".join(statement.resources))
        for role, statement, action in watch.needed
        if role.endswith(f"/{ROLE}")
    }


@pytest.mark.parametrize("name", LIVES)
def test_the_statements_are_enough(watched, name):
    ends, watch = watched
    assert ends[name] == ["CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE"]
    assert {action for role, action in watch.denied if role.endswith(f"/{ROLE}")} == set()


def test_what_is_called_is_needed_and_the_rest_is_not(watched):
    needed = {action for action, _ in needed_actions(watched[1])}
    called = {action for each in STATEMENTS.values() for action in each.called}
    others = {action for each in STATEMENTS.values() for action in (*each.documented, *each.told)}
    assert needed - called == set(), "they are called"
    assert called - needed == set(), "no call needs them"
    assert needed & (others - called) == set(), "they are called"


def life_of(statement: DeployingStatement) -> str:
    return next(name for name, life in LIVES.items() if life.needs(statement))


CALLED = [statement.sid for statement in STATEMENTS.values() if statement.called]


@pytest.mark.parametrize("sid", sampled(CALLED, 6))
def test_without_a_statement_it_fails_with_the_denial(site, watch, sid):
    ends = lived(site, life_of(STATEMENTS[sid]), without=sid)
    assert re.search(r"(AccessDenied|UnauthorizedOperation|AuthorizationError)", ends[-1]), ends
    denied = {action for role, action in watch.denied if role.endswith(f"/{ROLE}")}
    assert denied & {*STATEMENTS[sid].called}
    assert denied <= {*STATEMENTS[sid].actions}


def test_every_statement_that_is_called_stands_in_the_file_for_a_stack_of_these():
    assert {case for life in LIVES.values() for case in life.cases} == set(deploying_cases()) - {
        "keys",
        "signing",
    }
    shipped = needed_statements(load_settings(SHIPPED))
    assert [each.sid for each in shipped] == [
        sid for sid, each in STATEMENTS.items() if LIVES["shipped"].needs(each)
    ]


# --- the sources ------------------------------------------------------------------------------------

LEFT_OUT = {
    "(elasticfilesystem|s3files):": "functions have no file system",
    "lambda:.*(Layer|RuntimeAlias|CapacityProvider|ProvisionedConcurrency|PublishVersion)": (
        "functions have no layers, versions and capacity of their own"
    ),
    "lambda:Put(FunctionRecursion|FunctionScaling|RuntimeManagement)Config": "they have the defaults",
    "(autoscaling|firehose):|logs:(Create|Delete)LogDelivery|s3:(GetObjectVersion|REST)": (
        "logs go to log groups, and code has no version"
    ),
    "logs:(Put|Delete)(BearerToken|DataProtection|Index|LogGroupDeletion|Resource)": (
        "log groups have a retention and a key, no more"
    ),
    "iam:(Attach|Detach)RolePolicy|iam:.*RolePermissionsBoundary": (
        "roles have inline policies; the page names what a boundary needs"
    ),
    "iam:.*(Group|User)Policy": "policies are on roles",
    "ec2:.*(SubnetCidrBlock|VpcTenancy)|ec2:CreateVpcEncryptionControl": "the VPC has the defaults",
    "(vpc-lattice|vpce):": "VPC endpoints are those of a service in the Region",
    "rum:|application-signals:BatchUpdateExclusionWindows": "objectives are on SageMaker's metrics",
    "route53:.*(QueryLoggingConfig$|HostedZoneFeatures)": "private zones log no queries",
    "kms:(DisableKey|EnableKey|DisableKeyRotation)$": "the topic's key stays on, with its rotation",
    "sns:PutDataProtectionPolicy": "the topic has no such policy",
    "ecs:Put": "tasks run on Fargate, and the account's settings are its own",
    "s3tables:|s3:(Create|Delete|Update)Bucket(Analytics|Cors|Encryption|Lifecycle|Met|Repl|Web)": (
        "buckets have encryption, a lifecycle and an owner, which no version takes away"
    ),
    "s3:Put(Accelerate|Analytics|Intelligent|Inventory|Metrics|Object|Replication)": "the same",
    "s3:PutBucket(Abac|Acl|CORS|Logging|Notif|ObjectLock|Repl|Version|Web)|s3:DeleteObject": "the same",
}
"""What the schemas list for properties that the library never sets, as patterns."""


def handlers(name: str) -> set[str]:
    """The permissions that CloudFormation's schema of a type lists, but for finding all of a type."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, name).schema
    lists = [each["permissions"] for kind, each in schema["handlers"].items() if kind != "list"]
    tagging = (schema.get("tagging") or {}).get("permissions") or []
    return {action for permissions in (*lists, tagging) for action in permissions}


@pytest.fixture(scope="module")
def listed(site: Site) -> set[str]:
    """What the schemas of all types of these stacks list."""
    types = {
        resource["Type"]
        for name in LIVES
        for assembly in assemblies(site, name)
        for template in assembly.glob("*.template.json")
        for resource in json.loads(template.read_text("utf-8"))["Resources"].values()
    }
    schemas = [handlers(name) for name in types if not name.startswith("Custom::")]
    return set[str]().union(*schemas)


def test_what_is_documented_stands_in_a_schema(listed):
    documented = {action for each in STATEMENTS.values() for action in each.documented}
    assert documented - listed == set()


def test_what_the_schemas_list_is_in_the_file_or_left_out(listed):
    stated = {action for each in STATEMENTS.values() for action in each.actions}
    missing = {
        action for action in listed - stated if not any(re.match(p, action) for p in LEFT_OUT)
    }
    assert missing == set()
    assert all(any(re.match(pattern, action) for action in listed) for pattern in LEFT_OUT)
