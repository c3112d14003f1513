"""The page of a diagnosis in a real browser: its charts are there, its console is silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose.document import document
from low_latency_endpoint.report.pages import page
from tests.browser import needs_chromium, opened

from .scenarios import Scenario
from .steady_faults import FAULTS

_FAULT = {fault.finding: fault.scenario for fault in FAULTS}


@needs_chromium
@pytest.mark.parametrize(
    ("finding", "width"),
    [
        # Each page once, and the one with the most charts at both widths: the style is one for all.
        ("", 700),
        ("LLD102", 1280),
        ("LLD501", 1280),
        ("LLD501", 700),
    ],
)
def test_a_browser_shows_the_charts(run: Any, tmp_path: Path, finding: str, width: int) -> None:
    file = tmp_path / "report.html"
    made = run(_FAULT[finding]() if finding else Scenario())
    file.write_text(page(document(made)), encoding="utf-8")
    seen = opened(file, tmp_path, width)
    assert (seen.errors, seen.inaccessible) == ([], [])
    assert set(seen.charts) == {variant.name for variant in made.measurements.variants}
    assert all(chart.visible for chart in seen.charts.values()), seen.charts
    for chart in seen.charts.values():
        assert {"Requests a second", "ModelLatency"} <= set(chart.titles)
    assert seen.overflow <= 0, "the page scrolls down, not sideways"
