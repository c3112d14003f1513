"""Commands that are printed about an endpoint without a settings file run without one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from low_latency_endpoint.cli import app

LIBRARY = Path(__file__).resolve().parents[2] / "constructs" / "low_latency_endpoint"
#: What load-test, compare-routing, recommend, diagnose and verify print comes from here.
ROOMS = (
    *("load_test", "account", "operate/checking", "operate/diagnose", "operate/verify"),
    *("operate/sagemaker_jobs.py", "facts/failure_reasons.py", "plan/load_test_validity.py"),
    *("cli/load_test.py", "cli/load_test_view.py", "cli/compare_routing.py", "cli/diagnose.py"),
)
#: They run without a settings file; so does each with the name of an endpoint.
ANYWHERE = {
    "compare-routing": "compare-routing sentiment --users 2 --payload {}",
    "diagnose": "diagnose sentiment",
    "list": "list",
    "load-test": "load-test sentiment --tps 1",
    "recommend": "recommend sentiment --target p95=1s --role-arn arn --payload s3://b/p.tar.gz -y",
    "verify": "verify sentiment",
}
#: Where else a command stands that needs one: it is raised by a command that has just read it.
OF_SETTINGS = {"load_test/search/settings_file.py", "cli/load_test.py"}
COMMAND = re.compile(r"(?<![`/\w])`?low-latency\s+([a-z]+(?:-[a-z]+)*)\b(?! endpoint)")


def texts_of(path: Path) -> Iterator[str]:
    """Each text of a file; of Python without docstrings and what is inserted."""
    if path.suffix == ".yaml":
        yield from _strings(yaml.safe_load(path.read_text("utf-8")))
        return
    tree = ast.parse(path.read_text("utf-8"))
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring
            parts.add(node.value)
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            yield "".join(
                part.value if isinstance(part, ast.Constant) else "" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    inner = value.values() if isinstance(value, dict) else value
    for each in inner if isinstance(inner, list) or isinstance(value, dict) else ():
        yield from _strings(each)


def files() -> Iterator[Path]:
    """All files whose texts these commands print."""
    for room in ROOMS:
        path = LIBRARY / room
        found = [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.yaml")]
        yield from found


def sentences(text: str) -> list[str]:
    """Its sentences, each in one line."""
    return re.split(r"(?<=[.?!:;])\s", " ".join(text.split()))


FOUND = [
    (str(path.relative_to(LIBRARY)), sentence, name)
    for path in files()
    for text in texts_of(path)
    for sentence in sentences(text)
    for name in COMMAND.findall(sentence)
]


def test_the_texts_are_found() -> None:
    """Those of causes, verdicts, failures of deployments and errors."""
    names = {name for _, _, name in FOUND}
    assert set(ANYWHERE) - {"list"} <= names
    assert {"preflight", "plan"} <= names
    where = {path for path, _, _ in FOUND}
    assert {"operate/diagnose/causes.yaml", "load_test/search/verdict_texts.py"} <= where


def test_what_needs_a_settings_file_says_so() -> None:
    """A near miss are errors about a settings file that was read."""
    wrong = [
        found
        for found in FOUND
        if found[2] not in ANYWHERE and found[0] not in OF_SETTINGS and needs_none(found[1])
    ]
    assert wrong == []


def needs_none(sentence: str) -> bool:
    """Whether a sentence does not speak of the settings file that its command needs."""
    return "settings file" not in sentence and "--help" not in sentence


@pytest.mark.parametrize("name", ANYWHERE)
def test_a_command_runs_without_a_settings_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as AWS, of which there is none here, or as far as what else a user has to give."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "x")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    named = ANYWHERE[name]
    for line in (named, named.replace(" sentiment", "")):
        done = CliRunner().invoke(app, line.split())
        said = f"{done.output} {done.exception}"
        assert done.exit_code != 0
        assert "LLE901" not in said
        assert "settings file cannot be read" not in said
        assert re.search(r"\b(LLA\d{3}|LLT109|LLT118)\b|127\.0\.0\.1", said), said
