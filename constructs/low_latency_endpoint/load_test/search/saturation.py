"""Where the saturation comes from: the client, errors, the processor, a queue, or nowhere yet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ...facts.metrics import NEARLY_FULL_PERCENT, SATURATED_PERCENT
from ...options.alarms import DEFAULT_ERROR_RATE
from ...report.numbers import milliseconds, readable
from ...report.numbers import percent as in_percent
from ..engine.failure_causes import (
    CONNECTIONS,
    NOT_THE_INSTANCES,
    SENDER,
    cause_of_most,
    causes,
    explained,
    not_the_instances,
)
from ..engine.steps import StepResult, most_frequent
from .measured_steps import MeasuredStep
from .result_file import LoadTestRun
from .sender_verdict import sender_verdict
from .serving import JoinedMetrics, ServingFleet, StepMetrics
from .verdict_texts import (
    CONTAINERS,
    FIXED,
    MORE,
    NO_SCHEDULE,
    VERDICTS,
    WHICH_TYPE,
    WHOLE_MINUTES,
    Severity,
    Verdict,
    verdict_of,
)

ADVISED = (60.0, 70.0)  # percent of the hardware
_FULL = 90.0
_QUEUE_SHARE = 0.25  # share of a request's time that is waiting before it is worth a word
_GREW = 1.25
_SAME_RATE = 1 + 1e-9  # rates that differ by less are one
_ANSWERED_ALL = 0.9  # share of what came; below that the rest waits


def loaded_step(run: LoadTestRun) -> MeasuredStep | None:
    """The step that shows what limits: the lowest load above the limit that did not hold.

    Where none of them was certain not to hold, the one that was only seen not to; else the highest.
    """
    steps = _steps_of_the_instances(run)
    missed = [step for step in steps if _bounds(run, step)]
    if missed:
        return min(missed, key=_load)
    broken = [step for step in steps if step.judgement.outcome == "broken"]
    if broken:
        return min(broken, key=_load)
    return max(steps, key=_load, default=None)


def _steps_of_the_instances(run: LoadTestRun) -> list[MeasuredStep]:
    """The steps that say something of the instances, and not of who sent or of others."""
    steps = [
        step
        for step in run.loads
        if step.judgement.outcome != "client-bound" and not cause_of_most(step.result)
    ]
    if run.failure:  # of a step that it began in nothing is known
        steps = [step for step in steps if not _by_others(run, step)]
    return steps


def _by_others(run: LoadTestRun, step: MeasuredStep) -> bool:
    result = step.result
    return bool(not_the_instances(result.errors, result.sent, run.goal.allowed_errors))


def _bounds(run: LoadTestRun, step: MeasuredStep) -> bool:
    """Whether a search took a step for one that did not hold, and found nothing above that did."""
    if run.plan.search is None or step.judgement.kept:
        return False
    held = run.limit.rate if run.limit is not None else None
    return held is None or _load(step) > _SAME_RATE * held


def _severity(run: LoadTestRun, step: MeasuredStep) -> Severity:
    """Of what slows a step: the limit where it did not hold, else what comes next."""
    return "limit" if step.judgement.outcome == "broken" or _bounds(run, step) else "risk"


def _failed_too_often(run: LoadTestRun, step: MeasuredStep) -> bool:
    """Whether requests failed more often than they may: for certain, or where that bounds a limit."""
    result = step.result
    return step.judgement.errors or (
        _bounds(run, step) and result.failed > run.goal.allowed_errors * result.sent
    )


def _failing_step(run: LoadTestRun, step: MeasuredStep) -> MeasuredStep:
    """The lowest load, from this step's on, at which too many requests failed; else this step."""
    failing = [
        other
        for other in _steps_of_the_instances(run)
        if _load(other) >= _load(step) and _failed_too_often(run, other)
    ]
    return min(failing, key=_load, default=step)


def verdicts(
    run: LoadTestRun,
    fleet: ServingFleet,
    metrics: JoinedMetrics,
    after: ServingFleet | None = None,
    planned: int | None = None,
) -> tuple[Verdict, ...]:
    """What the run says: what ended it before its end, then the gravest first."""
    others = list(_others_failed(run))
    ended = others if run.failure else []
    found = [
        *sender_verdict(run),
        *_fleet_changed(fleet, after),
        *fleet_scales(fleet),
        *fleet_not_planned(run.mode, fleet, planned),
        *_unsteady(run),
        *([] if ended else others),
    ]
    step = loaded_step(run)
    if step is not None:
        window = metrics.of(step.result)
        saturated = [
            *_errors(run, step, window),
            *_hardware(run, step, window),
            *_waiting(run, step, window, metrics, fleet),
        ]
        if not saturated or all(each.severity == "risk" for each in saturated):
            if _severity(run, step) == "limit":
                saturated.append(_unexplained(run, step))
            elif max(_used(window).values(), default=0.0) < SATURATED_PERCENT:
                saturated.append(_not_saturated(step, window))
        found += saturated
        failing = _failing_step(run, step)
        if failing is not step:
            found += _errors(run, failing, metrics.of(failing.result))
    order = ("invalid", "limit", "risk", "fine")
    found.sort(key=lambda verdict: order.index(verdict.severity))
    return (*ended, *found)


def _fleet_changed(before: ServingFleet, after: ServingFleet | None) -> Iterator[Verdict]:
    if after is None:
        return
    if text := _updated(before, after):
        yield verdict_of("fleet-updated", "invalid", text)
    if before.instances is None or after.instances is None:
        return
    if before.instances != after.instances:
        text = f"{before.instances} before, {after.instances} after"
        yield verdict_of("fleet-changed", "invalid", text)


def _updated(before: ServingFleet, after: ServingFleet) -> str:
    """What shows an update that began or ended during the run; empty where nothing does."""
    if after.update:
        return after.update
    if before.configuration and after.configuration not in ("", before.configuration):
        return f"{before.configuration} served before, {after.configuration} after"
    changed = before.changed and after.changed and before.changed < after.changed
    # Scaling changes it, too. An update that was rolled back leaves nothing else.
    if changed and before.instances == after.instances and not before.scales:
        return f"changed at {after.changed:%H:%M}, as DescribeEndpoint says"
    return ""


def fleet_scales(fleet: ServingFleet) -> Iterator[Verdict]:
    """Worth a word before anything is sent: a fleet that grows meanwhile spoils the result."""
    if not fleet.scales:
        return
    scheduled = fleet.scheduled_actions
    evidence = [_reach(fleet.fewest, fleet.most)]
    if scheduled:
        evidence.append(f"scheduled actions: {', '.join(scheduled)}")
    advice = f"{FIXED} {NO_SCHEDULE}" if scheduled else FIXED
    yield verdict_of("fleet-scales", "risk", *filter(None, evidence), advice=advice)


def _reach(fewest: int | None, most: int | None) -> str:
    """The sizes that policies may give a fleet, in words; empty where that is one, or not known."""
    if fewest == most:
        return ""
    if fewest is None:
        return f"up to {most} instances"
    if most is None:
        return f"down to {fewest} instances"
    return f"from {fewest} to {most} instances"


def fleet_not_planned(mode: str, fleet: ServingFleet, planned: int | None) -> Iterator[Verdict]:
    """A plan is confirmed on the fleet that it planned."""
    if mode != "confirm" or planned is None or fleet.instances in (None, planned):
        return
    has = f"{fleet.instances} instance" + ("s" if fleet.instances != 1 else "")
    yield verdict_of("fleet-not-planned", "risk", has=has, planned=planned)


def _unsteady(run: LoadTestRun) -> Iterator[Verdict]:
    """A search whose steps contradict each other."""
    if run.limit is not None and run.limit.unsteady:
        yield verdict_of("unsteady", "risk", run.limit.unsteady)


def _others_failed(run: LoadTestRun) -> Iterator[Verdict]:
    """The last step of which most requests failed by no fault of an instance."""
    steps = [step for step in run.loads if cause_of_most(step.result)]
    if steps:
        yield _no_instance(run, steps[-1], cause_of_most(steps[-1].result))


def _no_instance(run: LoadTestRun, step: MeasuredStep, cause: str) -> Verdict:
    """The verdict on requests that failed by one of :data:`NOT_THE_INSTANCES`."""
    severity: Severity = "invalid"
    if run.plan.search is None and cause not in (CONNECTIONS, SENDER):
        severity = "limit"
    # What was measured before is as good as that of a search that somebody stopped.
    if run.interrupted and run.limit is not None and run.limit.found:
        severity = "risk"
    meaning = explained(step.result, cause)
    title = f"{VERDICTS[cause][0]}: {meaning.said}" if meaning is not None else ""
    advice = meaning.fix if meaning is not None else ""
    return verdict_of(cause, severity, _failures_in_words(step), title=title, advice=advice)


def _failures_in_words(step: MeasuredStep) -> str:
    share = f"{step.result.error_share:.2%} of the requests failed at {_name(step)}: "
    return share + most_frequent(step.result.failures)


def _errors(run: LoadTestRun, step: MeasuredStep, window: StepMetrics) -> Iterator[Verdict]:
    cause, count = next(iter(causes(step.result.errors).most_common(1)), ("", 0))
    too_many = _failed_too_often(run, step)
    if not (too_many or cause == "throttled"):
        return
    cause = cause if count >= 0.5 * step.result.failed else ""
    if cause in NOT_THE_INSTANCES:
        yield _no_instance(run, step, cause)
        return
    evidence = [_failures_in_words(step)]
    if not too_many:
        return
    used = _used(window)
    said, advised = CONTAINERS.get(cause, ("", ""))
    title, advice = VERDICTS["errors"][0].format(step=_name(step)), ""
    capacity = _capacity(step)
    if capacity is not None:
        title = (
            f"The endpoint answers about {readable(capacity, 3)} requests a second, however many "
            "come: its capacity"
        )
        evidence.append(
            f"{readable(step.offered, 4)} requests a second were sent; answers came at a "
            "constant rate, and the callers of the others waited in vain"
        )
        advice = "More instances, larger ones, or more workers in each; or fewer requests."
    elif said and (cause == "model" or not used):
        title, advice = f"{title}: {said}", advised
    elif used:
        name, percent = max(used.items(), key=lambda each: each[1])
        evidence.append(f"{name} at {percent:.0f} %" + _shared(window))
        if percent >= SATURATED_PERCENT:
            title += f": the instances are full ({name} {percent:.0f} %)"
            advice = MORE
        elif percent >= NEARLY_FULL_PERCENT:
            title += (
                f": the instances are nearly full ({name} {percent:.0f} %), or the container fails"
            )
            advice = f"{MORE} Look into the container's log as well."
        elif max(_used_at_most(window).values()) >= NEARLY_FULL_PERCENT:
            title += "; whether the hardware was full is not known"
            advice = f"{WHOLE_MINUTES} If it was: {MORE} If not, the container or the model is the limit."
        else:
            title += ", though the hardware is not full"
            advice = (
                "The container or the model is the limit, not the hardware: give it more "
                "workers or a longer queue."
            )
            if said and cause == "gave-up":
                advice = advised
    yield verdict_of("errors", "limit", *evidence, title=title, advice=advice)


def _capacity(step: MeasuredStep) -> float | None:
    """Answers per second of an endpoint that is full: fewer than come, and constant."""
    result, offered = step.result, step.offered
    if (
        offered is None
        or result.unanswered < 0.5 * result.failed
        or not result.rate < _ANSWERED_ALL * offered
    ):
        return None
    settled = result.step.settle_seconds
    answers = [
        progress.completed
        for progress in step.timeline
        if settled < progress.seconds <= result.step.seconds
    ]
    third = len(answers) // 3
    if third < 2:
        return None
    parts = [sum(answers[at : at + third]) for at in (0, third, 2 * third)]
    mean = sum(parts) / 3
    # Answers that come at random vary by the root of their number.
    if not mean or max(abs(part - mean) for part in parts) > max(0.1 * mean, 3 * mean**0.5):
        return None
    return mean / third


def _hardware(run: LoadTestRun, step: MeasuredStep, window: StepMetrics) -> Iterator[Verdict]:
    severity = _severity(run, step)
    for name, percent in _used(window).items():
        if percent < ADVISED[1]:
            continue
        share = sum(ADVISED) / 2 / percent
        factor = f"A safety factor of at most {share:.2f} keeps it near {sum(ADVISED) / 2:.0f} %."
        yield verdict_of(
            name.lower(),
            severity,
            f"{name} at {percent:.0f} % at {_name(step)}{_shared(window)}; AWS advises "
            f"{ADVISED[0]:.0f} to {ADVISED[1]:.0f} %",
            how="full" if percent >= _FULL else "above what AWS advises",
            advice="" if run.mode == "confirm" else f"{factor} {WHICH_TYPE}",
        )


def _waiting(
    run: LoadTestRun,
    step: MeasuredStep,
    window: StepMetrics,
    metrics: JoinedMetrics,
    fleet: ServingFleet,
) -> Iterator[Verdict]:
    """Where the time goes that requests take longer than alone."""
    alone = run.alone
    if alone is None or not alone.result.service.count or not step.result.latency.count:
        return
    base, now = alone.result.service.mean, step.result.latency.mean
    waiting = now - base
    if waiting < _QUEUE_SHARE * now:
        return
    instances = run.limit.instances if run.limit else fleet.instances
    evidence = [
        f"a request takes {milliseconds(1000 * now, 4)} on average at {_name(step)} and "
        f"{milliseconds(1000 * base, 4)} alone",
        f"{readable(_under_way(step.result), 3)} requests are under way at a time (Little's law)",
    ]
    at_once = run.concurrency(instances)
    if at_once:
        evidence.append(f"an instance works on about {at_once} at once; the others wait")
    model = window.get("ModelLatency.Average")
    if model is not None:
        evidence.append(
            f"ModelLatency is {milliseconds(model, 4)} on average{_shared(window)}, of the "
            f"client's {milliseconds(1000 * now, 4)}"
        )
    severity = _severity(run, step)
    verdict = _where_it_waits(step, window, alone, metrics.of(alone.result), severity)
    yield replace(verdict, evidence=(*evidence, *verdict.evidence))


def _where_it_waits(
    step: MeasuredStep,
    window: StepMetrics,
    alone: MeasuredStep,
    before: StepMetrics,
    severity: Severity,
) -> Verdict:
    """The verdict on the time that requests take longer than alone.

    It names a place only where that holds for the requests of the client's average, whatever share of
    CloudWatch's averages the others have.
    """
    half = 1000 * (step.result.latency.mean - alone.result.service.mean) / 2
    loaded = _model_times(step, window)
    if loaded is None:
        return verdict_of(
            "queueing",
            severity,
            title="Requests wait for each other",
            advice="More instances or more workers per instance.",
        )
    unloaded = _model_times_alone(alone, before)
    if loaded.least - unloaded.most >= half:
        used = _used_at_most(window)
        idle = bool(used) and max(used.values()) < ADVISED[1]
        advice = "The hardware is not full: give the container more workers." if idle else ""
        return verdict_of("queueing", severity, advice=advice)
    overhead = window.get("OverheadLatency.Average")
    overhead_alone = before.get("OverheadLatency.Average")
    if (
        overhead is not None
        and overhead_alone
        and overhead > _GREW * overhead_alone
        and overhead - overhead_alone >= half
    ):
        text = (
            f"OverheadLatency {milliseconds(overhead, 4)}, {milliseconds(overhead_alone, 4)} alone"
        )
        return verdict_of("overhead", severity, text)
    title = "Requests wait, inside the instances or before them"
    unknown = partial(verdict_of, "queueing", severity, title=title)
    failed = _failed_share(step, window)
    if failed >= DEFAULT_ERROR_RATE:
        return unknown(
            f"{in_percent(failed)} of the calls failed: ModelLatency may hold refused calls, which the "
            "client's average leaves out",
            advice="Test at a rate at which fewer fail: ModelLatency then shows where they wait.",
        )
    if window.shared or loaded.most - unloaded.least >= half:
        return unknown(
            advice="Longer steps (two minutes, and --alone 2m) tell CloudWatch's minutes apart."
        )
    return verdict_of("before-the-model", severity)


class _ModelTimes(NamedTuple):
    """Milliseconds between which ModelLatency is on average, of the requests that got an answer."""

    least: float
    most: float


def _model_times(step: MeasuredStep, window: StepMetrics) -> _ModelTimes | None:
    """Those of a step, of which CloudWatch's average holds the failed requests too."""
    model = window.get("ModelLatency.Average")
    if model is None:
        return None
    failed = _failed_share(step, window)
    if failed >= 1:
        return _ModelTimes(0.0, math.inf)
    refused = step.result.refused
    slowest = max(model, 1000 * refused.mean) if refused.count else model
    return _ModelTimes(
        max(0.0, model - failed * slowest) / (1 - failed),  # none of them was slower than that
        model / (1 - failed),  # none of them took any time
    )


def _model_times_alone(alone: MeasuredStep, window: StepMetrics) -> _ModelTimes:
    """Those of one caller, who is in the minutes of its window with all who came later."""
    longest = 1000 * alone.result.service.mean
    times = _model_times(alone, window)
    if times is None:
        return _ModelTimes(0.0, longest)
    least = 0.0 if window.shared else min(times.least, longest)
    return _ModelTimes(least, min(times.most, longest))


def _failed_share(step: MeasuredStep, window: StepMetrics) -> float:
    """Share of the calls that failed: of the client's, or of CloudWatch's minutes if that is more."""
    errors = [window.get(f"Invocation{status}Errors.Sum") or 0.0 for status in ("4XX", "5XX")]
    calls = window.get("Invocations.Sum")
    in_minutes = min(1.0, sum(errors) / calls) if calls else 0.0
    return max(step.result.error_share, in_minutes)


def _under_way(result: StepResult) -> float:
    """Requests under way at a time, those that failed too: all of them were."""
    together = (times for times in (result.latency, result.refused) if times.count)
    return sum(times.count * times.mean for times in together) / result.seconds


def _not_saturated(step: MeasuredStep, window: StepMetrics) -> Verdict:
    used = [
        f"{name} at {percent:.0f} %{_shared(window)}" for name, percent in _used(window).items()
    ]
    reasons = step.judgement.reasons
    if not used:
        return verdict_of("not-read", "risk", *reasons, step=_name(step))
    if max(_used(window).values()) < NEARLY_FULL_PERCENT <= max(_used_at_most(window).values()):
        title = f"Whether the hardware was full at {_name(step)} is not known"
        return verdict_of("not-read", "risk", *reasons, *used, title=title, advice=WHOLE_MINUTES)
    return verdict_of("not-saturated", "fine", *reasons, *used, step=_name(step))


def _unexplained(run: LoadTestRun, step: MeasuredStep) -> Verdict:
    late = [warning for warning in step.result.warnings if warning.startswith("send lag")]
    verdict = verdict_of("unexplained", "limit", *step.judgement.reasons, *late, step=_name(step))
    machine = ". The machine that sent was late too: it may be that machine"
    explains = late and _lag_explains(run, step)
    return replace(verdict, title=verdict.title + (machine if explains else ""))


def _lag_explains(run: LoadTestRun, step: MeasuredStep) -> bool:
    """Whether the latest sending of a request is as late as a target was missed by, or not known."""
    targets = run.plan.goal.targets if run.plan.goal else {}
    missed = [
        bounds.value - targets[name]
        for name, bounds in step.judgement.bounds.items()
        if name in targets and bounds.value > targets[name]
    ]
    lag = step.result.send_lag
    return not lag.count or not missed or lag.percentile(100) >= min(missed)


def _used(window: StepMetrics) -> dict[str, float]:
    found = {name: window.get(f"{name}Utilization.Average") for name in ("CPU", "GPU")}
    return {name: percent for name, percent in found.items() if percent is not None}


def _used_at_most(window: StepMetrics) -> dict[str, float]:
    """What the step itself may have used, as if nothing else had in its minutes."""
    return {name: min(100.0, used / window.filled) for name, used in _used(window).items()}


def _shared(window: StepMetrics) -> str:
    if not window.shared:
        return ""
    return f" (in minutes of which the step has {in_percent(window.filled)})"


def _load(step: MeasuredStep) -> float:
    return step.offered if step.offered is not None else float(step.result.step.users or 0)


def _name(step: MeasuredStep) -> str:
    return step.result.step.name
