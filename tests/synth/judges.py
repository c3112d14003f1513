"""cfn-lint as all tests ask it: its rules are loaded once for each process, which takes a second."""

from __future__ import annotations

from functools import cache
from typing import Any

from cfnlint.api import lint
from cfnlint.core import get_rules

REGION = "us-east-1"
IGNORED = {"W3010": "the zones are the point: the user states them"}


@cache
def _rules() -> Any:
    return get_rules([], list(IGNORED), ["W"], {}, False)


def cfn_lint(template: str) -> list[str]:
    """Errors and warnings; informational findings are left out, they are matters of taste."""
    return [str(finding) for finding in lint(template, _rules(), [REGION])]
