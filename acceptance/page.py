"""Fills in ``docs/reference/seen-on-aws.md``: what the runs at AWS say of each claim."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .claims import CLAIMS, Verdict, judge
from .evidence import evidence_files

_ROW = re.compile(r"(?m)^\| `([a-z-]+)` \| (.*) \| \*[a-z ]+\* \| .* \| (\[.*\)) \|$")


def page(text: str, evidence: Mapping[str, Mapping[str, Any]]) -> str:
    """The page with what evidence, by file name, says; evidence of another AWS is refused."""
    for name, each in evidence.items():
        if each.get("target") != "aws":
            raise ValueError(f"{name} is evidence of {each.get('target')!r}, not of AWS: remove it")
    # By date, so that the newest has the last word.
    runs = sorted(evidence.values(), key=lambda each: str(each["date"]))
    text = _ROW.sub(
        lambda row: f"| `{row[1]}` | {row[2]} | {_told(row[1], runs)} | {row[3]} |", text
    )
    words = [row[0] for row in _ROW.finditer(text)]
    never = sum("| *never run* |" in row for row in words)
    return re.sub(
        r"(?m)^\d+ claims; \d+ of them", f"{len(words)} claims; {never} of them", text, count=1
    )


def _told(claim: str, runs: list[Mapping[str, Any]]) -> str:
    told = "*never run* | "
    for run in runs:
        verdict, made = judge(CLAIMS[claim], run), run["versions"]
        if verdict is not Verdict.OPEN:
            where = f"{run['date']}, {run['region']}, {made['library']} ({made['commit']})"
            told = f"*{verdict}* | {where}"
    return told


if __name__ == "__main__":
    path = Path(sys.argv[1])
    try:
        path.write_text(page(path.read_text("utf-8"), evidence_files()), "utf-8")
    except ValueError as error:
        sys.exit(str(error))
