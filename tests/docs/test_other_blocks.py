"""Blocks in other languages: JSON parses and its policies are ones of IAM; each language has its check."""

from __future__ import annotations

import configparser
import json
import re
from typing import Any

import pytest

from .blocks import ALL_PAGES, Block, parameters

#: Where the blocks of a language are checked, or why nothing here can.
LANGUAGES = {
    "console": "test_commands_run.py and test_commands_parse.py",
    "python": "test_python_runs.py",
    "yaml": "test_yaml_blocks.py",
    "json": "below",
    "ini": "below",
    "text": "what programs print: each page's own test renews it",
    "markdown": "a comment that tests/review/test_page.py compares",
    "mermaid": "a diagram: the site draws it",
    "hcl": "Terraform is not here; tests/docs/readers.py deploys the template that the block names",
    "typescript": "no compiler is here; it shows another tool's way",
    "java": "no compiler is here; it shows another SDK's way",
    "dockerfile": "Docker is not here",
}
_ACTION = re.compile(r"[a-z0-9-]+:[A-Za-z0-9*]+|\*")


def document_of(text: str) -> Any:
    """The document of a block, which may be a part of an object."""
    return json.loads(text if text.lstrip().startswith(("{", "[")) else f"{{{text}}}")


def statements_in(document: Any) -> list[dict[str, Any]]:
    """The statements of a policy, or the one that a block has; none in other documents."""
    if not isinstance(document, dict):
        return []
    if "Effect" in document:
        return [document]
    statements = document.get("Statement", [])
    return statements if isinstance(statements, list) else [statements]


@pytest.mark.parametrize("block", parameters("json"))
def test_json_parses_and_policies_have_what_iam_asks_for(block: Block) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html"""
    document = document_of(block.text)
    if isinstance(document, dict) and "Statement" in document:
        assert document["Version"] == "2012-10-17"
    for statement in statements_in(document):
        assert statement["Effect"] in ("Allow", "Deny")
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            assert _ACTION.fullmatch(action), action
        assert "Resource" in statement or "Principal" in statement
        unknown = set(statement) - {
            *("Sid", "Effect", "Action", "Resource", "Principal", "Condition")
        }
        assert unknown == set()


@pytest.mark.parametrize("block", parameters("ini"))
def test_ini_parses(block: Block) -> None:
    parser = configparser.ConfigParser()
    parser.read_string(block.text)
    assert parser.sections()


def test_each_language_is_checked_or_has_a_reason() -> None:
    texts = [page.read_text("utf-8") for page in ALL_PAGES]
    used = {name for text in texts for name in re.findall(r"^ *```([\w-]+)", text, re.M)}
    assert used - set(LANGUAGES) == set()
