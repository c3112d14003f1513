"""Runs a load test: steps through a generator, judged as they end; and a whole one from this machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import takewhile

from ...account.calls import Account
from ...account.clock import WALL_CLOCK, AccountClock, keeps_own_time, read_clock
from ...account.sessions import AwsUnavailable, open_clients
from ...errors import LowLatencyEndpointError, rule
from ..engine.generator_process import GeneratorProcess
from ..engine.memory import available_bytes, check_bodies, doubt_of_stalls
from ..engine.payloads import Payloads
from ..engine.processors import available_processors, doubt_of_processes
from ..engine.prompts import PROMPTS_OF_A_STEP
from ..engine.steps import MOST_CALLERS, Generator, Progress, Step
from ..engine.target import Target, TokenLimits
from .early_verdict import EarlyVerdict, Looks
from .limit_search import find_limit, limit_so_far
from .measured_steps import MeasuredStep, judged
from .reached import check_answered, check_reached
from .result_file import LoadTestReport, LoadTestRun
from .run_plans import RunPlan
from .saturation import fleet_not_planned, fleet_scales, verdicts
from .search_time import announcement, seconds_left
from .serving import (
    JoinedMetrics,
    ServingFleet,
    check_one_fleet,
    check_one_type,
    instances_of_one_kind,
    read_after,
    read_fleet,
    read_joined,
)

FIRST_BYTE_STREAMS = rule(
    "LLT139",
    "a target for the first byte or for tokens needs response streams",
    fix="Add --stream, or leave the target out.",
    source="/sagemaker/latest/APIReference/API_runtime_InvokeEndpointWithResponseStream.html",
)
#: From this speed of the account's clock on, a minute of ours has a whole one of its.
_MINUTES_ANYHOW = 2.0
#: From the word to a generator until its requests start; the fleet's takes a second longer.
_LEAD_SECONDS = 0.3


@dataclass(frozen=True)
class StepEvent:
    """A step began; or, with ``progress``, a second of it passed; or, with ``measured``, it ended."""

    step: Step
    number: int
    of: int | None  # the number of steps where it is known before
    purpose: str
    waits: float  # seconds by which it settles longer, to count from a full minute
    left: float | None  # of a search the seconds from the step's beginning, if its limit is near
    announcement: str = ""  # how long the search takes, with the first rate
    progress: Progress | None = None
    measured: MeasuredStep | None = None

    @property
    def began(self) -> bool:
        """Whether the step has only begun."""
        return self.progress is None and self.measured is None


Emit = Callable[[StepEvent], None]


def _on_whole_minutes(step: Step, now: float) -> Step:
    """The step, settling for so long that it counts from a full minute: CloudWatch's own."""
    minute = 60.0
    if step.counted_seconds < minute or not step.settle_seconds:
        return step
    earliest = now + _LEAD_SECONDS + step.settle_seconds
    longer = minute * math.ceil(earliest / minute) - earliest
    return replace(step, seconds=step.seconds + longer, settle_seconds=step.settle_seconds + longer)


def _event(
    plan: RunPlan,
    done: Sequence[MeasuredStep],
    step: Step,
    planned: Step,
    purpose: str,
    bracket: float,
) -> StepEvent:
    """A step that begins.

    Returns
    -------
    StepEvent
        Of a search, as soon as its rates are known, with the time that is left.
    """
    begun = StepEvent(
        step, len(done) + 1, len(plan.steps) or None, purpose, step.seconds - planned.seconds, None
    )
    if plan.search is None or step.arrivals is None:
        return begun
    rate = step.arrivals.rate_at(0, step.seconds)
    whole_minutes = {"whole_minutes": plan.whole_minutes}
    earlier = takewhile(lambda measured: measured.purpose == "confirm", reversed(done))
    left = seconds_left(plan.search, rate, bracket, confirming=len(list(earlier)), **whole_minutes)
    is_first = all(measured.purpose == "alone" for measured in done)
    announced = announcement(plan.search, rate, **whole_minutes) if is_first else ""
    return replace(begun, left=left, announcement=announced)


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
        planned = step
        step = replace(step, first_number=numbers * len(done))
        # A step that may end any moment has no minute to itself; the one that confirms has.
        if plan.whole_minutes and (looks is None or purpose == "confirm"):
            step = _on_whole_minutes(step, clock())
        begun = _event(plan, done, step, planned, purpose, bracket)
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
            if done:
                check_reached(done[-1].result, done[-1].timeline, lasting=True)
            alone = step.name == "alone" and step.users == 1
            measured = measure(step, "alone" if alone else plan.mode)
            if alone:
                check_answered(measured)
    except KeyboardInterrupt:
        interrupted = True
    except LowLatencyEndpointError as error:
        if all(step.purpose == "alone" for step in done):
            raise
        interrupted, failure = True, str(error)
    if interrupted and plan.search is not None:
        limit = limit_so_far(plan.search, done)
    return LoadTestRun(plan, tuple(done), limit, started, time.time(), interrupted, failure)


def load_test(
    target: Target,
    payloads: Payloads,
    plan: RunPlan,
    *,
    processes: int = 1,
    profile: str | None = None,
    generator: Callable[[], Generator] | None = None,
    metrics_wait: float | None = 180.0,
    emit: Emit = lambda event: None,
    say: Callable[[str], None] = lambda text: None,
    warn: Callable[[str], None] = lambda text: None,
    instances: int | None = None,
    planned_instances: int | None = None,
) -> LoadTestReport:
    """Test an endpoint under load.

    Parameters
    ----------
    target : Target
        What is called, and how.
    payloads : Payloads
        What the requests carry.
    plan : RunPlan
        The steps: from :func:`rate_plan`, :func:`users_plan`, :func:`confirm_plan` or
        :func:`limit_plan`.
    processes : int
        Of the generator on this machine.
    profile : str, optional
        Of the AWS CLI's configuration.
    generator : callable, optional
        Opens another generator, such as a fleet's; it is closed here. By default processes of this
        machine.
    metrics_wait : float or None
        Seconds to wait for CloudWatch at most; ``None`` or 0 to leave it out. With it, steps of a
        minute or more count from a full minute, as CloudWatch does: by the account's clock.
    emit, say : callable
        Are told of the steps, and of what is done before and after them.
    warn : callable
        Is told, before anything is sent, what may spoil the result: that scaling may change the
        fleet, that the fleet is not the planned one, that too many processes share the processors.
    instances : int, optional
        That serve. By default what SageMaker says; a search for the limit is refused where it does
        not.
    planned_instances : int, optional
        That the plan wants at the peak, to compare the fleet with when a plan is confirmed.

    Returns
    -------
    LoadTestReport
        Has a throughput for a plan once ``dataclasses.replace`` gave it a ``peak_tps``.

    Raises
    ------
    ConfigurationError
        ``LLA101`` without such an endpoint, ``LLA102`` without credentials, ``LLT140`` while it
        is updated, ``LLT112`` when it answers nothing, ``LLT143`` when its requests reach no
        instance, ``LLT145`` for users whose bodies do not fit the memory, ``LLT136`` and ``LLT137``
        for a limit that cannot be divided by instances, ``LLT139`` for a target for the first byte without streams, and the generator's.
    """
    target = _target_of(plan, target, payloads)
    begun = read_clock()
    say("Reading the endpoint")
    client, region = open_clients(profile, target.region)
    account = Account(client, region, once=False)
    fleet = read_fleet(account, target.endpoint_name, target.target_variant)
    check_one_fleet(fleet, target.endpoint_name)
    plan = replace(_divided(plan, instances, fleet, target), whole_minutes=bool(metrics_wait))
    for text in _doubts(plan, fleet, planned_instances):
        warn(text)
    if generator is None:  # workers of a fleet look at their own memory
        doubts = [doubt_of_processes(processes, available_processors())]
        doubts += _doubts_of_memory(plan, target, payloads, processes)
        for text in filter(None, doubts):
            warn(f"Warning: {text}.")
    with ExitStack() as stack:
        say("Starting the load generator")
        opened = (
            generator()
            if generator is not None
            else GeneratorProcess.of_profile(target, payloads, processes, profile)
        )
        stack.callback(opened.close)
        if AccountClock(begun, read_clock()).speed >= _MINUTES_ANYHOW:
            plan = replace(plan, whole_minutes=False)
        numbers = 0 if payloads.prompts is None else PROMPTS_OF_A_STEP
        done = run(plan, opened, emit, clock=lambda: read_clock().account, numbers=numbers)
    metrics, after = JoinedMetrics(), None
    if done.steps:
        after = read_after(account, target.endpoint_name, fleet)
    if done.steps and metrics_wait and not done.interrupted:
        say("Reading CloudWatch")
        clock = AccountClock(begun, read_clock()) if keeps_own_time() else WALL_CLOCK
        try:
            metrics = read_joined(
                account,
                target.endpoint_name,
                fleet,
                start=done.started_at,
                end=done.ended_at,
                wait=metrics_wait,
                progress=say,
                clock=clock,
                answers=sum(step.invocations for step in done.steps),
            )
        except KeyboardInterrupt:  # nobody wants to wait; what was measured is measured
            metrics = JoinedMetrics(unknown=("CloudWatch: interrupted",))
        except AwsUnavailable as error:
            metrics = JoinedMetrics(unknown=(f"CloudWatch: {error}",))
    return LoadTestReport(
        target,
        done,
        fleet,
        metrics,
        verdicts(done, fleet, metrics, after, planned_instances),
        payloads.source,
        stated_instances=instances,
    )


def _target_of(plan: RunPlan, target: Target, payloads: Payloads) -> Target:
    """The target, of which tokens are read where the goal or the prompts are of tokens."""
    if plan.goal.of_streams and not target.streaming:
        raise FIRST_BYTE_STREAMS.error(
            got=", ".join(plan.goal.of_streams), allowed="targets of whole answers"
        )
    limits = plan.goal.limits
    if limits is None and payloads.prompts is None:
        return target
    return replace(target, tokens=limits or TokenLimits())


def _divided(plan: RunPlan, instances: int | None, fleet: ServingFleet, target: Target) -> RunPlan:
    """A search with the number of instances that its limit is divided by."""
    if plan.search is None:
        return plan
    stated = plan.search.instances or instances
    if stated is None:
        stated = instances_of_one_kind(fleet, target.endpoint_name, target.inference_component)
    elif target.inference_component is None:
        check_one_type(fleet, target.endpoint_name)
    return replace(plan, search=replace(plan.search, instances=stated))


def _doubts(plan: RunPlan, fleet: ServingFleet, planned: int | None) -> Iterator[str]:
    for each in (*fleet_scales(fleet), *fleet_not_planned(plan.mode, fleet, planned)):
        evidence = f" ({'; '.join(each.evidence)})" if each.evidence else ""
        yield f"Warning: {each.title}{evidence}. {each.advice}"


def _doubts_of_memory(
    plan: RunPlan, target: Target, payloads: Payloads, processes: int
) -> Iterator[str]:
    """What this machine would hold of bodies at once (LLT145)."""
    body = payloads.largest_bytes
    if body is None:
        return
    available = available_bytes()
    doubts = [
        check_bodies(step.users, body, available, f"step {step.name}")
        for step in plan.steps
        if step.users is not None
    ]
    counts = [
        step.arrivals.expected_count(step.seconds) / step.seconds * target.timeout_seconds
        for step in plan.steps
        if step.arrivals is not None
    ]
    callers = min(max(counts, default=0.0), processes * MOST_CALLERS)
    doubts.append(doubt_of_stalls(round(callers), body, available))
    yield from (doubt for doubt in doubts if doubt)
