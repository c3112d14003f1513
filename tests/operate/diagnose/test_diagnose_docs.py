"""``docs/reference/diagnose.md`` shows what is printed. ``UPDATE_DOCS=1 pytest <this file>`` renews it."""

from __future__ import annotations

import contextlib
import io
import os
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from low_latency_endpoint.account.metrics import period_for
from low_latency_endpoint.cli.output import print_document
from low_latency_endpoint.operate.diagnose.document import document
from low_latency_endpoint.operate.diagnose.findings import KINDS
from low_latency_endpoint.operate.diagnose.thresholds import BLOCKS, LEAST_BLOCKS, T2_BASELINES

from .steady_faults import FAULTS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "diagnose.md"


def _printed(finding: str) -> str:
    """The finding's part of the report, at 80 columns, of the first fault that gives it."""
    fault = next(each for each in FAULTS if each.finding == finding)
    with (
        pytest.MonkeyPatch.context() as patched,
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        patched.setenv("COLUMNS", "80")
        print_document(document(fault.diagnosed))
    lines = printed.getvalue().splitlines()
    source = next(n for n, line in enumerate(lines) if "   source   " in line)
    if finding == "LLD102":
        return "\n".join(lines[:source]) + "\n"
    first = next(n for n, line in enumerate(lines) if f". {finding} " in line)
    second = next(
        n for n, line in enumerate(lines) if line.startswith("Evidence of ") and finding in line
    )
    shown = [*lines[first : lines.index("", first) + 1], *lines[second:]]
    return (
        "\n".join(shown[: next(n for n, line in enumerate(shown) if "   source   " in line)]) + "\n"
    )


@pytest.mark.parametrize("finding", ["LLD102", "LLD131", "LLD135"])
def test_the_page_shows_what_is_printed(finding: str) -> None:
    page = PAGE.read_text("utf-8")
    made = _printed(finding)
    head = f"<!-- output: {finding} -->\n```\n"
    before, found, after = page.partition(head)
    assert found, "the page has a place for it"
    shown, end, rest = after.partition("```")
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(before + head + made + end + rest, "utf-8")
        return
    assert shown == made


def test_pages_name_a_finding_as_the_command_does() -> None:
    """The commands of most pages run by night only (test_commands_run.py); titles change by day."""
    titles = {kind.id: kind.title for kind in KINDS.values()}
    shown = [
        (finding, title)
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for finding, title in re.findall(r"^\d+\. (LLD\d+) (.*)$", page.read_text("utf-8"), re.M)
    ]
    assert len(shown) > 5
    # At 80 columns a long title goes on in the next line.
    assert [each for each in shown if not titles[each[0]].startswith(each[1])] == []


def test_the_page_has_the_numbers_of_the_code() -> None:
    page = PAGE.read_text("utf-8")
    baselines = T2_BASELINES.values()
    assert f"has {min(baselines):.0f} to {max(baselines):.0f} % of its CPU" in page
    assert f"the medians of {LEAST_BLOCKS} to {BLOCKS} blocks" in page


def test_the_page_has_the_periods_of_windows() -> None:
    """The longest and oldest window of each row, and one that is a little too old or too long for it."""
    rows = re.findall(
        r"\| began less than (\d+) days ago, up to (\d+) days long \| (\d+) minutes? \|",
        PAGE.read_text("utf-8"),
    )
    assert len(rows) == 2
    now, little = datetime(2026, 11, 20), timedelta(minutes=1)
    for age, length, minutes in rows:
        oldest, longest = timedelta(days=int(age)), timedelta(days=int(length))
        fits = now - oldest + little
        assert period_for(fits, fits + longest, now) == timedelta(minutes=int(minutes))
        too_old = now - oldest
        assert period_for(too_old, too_old + little, now) > timedelta(minutes=int(minutes))
        too_long = now - longest - little
        assert period_for(too_long, now, now) > timedelta(minutes=int(minutes))
