"""What is deployed, as `low-latency verify` reads it, and what an update changed of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from examples.demo_terminal import low_latency
from local_sagemaker import LocalAws

State = Mapping[tuple[str, str], str]
"""What was found, by the check's title and what it is about."""


def state(aws: LocalAws, stack: str) -> State:
    """Read a stack back; nothing of it may be otherwise than planned."""
    said = low_latency(aws, "verify", stack, "--json", expected=0, shown=False)
    found: dict[tuple[str, str], list[str]] = {}
    for row in json.loads(said)["results"]:
        if row["status"] != "unknown":  # the demo runs outside of the VPC
            found.setdefault((row["title"], row["subject"]), []).append(row["evidence"])
    return {key: "\n".join(evidence) for key, evidence in found.items()}


def changes_table(before: Mapping[str, State], after: Mapping[str, State]) -> Table:
    """Every value that differs."""
    table = Table(
        title=Text("What changed", style="bold"),
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1),
    )
    for column in ("what must hold", "of", "before", "after"):
        table.add_column(column, overflow="fold")
    for stack, old in before.items():
        new = after[stack]
        for key in {**old, **new}:
            row = (*key, old.get(key, ""), new.get(key, ""))
            if row[-2] != row[-1]:
                table.add_row(*map(Text, row))  # brackets in names are no markup
    return table
