"""Pages as a reader sees them: nothing stands on, covers or cuts what else is on the page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.load_test.report import write_page
from low_latency_endpoint.load_test.search.run_plans import RunPlan, rate_plan, users_plan
from low_latency_endpoint.operate.diagnose import diagnose
from low_latency_endpoint.operate.diagnose.document import document
from low_latency_endpoint.report.charts import PALETTE, Chart, Line, Panel
from low_latency_endpoint.report.document import (
    Cell,
    Code,
    Document,
    Entry,
    FindingPart,
    Listed,
    Row,
    Section,
    Table,
)
from low_latency_endpoint.report.pages import page
from tests.browser import needs_chromium
from tests.depth import BY_NIGHT, sampled
from tests.layouts import WIDTHS, Layouts, layouts
from tests.load_test.fake_account import report_of
from tests.load_test.test_report import GOAL, LIMIT
from tests.operate.diagnose.scenarios import END, ENDPOINT, Scenario
from tests.operate.diagnose.steady_faults import FAULTS

ROOT = Path(__file__).parents[2]
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layouts]:
    with layouts(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def faults_of(tab: Layouts, file: Path) -> dict[str, list[str]]:
    """The faults of a page by width and scheme, without those that have none."""
    faults = {
        f"{width} px, {'dark' if dark else 'light'}": tab.faults(file, width, dark=dark)
        for width in WIDTHS
        for dark in (False, True)
    }
    return {where: found for where, found in faults.items() if found}


def _load_test(plan: RunPlan, **generator: float) -> Callable[[Path], None]:
    return lambda file: write_page(report_of(plan, **generator), file)


def _diagnosis(scenario: Callable[[], Scenario]) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        account = scenario().account()
        diagnosis = diagnose(
            account, ENDPOINT, start=account.start, end=END, now=END, region="us-east-1"
        )
        file.write_text(page(document(diagnosis)), "utf-8")

    return write


def _simulation(*options: str) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        settings = str(ROOT / "tests" / "sentiment.yaml")
        command = ["simulate", "--settings", settings, *options, "--html", str(file)]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output

    return write


def _made(file: Path) -> None:
    """All kinds of parts, each with more and longer words than there is room for."""
    words = "a sentence that goes on until it needs a second line on every phone"
    arn = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/" + "a-long-name" * 5
    heads = ["Step", "", "Purpose", "Answered a second", *(f"p{rank}" for rank in range(90, 96))]
    cells = ["10. 1,234.5 TPS", Cell("kept", "careful"), words, "1,234.5/s", *["12,345 ms?"] * 6]
    names = [f"{number}. 1,234 TPS" for number in range(30)]
    levels = [float(number) for number in range(30)]
    limits = [(f"p{rank} target {rank} ms", float(rank)) for rank in (9, 10, 11)]
    lines = [Line(f"line {colour}", levels, levels, colour) for colour in PALETTE]
    bars = Line("bars", names, levels, "blue", "bars")
    parts = [
        words,
        arn,
        Listed([words, Row("word", arn, link=True), Row("word", f"{words} {arn}", code=True)]),
        Entry("PASS", "good", words, [arn]),
        Code([(f"low-latency plan --settings {arn}", words)]),
        Table(heads, [cells] * 3, leaves=[0, 0, 9, 0, *range(1, 7)], align="lllr"),
        Table(heads, [cells] * 3, title=words, align="lllr"),
        Table(["What", "Found"], [[words, words]]),
        Chart(
            "lines",
            [Panel(words, lines, " ms", limits)],
            title=words,
            events=[(9.0, "red", "limit 9")],
        ),
        Chart("bars", [Panel(words, [bars])], "names"),
        FindingPart(words, "id", "bad", [Row("change", f"{words} {arn}", (words, ""), code=True)]),
    ]
    sections = [Section(words, [part]) for part in parts]
    folded = Section(words, parts[:5], folded=True)
    file.write_text(page(Document(words, [*sections, folded], arn, words, "bad")), "utf-8")


PAGES = {
    "made": _made,
    "load test with a limit": _load_test(LIMIT, metrics=True, variation=0.5),
    "load test at one rate": _load_test(rate_plan([20], seconds=6), variation=0.5),
    "load test of users": _load_test(users_plan([2, 4], seconds=40, goal=GOAL), variation=0.1),
    "load test of streams": _load_test(
        rate_plan([50], seconds=10, goal=GOAL), first_byte_share=0.5
    ),
    "healthy": _diagnosis(Scenario),
    "simulation": _simulation("--compare-routing", "--replications", "3"),
    "simulation over time": _simulation("--traffic", "spike", "--replications", "2"),
    **{fault.finding: _diagnosis(fault.scenario) for fault in FAULTS},
}


@pytest.mark.parametrize("name", [*list(PAGES)[:8], *sampled(list(PAGES)[8:], 12)])
def test_a_page_can_be_read_on_phone_and_desk_in_light_and_dark(
    tab: Layouts, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "page.html"
    PAGES[name](file)
    assert faults_of(tab, file) == {}


def test_the_site_can_be_read_on_phone_and_desk(tab: Layouts, tmp_path: Path) -> None:
    """By day half of the pages at one width each. Without a server 404.html has no styles."""
    site = tmp_path / "site"
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    subprocess.run(
        build, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, timeout=280
    )
    files = sorted(set(site.rglob("*.html")) - {site / "404.html"})
    assert len(files) > 50
    faults = {}
    for number, file in enumerate(files if BY_NIGHT else files[::2]):
        for width in WIDTHS if BY_NIGHT else (WIDTHS[number % 2],):
            found = tab.faults(file, width, dark=number % 3 == 0)
            if found:
                faults[str(file.relative_to(site)), width] = found
    assert faults == {}


_SAID = "<p>Words that are told, and others.</p>"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (f"{_SAID}<p style='margin-top:-1.7em'>Other words</p>", "stand on each other"),
        ("<div style='width:600px'>wide</div>", "scrolls sideways"),
        ("<p style='width:90px;overflow:hidden;white-space:nowrap'>Much too long</p>", "is cut"),
        ("<p style='width:90px;overflow:hidden'>12345678901234567890</p>", "is cut"),
        ("<pre style='overflow:auto'>" + "word " * 99 + "</pre>", "is cut"),
        (f"{_SAID}<button style='position:absolute;top:8px;left:8px'>copy</button>", "the button"),
        (
            "<div class=scroll style='overflow:auto'><table><tr><th>"
            + "w" * 90
            + "</th><td>p99</td></tr></table></div>",
            "out of sight",
        ),
        (
            "<div class=plot style='position:relative'><svg width=90 height=90><path class=line "
            "data-name=p99 stroke=red d='M0 5L90 5'/></svg><span style='position:absolute;left:0;"
            "top:0;line-height:1'>target</span></div>",
            "the line",
        ),
    ],
)
def test_a_fault_would_be_seen(tab: Layouts, tmp_path: Path, body: str, fault: str) -> None:
    file = tmp_path / "page.html"
    styles = "<style>p {margin: 8px 0}</style>"
    file.write_text(f"<!doctype html><html><head>{styles}</head><body>{body}</body></html>")
    assert any(fault in sentence for sentence in tab.faults(file, 390, dark=False))
