"""What an editor shows of the public names, asked of Pyright's language server.

Pyright takes a parameter's text from a single line, ``name: text``, of the docstring of the function
that is called. For a dataclass, whose ``__init__`` nobody wrote, hovering over a keyword shows the
type alone; there the class's docstring, shown with the signature, has each field's line.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import low_latency_endpoint

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "node_modules" / "pyright" / "langserver.index.js"


class Call(NamedTuple):
    """One that a user types, and what the docstring says of it."""

    text: str
    parameters: tuple[str, ...]
    docstring: str
    of_dataclass: bool = False

    def said(self, parameter: str) -> str:
        """The line on a parameter."""
        (found,) = re.findall(rf"^ *\*?({parameter}: .+)$", self.docstring, re.M)
        return str(found)


# Made by their class methods, or by another construct, whose parameters have lines.
MADE_OTHERWISE = {"ClientZones", "CopyScaling", "DeploymentPolicy", "InferenceAmi", "InstanceType"}
MADE_OTHERWISE |= {"InvocationScaling", "RoutingStrategy", "WarmUpPayload"}


def calls() -> Iterator[Call]:
    """Constructors of all public classes, and what makes them otherwise."""
    for name in low_latency_endpoint.__all__:
        made = getattr(low_latency_endpoint, name)
        if not inspect.isclass(made) or getattr(made, "_is_protocol", False):
            continue
        init = vars(made).get("__init__")
        if init is not None and inspect.signature(made).parameters:
            data = is_dataclass(made)
            doc = made.__doc__ if data else init.__doc__
            names = () if name in MADE_OTHERWISE else keywords(made)
            yield Call(name, names, doc or "", data)
        for maker, member in vars(made).items():
            if isinstance(member, (classmethod, staticmethod)) and not maker.startswith("_"):
                function = getattr(made, maker)
                if "Args:" in (function.__doc__ or ""):
                    yield Call(f"{name}.{maker}", keywords(function), function.__doc__)


def keywords(function: Any) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if "VAR" not in each.kind.name)


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
    lines += [
        f"{call.text}({', '.join(f'{name}=1' for name in call.parameters)})" for call in CALLS
    ]
    opened = Editor(tmp_path_factory.mktemp("editor"), lines)
    yield opened
    opened.close()


def plain(text: str) -> str:
    """Without marks and line ends."""
    text = re.sub(r":(?:class|meth|func|attr|mod|data):", "", text.replace("&nbsp;", " "))
    return re.sub(r"[\s`\\]+", " ", text).strip()


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[each.text for each in CALLS])
def test_hover_and_signature_help_show_our_text(editor: Editor, number: int) -> None:
    call, line = CALLS[number], number + 1
    summary = plain(inspect.cleandoc(call.docstring).split("\n\n")[0])
    shown = plain(editor.at("hover", line, len(call.text) - 1)["contents"]["value"])
    assert summary in shown
    assert "Creates a new construct node" not in shown
    column = len(call.text) + 1
    for parameter in call.parameters:
        said = plain(call.said(parameter))
        assert said in shown, parameter
        on_keyword = plain(editor.at("hover", line, column)["contents"]["value"])
        helped = editor.at("signatureHelp", line, column + len(parameter) + 1)["signatures"][0]
        if call.of_dataclass:
            assert said in plain(helped["documentation"]["value"])
        else:
            assert on_keyword.endswith(said)
            (own,) = {plain(each["documentation"]["value"]) for each in helped["parameters"]} - {""}
            assert own == said
        column += len(f"{parameter}=1, ")
