"""``docs/explanation/scenarios.md`` says what the commands print. ``UPDATE_DOCS=1 pytest <this file>`` renews it.

The page itself holds the settings: of each scenario its YAML block is the file that its commands
name, and what stands below a command is what the command prints.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from low_latency_endpoint.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "scenarios.md"
_COMMAND = re.compile(r"^\$ low-latency (.+)\n((?:(?!```|\$ ).*\n)*)", re.MULTILINE)
_LEFT_OUT = re.compile(r"^(Assumed:|Point \d+ in the settings)", re.MULTILINE)


class Scenario(NamedTuple):
    """A part of the page."""

    title: str
    settings: str
    text: str

    def commands(self, kind: str) -> list[re.Match[str]]:
        """Those of its commands that plan, or that simulate."""
        return [each for each in _COMMAND.finditer(self.text) if each[1].startswith(kind)]


def scenarios() -> list[Scenario]:
    found = []
    for part in re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        settings = re.search(r"```yaml\n(.*?)```", part, re.DOTALL)
        assert settings, part.splitlines()[0]
        found.append(Scenario(part.splitlines()[0].removeprefix("## "), settings[1], part))
    return found


def printed(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of 80 columns shows, without what every answer has below it."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["low-latency", *shlex.split(command)])
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main()
    text = _LEFT_OUT.split(out.getvalue() + (err.getvalue() if left.value.code else ""))[0]
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def renewed(scenario: Scenario, kind: str, monkeypatch: pytest.MonkeyPatch) -> str:
    text = scenario.text
    for each in reversed(scenario.commands(kind)):
        text = f"{text[: each.start(2)]}{printed(each[1], monkeypatch)}{text[each.end(2) :]}"
    return text


def check(scenario: Scenario, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scenario.commands(kind), "no such command"
    monkeypatch.chdir(folder)
    (folder / "endpoint.yaml").write_text(scenario.settings, encoding="utf-8")
    found = renewed(scenario, kind, monkeypatch)
    if os.environ.get("UPDATE_DOCS"):
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page.replace(scenario.text, found), encoding="utf-8")
        pytest.skip("the page is renewed; without UPDATE_DOCS it is compared")
    assert scenario.text == found, f"run: UPDATE_DOCS=1 pytest {Path(__file__).name}"


NUMBERS = range(len(scenarios()))
TITLES = [each.title for each in scenarios()]


@pytest.mark.parametrize("number", NUMBERS, ids=TITLES)
def test_plan(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(scenarios()[number], "plan", tmp_path, monkeypatch)


@pytest.mark.realtime  # minutes of processor
@pytest.mark.parametrize("number", NUMBERS, ids=TITLES)
def test_simulation(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(scenarios()[number], "simulate", tmp_path, monkeypatch)


def test_twelve_that_are_simulated_and_searched() -> None:
    assert len(TITLES) == 12
    for each in scenarios():
        assert len(each.commands("plan")) == 1, each.title
        assert any("--search" in one[1] for one in each.commands("simulate")), each.title
        assert any("--search" not in one[1] for one in each.commands("simulate")), each.title
