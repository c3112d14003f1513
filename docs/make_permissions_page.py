"""``docs/reference/permissions.md``: what each person and command needs, from the commands' rights.

``python -m docs.make_permissions_page docs/reference/permissions.md`` rewrites what stands between the
two marks. What the library grants is read from a template.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from docs.command_rights import (
    CAPACITY,
    COMPARE_ROUTING,
    LOAD_TEST,
    OPTIMIZE,
    PLAN_FROM_CANARY,
    READING,
    RECOMMEND,
    STAGE,
    CommandRights,
    policy,
)
from docs.make_rights_page import Account
from docs.make_settings_tables import rewrite

from low_latency_endpoint import (
    ClientZones,
    Container,
    ContainerImage,
    EndpointOptions,
    LoadTestFleet,
    LowLatencyEndpoint,
)

_IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"


def permissions() -> str:
    """The generated part of the page."""
    caller, runner = granted()
    return "\n".join(
        [
            "## Call the endpoint\n",
            "`endpoint.grant_invoke(role)` adds this policy:\n",
            _block(caller),
            "## Deploy\n",
            "The identity that runs `cdk deploy` assumes the roles of `cdk bootstrap`. Two of them are not "
            "always needed: the image-publishing role is for images that CDK builds, the lookup role for "
            "`network.vpc_id`.\n",
            _block(_assuming()),
            "## Read an account\n",
            "One policy for `preflight`, `verify`, `list` and `diagnose`. No action changes anything.\n",
            *_policy_and_cases(READING),
            "## Load-test\n",
            *_policy_and_cases([LOAD_TEST, COMPARE_ROUTING]),
            "## Run the load-test fleet\n",
            "`fleet.grant_run(role)` adds these statements. `load-test --fleet` also needs the policy "
            "above without `sagemaker:InvokeEndpoint`: the tasks have a role of their own.\n",
            *runner,
            "\n## Start SageMaker jobs\n",
            *_policy_and_cases([RECOMMEND, OPTIMIZE]),
            "## Stage a model\n",
            *_policy_and_cases([STAGE]),
            "## Plan from the canary\n",
            *_policy_and_cases([PLAN_FROM_CANARY]),
            "## Change capacity by hand\n",
            "The local AWS asks for the first action only; AWS documents [all of "
            "them](https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-prerequisites.html).\n",
            _block(policy([*CAPACITY])),
        ]
    )


def _policy_and_cases(commands: Iterable[CommandRights]) -> Iterator[str]:
    commands = list(commands)
    yield _block(policy(_all_of(commands)))
    yield from _matrix(commands)
    yield ""


def _assuming() -> dict[str, Any]:
    """The right to assume the bootstrap's roles, by the names that the pinned CDK gives them."""
    synthesizer = cdk.DefaultStackSynthesizer
    names = (
        synthesizer.DEFAULT_DEPLOY_ROLE_ARN,
        synthesizer.DEFAULT_FILE_ASSET_PUBLISHING_ROLE_ARN,
        synthesizer.DEFAULT_IMAGE_ASSET_PUBLISHING_ROLE_ARN,
        synthesizer.DEFAULT_LOOKUP_ROLE_ARN,
    )
    roles = [
        name.replace("${AWS::Partition}", "aws")
        .replace("${AWS::AccountId}", "ACCOUNT")
        .replace("${AWS::Region}", "REGION")
        .replace("${Qualifier}", synthesizer.DEFAULT_QUALIFIER)
        for name in names
    ]
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": roles}
    return {"Version": "2012-10-17", "Statement": [statement]}


def granted() -> tuple[dict[str, Any], list[str]]:
    """What ``grant_invoke`` gives a caller, as a policy, and the rows of what ``grant_run`` gives."""
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(
            outdir=folder, analytics_reporting=False, context={"aws:cdk:enable-path-metadata": True}
        )
        stack = cdk.Stack(app, "Stack")
        endpoint = LowLatencyEndpoint(
            stack,
            "Sentiment",
            client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
            containers=[Container.from_uri(_IMAGE)],
            instance_type="ml.m5.xlarge",
            endpoint=EndpointOptions(endpoint_name="sentiment"),
        )
        fleet = LoadTestFleet(
            stack,
            "Fleet",
            network=endpoint.network,
            private_link=endpoint.private_link,
            endpoint=endpoint.endpoint,
            image=ContainerImage.from_uri(_IMAGE),
        )
        caller, runner = (
            iam.Role(stack, name, assumed_by=iam.AccountRootPrincipal())
            for name in ("Caller", "Runner")
        )
        endpoint.grant_invoke(caller)
        fleet.grant_run(runner)
        account = Account(app.synth().get_stack_by_name("Stack").template, Path(folder))
    roles = {account.path(role): role for role in account.of_type("AWS::IAM::Role")}
    (statement,) = account.statements(roles["Caller"])
    allowed = {**statement, "Resource": _arn(account.text(statement["Resource"]))}
    _, *runner_rows = account.role(roles["Runner"])  # the first says who assumes the role
    return {"Version": "2012-10-17", "Statement": [allowed]}, runner_rows


def _arn(resource: str) -> str:
    """What the template's reference to the endpoint becomes."""
    return resource.replace(
        "<Sentiment/Endpoint>", "arn:aws:sagemaker:REGION:ACCOUNT:endpoint/sentiment"
    )


def _all_of(commands: Iterable[CommandRights]) -> list[str]:
    return sorted({action for rights in commands for action in rights.actions}, key=str.lower)


def _block(document: Mapping[str, Any]) -> str:
    return f"```json\n{json.dumps(document, indent=2)}\n```\n"


def _matrix(commands: Iterable[CommandRights]) -> Iterator[str]:
    """A row for each action: "yes", the number of a case below, or nothing. Then the cases."""
    commands = list(commands)
    cases = list(dict.fromkeys(case for rights in commands for case in rights.sometimes.values()))
    yield f"| Action | {' | '.join(f'`{rights.command}`' for rights in commands)} |"
    yield f"|---|{'---|' * len(commands)}"
    for action in _all_of(commands):
        cells = (_cell(rights, action, cases) for rights in commands)
        yield f"| `{action}` | {' | '.join(cells)} |"
    if cases:
        yield "\nCases, which were not tried:\n"
        for number, case in enumerate(cases, 1):
            yield f"{number}. {case}"


def _cell(rights: CommandRights, action: str, cases: list[str]) -> str:
    if action in rights.always:
        return "yes"
    case = rights.sometimes.get(action)
    return f"case {cases.index(case) + 1}" if case else ""


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), permissions())
