"""What ``plan --against`` says of each change of a page. ``UPDATE_DOCS=1 pytest <this file>`` renews it."""

from __future__ import annotations

import io
import os
import re

import pytest
import yaml
from rich.console import Console

from low_latency_endpoint.change.comparison import SettingsComparison, review
from low_latency_endpoint.cli.plan_changes import compared
from low_latency_endpoint.report.terminal import drawn
from low_latency_endpoint.settings import parse_settings
from tests.everyday_changes import PAGE, Change, changes_of

CHANGES = changes_of(PAGE.read_text("utf-8"))
#: Lines shown of a deployment after the first, which the page shows whole.
_MOST_LINES = 3


def compare(change: Change) -> SettingsComparison:
    before, after = (parse_settings(yaml.safe_dump(each)) for each in change)
    return review(before, after)


def excerpt(name: str, comparison: SettingsComparison) -> str:
    """The beginning of what the command prints, with what is deleted further down."""
    console = Console(width=80, file=io.StringIO(), record=True, highlight=False)
    console.print(*drawn(compared(comparison, "deployed.yaml", "endpoint.yaml")), sep="\n")
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    end = next(number for number, line in enumerate(lines) if line.startswith("Cost of "))
    head = [line for line in lines[1:end] if line]
    again = name != "model" and head[1].startswith("  deployment")
    shown = [*head[:_MOST_LINES], "             ..."] if again else head
    shown += [line for line in lines[end:] if line.startswith("  deleted    the")]
    return "\n".join(["", "```text", *shown, "```", "", ""])


def generated(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- generated: {name} -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize("name", CHANGES)
def test_the_page_shows_what_the_command_says(name: str) -> None:
    comparison = compare(CHANGES[name])
    shown = excerpt(name, comparison)
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_DOCS"):
        page = generated(name).sub(lambda _: shown, page, count=1)
        PAGE.write_text(page, encoding="utf-8")
    block = generated(name).search(page)
    assert block is not None
    assert block[1] == shown, "run: UPDATE_DOCS=1 pytest tests/review/test_everyday_changes.py"
    assert comparison.effect.word in row_of_table(page, name)


def row_of_table(page: str, name: str) -> str:
    """The rows of the first table that lead to the section of a change."""
    before = page[: page.index(f"<!-- generated: {name} -->")]
    title = re.findall("^## (.*)$", before, re.MULTILINE)[-1]
    anchor = re.sub("[^a-z -]", "", title.lower()).replace(" ", "-")
    return "\n".join(re.findall(rf"^\| \[.*\(#{anchor}\).*$", page, re.MULTILINE))
