"""``docs/explanation/scenarios.md`` says what the commands print. ``UPDATE_DOCS=1 pytest <this file>`` renews it.

The settings are the files of ``examples/scenarios``. The page prints the commands of three of them, and its
table has numbers of all of them. What the commands print for the other files is in ``scenario_outputs.md``. A
line ``...`` stands for lines that are left out.
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

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "scenarios.md"
OUTPUTS = Path(__file__).with_name("scenario_outputs.md")
FILES = {path.stem: path for path in sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))}
_COMMAND = re.compile(r"^\$ low-latency (.+)\n((?:(?!```|\$ ).*\n)*)", re.MULTILINE)
_ROW = re.compile(
    r"^\| \[[^]]+\]\(../../examples/scenarios/([a-z-]+)\.yaml\) \|.*\|$", re.MULTILINE
)
_LEFT_OUT = "..."
#: What the table says of a warning of the plan; empty where another one has said it.
WARNINGS = {
    r"if a zone fails at the peak, .* They work at (\d+)% of": "zone loss ({}%)",
    r"if a zone fails at the minimum,": "",
    r"the safety factor lets the peak use up to (\d+)% of the measured limit": "{}% at the peak",
    r"the target p50 8 ms leaves little time beside the model's": "little time for overhead",
    r"the fixed fleet of 1 instance is below the 2 that the peak needs": "1 instance, 2 needed",
    r"one instance: no other zone has one": "no second zone",
    r"no measured throughput:": "no throughput",
    r"a payload of 8,000,000 bytes is larger than": "payload above the API's limit",
    r"a request of 8,000,000 bytes takes 400 ms": "time to upload",
}


class Scenario(NamedTuple):
    """A part of the page, or of the file of further outputs, that prints the commands of one file."""

    page: Path
    text: str

    @property
    def file(self) -> str:
        (name,) = set(re.findall(r"--settings examples/scenarios/([a-z-]+)\.yaml", self.text))
        return name

    def commands(self, kind: str) -> list[re.Match[str]]:
        """Those of its commands that plan, or that simulate."""
        return [each for each in _COMMAND.finditer(self.text) if each[1].startswith(kind)]


def scenarios() -> dict[str, Scenario]:
    """The parts that print commands, by the names of their settings files."""
    parts = [
        Scenario(page, part)
        for page in (PAGE, OUTPUTS)
        for part in re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    ]
    return {scenario.file: scenario for scenario in parts}


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


def check(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenarios()[name]
    assert scenario.commands(kind), "no such command"
    monkeypatch.chdir(ROOT)
    replace(scenario.page, scenario.text, renewed(scenario, kind, monkeypatch))


def replace(page: Path, text: str, found: str) -> None:
    """Compare a text of a page with what was found, or write it there."""
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(page.read_text(encoding="utf-8").replace(text, found), encoding="utf-8")
        pytest.skip("the page is renewed; without UPDATE_DOCS it is compared")
    assert text == found, f"run: UPDATE_DOCS=1 pytest {Path(__file__).name}"


def instances_and_warnings(plan: str) -> tuple[str, str]:
    """The two cells of the table that follow from the text of a plan."""
    lines = "\n".join(line.strip() for line in plan.splitlines())
    fleets = [
        f"{peak} ({least} to {most})"
        for least, most, peak in re.findall(r"then (\d+) to (\d+) as .*; (\d+) at peak", lines)
    ]
    fleets += [f"{count}, fixed" for count in re.findall(r"(\d+), as nothing scales", lines)]
    warned = [cell for text in plan_warnings(plan) if (cell := warning_cell(text))]
    return "; ".join(fleets), "; ".join(dict.fromkeys(warned))


def plan_warnings(plan: str) -> list[str]:
    """The texts of a plan's warnings, each on one line."""
    blocks = re.findall(r"^  Warning    (.+\n(?: {13}.+\n)*)", plan, re.MULTILINE)
    return [" ".join(block.split()) for block in blocks]


def warning_cell(text: str) -> str:
    for pattern, cell in WARNINGS.items():
        if match := re.match(pattern, text):
            return cell.format(*match.groups())
    raise AssertionError(f"the table has no words for: {text}")


@pytest.mark.parametrize("name", FILES)
def test_plan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, "plan", monkeypatch)


@pytest.mark.parametrize("name", FILES)
def test_row_of_the_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row[1]: row[0] for row in _ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    monkeypatch.chdir(ROOT)
    plan = printed(f"plan --settings examples/scenarios/{name}.yaml", monkeypatch)
    first, situation, settings, _, _, verdict, last = rows[name].split("|")
    instances, warned = instances_and_warnings(plan)
    found = "|".join([first, situation, settings, f" {instances} ", f" {warned} ", verdict, last])
    replace(PAGE, rows[name], found)


@pytest.mark.realtime  # minutes of processor
@pytest.mark.parametrize("name", FILES)
def test_simulation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, "simulate", monkeypatch)


def test_twelve_that_are_planned_and_simulated() -> None:
    assert len(FILES) == 12
    assert scenarios().keys() == FILES.keys()
    for name, scenario in scenarios().items():
        assert len(scenario.commands("plan")) == 1, name
        assert scenario.commands("simulate"), name


def test_settings_on_the_page_are_those_of_the_file() -> None:
    shown = 0
    for name, scenario in scenarios().items():
        settings = FILES[name].read_text(encoding="utf-8")
        for block in re.findall(r"```yaml\n(.*?)```", scenario.text, re.DOTALL):
            assert block in settings, name
            shown += 1
    assert shown == 3


def test_a_warning_without_words_for_the_table_is_noticed() -> None:
    plan = "  Instances  2, as nothing scales\n  Warning    something\n             new\n"
    with pytest.raises(AssertionError, match="something new"):
        instances_and_warnings(plan)


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
