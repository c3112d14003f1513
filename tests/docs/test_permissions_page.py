"""The page of permissions is in step with the commands' rights, and no action is forgotten."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from docs.command_rights import COMMANDS, RESOURCES
from docs.make_permissions_page import permissions
from docs.make_settings_tables import rewrite

from low_latency_endpoint.account.calls import READ_ONLY
from low_latency_endpoint.account.sessions import iam_action

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "permissions.md"
LIBRARY = ROOT / "constructs" / "low_latency_endpoint"
OF_FLEET = {"get_parameters_by_path", "list_tasks"}
"""Of ``load-test --fleet``, whose rights come from ``grant_run``."""


def test_the_page_is_in_step(tmp_path: Path) -> None:
    copy = tmp_path / PAGE.name
    copy.write_bytes(PAGE.read_bytes())
    rewrite(copy, permissions())
    assert copy.read_text("utf-8") == PAGE.read_text("utf-8"), "run: make docs"


def test_each_policy_is_one_and_each_section_is_linked() -> None:
    text = PAGE.read_text("utf-8")
    policies = re.findall(r"^```json\n(.*?)^```", text, re.S | re.M)
    assert len(policies) > 5
    assert all(json.loads(policy)["Statement"] for policy in policies)
    headings = {title.lower().replace(" ", "-") for title in re.findall(r"^## (.*)$", text, re.M)}
    assert headings == set(re.findall(r"\]\(#([\w-]+)\)", text))


def test_each_resource_is_of_an_action_that_is_listed() -> None:
    assert {*RESOURCES} <= {action for rights in COMMANDS for action in rights.actions} | {
        "application-autoscaling:RegisterScalableTarget",
        "sagemaker:UpdateEndpointWeightsAndCapacities",
    }


def test_no_read_of_the_account_is_forgotten() -> None:
    """Names of boto3's operations in the code that reads an account."""
    listed = {action.partition(":")[2].lower() for rights in COMMANDS for action in rights.actions}
    missing = {name for name in _operations() if _action(name) not in listed}
    assert missing == OF_FLEET


def _action(operation: str) -> str:
    """An IAM action's name, in lower case, by boto3's name of its operation."""
    api = "".join(map(str.capitalize, operation.split("_")))
    service = "s3" if operation.startswith("head_") or operation == "list_objects_v2" else "other"
    return iam_action(service, api).partition(":")[2].lower()


def _operations() -> Iterator[str]:
    name = re.compile(f"({'|'.join(READ_ONLY)})[a-z0-9_]+")
    for package in ("account", "operate", "cli", "load_test"):
        for file in (LIBRARY / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and name.fullmatch(str(node.value)):
                    yield str(node.value)
