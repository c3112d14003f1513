"""What ``low-latency load-test`` shows: its steps as they run, and the answer at the end."""

from __future__ import annotations

from rich.text import Text

from ..load_test.engine.latencies import milliseconds
from ..load_test.engine.target import Target
from ..load_test.search.load_testing import StepEvent
from ..load_test.search.measured_steps import MeasuredStep
from ..load_test.search.run_plans import RunPlan
from ..load_test.search.search_time import about
from ..load_test.search.steps_table import step_columns, steps_table
from ..report.document import Part, Sentence
from ..report.numbers import readable
from ..report.visible import visible, visible_lines
from .live_display import LiveDisplay


class LoadTestDisplay(LiveDisplay):
    """The steps while they run: a table that grows; where nobody looks, a line for each step."""

    def __init__(self, target: Target, plan: RunPlan, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._done: list[MeasuredStep] = []
        self._now = Text("")
        self._title = f"{target.endpoint_name}: {plan.goal.text}"

    def say(self, text: str) -> None:
        """What is done between the steps."""
        self._now = Text(visible(text), style="dim")
        self._show()
        self._line(text)

    def note(self, text: str) -> None:
        """What stays to be read: a cost, a command, what is left behind."""
        if self._live is None:
            self._line(text, always=True)
        else:
            self._console.print(visible_lines(text), markup=False, soft_wrap=True)

    def event(self, event: StepEvent) -> None:
        """A step began, went on, or ended."""
        if event.began:
            of = f" of {event.of}" if event.of else ""
            self._now = Text(
                f"Step {event.number}{of}: {event.step.name} for "
                + ("at most " if event.left is not None and event.step.arrivals else "")
                + f"{event.step.seconds:.0f} s ({event.purpose}"
                + (
                    f"; {event.waits:.0f} s of them until a full minute begins"
                    if event.waits >= 1
                    else ""
                )
                + ")"
            )
            if event.left is not None:
                self._now.append(f"; {about(event.left)} left")
            if event.announcement:
                self.note(event.announcement)
            if event.waits >= 1:
                self._line(
                    f"{event.step.name}: settles for {event.step.settle_seconds:.0f} s, so "
                    "that it counts from a full minute, as CloudWatch does"
                )
        elif (p := event.progress) is not None:
            self._now = Text.assemble(
                f"{event.step.name}: {p.seconds:.0f} of {event.step.seconds:.0f} s"
                + (" at most" if event.left is not None and event.step.arrivals else "")
                + ", "
                f"{p.rate:,.0f}/s answered, p50 {milliseconds(p.p50)}, "
                f"p99 {milliseconds(p.p99)}",
                (f", {p.failed:,} failed" if p.failed else "", "red"),
                "" if event.left is None else f"; {about(event.left - p.seconds)} left",
                (
                    f"; send lag p99 {milliseconds(p.send_lag_p99)}, generator "
                    f"{p.cpu_share:.0%} of a core",
                    "dim",
                ),
            )
        elif event.measured is not None:
            self._done.append(event.measured)
            self._line(_line(event.measured))
        self._show()

    def _show(self) -> None:
        parts: list[Part] = [Sentence(self._title, "strong")]
        if self._done:
            parts.append(steps_table(list(step_columns(self._done[-20:])), "load"))
        self._draw(parts, self._now)


def _line(step: MeasuredStep) -> str:
    p50, p99 = step.result.latency.quantiles((0.5, 0.99))
    outcome = f"{step.shown}; " if step.shown else ""
    return (
        f"{step.result.step.name} ({step.purpose}): {outcome}"
        f"{readable(step.result.rate, 4)}/s answered, p50 {milliseconds(p50)}, "
        f"p99 {milliseconds(p99)}, {step.result.failed:,} failed"
    )
