"""Each answer leads on, by a link or a command that exists; each term of the glossary is in use."""

from __future__ import annotations

import re

import pytest

from low_latency_endpoint.cli.errors import all_codes

from .console_blocks import PAGES, ROOT
from .test_commands_parse import GROUP

QUESTIONS = (ROOT / "docs" / "how-to" / "questions.md").read_text("utf-8")
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
ANSWERS = dict(re.findall(r"^### (.+?)\n(.+?)(?=^##|\Z)", QUESTIONS, re.M | re.S))
TERMS = re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY.read_text("utf-8"), re.M)


@pytest.mark.parametrize("question", ANSWERS)
def test_an_answer_is_short_and_leads_on(question: str) -> None:
    answer = ANSWERS[question]
    assert len(answer.split()) <= 50
    assert re.search(r"\]\(|`low-latency ", answer)


def test_commands_of_the_answers_parse() -> None:
    lines = re.findall(r"`low-latency ([^`]+)`", QUESTIONS)
    assert len(lines) > 5
    for line in lines:
        name, *words = line.split()
        # Parses, and ends before the command runs: an option that is not there is an error.
        with GROUP.commands[name].make_context(name, words):
            pass


def test_codes_of_the_answers_exist() -> None:
    codes = {*re.findall(r"LL[A-Z]\d{3}", QUESTIONS)}
    assert codes
    assert codes <= {known.code for known in all_codes()}


def test_terms_stand_in_order_once() -> None:
    assert len(TERMS) >= 15
    assert sorted({*TERMS}, key=str.lower) == TERMS


@pytest.mark.parametrize("term", TERMS)
def test_another_page_uses_the_term(term: str) -> None:
    others = [page.read_text("utf-8") for page in PAGES if page != GLOSSARY]
    assert any(re.search(rf"\b{re.escape(term)}s?\b", text, re.I) for text in others)
