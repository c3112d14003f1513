"""The page of one's own endpoint: its settings file is whole, and it shows what the plan says.

``UPDATE_DOCS=1 pytest <this file>`` renews the second plan. The commands run in test_commands_run.py.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.cli import main
from low_latency_endpoint.settings import parse_settings

from .console_blocks import ROOT, commands, shows

PAGE = ROOT / "docs" / "how-to" / "own-endpoint-in-ten-minutes.md"
HEAD = "<!-- output: plan at night -->\n```text\n"


def _yaml_blocks() -> list[str]:
    return re.findall(r"^```yaml.*?\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def _planned(text: str, folder: Path, capsys: Any, patched: pytest.MonkeyPatch) -> str:
    path = folder / "endpoint.yaml"
    path.write_text(text, "utf-8")
    patched.chdir(folder)
    patched.setenv("COLUMNS", "80")
    patched.setattr(sys, "argv", ["low-latency", "plan"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return str(capsys.readouterr().out)


def _measured() -> str:
    """The file with the page's throughput, as it is after the load test and the reader's edit."""
    stated, added = _yaml_blocks()
    file = yaml.safe_load(stated)
    file["endpoints"]["fraud-score"] |= yaml.safe_load(added)
    return yaml.safe_dump(file, sort_keys=False)


def test_the_file_is_that_of_a_reader_who_has_not_measured() -> None:
    """An existing VPC, three zones by ID, a container of one's own, and no number that is guessed."""
    stated = parse_settings(_yaml_blocks()[0])
    (endpoint,) = stated.endpoints.values()
    assert stated.network.vpc_id
    assert len(stated.client_zones.zones) == 3
    assert all("-az" in zone for zone in stated.client_zones.zones)
    assert endpoint.containers[0].image.ecr
    assert endpoint.throughput is None


def test_the_first_plan_is_the_page_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = _planned(_yaml_blocks()[0], tmp_path, capsys, monkeypatch)
    found = commands(PAGE.read_text("utf-8"))
    shown = next(each.shown for each in found if each.text == "low-latency plan")
    assert shows(shown, printed)
    # The one warning that the page speaks of.
    assert re.findall(r"Warning +(\w+ \w+)", printed) == ["no measured"]


def test_the_second_plan_is_the_page_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = _planned(_measured(), tmp_path, capsys, monkeypatch)
    lines = re.search(r"^  Instances.*?(?=^  Routing)", printed, re.M | re.S)
    assert lines
    before, found, after = PAGE.read_text("utf-8").partition(HEAD)
    assert found, "the page has a place for it"
    shown, end, rest = after.partition("```")
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(before + found + lines[0] + end + rest, "utf-8")
        return
    assert shown == lines[0], f"run: UPDATE_DOCS=1 pytest {Path(__file__).relative_to(ROOT)}"
