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
from low_latency_endpoint.errors import rule as new_rule
from low_latency_endpoint.errors.codes import RETIRED, next_free

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
    assert rule.fix.endswith((".", ")")), f"{rule.code}: end fix= of its rule with a period"
    assert rule.source == "" or rule.source.startswith("https://"), (
        f"{rule.code}: begin source= of its rule with the / of a path below docs.aws.amazon.com"
    )
    text = str(Explained(*rule))
    assert rule.code in text
    assert rule.fix in text


def test_a_code_that_is_taken_is_said_with_both_titles_its_place_and_a_free_one() -> None:
    with pytest.raises(ValueError, match=r"^LLE506 ") as raised:
        new_rule("LLE506", "the rollback batch size is out of range", fix="Change it.")
    text = str(raised.value)
    assert "the rollback batch size is out of range" in text
    assert "the wait before the old fleet ends is out of range" in text
    assert re.search(r"\(facts/limits\.py:\d+\)", text)
    free = re.search(r"take (LLE5\d\d) for the new one$", text)
    assert free
    assert free[1] not in {each.code for each in all_codes()} | RETIRED
    with pytest.raises(
        ValueError, match=r"^LLE316 cannot be 'a title', it is of a rule that is gone"
    ):
        new_rule("LLE316", "a title", fix="Change it.")


def test_no_hundred_is_full_and_the_first_free_code_is_found() -> None:
    taken = {each.code for each in all_codes()} | RETIRED
    for area in (f"LLE{digit}" for digit in range(1, 10)):
        numbers = [f"{area}{number:02}" for number in range(100)]
        first = next(code for code in numbers if code not in taken)
        assert next_free(f"{area}00") == first


def test_a_code_of_the_history_is_no_rules_again() -> None:
    """Those that were taken away stand in RETIRED; `make docs` does not add them."""
    registered = {each.code for each in all_codes()}
    assert not registered & RETIRED
    shallow = _git("rev-parse", "--is-shallow-repository")
    if shallow.strip() != "false":
        pytest.skip("a copy without the history")
    log = _git("log", "-p", "-U0", "--no-color", "--", "*.py", ":!tests")
    lines = (line for line in log.splitlines() if line.startswith(("+", "-")))
    ever = {code for line in lines for code in re.findall(r'"(LL[A-Z]\d{3})"', line)}
    assert len(ever) > 300
    gone = sorted(ever - registered - RETIRED)
    assert gone == [], "add them to RETIRED of errors/codes.py: nobody may use a code again"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(REPOSITORY), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout


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
