"""Each number that `low-latency simulate` takes moves its answer, or is refused.

The options are found by looking at the command, and tried in each of its modes.
"""

from __future__ import annotations

import json
import re
import typing
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.cli.simulate import SimulationOptions

SETTINGS = str(Path(__file__).parents[1] / "sentiment.yaml")
COUNTS = "time,requests\n" + "".join(
    f"2026-11-27T08:{minute:02d}:00Z,{600 + 2400 * (minute > 4)}\n" for minute in range(15)
)

#: Another number for each option than its default; five instances are nine tenths busy.
OTHER = {
    "tps": "130",
    "instances": "5",
    "service_time": "61ms",
    "variation": "1.3",
    "concurrency": "20",
    "slope": "0.01",
    "instance_start": "130s",
    "replications": "3",
    "requests": "2600",
    "seed": "5",
    "period": "30s",
}
STEADY = ("--requests", "2000")
TIME = ("--service-time", "45ms")
MODES: dict[str, tuple[str, ...]] = {
    "service time unknown": STEADY,
    "steady": (*STEADY, *TIME),
    "routing": (*STEADY, *TIME, "--compare-routing"),
    "recorded": (*TIME, "--traffic-from", "COUNTS"),
}
ECHOES = {"answer", "assumed", "settings", "warnings", "seed", "replications", "instances"}


def numeric_options() -> set[str]:
    """Those of a number or a time; not `processes`, with which results are the same."""
    hints = typing.get_type_hints(SimulationOptions)
    found = set()
    for field in fields(SimulationOptions):
        metavar = field.metadata.get("more", {}).get("metavar")
        if re.search(r"\b(int|float)\b", str(hints[field.name])) or metavar == "TIME":
            found.add(field.name)
    return (found | {"period"}) - {"processes"}


def results(document: Any) -> Any:
    """A document without what repeats the options."""
    if isinstance(document, dict):
        return {name: results(part) for name, part in document.items() if name not in ECHOES}
    if isinstance(document, list):
        return [results(part) for part in document]
    return document


@cache
def answer(arguments: tuple[str, ...]) -> tuple[int, str]:
    """The exit code, and the results as text."""
    few = () if "--replications" in arguments else ("--replications", "2")
    command = ["simulate", "--settings", SETTINGS, "--json", "--processes", "1", *few, *arguments]
    done = CliRunner().invoke(app, command)
    if done.exit_code != 0:
        return done.exit_code, done.output
    return 0, json.dumps(results(json.loads(done.stdout)), sort_keys=True)


def test_all_numeric_options_are_tried() -> None:
    assert numeric_options() == set(OTHER)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OTHER)
def test_each_number_moves_the_answer_or_is_refused(
    mode: str, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    counts = tmp_path_factory.getbasetemp() / "counts.csv"
    counts.write_text(COUNTS, encoding="utf-8")
    base = tuple(str(counts) if part == "COUNTS" else part for part in MODES[mode])
    option = f"--{name.replace('_', '-')}"
    code, before = answer(base)
    assert code == 0, before
    code, after = answer((*base, option, OTHER[name]))
    if code == 0:
        assert after != before, f"{option} changes nothing"
    else:
        assert code == 2, after
