"""Every command of the AWS CLI that code or docs print: the API has it, with what it requires."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from botocore import xform_name
from botocore.exceptions import UnknownServiceError

from tests.docs.console_blocks import PAGES, ROOT, commands
from tests.operate.preflight.cases import CASES, Case, run

CODE = ROOT / "constructs" / "low_latency_endpoint"
#: Stands for a value that is known only when the command is printed.
VALUE = "VALUE"
#: Commands that the CLI has beside the operations of the API.
OF_THE_CLI = {
    ("cloudformation", "deploy"),
    ("configure", "list-profiles"),
    ("configure", "sso"),
    ("logs", "tail"),
    ("s3", "cp"),
    ("s3", "ls"),
    ("s3", "sync"),
    ("sagemaker", "wait"),
}
#: Options that every command has.
GLOBAL = {"--query", "--output", "--region", "--profile", "--no-cli-pager", "--cli-input-json"}
_QUOTED = re.compile(r"`(aws [a-z][^`]*)`")


@cache
def _operations(service: str) -> dict[str, Any]:
    """The operations of a service, by their names in the CLI; empty for no service."""
    try:
        model = botocore.session.get_session().get_service_model(service)
    except UnknownServiceError:
        return {}
    return {xform_name(name, "-"): model.operation_model(name) for name in model.operation_names}


def problems(command: str) -> list[str]:
    """What keeps a command from being run: a service, operation or option that is not there, or is missing."""
    program, service, operation, *words = shlex.split(command.replace("\\\n", " "))
    assert program == "aws"
    if VALUE in operation or (service, operation) in OF_THE_CLI:
        return []
    model = _operations(service).get(operation)
    if model is None:
        return [f"no operation {service} {operation}"]
    members = model.input_shape.members if model.input_shape else {}
    options = {f"--{xform_name(name, '-')}" for name in members}
    required = {
        f"--{xform_name(name, '-')}" for name in getattr(model.input_shape, "required_members", ())
    }
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    positive = {
        f"--{word.removeprefix('--no-')}" if word.startswith("--no-") else word for word in given
    }
    strange = [f"{word} is no option" for word in sorted(positive - options - GLOBAL)]
    if "--cli-input-json" in given:
        return strange
    return [*strange, *(f"{word} is missing" for word in sorted(required - given))]


def _text(node: ast.expr) -> str:
    """A text as it stands in the code, with a word for each value; empty for what is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else VALUE
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    return VALUE


def _docstrings_and_parts(tree: ast.AST) -> set[int]:
    """The constants that nobody is shown, or only as parts of another text."""
    others = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            others |= {id(part) for part in node.values}
        if isinstance(node, ast.Expr):
            others.add(id(node.value))
    return others


def _texts(value: Any) -> Iterator[str]:
    """All texts of a document of YAML."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _commands_in(text: str) -> list[str]:
    whole = [text] if re.match(r"aws [a-z-]+ [a-z-]+( |$)", text) else []
    return whole or _QUOTED.findall(text)


def _printed_by_code() -> Iterator[tuple[str, str]]:
    """Each file and each command in its texts."""
    for file in sorted(CODE.rglob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        others = _docstrings_and_parts(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in others:
                yield from ((file.name, command) for command in _commands_in(_text(node)))
    for file in sorted(CODE.rglob("*.yaml")):
        for text in _texts(yaml.safe_load(file.read_text("utf-8"))):
            yield from ((file.name, command) for command in _commands_in(text))


PRINTED = list(_printed_by_code())


def test_code_prints_commands() -> None:
    assert len(PRINTED) > 15


@pytest.mark.parametrize(("file", "command"), PRINTED)
def test_commands_of_the_code_have_what_they_need(file: str, command: str) -> None:
    assert problems(command) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_the_docs_have_what_they_need(page: Path) -> None:
    typed = [each.text for each in commands(page.read_text("utf-8"))]
    for command in typed:
        if command.startswith("aws "):
            assert problems(command.partition(" | ")[0]) == [], command


@pytest.mark.parametrize("case", [case for case in CASES if case.status != "pass"], ids=str)
def test_commands_of_the_checks_before_a_deployment_run(case: Case) -> None:
    results, _ = run(case)
    for result in results:
        for command in _QUOTED.findall(result.fix):
            assert problems(command) == [], command


def test_dns_hostnames_are_turned_on_by_a_command_of_their_own() -> None:
    """As in AWS's example of modify-vpc-attribute, one attribute a request."""
    (off,) = (case for case in CASES if case.words == ("enableDnsHostnames off",))
    (result,) = (result for result in run(off)[0] if result.status == "fail")
    (command,) = _QUOTED.findall(result.fix)
    words = shlex.split(command)
    assert words[:4] == ["aws", "ec2", "modify-vpc-attribute", "--vpc-id"]
    assert words[4].startswith("vpc-")
    assert words[5:] == ["--enable-dns-hostnames", '{"Value":true}']


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("aws ec2 modify-vpc-attribute", ["--vpc-id is missing"]),
        ("aws ec2 modify-vpc-attribute --vpc-id v --enable-dns", ["--enable-dns is no option"]),
        ("aws ec2 turn-on-dns --vpc-id v", ["no operation ec2 turn-on-dns"]),
        ("aws ec2 modify-vpc-attribute --vpc-id v --output json", []),
        ("aws sagemaker create-model --cli-input-json file://m", []),
        ("aws sts get-caller-identity", []),
    ],
)  # fmt: skip
def test_what_is_missing_is_told(command: str, says: list[str]) -> None:
    assert problems(command) == says
