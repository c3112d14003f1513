"""docs/images/load-test.svg shows a search for the limit of one instance, with a made-up instance.

``UPDATE_DOCS=1 pytest <this file>`` renews it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from low_latency_endpoint.load_test.report import document
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan
from low_latency_endpoint.report.document import Document, Section
from tests.pictures import picture, texts

from .fake_account import report_of

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "load-test.svg"
#: What stands above the fold of the page, and its first chart.
SHOWN = ("Steps", "Throughput and latency")


def test_the_picture_shows_the_limit() -> None:
    plan = limit_plan(SearchPlan(LatencyGoal({"p99": 0.2}), 60, instances=1))
    report = report_of(plan, metrics=True, variation=0.5, service=0.0165)
    steps = [step.result for step in report.run.steps]
    run = replace(report.run, started_at=steps[0].started_at, ended_at=steps[-1].ended_at)
    drawn = picture(_beginning(document(replace(report, run=run))))
    if os.environ.get("UPDATE_DOCS"):
        PICTURE.write_text(drawn, "utf-8")
    shown = texts(PICTURE.read_text("utf-8"))
    assert shown == texts(drawn), f"run: UPDATE_DOCS=1 pytest {Path(__file__).relative_to(ROOT)}"
    assert {"Load test of sentiment", "Steps", "p99 target 200 ms"} <= {*shown}
    assert any(text.startswith("One instance holds") for text in shown)


def _beginning(report: Document) -> Document:
    kept = [part for part in report.parts if not isinstance(part, Section) or part.title in SHOWN]
    return replace(report, parts=kept)
