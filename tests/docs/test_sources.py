"""What a page says that AWS refuses or bills has a source in its section, or the mark "not seen".

A source is a page outside, a page of this project that has it (by its link), or the code of a rule, whose
message names AWS's page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .console_blocks import PAGES, ROOT

SAYS = re.compile(
    r"\b(?:AWS|SageMaker|CloudFormation|CloudWatch|Lambda|ECS|IAM)\s+(?:refuses|rejects|bills)\b"
)
HAS_SOURCE = re.compile(r"\]\([^)]+\)|not\s+seen|\bLL[A-Z]\d{3}\b", re.I)
#: Generated from code, where each rule has its source.
GENERATED = ("docs/reference/errors.md", "docs/reference/settings.md", "docs/reference/constructs/")


def sections(text: str) -> Iterator[str]:
    """The parts of a page from one heading to the next, without blocks."""
    prose = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.S | re.M)
    yield from re.split(r"^(?=#)", prose, flags=re.M)


def unsourced(text: str) -> list[str]:
    """What sections without a source say about AWS."""
    return [
        f"{section.splitlines()[0]}: {match[0]}"
        for section in sections(text)
        if not HAS_SOURCE.search(section)
        for match in SAYS.finditer(section)
    ]


def test_a_statement_without_a_source_is_found() -> None:
    assert unsourced("# One\nSageMaker refuses it.\n") == ["# One: SageMaker refuses"]
    assert unsourced("# One\nSageMaker refuses it ([AWS](https://a.b)).\n") == []
    assert unsourced("# One\nSageMaker refuses it (not seen on AWS yet).\n") == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_statements_about_aws_have_a_source(page: Path) -> None:
    if not page.relative_to(ROOT).as_posix().startswith(GENERATED):
        assert unsourced(page.read_text("utf-8")) == []
