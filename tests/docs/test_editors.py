"""What an editor shows of the public names, asked of Pyright's language server.

Pyright takes a parameter's text from a single line, ``name: text``, of the docstring of the function
that is called. Of a dataclass, whose ``__init__`` nobody wrote, it takes a keyword's text from what
stands below the field. It shows an alias of types by its name, so a type has to be written out.
"""

from __future__ import annotations

import builtins
import inspect
import json
import os
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aws_cdk import aws_ecr, aws_secretsmanager  # noqa: F401

import low_latency_endpoint
import low_latency_endpoint.settings.stack
from low_latency_endpoint.options.option import texts_of

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "node_modules" / "pyright" / "langserver.index.js"


class Call(NamedTuple):
    """One that a user types, and what our source says of each keyword."""

    text: str
    docstring: str
    parameters: dict[str, str]
    of_dataclass: bool = False


# Made by their class methods, or by another construct, whose parameters have lines.
MADE_OTHERWISE = {"ClientZones", "CopyScaling", "DeploymentPolicy", "InferenceAmi", "InstanceType"}
MADE_OTHERWISE |= {"InvocationScaling", "RoutingStrategy", "WarmUpPayload"}


def calls() -> Iterator[Call]:
    """Constructors of all public classes, and what makes them otherwise."""
    for name in low_latency_endpoint.__all__:
        made = getattr(low_latency_endpoint, name)
        if not inspect.isclass(made) or getattr(made, "_is_protocol", False):
            continue
        if is_dataclass(made):
            names = () if name in MADE_OTHERWISE else keywords(made)
            texts = {each: below_field(made, each) for each in names}
            yield Call(name, made.__doc__ or "", texts, of_dataclass=True)
        elif (init := vars(made).get("__init__")) and inspect.signature(made).parameters:
            yield Call(name, init.__doc__, {} if name in MADE_OTHERWISE else lines(init))
        for maker, member in vars(made).items():
            if isinstance(member, (classmethod, staticmethod)) and not maker.startswith("_"):
                function = getattr(made, maker)
                if "Args:" in (function.__doc__ or ""):
                    yield Call(f"{name}.{maker}", function.__doc__, lines(function))


def keywords(function: Any) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if "VAR" not in each.kind.name)


def below_field(made: Any, name: str) -> str:
    """The text where the field is declared, which tells of another default further down."""
    home = next(each for each in made.__mro__ if name in inspect.get_annotations(each))
    text = texts_of(home)[name]
    assert name not in getattr(made, "inherited", ()) or "first variant" in text
    return text


def lines(function: Any) -> dict[str, str]:
    """What the docstring says of each parameter, on one line."""
    names = [name for name in keywords(function) if name != "self"]
    said = {name: re.findall(rf"^ *\*?{name}: (.+)$", function.__doc__, re.M) for name in names}
    return {name: " ".join(found) for name, found in said.items()}


CALLS = list(calls())


class Editor:
    """A file opened in the language server."""

    def __init__(self, folder: Path, lines: list[str]) -> None:
        self._process = subprocess.Popen(
            ["node", str(SERVER), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._asked = 0
        self._file = {"uri": (folder / "app.py").as_uri()}
        signature = {"parameterInformation": {"labelOffsetSupport": True}}
        self.ask(
            "initialize",
            processId=os.getpid(),
            rootUri=folder.as_uri(),
            workspaceFolders=[{"uri": folder.as_uri(), "name": "app"}],
            capabilities={
                "workspace": {"configuration": True, "workspaceFolders": True},
                "textDocument": {"signatureHelp": {"signatureInformation": signature}},
            },
        )
        self._send(method="initialized", params={})
        opened = {**self._file, "languageId": "python", "version": 1, "text": "\n".join(lines)}
        self._send(method="textDocument/didOpen", params={"textDocument": opened})

    def at(self, method: str, line: int, character: int) -> Any:
        position = {"line": line, "character": character}
        return self.ask(f"textDocument/{method}", textDocument=self._file, position=position)

    def ask(self, method: str, **params: Any) -> Any:
        self._asked += 1
        self._send(id=self._asked, method=method, params=params)
        while True:
            answer = self._read()
            if answer.get("id") != self._asked or "method" in answer:
                if "id" in answer:  # a question of the server's, all of which are on settings
                    items = (answer.get("params") or {}).get("items", [])
                    python = {"pythonPath": sys.executable}
                    settings = [python if item["section"] == "python" else {} for item in items]
                    self._send(id=answer["id"], result=settings)
                continue
            return answer["result"]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _send(self, **message: Any) -> None:
        assert self._process.stdin
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        headers = {}
        while line := self._process.stdout.readline().strip().decode():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        found: dict[str, Any] = json.loads(
            self._process.stdout.read(int(headers["content-length"]))
        )
        return found


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    lines = ["from low_latency_endpoint import *"]
    typed = [", ".join(f"{name}=1" for name in call.parameters) for call in CALLS]
    lines += [f"{call.text}({keywords})" for call, keywords in zip(CALLS, typed, strict=True)]
    opened = Editor(tmp_path_factory.mktemp("editor"), lines)
    yield opened
    opened.close()


def plain(text: str) -> str:
    """Without marks and line ends."""
    text = re.sub(r":(?:class|meth|func|attr|mod|data):", "", text.replace("&nbsp;", " "))
    return re.sub(r"[\s`\\]+", " ", text).strip()


def type_in(shown: str) -> str:
    """The type of a keyword, as hovering over it shows."""
    [(_, written)] = re.findall(r"^\((variable|parameter)\) \w+: (.*)", shown)
    return written


def unknown_names(written: str) -> set[str]:
    """The names in a type that a user can import from nowhere."""
    classes = {
        name
        for home, module in list(sys.modules.items())
        if home.partition(".")[0] in ("aws_cdk", "low_latency_endpoint", "constructs")
        for name, value in vars(module).items()
        if getattr(value, "__name__", "") == name  # an alias is no class
    }
    known = {*classes, *vars(builtins), *dir(typing), "Path", "timedelta"}
    return set(re.findall(r"[A-Za-z_]\w*", re.sub("'[^']*'|\"[^\"]*\"", "", written))) - known


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[each.text for each in CALLS])
def test_hover_and_signature_help_show_our_text(editor: Editor, number: int) -> None:
    call, line = CALLS[number], number + 1
    summary = plain(inspect.cleandoc(call.docstring).split("\n\n")[0])
    shown = plain(editor.at("hover", line, len(call.text) - 1)["contents"]["value"])
    assert summary in shown
    assert "Creates a new construct node" not in shown
    column = len(call.text) + 1
    for parameter, text in call.parameters.items():
        assert text, f"say what {parameter} means: a line under Args:, or below the field"
        assert not text.startswith("As for "), f"{parameter}: an editor shows no other docstring"
        on_keyword = editor.at("hover", line, column)["contents"]["value"]
        assert plain(on_keyword).endswith(plain(text)), parameter
        assert not unknown_names(type_in(on_keyword)), f"write out the type of {parameter}"
        if not call.of_dataclass:
            assert plain(f"{parameter}: {text}") in shown
            at = column + len(parameter) + 1
            [helped] = editor.at("signatureHelp", line, at)["signatures"]
            [own] = {plain(each["documentation"]["value"]) for each in helped["parameters"]} - {""}
            assert own == plain(f"{parameter}: {text}")
        column += len(f"{parameter}=1, ")
