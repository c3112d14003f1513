"""The steps of a load test as a table that fits the terminal, and what its marks mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from ..load_test.engine.steps import most_frequent
from ..load_test.search.measured_steps import MeasuredStep
from ..load_test.search.result_file import LoadTestReport
from ..load_test.search.steps_table import PER_INSTANCE, StepColumn, step_columns
from ..report.tables import Table

_BETWEEN = 2  # characters that the table puts between two columns
_MARKS = {
    "?": "? fewer than ten requests lie beyond it",
    "!": "! the generator fell behind; its delay is included in the latencies",
    "*": "* of CloudWatch's minutes, which hold other steps' requests too",
}


class StepsTable:
    """Draws as many columns as fit; the least important are left out first, and that is said."""

    def __init__(self, steps: Sequence[MeasuredStep], report: LoadTestReport | None = None) -> None:
        self._steps, self._report = tuple(steps), report
        self._columns = [
            _aligned(each)
            for each in step_columns(self._steps, report)
            if each.left_out is not None
        ]

    def markdown_parts(self) -> Iterator[Any]:
        """All columns, as a comment has no width."""
        rows = list(zip(*(each.cells for each in self._columns), strict=True))
        yield Table([each.name for each in self._columns], rows, align="llr")
        yield from self._notes(self._columns, [])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = list(self._columns)
        dropped = []
        while sum(each.width + _BETWEEN for each in shown) > options.max_width:
            least = max(shown, key=lambda each: each.left_out or 0)
            if not least.left_out:
                break
            shown.remove(least)
            dropped.append(least.name)
        rows = list(zip(*(each.cells for each in shown), strict=True))
        yield Table([each.name for each in shown], rows, align="llr", tight=True)
        yield from self._notes(shown, dropped)

    def _notes(self, shown: Sequence[StepColumn], dropped: Sequence[str]) -> Iterator[Text]:
        if self._report is None:
            return
        cells = "".join(str(cell)[-1:] for column in shown for cell in column.cells)
        notes = [text for mark, text in _MARKS.items() if mark in cells]
        if any(each.shown == "kept" for each in self._steps):
            notes.insert(0, "kept: in what was measured, with too little to say that it held")
        if any(column.name == PER_INSTANCE for column in shown):
            notes.append(f"{PER_INSTANCE}: invocations per instance and minute")
        if dropped:
            notes.append(f"Left out for want of width, and in --csv: {', '.join(dropped)}")
        failed = sum((Counter(each.result.failures) for each in self._steps), Counter[str]())
        if failed:
            notes.append(f"Failed: {most_frequent(failed)}")
        notes.append(_generator(self._steps))
        yield from (Text(text, style="dim") for text in notes)


def _aligned(column: StepColumn) -> StepColumn:
    """Digits below digits, whichever of them are marked."""
    marked = [cell.text[-1:] in _MARKS for cell in column.cells]
    if not any(marked):
        return column
    return replace(
        column,
        cells=tuple(
            cell if mark else replace(cell, text=f"{cell} ")
            for cell, mark in zip(column.cells, marked, strict=True)
        ),
    )


def _generator(steps: Sequence[MeasuredStep]) -> str:
    """What sending cost, beside what was measured with it."""
    loads = [each.result.generator for each in steps]
    sent = sum(each.result.sent for each in steps)
    seconds = sum(
        each.result.generator.cpu_seconds_per_request * each.result.sent for each in steps
    )
    processes = max((each.processes for each in loads), default=1)
    return (
        f"Generator: {max((each.cpu_share for each in loads), default=0.0):.0%} of a core at "
        f"most, {1e6 * seconds / max(sent, 1):,.0f} us a request"
        + (f", {processes} processes" if processes > 1 else "")
    )
