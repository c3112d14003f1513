"""The page of error codes: complete, in step, and every rule says how to fix it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from low_latency_endpoint.cli.errors import Explained, all_codes, errors_markdown
from low_latency_endpoint.errors import ErrorRule, rules

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "constructs" / "low_latency_endpoint"
all_codes()  # which registers all
RULES = list(rules())


def test_the_page_is_in_step() -> None:
    page = (REPOSITORY / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert page == errors_markdown(), (
        "run: low-latency errors --markdown > docs/reference/errors.md"
    )


def test_every_code_written_in_the_source_is_in_the_page() -> None:
    """Rules live where they can be listed without the CDK; see cli/errors.py."""
    registered = {each.code for each in all_codes()}
    written = {}
    code = re.compile(r"LL[A-Z]\d{3}")
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if code.search(text) else ():
            if (
                isinstance(node, ast.Call)
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and code.fullmatch(str(node.args[0].value))
            ):
                written[node.args[0].value] = path.name
    assert {each: where for each, where in written.items() if each not in registered} == {}
    assert len(written) > 100


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_is_complete(rule: ErrorRule) -> None:
    assert re.fullmatch(r"LL(E[1-9]|[ACRST]1|D9)\d\d", rule.code)
    assert rule.title
    assert rule.fix.endswith((".", ")"))
    assert rule.source == "" or rule.source.startswith("https://")
    text = str(Explained(*rule))
    assert rule.code in text
    assert rule.fix in text


def test_a_limit_says_what_it_allows() -> None:
    codes = {each.code: each for each in all_codes()}
    assert codes["LLE104"].meaning == "Allowed: 16 to 28."
    assert codes["LLE602"].allowed == "8.51592e-109 to 1.17427e+108"
    assert codes["LLE703"].meaning.startswith("Allowed: 0.000001 to 1. Give a share")
    form = "letters, digits and inner hyphens"
    assert codes["LLE402"].meaning == f"Allowed: {form}, at most 63 characters. Write {form}."
    assert codes["LLR111"].allowed == ""  # of two limits
    page = errors_markdown()
    assert "\n**The VPC's prefix length must be 16 to 28.** ([source]" in page
    assert "\n**The inference execution mode must be Serial or Direct.** (" in page
    assert "\n**Exactly one of client_zones and network must be given" in page
    assert "**The instance type must be ml.&lt;family>.&lt;size>, such as ml.g5.xlarge.**" in page
    assert "`/aws/sagemaker/Endpoints/<name>`" in page


@pytest.mark.parametrize("missing", ["", "botocore"])
def test_listing_the_rules_needs_neither_the_cdk_nor_the_extras(missing: str) -> None:
    code = (
        f"import sys; {f'sys.modules[{missing!r}] = None' if missing else ''}\n"
        "from low_latency_endpoint.cli.errors import all_codes\n"
        "print(len(all_codes()) > 100)\n"
        "print([name for name in ('aws_cdk', 'jsii', 'moto') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "[]"]
