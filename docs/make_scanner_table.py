"""``docs/reference/security-checks.md``: names of the findings in other scanners, from the tests' rules.

``python -m docs.make_scanner_table docs/reference/security-checks.md`` rewrites what stands between
the two marks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml
from docs.make_settings_tables import rewrite

RULES = Path(__file__).parents[1] / "tests" / "synth" / "scanner_rules.yaml"


def scanner_table() -> str:
    """A table row for each rule, in Markdown."""
    return "\n".join([*_table(yaml.safe_load(RULES.read_text("utf-8"))["rules"]), ""])


def _table(rules: list[Mapping[str, str]]) -> Iterator[str]:
    yield "| cdk-nag | checkov | Guard |"
    yield "|---|---|---|"
    for rule in rules:
        names = [rule.get(scanner, "") for scanner in ("nag", "checkov", "guard")]
        yield "| " + " | ".join(f"`{name}`" if name else "-" for name in names) + " |"


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), scanner_table())
