"""README shows the first finding of a fault as the terminal shows it, a picture the whole page.

It is the demo's: the fleet is full, and somebody has lowered its maximum. The account is made up. ``UPDATE_DOCS=1 pytest <this
file>`` renews text and picture.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from low_latency_endpoint.cli.output import print_document
from low_latency_endpoint.operate.diagnose import diagnose
from low_latency_endpoint.operate.diagnose.document import document
from low_latency_endpoint.report.charts import Chart
from low_latency_endpoint.report.document import Document, FindingPart, Section, Sentence
from low_latency_endpoint.settings import load_settings
from low_latency_endpoint.settings.variant_plans import plan_endpoint
from tests.pictures import picture, texts

from .faults.fault import from_minute
from .scenarios import END, ENDPOINT, Scenario, constant
from .steady_faults import FAULTS

ROOT = Path(__file__).parents[3]
PICTURE = ROOT / "docs" / "images" / "found-fault.svg"
PAGE = ROOT / "README.md"
HEAD = "<!-- output: found fault -->\n\n```text\n"
DRAWN = ("ModelLatency",)
LOWERED = 4  # instances
RENEW = f"run: UPDATE_DOCS=1 pytest {Path(__file__).relative_to(ROOT)}"


@pytest.fixture(scope="module")
def report() -> Document:
    """What `low-latency diagnose` says of the fault, half an hour after the change by hand."""
    account = _scenario().account()
    account.events = [
        {
            "EventName": "RegisterScalableTarget",
            "EventTime": END - timedelta(minutes=38),
            "CloudTrailEvent": json.dumps(
                {
                    "userIdentity": {
                        "type": "AssumedRole",
                        "arn": "arn:aws:sts::123456789012:assumed-role/Operators/sam",
                    },
                    "requestParameters": {
                        "resourceId": f"endpoint/{ENDPOINT}/variant/primary",
                        "serviceNamespace": "sagemaker",
                        "maxCapacity": LOWERED,
                    },
                }
            ),
        }
    ]
    start = END - timedelta(hours=1)
    return document(diagnose(account, ENDPOINT, start=start, end=END, now=END, region="us-east-1"))


def _scenario() -> Scenario:
    """The fault in the endpoint that ships, whose plan README shows."""
    plan = plan_endpoint(load_settings(ROOT / "endpoint.yaml"), "sentiment")
    measured = plan.request.throughput
    assert plan.scaling is not None
    assert measured is not None
    assert measured.tps_per_instance is not None
    fault = next(each for each in FAULTS if each.name == "somebody lowered the maximum")
    return replace(
        fault.scenario(),
        scaling={"min": plan.fleet.minimum, "max": LOWERED, "target": plan.scaling.target},
        stated={"max": plan.fleet.maximum},
        planned={
            "peak TPS": measured.peak_tps,
            "TPS per instance": measured.tps_per_instance,
            "safety factor": measured.safety_factor,
        },
        instances=constant(LOWERED),
        tps=from_minute(25, 300, 950),  # below the plan's peak
        in_flight=from_minute(25, 12, 285),
    )


def test_the_readme_shows_what_the_terminal_shows(
    report: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        print_document(report)
    first, second, _ = printed.getvalue().partition("\n2. ")
    assert second, "there is more than the README shows"
    expected = f"{first}...\n"
    before, head, after = PAGE.read_text("utf-8").partition(HEAD)
    assert head, "the README has a place for it"
    shown, end, rest = after.partition("```")
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(before + head + expected + end + rest, "utf-8")
    else:
        assert shown == expected, RENEW


def test_the_picture_shows_cause_and_remedy(report: Document) -> None:
    drawn = picture(_beginning(report))
    if os.environ.get("UPDATE_DOCS"):
        PICTURE.write_text(drawn, "utf-8")
    shown = texts(PICTURE.read_text("utf-8"))
    assert shown == texts(drawn), RENEW
    said = "".join(shown).replace(" ", "")
    for words in (
        "The fleet is at its maximum",
        "MaxCapacity is 4, the template says 24",
        "RegisterScalableTarget by arn:aws:sts::123456789012:assumed-role/Operators/sam",
        "npx cdk deploy --revert-drift",
        *DRAWN,
    ):
        assert words.replace(" ", "") in said


def _beginning(report: Document) -> Document:
    """Verdict and findings, and the graph of what callers felt."""
    told = [part for part in report.parts if isinstance(part, Sentence)]
    sections = [part for part in report.parts if isinstance(part, Section)]
    findings = next(section for section in sections if section.title == "Findings")
    brief = [replace(part, details=()) for part in findings.parts if isinstance(part, FindingPart)]
    chart = next(part for section in sections for part in section.parts if isinstance(part, Chart))
    panels = [panel for panel in chart.panels if panel.title in DRAWN]
    return replace(
        report, parts=[*told, replace(findings, parts=brief), replace(chart, panels=panels)]
    )
