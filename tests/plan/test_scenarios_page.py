"""``docs/explanation/scenarios.md`` says what the commands print. ``UPDATE_DOCS=1 pytest <this file>`` renews it.

The page itself holds the settings: of each scenario its YAML block is the file that its commands
name, and what stands below a command is what the command prints. A line ``...`` stands for lines that
the page leaves out.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from low_latency_endpoint.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "scenarios.md"
_COMMAND = re.compile(r"^\$ low-latency (.+)\n((?:(?!```|\$ ).*\n)*)", re.MULTILINE)
_LEFT_OUT = "..."


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
    """What a terminal of 80 columns shows."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["low-latency", *shlex.split(command)])
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main()
    text = out.getvalue() + (err.getvalue() if left.value.code else "")
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def shortened(output: str, shown: str) -> str:
    """Leave out what the page leaves out; where the page's lines are gone, all is shown."""
    lines, wanted = output.splitlines(), shown.splitlines()
    parts = [list(part) for left_out, part in groupby(wanted, _LEFT_OUT.__eq__) if not left_out]
    assert parts, "nothing is shown"
    kept: list[str] = [_LEFT_OUT] if wanted[0] == _LEFT_OUT else []
    at = 0
    for number, part in enumerate(parts):
        first = _nearest(lines, part[0], at) if wanted[0] == _LEFT_OUT or number else 0
        open_end = wanted[-1] == _LEFT_OUT or number + 1 < len(parts)
        last = None if first is None else _nearest(lines, part[-1], first)
        last = last if open_end else len(lines) - 1
        if first is None or last is None:
            return output
        kept += lines[first : last + 1] + ([_LEFT_OUT] if open_end else [])
        at = last + 1
    return "\n".join(kept) + "\n"


def _nearest(lines: list[str], line: str, start: int) -> int | None:
    """The line that is most like this one, numbers may differ."""
    likeness = [SequenceMatcher(None, each, line).ratio() for each in lines[start:]]
    best = max(likeness, default=0.0)
    return start + likeness.index(best) if best > 0.6 else None


def renewed(scenario: Scenario, kind: str, monkeypatch: pytest.MonkeyPatch) -> str:
    text = scenario.text
    for each in reversed(scenario.commands(kind)):
        found = shortened(printed(each[1], monkeypatch), each[2])
        text = f"{text[: each.start(2)]}{found}{text[each.end(2) :]}"
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


def test_twelve_that_are_planned_and_simulated() -> None:
    assert len(TITLES) == 12
    for each in scenarios():
        assert len(each.commands("plan")) == 1, each.title
        assert each.commands("simulate"), each.title


def test_an_output_is_shortened_as_the_page_is() -> None:
    output = "Fleet  8 at most\nRouting  least\nCost  3.30\nWarning  lost\n"
    assert shortened(output, output) == output
    assert shortened(output, "Fleet  8 at most\n...\nCost  3.30\n...\n") == (
        "Fleet  8 at most\n...\nCost  3.30\n...\n"
    )
    assert shortened(output, "...\nCost  9.90\n...\n") == "...\nCost  3.30\n...\n"  # what is new
    assert shortened(output, "...\nRouting  random\nWarning  lost\n") == (
        "...\nRouting  least\nCost  3.30\nWarning  lost\n"
    )
    assert shortened(output, "...\nSubnets of 10.0.0.0/24\n") == output  # such a line is gone
    assert shortened(output, "Fleet  8 at most\n") == output  # nothing says that lines are left out
