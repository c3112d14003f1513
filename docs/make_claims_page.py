"""``docs/reference/seen-on-aws.md``: the claims that ``make accept`` tries, from claims.yaml.

``python -m docs.make_claims_page docs/reference/seen-on-aws.md`` rewrites what stands between the
two marks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from docs.make_settings_tables import rewrite

from tools.acceptance.claims import CLAIMS, Claim

RECORDED = Path(__file__).parents[1] / "local_sagemaker" / "tests" / "recorded" / "recorded.yaml"


def claims_table() -> str:
    """The number of claims, how many recordings agree with, and a table row for each."""
    recordings = yaml.safe_load(RECORDED.read_text("utf-8"))
    return "\n".join([*_counts(), "", *_table(recordings), ""])


def _counts() -> Iterator[str]:
    unseen = sum(not claim.seen for claim in CLAIMS)
    agreeing = [claim for claim in CLAIMS if claim.agrees]
    details = sum(_in_a_detail(claim) for claim in agreeing)
    yield f"{len(CLAIMS)} claims; {unseen} of them not seen on AWS yet. Recordings of others agree with"
    yield f"{len(agreeing) - details} of them in substance and with {details} in a detail."


def _table(recordings: dict[str, Any]) -> Iterator[str]:
    yield "| Claim | What should be so | Seen? | Agrees with public recordings | Page |"
    yield "|---|---|---|---|---|"
    for claim in CLAIMS:
        cells = (
            f"`{claim.id}`",
            _statement(claim),
            claim.seen or "not seen yet",
            _recordings(claim, recordings),
            _page(claim),
        )
        yield "| " + " | ".join(cells) + " |"


def _statement(claim: Claim) -> str:
    return f"{claim.statement} If not: {claim.otherwise}" if claim.otherwise else claim.statement


def _recordings(claim: Claim, recordings: dict[str, Any]) -> str:
    names = [word for word in claim.agrees.split() if word != "detail"]
    links = [f"[{name}]({recordings[name]['links'][0]})" for name in names]
    return " ".join([*links, "in a detail"] if _in_a_detail(claim) else links)


def _in_a_detail(claim: Claim) -> bool:
    """Whether the recordings show a part of the claim only."""
    return "detail" in claim.agrees.split()


def _page(claim: Claim) -> str:
    page = claim.source.replace("docs/", "../", 1)
    return f"[{Path(page).name}]({page})"


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), claims_table())
