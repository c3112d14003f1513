"""The steps of a load test as a table that fits the terminal, and what its marks mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ..load_test.joined_metrics import Window
from ..load_test.latencies import LatencyHistogram, milliseconds
from ..load_test.measured_steps import MeasuredStep
from ..load_test.result_file import LoadTestReport

__all__ = ["StepsTable"]

_STYLES = {"held": "green", "broken": "red", "unclear": "yellow", "client-bound": "magenta"}
_PER_INSTANCE = "Inv./inst."
_BETWEEN = 2  # characters that the table puts between two columns
_MARKS = {
    "?": "? fewer than ten requests lie beyond it",
    "!": "! the generator sent later than 1 % of the median latency, which includes that",
    "*": "* of CloudWatch's minutes, which hold other steps' requests too",
}


@dataclass(frozen=True)
class _Column:
    """A column, and how soon it is left out where the terminal is too narrow; 0 for never."""

    name: str
    cells: tuple[str, ...]
    left_out: int = 0

    @property
    def width(self) -> int:
        return max(len(each) for each in (self.name, *self.cells))


class StepsTable:
    """Draws as many columns as fit; the least important are left out first, and that is said.

    Parameters
    ----------
    steps : sequence of MeasuredStep
    report : LoadTestReport, optional
        For what CloudWatch has of them. By default the client's side alone, without notes.
    """

    def __init__(self, steps: Sequence[MeasuredStep], report: LoadTestReport | None = None) -> None:
        self._steps, self._report = tuple(steps), report
        self._columns = [each for each in _columns(self._steps, report) if each is not None]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown, dropped = self._fitting(options.max_width)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for number, column in enumerate(shown):
            table.add_column(Text(column.name), justify="left" if number < 2 else "right",
                             no_wrap=number > 1)
        for row, step in enumerate(self._steps):
            table.add_row(*(Text(column.cells[row], style=_STYLES[step.judgement.outcome]
                                 if number == 1 else "") for number, column in enumerate(shown)))
        yield table
        if self._report is None:
            return
        cells = "".join(cell[-1:] for column in shown for cell in column.cells)
        notes = [text for mark, text in _MARKS.items() if mark in cells]
        if any(column.name == _PER_INSTANCE for column in shown):
            notes.append(f"{_PER_INSTANCE}: invocations per instance and minute")
        if dropped:
            notes.append(f"Left out for want of width, and in --csv: {', '.join(dropped)}")
        notes.append(_generator(self._steps))
        yield from (Text(text, style="dim") for text in notes)

    def _fitting(self, width: int) -> tuple[list[_Column], list[str]]:
        shown, dropped = list(self._columns), []
        while sum(each.width + _BETWEEN for each in shown) > width:
            least = max(shown, key=lambda each: each.left_out)
            if not least.left_out:
                break
            shown.remove(least)
            dropped.append(least.name)
        return shown, dropped


def _columns(steps: Sequence[MeasuredStep],
             report: LoadTestReport | None) -> Iterator[_Column | None]:
    def column(name: str, cell: Callable[[MeasuredStep], str], left_out: int = 0) -> _Column:
        return _Column(name, _aligned([cell(each) for each in steps]), left_out)

    yield column("Step", lambda each: each.result.step.name)
    yield column("", lambda each: each.shown)
    yield column("Answered", lambda each: f"{each.result.rate:,.4g}/s")
    if any(each.result.first_byte is not None for each in steps):
        yield column("First byte p99", lambda each: _percentile(each.result.first_byte, 99.0))
    yield column("p50", lambda each: _percentile(each.result.latency, 50.0), 4)
    yield column("p99", lambda each: _percentile(each.result.latency, 99.0))
    yield column("p99.9", lambda each: _percentile(each.result.latency, 99.9), 6)
    yield column("Failed", lambda each: f"{each.result.error_share:.2%}" if each.result.failed
                 else "-")
    yield column("Send lag", lambda each: milliseconds(each.result.send_lag.percentile(99))
                 + ("!" if each.late else ""), 1)
    if report is None:
        return
    windows = {id(each): report.metrics.of(each.result) for each in steps}

    def cloudwatch(name: str, metric: str, form: Callable[[float], str],
                   left_out: int) -> _Column | None:
        found = column(name, lambda each: _value(windows[id(each)], metric, form), left_out)
        return found if any(cell.strip() != "-" for cell in found.cells) else None

    def latency(value: float) -> str:
        return milliseconds(value / 1000)

    yield cloudwatch("Model p99", "ModelLatency.p99", latency, 5)
    yield cloudwatch("Overhead", "OverheadLatency.Average", latency, 7)
    yield cloudwatch("CPU", "CPUUtilization.Average", lambda value: f"{value:.0f} %", 2)
    yield cloudwatch("GPU", "GPUUtilization.Average", lambda value: f"{value:.0f} %", 3)
    yield cloudwatch(_PER_INSTANCE, "InvocationsPerInstance.Sum",
                     lambda value: f"{value:,.0f}", 8)


def _percentile(latencies: LatencyHistogram | None, percent: float) -> str:
    found = next((each for each in latencies.percentiles() if each.percent == percent), None) \
        if latencies is not None else None
    if found is None:
        return "-"
    return milliseconds(found.seconds) + ("" if found.reliable else "?")


def _value(window: Window, metric: str, form: Callable[[float], str]) -> str:
    value = window.get(metric)
    if value is None:
        return "-"
    return form(value) + ("*" if window.shared else "")


def _aligned(cells: list[str]) -> tuple[str, ...]:
    """Digits below digits, whichever of them are marked."""
    if not any(cell[-1:] in _MARKS for cell in cells):
        return tuple(cells)
    return tuple(cell if cell[-1:] in _MARKS else f"{cell} " for cell in cells)


def _generator(steps: Sequence[MeasuredStep]) -> str:
    """What sending cost, beside what was measured with it."""
    loads = [each.result.generator for each in steps]
    sent = sum(each.result.sent for each in steps)
    seconds = sum(each.result.generator.cpu_seconds_per_request * each.result.sent
                  for each in steps)
    processes = max((each.processes for each in loads), default=1)
    return (f"Generator: {max((each.cpu_share for each in loads), default=0.0):.0%} of a core at "
            f"most, {1e6 * seconds / max(sent, 1):,.0f} us a request"
            + (f", {processes} processes" if processes > 1 else ""))
