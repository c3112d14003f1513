"""Writes ``docs/reference/seen-on-aws.md``: each claim, and what the runs at AWS say of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .claims import CLAIMS, Claim, Verdict, judge
from .evidence import evidence_files

__all__ = ["page"]

_HEAD = """\
# Seen on AWS

<!-- Written by `make docs` from acceptance/claims.py and acceptance/evidence; do not edit. -->

What this library says of AWS comes from AWS's documentation and was tried in a local AWS. This page says
which of it somebody has seen in an AWS account. `make accept` tries it there ([how to run it](#run-it)).

{summary}

| Claim | Seen? | When, where, which version | Page |
|---|---|---|---|
"""

_FOOT = """
*If not* says what a run would see if the claim were false.

*Seen*: the newest run that could tell confirms it. *Refuted*: that run shows the opposite. *Never run*: no
run on AWS could tell. Evidence of a run against the local AWS is refused.

## Run it

```console
make accept ACCOUNT=123456789012 REGION=us-east-2 BUDGET=5 ARGS="--hub-model <model> --hub-revisions <first> <second>"
make accept ACCOUNT=123456789012 REGION=us-east-2 BUDGET=5 ARGS="--hub-model <model> --hub-revisions <first> <second> --yes"
```

The first says what it costs, the second starts. Of the Hugging Face Hub it needs a small public model
under a permissive licence, for embeddings or text classification, with safetensors (`ml.m5.large` serves
it), and two of its commits: the run pins both with `low-latency pin` and deploys the first. No commit is
in this repository, as nobody has asked the Hub from here; the "History" of the model's files lists them.

It deploys two small endpoints into the account that you name, in one stack and one network, sends traffic,
and makes good and bad updates. Then it

1. updates the pinned commit of the Hub's model (`repin`);
2. renames that endpoint, while a function in the VPC calls the old and the new name through the interface
   endpoint: every answer is kept with its time (`rename`);
3. removes the other endpoint, and updates the one that is left (`remove`);
4. deploys another stack whose model states the same role, deletes it, and looks for the first stack's
   policies (`share`);

and deletes everything. It needs a bootstrapped account, a quota of ten `ml.m5.large` for endpoints, room
for two VPCs, and a way to the Hub from where you start it and from Lambda. It takes about five hours, and
costs a few dollars. `ARGS="... --long"` adds the steps whose claims say so, and `--only repin` does one of
them. It starts nothing unless you name account, Region and budget, the credentials are that account's and
the estimate is within the budget. If it is interrupted, the same command continues.

Everything has the tag `low-latency-endpoint-acceptance`. To delete what a run left:

```console
make accept-sweep ACCOUNT=123456789012 REGION=us-east-2
```

The evidence is a JSON file in `acceptance/evidence/`, without account numbers, addresses and names. Look
through it before you commit it; then `make docs` writes this page.
"""


def page(evidence: Mapping[str, Mapping[str, Any]]) -> str:
    """The page.

    Parameters
    ----------
    evidence
        Evidence by file name.

    Raises
    ------
    ValueError
        For evidence that is not of a run at AWS.
    """
    for name, each in evidence.items():
        if each.get("target") != "aws":
            raise ValueError(f"{name} is evidence of {each.get('target')!r}, not of AWS: remove it")
    # By date, so that the newest has the last word.
    runs = sorted(evidence.values(), key=lambda each: str(each["date"]))
    rows = [_row(claim, runs) for claim in CLAIMS]
    never = sum("*never run*" in row for row in rows)
    summary = f"{len(rows)} claims; {never} of them not seen on AWS yet."
    return _HEAD.format(summary=summary) + "\n".join(rows) + "\n" + _FOOT


def _row(claim: Claim, runs: list[Mapping[str, Any]]) -> str:
    word, where = "never run", ""
    for run in runs:
        verdict = judge(claim, run)
        if verdict is not Verdict.OPEN:
            made = run["versions"]
            word = str(verdict)
            where = f"{run['date']}, {run['region']}, {made['library']} ({made['commit']})"
    step = f" (step `{claim.step}`)" if claim.step in ("rolling", "scaling", "capture") else ""
    otherwise = f" If not: {claim.otherwise}" if claim.otherwise else ""
    return f"| {claim.statement}{otherwise}{step} | *{word}* | {where} | [{Path(claim.page).name}](../{claim.page}) |"


if __name__ == "__main__":
    try:
        Path(sys.argv[1]).write_text(page(evidence_files()), "utf-8")
    except ValueError as error:
        sys.exit(str(error))
