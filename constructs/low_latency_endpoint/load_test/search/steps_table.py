"""The steps of a load test as tables and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...report.document import Cell, Table
from ...report.numbers import readable
from ..engine.latencies import PERCENTS, LatencyHistogram, Percentile, milliseconds
from ..engine.steps import StepResult, most_frequent
from .measured_steps import MeasuredStep
from .result_file import LoadTestReport, iso_time
from .serving import StepMetrics

PER_INSTANCE = "Inv./inst."
_Column = Callable[[MeasuredStep, StepMetrics], Any]
_TONES = {"held": "good", "broken": "bad", "unclear": "careful", "client-bound": "other"}


def _quantile_ms(of: str, share: float) -> _Column:
    """A quantile of one of the result's histograms, in milliseconds."""
    return lambda each, window: 1000 * each.result.histogram(of).quantiles((share,))[0]


def _tokens(step: MeasuredStep, name: str) -> Any:
    tokens = step.result.tokens
    return None if tokens is None else getattr(tokens, name)


def _percentile(latencies: LatencyHistogram, percent: float) -> Percentile | None:
    return next((each for each in latencies.percentiles() if each.percent == percent), None)


_COLUMNS: dict[str, _Column] = {
    "step": lambda each, window: each.result.step.name,
    "purpose": lambda each, window: each.purpose,
    "started_at": lambda each, window: iso_time(each.result.started_at),
    "seconds": lambda each, window: each.result.seconds,
    "offered_tps": lambda each, window: each.offered,
    "users": lambda each, window: each.result.step.users,
    "sent": lambda each, window: each.result.sent,
    "completed": lambda each, window: each.result.completed,
    "failed": lambda each, window: each.result.failed,
    "errors": lambda each, window: most_frequent(each.result.failures, None),
    "tps": lambda each, window: each.result.rate,
    "outcome": lambda each, window: each.judgement.outcome,
    **{f"p{percent:g}_ms": _quantile_ms("latency", percent / 100) for percent in PERCENTS},
    "mean_ms": lambda each, window: 1000 * each.result.latency.mean,
    "max_ms": lambda each, window: 1000 * each.result.latency.max,
    "samples": lambda each, window: each.result.latency.count,
    "samples_beyond_p99": lambda each, window: getattr(
        _percentile(each.result.latency, 99.0), "samples_beyond", None
    ),
    "first_byte_p50_ms": _quantile_ms("first_byte", 0.5),
    "first_byte_p99_ms": _quantile_ms("first_byte", 0.99),
    **{
        f"{kind}_{name}_ms": _quantile_ms(histogram, share)
        for kind, histogram in (
            ("ttft", "first_token"),
            ("itl", "inter_token"),
            ("tpot", "per_token"),
        )
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    },
    "goodput": lambda each, window: each.result.goodput,
    "tokens_per_second": lambda each, window: each.result.token_rate,
    "output_tokens": lambda each, window: _tokens(each, "output_tokens"),
    "prompt_tokens": lambda each, window: _tokens(each, "prompt_tokens"),
    "cached_tokens": lambda each, window: _tokens(each, "cached_tokens"),
    "service_p50_ms": _quantile_ms("service", 0.5),
    "service_p99_ms": _quantile_ms("service", 0.99),
    "send_lag_p99_ms": _quantile_ms("send_lag", 0.99),
    "client_cpu_share": lambda each, window: each.result.cpu_share,
    "generator_us_per_request": lambda each, window: 1e6 * each.result.cpu_seconds_per_request,
    "client_bound": lambda each, window: "; ".join(each.result.client_bound),
    "warnings": lambda each, window: "; ".join(each.result.warnings),
    "model_latency_p99_ms": lambda each, window: window.get("ModelLatency.p99"),
    "overhead_latency_mean_ms": lambda each, window: window.get("OverheadLatency.Average"),
    "cpu_percent": lambda each, window: window.get("CPUUtilization.Average"),
    "gpu_percent": lambda each, window: window.get("GPUUtilization.Average"),
    "invocations_per_instance_minute": lambda each, window: window.get(
        "InvocationsPerInstance.Sum"
    ),
    "shared_minutes": lambda each, window: "yes" if window.shared else "",
}


def steps_csv(report: LoadTestReport) -> str:
    """One line for each step."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for step in report.run.steps:
        window = report.metrics.of(step.result)
        writer.writerow(_cell(value(step, window)) for value in _COLUMNS.values())
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    return "" if value is None else value


_MARKS = {
    "?": "? fewer than ten requests lie beyond it",
    "!": "! the generator fell behind; its delay is included in the latencies",
    "*": "* of CloudWatch's minutes, which hold other steps' requests too",
}


@dataclass(frozen=True)
class _StepColumn:
    """One column of the steps."""

    name: str
    cells: tuple[Cell, ...]
    leaves: int  # how soon a narrow terminal goes without it; 0 for never
    groups: str  # the tables in which it stands: load, machines

    @property
    def aligned(self) -> list[Cell]:
        """Digits below digits, whichever of them are marked."""
        marked = [cell.text[-1:] in _MARKS for cell in self.cells]
        return [
            cell if mark or not any(marked) else replace(cell, text=f"{cell} ")
            for cell, mark in zip(self.cells, marked, strict=True)
        ]


def steps_table(columns: Sequence[_StepColumn], group: str) -> Table:
    """A table of the columns of one group."""
    shown = [column for column in columns if group in column.groups]
    return Table(
        [each.name for each in shown],
        list(zip(*(each.aligned for each in shown), strict=True)),
        align="lllr" if group == "load" else "lr",
        tight=True,
        leaves=[each.leaves for each in shown],
        elsewhere="--csv",
    )


def marks_in(columns: Sequence[_StepColumn], group: str) -> list[str]:
    """What the marks in the cells of a table mean."""
    shown = (column for column in columns if group in column.groups)
    ends = {str(cell)[-1:] for column in shown for cell in column.cells}
    return [text for mark, text in _MARKS.items() if mark in ends]


def step_columns(
    steps: Sequence[MeasuredStep], report: LoadTestReport | None = None
) -> Iterator[_StepColumn]:
    """All columns that say something of these steps."""

    def column(
        name: str, cell: Callable[[MeasuredStep], str | Cell], leaves: int = 9, groups: str = "load"
    ) -> _StepColumn:
        cells = [found if isinstance(found, Cell) else Cell(found) for found in map(cell, steps)]
        return _StepColumn(name, tuple(cells), leaves, groups)

    def percentile(latencies: LatencyHistogram, percent: float) -> Cell:
        found = _percentile(latencies, percent)
        if found is None:
            return Cell("-")
        return Cell(
            milliseconds(found.seconds) + ("" if found.reliable else "?"),
            "" if found.reliable else "soft",
            f"{found.samples_beyond:,} requests beyond",
        )

    def latency(percent: float, leaves: int) -> _StepColumn:
        return column(
            f"p{percent:g}", lambda each: percentile(each.result.latency, percent), leaves
        )

    yield column("Step", lambda each: each.result.step.name, 0, "load machines")
    yield column(
        "",
        lambda each: Cell(
            each.shown, _TONES[each.judgement.outcome], "; ".join(each.judgement.reasons)
        ),
        0,
    )
    yield column("Purpose", lambda each: Cell(each.purpose, "soft"))
    yield column(
        "Offered",
        lambda each: (
            f"{each.result.step.users} at once"
            if each.offered is None
            else readable(each.offered, 4)
        ),
    )
    yield column("Answered", lambda each: f"{readable(each.result.rate, 4)}/s", 0)
    yield column("Requests", lambda each: f"{each.result.latency.count:,}")
    of_tokens = any(step.result.tokens is not None for step in steps)
    if of_tokens:
        yield column(
            "TTFT p95", lambda each: percentile(each.result.histogram("first_token"), 95.0), 0
        )
        yield column(
            "ITL p95", lambda each: percentile(each.result.histogram("inter_token"), 95.0), 0
        )
        yield column("Goodput", lambda each: _goodput(each.result), 0)
        yield column("Tokens/s", lambda each: _rate(each.result.token_rate), 3)
    elif any(step.result.first_byte is not None for step in steps):
        yield column(
            "First byte p99", lambda each: percentile(each.result.histogram("first_byte"), 99.0), 0
        )
    yield from (
        latency(50.0, 4),
        latency(90.0, 7),
        latency(99.0, 5 if of_tokens else 0),
        latency(99.9, 6),
        latency(99.99, 8),
    )
    yield column(
        "Failed",
        lambda each: Cell(_failed(each.result), "", most_frequent(each.result.failures)),
        0,
    )
    yield column(
        "Send lag",
        lambda each: milliseconds(each.result.send_lag.percentile(99)) + ("!" if each.late else ""),
        1,
        "machines",
    )
    yield column("Client CPU", lambda each: f"{each.result.cpu_share:.0%}", groups="machines")
    yield column(
        "Client per request",
        lambda each: f"{1e6 * each.result.cpu_seconds_per_request:,.0f} µs",
        groups="machines",
    )
    if report is not None:
        windows = {id(step): report.metrics.of(step.result) for step in steps}

        def joined(
            name: str, metric: str, form: Callable[[float], str], leaves: int
        ) -> _StepColumn:
            return column(
                name, lambda each: _value(windows[id(each)], metric, form), leaves, "machines"
            )

        found = (
            joined("Model p99", "ModelLatency.p99", _ms, 5),
            joined("Overhead", "OverheadLatency.Average", _ms, 7),
            joined("CPU", "CPUUtilization.Average", "{:.0f} %".format, 2),
            joined("GPU", "GPUUtilization.Average", "{:.0f} %".format, 3),
            joined(PER_INSTANCE, "InvocationsPerInstance.Sum", "{:,.0f}".format, 8),
        )
        yield from (each for each in found if any(cell.text != "-" for cell in each.cells))


def _goodput(result: StepResult) -> str:
    """Less than all is never said to be all."""
    share = result.goodput
    if math.isnan(share):
        return "-"
    return "100 %" if share == 1 else f"{math.floor(1000 * share) / 10:.1f} %"


def _failed(result: StepResult) -> str:
    return f"{result.error_share:.2%}" if result.failed else "-"


def _rate(value: float) -> str:
    return "-" if math.isnan(value) else readable(value, 4)


def _ms(value: float) -> str:
    return milliseconds(value / 1000)


def _value(window: StepMetrics, metric: str, form: Callable[[float], str]) -> str:
    value = window.get(metric)
    return "-" if value is None else form(value) + ("*" if window.shared else "")
