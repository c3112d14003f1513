"""An endpoint or a stack by a name that is the other's, nearly one, or not given."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from typer.testing import CliRunner

from low_latency_endpoint.account import sessions
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.deployed_endpoints import (
    meant_endpoint,
    meant_stack,
    nothing_named,
)
from low_latency_endpoint.account.endpoints import existing_endpoint
from low_latency_endpoint.account.stacks import ENDPOINT_TYPE
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from tests.fake_aws import FakeAws, Refused

ARN = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/"
GONE = Refused("ValidationError", "does not exist", 400)


def account(stacks: dict[str, list[str]], **denied: str) -> Account:
    """An account with these stacks and the endpoints in each; those of no stack under ``""``."""
    owners = {name: stack for stack, names in stacks.items() for name in names}

    def stack_of(found: Callable[[str], Any]) -> Callable[[Any], Any]:
        return lambda asked: found(asked["StackName"]) if asked["StackName"] in stacks else GONE

    def endpoint(asked: Any) -> Any:
        name = asked["EndpointName"]
        if name not in owners:
            return Refused("ValidationException", "Could not find endpoint", 400)
        return {"EndpointName": name, "EndpointArn": ARN + name, "EndpointConfigName": "c"}

    def owner(asked: Any) -> Any:
        arn = asked["PhysicalResourceId"]
        if not owners[arn.removeprefix(ARN)]:
            return GONE
        stack = owners[arn.removeprefix(ARN)]
        return {"StackResources": [{**own, "StackName": stack} for own in resources(stack)]}

    def resources(stack: str) -> list[dict[str, Any]]:
        return [
            {
                "LogicalResourceId": each,
                "ResourceType": ENDPOINT_TYPE,
                "PhysicalResourceId": ARN + each,
                "ResourceStatus": "CREATE_COMPLETE",
            }
            for each in stacks[stack]
        ]

    aws = FakeAws(
        {
            "sagemaker.DescribeEndpoint": endpoint,
            "sagemaker.ListEndpoints": lambda _: {
                "Endpoints": [{"EndpointName": each, "EndpointArn": ARN + each} for each in owners]
            },
            "cloudformation.DescribeStacks": stack_of(
                lambda name: {"Stacks": [{"StackName": name, "StackStatus": "CREATE_COMPLETE"}]}
            ),
            "cloudformation.ListStackResources": stack_of(
                lambda name: {"StackResourceSummaries": resources(name)}
            ),
            "cloudformation.GetTemplate": stack_of(
                lambda name: {
                    "TemplateBody": json.dumps(
                        {"Resources": {each: {"Type": ENDPOINT_TYPE} for each in stacks[name]}}
                    )
                }
            ),
            "cloudformation.DescribeStackResources": owner,
        }
    )
    aws.denied = denied
    return Account(aws, "us-east-1")


STACKS = {"Serving": ["sentiment"], "Chats": ["chat-de", "chat-en"]}


def refused(ask: Callable[[], Any]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        ask()
    assert " init" not in str(caught.value)
    assert "`low-latency list`" in caught.value.fix or caught.value.code == "LLA102"
    return caught.value


def test_either_name_will_do_where_there_is_no_doubt() -> None:
    assert meant_endpoint(account(STACKS), "sentiment") == "sentiment"
    assert meant_endpoint(account(STACKS), "Serving") == "sentiment"
    assert meant_stack(account(STACKS), "Serving") == "Serving"
    assert meant_stack(account(STACKS), "chat-en") == "Chats"


def test_a_stack_of_several_endpoints_names_them() -> None:
    with pytest.raises(ConfigurationError, match="chat-de, chat-en") as caught:
        meant_endpoint(account(STACKS), "Chats")
    assert caught.value.code == "LLA105"


@pytest.mark.parametrize(("wrong", "near"), [("sentimnt", "sentiment"), ("ChatDE", "chat-de")])
def test_a_near_endpoint_is_suggested(wrong: str, near: str) -> None:
    said = refused(lambda: existing_endpoint(account(STACKS), wrong))
    assert (said.code, said.fix.partition("?")[0]) == ("LLA101", f"Did you mean {near}")


@pytest.mark.parametrize(("wrong", "near"), [("Servng", "Serving"), ("sentimnt", "sentiment")])
def test_a_near_stack_or_endpoint_of_one_is_suggested(wrong: str, near: str) -> None:
    said = refused(lambda: meant_stack(account(STACKS), wrong))
    assert (said.code, said.allowed) == ("LLA103", "Chats, Serving")
    assert said.fix.startswith(f"Did you mean {near}? ")


@pytest.mark.parametrize("others", [STACKS, {}])
def test_an_endpoint_of_no_stack_is_called_one(others: dict[str, list[str]]) -> None:
    said = refused(lambda: meant_stack(account({**others, "": ["gone"]}), "gone"))
    assert said.code == "LLA103"
    assert said.what == "gone is an endpoint, and this command takes a stack: no stack has it"
    assert "Did you mean" not in said.fix


@pytest.mark.parametrize(("stacks", "first"), [(False, "chat-de"), (True, "Chats")])
def test_no_name_lists_them_and_prints_the_command(stacks: bool, first: str) -> None:
    command = "low-latency diagnose {} --profile p"
    said = refused(lambda: _raised(nothing_named(account(STACKS), command, stacks=stacks)))
    assert (said.code, said.fix.splitlines()[0]) == ("LLA104", command.format(first))
    assert first in said.allowed


@pytest.mark.parametrize("stacks", [False, True])
def test_none_and_not_known_are_told_apart(stacks: bool) -> None:
    empty = refused(lambda: _raised(nothing_named(account({}), "x {}", stacks=stacks)))
    assert empty.allowed.startswith("none: there are no ")
    denied = account(STACKS, ListEndpoints="AccessDeniedException")
    said = refused(lambda: _raised(nothing_named(denied, "x {}", stacks=stacks)))
    assert said.allowed.endswith("could not be listed: sagemaker:ListEndpoints: not permitted")
    assert "none" not in said.allowed


def test_missing_credentials_are_what_is_said() -> None:
    aws = FakeAws({"sagemaker.ListEndpoints": NoCredentialsError()})
    assert refused(lambda: nothing_named(Account(aws, "us-east-1"), "x {}")).code == "LLA102"


def _raised(error: ConfigurationError) -> Any:
    raise error


@pytest.mark.parametrize("command", ["diagnose", "verify", "load-test", "compare-routing"])
def test_a_bare_command_without_a_settings_file(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client = account(STACKS)._factory
    # What a module takes when it is first imported stays there after this test.
    for module in ("compare.compare_routing", "search.load_testing"):
        importlib.import_module(f"low_latency_endpoint.load_test.{module}")
    monkeypatch.setattr(sessions, "open_clients", lambda *_: (client, "us-east-1"))
    monkeypatch.chdir(tmp_path)
    error = CliRunner().invoke(app, [command, "--profile", "p"]).exception
    assert isinstance(error, ConfigurationError)
    first = "Chats" if command == "verify" else "chat-de"
    assert error.fix.splitlines()[0] == f"low-latency {command} {first} --profile p"
