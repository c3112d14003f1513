"""What the demo shows of a stack, and of an update."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from examples.demo_state import changes_table

BEFORE = {
    ("Stack", ""): "Shop is CREATE_COMPLETE",
    ("Routing", "primary"): "RANDOM",
    ("Type", "primary"): "ml.g5.xlarge",
}


def shown(table: Table) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_an_update_is_told_as_before_and_after() -> None:
    after = {**BEFORE, ("Routing", "primary"): "LEAST [new]", ("Alarms", "p99"): "above 150 ms"}
    del after["Stack", ""]
    table = changes_table({"Shop": BEFORE}, {"Shop": after})
    assert [[str(cell) for cell in column.cells] for column in table.columns] == [
        ["Stack", "Routing", "Alarms"],
        ["", "primary", "p99"],
        ["Shop is CREATE_COMPLETE", "RANDOM", ""],
        ["", "LEAST [new]", "above 150 ms"],
    ]
    assert "LEAST [new]" in shown(table)


def test_nothing_changed_is_no_row() -> None:
    assert changes_table({"Shop": BEFORE}, {"Shop": dict(BEFORE)}).row_count == 0
