"""What a reader of AWS's four documents searches the docs for stands on a page, and README leads on."""

from __future__ import annotations

import re

import pytest

from .console_blocks import ROOT
from .test_commands_parse import GROUP

#: AWS's words, and the section that answers: a page, and its heading.
ANSWERS = {
    "API Gateway": ("reference/monitoring.md", "ModelLatency and OverheadLatency"),
    "cold start": ("explanation/warm-up.md", "Warm-up"),
    "CodeGen2": (
        "explanation/zones-and-routing.md",
        "What AWS measured, and where it advises RANDOM",
    ),
    "Environment variables": (
        "how-to/own-container.md",
        "Benchmark the model outside of an endpoint",
    ),
    "gRPC": ("how-to/own-container.md", "Benchmark the model outside of an endpoint"),
    "hundreds of milliseconds": (
        "explanation/zones-and-routing.md",
        "What AWS measured, and where it advises RANDOM",
    ),
    "Inference Recommender": (
        "how-to/recommend.md",
        "Which instance type? SageMaker Inference Recommender",
    ),
    "internet": ("reference/monitoring.md", "ModelLatency and OverheadLatency"),
    "InvocationsPerInstance": ("reference/monitoring.md", "ModelLatency and OverheadLatency"),
    "microseconds": ("reference/monitoring.md", "ModelLatency and OverheadLatency"),
    "ModelCacheHit": ("how-to/own-container.md", "Many models in one container"),
    "ModelLoadingWaitTime": ("how-to/own-container.md", "Many models in one container"),
    "Neo": ("how-to/own-container.md", "Benchmark the model outside of an endpoint"),
    "Profile the inference script": (
        "how-to/own-container.md",
        "Benchmark the model outside of an endpoint",
    ),
    "round robin": (
        "explanation/zones-and-routing.md",
        "What AWS measured, and where it advises RANDOM",
    ),
    "SageMaker API operations": ("how-to/existing-vpc.md", "1. Decide about private DNS"),
    "under-utilized": ("how-to/what-it-costs.md", "Under-utilized instances"),
}
#: Commands that other commands or pages of the README's list lead to.
NOT_AT_FIRST = {"local-aws", "pin", "preflight", "schema", "stage"}


@pytest.mark.parametrize("words", ANSWERS)
def test_a_search_lands_on_a_section_that_answers(words: str) -> None:
    page, heading = ANSWERS[words]
    text = (ROOT / "docs" / page).read_text("utf-8")
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", text, re.M | re.S)
    assert section, heading
    assert words in " ".join(section[1].split())


def test_the_readme_names_the_commands() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    unnamed = {
        name for name in GROUP.commands if not re.search(rf"low-latency {name}\b|`{name}`", readme)
    }
    assert unnamed == NOT_AT_FIRST
