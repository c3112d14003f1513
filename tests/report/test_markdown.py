"""Markdown as GitHub renders it: our links open, our settings are code, and foreign text does nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from markdown_it import MarkdownIt

from low_latency_endpoint.operate.diagnose import diagnose
from low_latency_endpoint.operate.diagnose.document import document
from low_latency_endpoint.report.markdown import as_markdown, escaped
from tests.operate.diagnose.scenarios import END, ENDPOINT, Scaled, Scenario
from tests.operate.diagnose.steady_faults import FAULTS

FOREIGN = (
    "@team see https://evil.example/a [log](https://evil.example) <b>#12 `rm -rf /tmp` ![x](y)"
)


def rendered(scenario: Scenario) -> tuple[Any, str]:
    account = scenario.account()
    made = diagnose(account, ENDPOINT, start=account.start, end=END, now=END, region="us-east-1")
    return made, html(as_markdown(document(made)))


def html(text: str) -> str:
    return MarkdownIt("commonmark").enable("table").render(text)


@pytest.mark.parametrize("fault", FAULTS[::9], ids=lambda fault: fault.finding)
def test_what_is_ours_is_a_link_or_code(fault: Any) -> None:
    made, page = rendered(fault.scenario())
    linked = re.findall('<a href="([^"]+)"', page)
    assert linked == [each.kind.source for each in made.findings]
    coded = {text.replace("&quot;", '"') for text in re.findall("<code>([^<]+)</code>", page)}
    for change in (change for each in made.findings for change in each.changes):
        assert change.text in coded
    assert "https:​//docs.aws" not in page


@pytest.mark.parametrize("where", ["failure", "activity", "configuration"])
def test_foreign_text_does_nothing(where: str) -> None:
    scenario = {
        "failure": Scenario(status="Failed", failure=FOREIGN),
        "activity": Scenario(activities=[Scaled(30, 9, "Failed", FOREIGN)]),
        "configuration": Scenario(status="RollingBack", failure=f"a\n\n# b\n- {FOREIGN}"),
    }[where]
    made, page = rendered(scenario)
    assert "evil.example" in page, "it is shown"
    assert re.findall('<a href="([^"]+)"', page) == [each.kind.source for each in made.findings]
    assert re.search(r"<(img|b|h1)\b", page) is None
    assert "@​team" in page
    assert "https:​//evil.example" in page
    assert "<code>rm -rf /tmp</code>" in page


@pytest.mark.parametrize("text", ["`a", "a`", "``a``", "`a\\`b", "` `", "`@x`|`y`", "`a`b`<i>`"])
def test_backticks_of_others_end_where_they_end(text: str) -> None:
    assert not re.search("<(a|i|em|strong)", html(escaped(text)))
