"""What ``low-latency compare-routing`` shows: the blocks as they run, and the answer."""

from __future__ import annotations

from rich.text import Text

from ..load_test.compare.compare_routing import Watch
from ..load_test.compare.comparison import Pair
from ..load_test.compare.report import RoutingComparison
from ..load_test.engine.latencies import milliseconds
from ..load_test.engine.steps import Progress, StepResult
from ..report.document import Part
from ..report.numbers import readable
from ..report.visible import visible
from .live_display import LiveDisplay


class ComparisonDisplay(LiveDisplay):
    """The blocks while they run, and what can be said so far; where nobody looks, a line a pair."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._now = Text("")
        self._so_far: RoutingComparison | None = None

    @property
    def watch(self) -> Watch:
        return Watch(self._second, self._pair, self._say)

    def _say(self, text: str) -> None:
        self._now = Text(visible(text), style="dim")
        if self._live is not None:
            if text.startswith("Warning"):  # stays when the rest has gone
                self._console.print(Text(visible(text), style="yellow"))
            self._show()
        else:
            self._line(text)

    def _second(self, label: str, pair: int, p: Progress) -> None:
        self._now = Text.assemble(
            f"Pair {pair}, {label}: {p.seconds:.0f} s, {p.rate:,.0f}/s answered, "
            f"p50 {milliseconds(p.p50)}, p99 {milliseconds(p.p99)}",
            (f", {p.failed:,} failed" if p.failed else "", "red"),
        )
        self._show()

    def _pair(self, pair: Pair, so_far: RoutingComparison) -> None:
        self._so_far = so_far
        self._line(_line(pair, so_far))
        self._show()

    def _show(self) -> None:
        parts: list[Part] = []
        if self._so_far is not None and self._so_far.changes:
            parts.append(self._so_far.table())
        self._draw(parts, self._now)


def _line(pair: Pair, report: RoutingComparison) -> str:
    parts = [
        f"{label} {_shown(each)}" for label, each in zip(report.labels, pair.results, strict=True)
    ]
    repeated = bool(report.set_aside) and report.set_aside[-1] is pair
    said = " (to be repeated: client-bound)" if repeated else ""
    return f"Pair {len(report.pairs) + repeated}: {'; '.join(parts)}{said}"


def _shown(result: StepResult) -> str:
    return f"p99 {milliseconds(result.latency.percentile(99))}, {readable(result.rate, 4)}/s"
