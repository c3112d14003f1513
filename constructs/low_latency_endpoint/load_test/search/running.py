"""Runs a load test: steps through a generator, judged as they end; wherever that runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...errors import LowLatencyEndpointError
from ..engine.steps import Generator, Progress, Step
from .early_verdict import EarlyVerdict, Looks
from .judging import LatencyGoal
from .limit_search import Limit, check_answered, find_limit, limit_so_far
from .measured_steps import MeasuredStep, judged
from .run_plans import Mode, RunPlan
from .search_plan import SearchPlan, TimeLeft, time_left


@dataclass(frozen=True)
class StepEvent:
    """A step began; or, with ``progress``, a second of it passed; or, with ``measured``, it ended."""

    step: Step
    number: int
    of: int | None  # the number of steps where it is known before
    purpose: str
    waits: float  # seconds by which it settles longer, to count from a full minute
    left: TimeLeft | None  # of a search, from the step's beginning
    progress: Progress | None = None
    measured: MeasuredStep | None = None

    @property
    def began(self) -> bool:
        """Whether the step has only begun."""
        return self.progress is None and self.measured is None


#: From the word to a generator until its requests start; the fleet's takes a second longer.
_LEAD_SECONDS = 0.3

Emit = Callable[[StepEvent], None]


@dataclass(frozen=True)
class LoadTestRun:
    """What was run."""

    plan: RunPlan
    steps: tuple[MeasuredStep, ...]
    limit: Limit | None  # of a search that came to its end
    started_at: float  # epoch seconds of the whole run
    ended_at: float
    # whether it was stopped before its end; the steps are those that were whole
    interrupted: bool = False
    failure: str = ""  # what ended it, where it was not Ctrl-C

    @property
    def mode(self) -> Mode:
        """What was asked for."""
        return self.plan.mode

    @property
    def goal(self) -> LatencyGoal:
        """What the steps were judged by."""
        return self.plan.goal

    @property
    def alone(self) -> MeasuredStep | None:
        """The step of one caller at a time."""
        return next((each for each in self.steps if each.purpose == "alone"), None)

    @property
    def loads(self) -> tuple[MeasuredStep, ...]:
        """All steps but that one."""
        return tuple(each for each in self.steps if each.purpose != "alone")

    @property
    def held(self) -> bool:
        """Whether a limit was found, all that a search was to try held, or every step did."""
        if self.interrupted or not self.loads:
            return False
        if self.plan.search is not None:
            return self.limit is not None and self.limit.found
        good = ("held",) if self.mode == "confirm" else ("held", "unclear")
        return all(each.judgement.kept and each.judgement.outcome in good for each in self.loads)


def on_whole_minutes(step: Step, now: float) -> Step:
    """The step, settling for so long that it counts from a full minute: CloudWatch's own."""
    minute = 60.0
    if step.counted_seconds < minute or not step.settle_seconds:
        return step
    earliest = now + _LEAD_SECONDS + step.settle_seconds
    longer = minute * math.ceil(earliest / minute) - earliest
    return replace(step, seconds=step.seconds + longer, settle_seconds=step.settle_seconds + longer)


def _left(plan: RunPlan, search: SearchPlan, step: Step, bracket: float) -> TimeLeft:
    rate = None if step.arrivals is None else step.arrivals.rate_at(0, step.seconds)
    if bracket <= 1:
        bracket = 1 + search.precision  # nothing is left but confirming
    return time_left(search, rate, bracket, whole_minutes=plan.whole_minutes)


def run(
    plan: RunPlan,
    generator: Generator,
    emit: Emit = lambda event: None,
    *,
    clock: Callable[[], float] = time.time,
    numbers: int = 0,
) -> LoadTestRun:
    """Run a plan."""
    started = time.time()
    done: list[MeasuredStep] = []

    def measure(
        step: Step, purpose: str, looks: Looks | None = None, bracket: float = 0.0
    ) -> MeasuredStep:
        planned = step.seconds
        step = replace(step, first_number=numbers * len(done))
        # A step that may end any moment has no minute to itself; the one that confirms has.
        if plan.whole_minutes and (looks is None or purpose == "confirm"):
            step = on_whole_minutes(step, clock())
        begun = StepEvent(
            step,
            len(done) + 1,
            len(plan.steps) or None,
            purpose,
            step.seconds - planned,
            None if plan.search is None else _left(plan, plan.search, step, bracket),
        )
        emit(begun)
        timeline: list[Progress] = []
        early = None if looks is None else EarlyVerdict(plan.goal, step, looks)

        def progress(second: Progress) -> bool:
            timeline.append(second)
            emit(replace(begun, progress=second))
            return early is not None and early.add(second)

        result = generator.run(step, progress)
        judgement = judged(plan.goal, result, timeline, early)
        measured = MeasuredStep(result, tuple(timeline), judgement, purpose)
        done.append(measured)
        emit(replace(begun, measured=measured))
        return measured

    limit, interrupted, failure = None, False, ""
    try:
        if plan.search is not None:
            limit = find_limit(plan.search, measure)
        for step in plan.steps:
            alone = step.name == "alone" and step.users == 1
            measured = measure(step, "alone" if alone else plan.mode)
            if alone:
                check_answered(measured)
    except KeyboardInterrupt:
        interrupted = True
    except LowLatencyEndpointError as error:
        if all(each.purpose == "alone" for each in done):
            raise
        interrupted, failure = True, str(error)
    if interrupted and plan.search is not None:
        limit = limit_so_far(plan.search, done)
    return LoadTestRun(plan, tuple(done), limit, started, time.time(), interrupted, failure)
