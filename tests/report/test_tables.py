"""Tables in a terminal: figures stay whole, long heads are broken, marks are no markup."""

from __future__ import annotations

import pytest
from rich.console import Console

from low_latency_endpoint.report.document import Cell, Table
from low_latency_endpoint.report.terminal import DrawnTable


def _lines(table: Table, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(DrawnTable(table))
    return [line.rstrip() for line in captured.get().splitlines()]


COMPARED = Table(
    ["", "RANDOM", "LEAST_OUTSTANDING_REQUESTS", "Change", "95 % interval", "Would have seen"],
    [
        ["p99", "313.1 ms", "234.2 ms", "-25.2 %", "-26.8 to -23.6 %", "2.8 %"],
        ["Throughput", "100/s", "133.3/s", "+33.3 %", "+33.3 to +33.3 %", "0 %"],
    ],
)


@pytest.mark.parametrize("width", [72, 80, 120])
def test_figures_stay_on_one_line(width):
    lines = _lines(COMPARED, width)
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "…" not in text
    for row in COMPARED.rows:
        assert any(all(cell in line for cell in row) for line in lines), row


def test_a_head_stays_whole_where_there_is_room():
    assert any("LEAST_OUTSTANDING_REQUESTS" in line for line in _lines(COMPARED, 120))
    broken = [line.split() for line in _lines(COMPARED, 80)]
    assert any("OUTSTANDING_" in words for words in broken)


def test_what_cannot_fit_is_folded_and_not_lost():
    lines = _lines(COMPARED, 40)
    assert all(len(line) <= 40 for line in lines)
    assert "…" not in "".join(lines)


def test_cells_are_text():
    lines = _lines(Table(["[red]a"], [["[bold]b"], [Cell("[link]c", "bad")]], "[x]"), 80)
    assert [line.strip() for line in lines if line.strip("─ ")] == [
        "[x]",
        "[red]a",
        "[bold]b",
        "[link]c",
    ]
