"""``docs/reference/plan.md`` and ``docs/explanation/updates.md`` say what the code does. ``UPDATE_DOCS=1 pytest <this file>`` renews it."""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.cli.plan_changes import compared
from low_latency_endpoint.facts.prices import your_price
from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.throughput import MeasuredThroughput
from low_latency_endpoint.plan.decisions import Explanation, explained
from low_latency_endpoint.report.document import Document, Section
from low_latency_endpoint.report.terminal import drawn
from low_latency_endpoint.settings import explain_variants, load_settings, parse_settings
from low_latency_endpoint.settings.plan_report import SHARED_DECISIONS

from .conftest import planned

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "plan.md"
README = ROOT / "README.md"
UPDATES = ROOT / "docs" / "explanation" / "updates.md"


def ms(value: float) -> timedelta:
    return timedelta(milliseconds=value)


def shipped(**prices: float) -> Explanation:
    """The plan of the settings that ship, with prices where they are given."""
    settings = load_settings(ROOT / "endpoint.yaml")
    stated = {item: your_price(usd) for item, usd in prices.items()}
    return explain_variants(replace(settings, prices=stated), "sentiment")["sentiment"]


def distilbert() -> Explanation:
    """The same as a construct makes it, which knows no prices."""
    return planned(
        client_zones=["use1-az1", "use1-az2"],
        instance_type="ml.m5.12xlarge",
        images=["huggingface-pytorch-inference:2.6.0-transformers4.49.0-cpu-py312-ubuntu22.04"],
        latency=LatencyTarget(p99=ms(200)),
        throughput=MeasuredThroughput(
            peak_tps=1000, tps_per_instance=200, safety_factor=0.45, rise_tps_per_minute=15
        ),
        warm_up_bytes=len(b'{"inputs":"I am super happy right now."}'),
    ).explanation


def language_model() -> Explanation:
    return planned(
        client_zones=["use1-az1", "use1-az2", "use1-az4"],
        instance_type="ml.g6e.2xlarge",
        images=["vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"],
        latency=LatencyTarget(p50=timedelta(seconds=3), p99=timedelta(seconds=8)),
        throughput=MeasuredThroughput(
            peak_tps=24, tps_per_instance=3, safety_factor=0.7, rise_tps_per_minute=0.2
        ),
        streaming=True,
    ).explanation


def inferentia() -> Explanation:
    return planned(
        client_zones=["euw1-az1", "euw1-az2"],
        instance_type="ml.inf2.xlarge",
        images=[
            "huggingface-pytorch-inference-neuronx:2.1.2-transformers4.43.2-neuronx-py310-"
            "sdk2.20.0-ubuntu20.04"
        ],
        latency=LatencyTarget(p90=ms(15), p99=ms(25)),
    ).explanation


def gradient_boosting() -> Explanation:
    return planned(
        client_zones=["usw2-az1", "usw2-az2", "usw2-az3"],
        instance_type="ml.c7i.2xlarge",
        images=["sagemaker-xgboost:1.7-1"],
        latency=LatencyTarget(p50=ms(4), p99=ms(9)),
        throughput=MeasuredThroughput(peak_tps=4000, tps_per_instance=900, rise_tps_per_minute=100),
        payload_bytes=2_000,
    ).explanation


PLANS = {
    "distilbert": shipped,
    "language-model": language_model,
    "inferentia": inferentia,
    "gradient-boosting": gradient_boosting,
}


def decision_table() -> str:
    """Each decision once, with the rule and the source it has where most of its rule applies."""
    rows: dict[str, str] = {}
    for plan in (*(make() for make in PLANS.values()), shipped(**{"ml.m5.12xlarge": 1.0})):
        for decision in plan:
            name = (
                "alarm on " + decision.inputs["metric"]
                if "metric" in decision.inputs
                else (decision.name)
            )
            source = f"[AWS]({decision.source})" if decision.source else "this library"
            rows.setdefault(name, f"| {decision.title} | {decision.rule} | {source} |")
    return "\n".join(["| Decision | Rule | Source |", "|---|---|---|", *rows.values()]) + "\n"


def planned_as(name: str, plan: Explanation) -> str:
    """A plan as its command prints it."""
    title = f"{name}  {plan['instance_type'].value}"
    return printed(Document("", [Section(title, explained(plan, verbose=False))]))


def printed(document: Document) -> str:
    """What a terminal of 80 columns shows, as a block of a page."""
    console = Console(width=80, file=io.StringIO(), record=True, highlight=False)
    console.print(*drawn(document), sep="\n")
    lines = [line.rstrip() for line in console.export_text().rstrip().splitlines()]
    return "\n".join(["```text", *lines, "```", ""])


def against() -> str:
    """A pull request of three lines."""
    text = (ROOT / "endpoint.yaml").read_text(encoding="utf-8")
    changed = text.replace("HF_TASK: text-classification", "HF_TASK: fill-mask")
    changed = changed.replace(
        "endpoint_name: sentiment", "endpoint_name: sentiment\n    tags: {a: b}"
    )
    changed = changed.replace("safety_factor: 0.45", "safety_factor: 0.5")
    before, after = (parse_settings(each) for each in (text, changed))
    return printed(compared(review(before, after), "deployed.yaml", "endpoint.yaml"))


def generated() -> dict[Path, dict[str, str]]:
    return {
        PAGE: {
            "decisions": decision_table(),
            **{name: planned_as(name, make()) for name, make in PLANS.items()},
        },
        UPDATES: {"against": against()},
        README: {"plan": planned_as("sentiment", shipped())},
    }


def renewed(page: str, blocks: dict[str, str]) -> str:
    for name, text in blocks.items():
        page, count = re.subn(
            rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)",
            lambda match, text=text: f"{match[1]}\n{text}\n{match[2]}",
            page,
            flags=re.DOTALL,
        )
        assert count == 1, f"the page has no place for {name}"
    return page


def check_in_step(path: Path, blocks: dict[str, str], file: str) -> None:
    """Whether a page says what was generated; with UPDATE_DOCS it is renewed, and not judged."""
    page = path.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(renewed(page, blocks), encoding="utf-8")
        pytest.skip(f"{path.name} renewed")
    assert page == renewed(page, blocks), f"run: UPDATE_DOCS=1 pytest {file}"


@pytest.mark.parametrize("path", [PAGE, UPDATES, README], ids=lambda path: path.name)
def test_page_is_in_step(path: Path) -> None:
    check_in_step(path, generated()[path], "tests/plan/test_plan_docs.py")


def test_the_first_plan_is_that_of_the_settings_that_ship() -> None:
    (*before, cost), made = shipped().to_dict()["decisions"], distilbert().to_dict()
    own = [each for each in made["decisions"] if each["name"] not in SHARED_DECISIONS]
    assert {**made, "decisions": before} == {**made, "decisions": own}
    assert (cost["name"], cost["value"]) == ("hourly_cost", None)
