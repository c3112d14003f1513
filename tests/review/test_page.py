"""The page shows the comment as it looks. ``UPDATE_DOCS=1 pytest <this file>`` renews it."""

from __future__ import annotations

import os
import re

import pytest

from low_latency_endpoint.change.verdict import FAIL_ON

from .conftest import ROOT, Check, Checkout, settings
from .test_against_revision import CHEAP

PAGE = ROOT / "docs/how-to/pull-request-check.md"
_GENERATED = re.compile(r"(?<=<!-- generated: comment -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def test_the_comment_is_a_runs(check: Check, checkout: Checkout) -> None:
    checkout.commit({"endpoint.yaml": settings(CHEAP)})
    changes = settings(CHEAP, routing="random", instances={"min": 3})
    base, head = checkout.pull_request({"endpoint.yaml": changes})
    chosen = ("--fail-on", "refused", "--fail-on", "cost-increase=10")
    answer = check(f"{base}...{head}", *chosen)
    assert answer.code == 1
    text = answer.out.replace(head[:10], "4f1c2d9a7b").replace(base[:10], "8d0e6b3c51")
    shown = f"\n```markdown\n{text}```\n\n"
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_DOCS"):
        page = _GENERATED.sub(lambda _: shown, page)
        PAGE.write_text(page, encoding="utf-8")
    found = _GENERATED.search(page)
    assert found is not None
    assert found[1] == shown, "run: UPDATE_DOCS=1 pytest tests/review/test_page.py"


def test_the_page_names_every_choice() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [each for each in FAIL_ON if f"| `{each}" not in page] == []


@pytest.mark.parametrize("most", [500])
def test_the_page_is_short(most: int) -> None:
    page = _GENERATED.sub("", PAGE.read_text(encoding="utf-8"))
    assert len(page.split()) < most
