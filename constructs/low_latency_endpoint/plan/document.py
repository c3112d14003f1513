"""A plan as it is told: its lines, its warnings, and every decision with its reasons."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ..report.document import Listed, Part, Row, Section
from ..report.tables import Cell, Table
from .decisions import Decision, Explanation


def explained(plan: Explanation, *, verbose: bool, said: Container[str] = ()) -> Sequence[Part]:
    """The plan in its lines and its warnings but for those ``said``; verbose with decisions."""
    lines = [Row(line.title, line.text) for line in plan.summary]
    own = [text for text in plan.warnings if text not in said]
    parts: list[Part] = [Listed([*lines, *warned(own)], aligned=True)]
    if verbose:
        heads = ("Decision", "Value", "From", "Why", "Note", "Source")
        table = Table(heads, [*map(_row, plan)], align="l", stacked=True)
        parts.append(Section("", [table]))
    return parts


def warned(texts: Sequence[str]) -> list[Row]:
    """Warnings as lines."""
    return [Row("Warning", text, tone="careful") for text in texts]


def _row(decision: Decision) -> tuple[str | Cell, ...]:
    chosen = " (your choice)" if decision.overridden else ""
    source = Cell("AWS", link=decision.source) if decision.source else ""
    value = Cell(f"{decision.value_text}{chosen}", "strong")
    inputs, rule = Cell(decision.inputs_text, "soft"), decision.rule
    return decision.title, value, inputs, rule, decision.note, source
