"""Where a load test measured something else than a plan rests on it: said before the plan's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import LowLatencyEndpointError
from ...options.latency_target import LatencyTarget
from ...options.load import TokenTraffic
from ...plan.decisions import PlanWarning
from ...plan.load_test_validity import other_endpoint, other_instance_type
from ...report.numbers import milliseconds, plain_number, readable
from ...settings import Settings
from ...settings.endpoint import EndpointSettings, further_variants
from ..engine.arrivals import ConstantArrivals
from .bounds import CONFIDENCE
from .judging import FIRST_TOKEN, INTER_TOKEN, LatencyGoal, histogram_of, is_mean, quantile_of

LONGER = 1.25
"""How many times longer planned prompts or answers must be than those of the load test to need a
caution. Our judgement: the test's prompts are words, of which a model makes a few tokens more or
fewer."""
_SAME_MILLISECONDS = 1e-6
"""Times that differ by less are one: they were converted to seconds and back."""


@dataclass(frozen=True)
class MeasuredTokens:
    """Mean tokens of the requests that a language model answered; None where it did not count them."""

    of_prompt: float | None
    of_prompt_not_cached: float | None
    of_answer: float | None


@dataclass(frozen=True)
class MeasuredCase:
    """What a load test called, what it sent, and the goal that its limit met."""

    endpoint: str  # its name at AWS; empty where it is not known, as the other names
    variant: str
    instance_type: str
    goal: LatencyGoal | None  # None where the result has none that can be read
    tokens: MeasuredTokens
    equal_gaps: bool  # whether requests came at equal gaps, and not as independent callers send

    @classmethod
    def of_result(cls, content: Mapping[str, Any]) -> MeasuredCase:
        """The case in the content of a result file."""
        fleet = content.get("fleet")
        steps = _load_steps(content)
        return cls(
            endpoint=str(content.get("endpoint") or ""),
            variant=str(content.get("variant") or ""),
            instance_type=str(fleet.get("instance_type") or "")
            if isinstance(fleet, Mapping)
            else "",
            goal=_goal(content.get("latency_target")),
            tokens=_mean_tokens(steps),
            equal_gaps=any(_arrivals(step) == ConstantArrivals.kind for step in steps),
        )


def cautions(case: MeasuredCase, settings: Settings, key: str) -> Iterator[PlanWarning]:
    """Each difference between what was measured and the endpoint that is planned."""
    endpoint = settings.endpoints[key]
    names = {name: stated.endpoint_name for name, stated in settings.endpoints.items()}
    if other := other_instance_type(case.instance_type, endpoint.instance_type):
        yield PlanWarning("load-test-instance-type", other)
    if other := other_endpoint(case.endpoint, key, names):
        yield PlanWarning("load-test-of-another-endpoint", other)
    yield from _other_variant(case, endpoint)
    yield from _other_goal(case.goal, endpoint)
    if case.equal_gaps:
        yield PlanWarning(
            "load-test-equal-gaps",
            "the load test sent requests at equal gaps, which wait less for one another than those of "
            "independent callers: find the limit again without --constant",
        )
    if endpoint.tokens is not None:
        yield from _longer_requests(case.tokens, endpoint.tokens)


def uncovered_targets(goal: LatencyGoal, target: LatencyTarget) -> list[str]:
    """The latency targets that a limit may miss although it met the goal, in words.

    Both are of the caller: a goal covers a target of the same kind, at its percentile or a lower
    one, with its time or a longer one. A mean covers a mean alone.
    """
    met = goal.to_dict()["targets_ms"]
    return [
        f"{statistic} within {milliseconds(longest, 6)}"
        for statistic, longest in targets_by_statistic(target).items()
        if not _covered(statistic, longest, met)
    ]


def targets_by_statistic(target: LatencyTarget) -> dict[str, float]:
    """The targets in milliseconds, by statistic as a load test calls it."""
    first_token = target.ttft_milliseconds.items()
    between_tokens = target.itl_milliseconds.items()
    return {
        **target.milliseconds,
        **{f"{FIRST_TOKEN}{name}": longest for name, longest in first_token},
        **{f"{INTER_TOKEN}{name}": longest for name, longest in between_tokens},
    }


def _covered(statistic: str, longest: float, met: Mapping[str, float]) -> bool:
    """Whether one of the goals that were met, in milliseconds, implies a target."""
    candidates = [
        goal
        for goal, time in met.items()
        if time <= longest + _SAME_MILLISECONDS and histogram_of(goal) == histogram_of(statistic)
    ]
    if is_mean(statistic):
        return any(map(is_mean, candidates))
    percentiles = [quantile_of(goal) for goal in candidates if not is_mean(goal)]
    return max(percentiles, default=0.0) >= quantile_of(statistic)


def _other_goal(goal: LatencyGoal | None, endpoint: EndpointSettings) -> Iterator[PlanWarning]:
    """A goal that allows more than the settings' targets, or than the alarm on server errors."""
    if goal is None:
        yield PlanWarning(
            "load-test-goal",
            "the load test's result does not say which latency it held its limit to, and how many "
            "errors it allowed: find the limit again with --settings",
        )
        return
    open_targets = uncovered_targets(goal, endpoint.latency) if endpoint.latency else []
    if open_targets:
        yield PlanWarning(
            "load-test-goal",
            f"the load test's goal was {goal.text}, and the settings' target is "
            f"{' and '.join(open_targets)}: this rate may miss it. Find the limit again with --settings and "
            "without --target",
        )
    alarm = endpoint.alarms.error_limit
    if alarm is not None and goal.allowed_errors > alarm.rate:
        yield PlanWarning(
            "load-test-allowed-errors",
            f"the load test allowed {readable(100 * goal.allowed_errors)} % errors, and the alarm on "
            f"server errors stands at {readable(100 * alarm.rate)} %: this rate may set it off. Find "
            f"the limit again with --allowed-errors {plain_number(alarm.rate)} or less",
        )


def _other_variant(case: MeasuredCase, endpoint: EndpointSettings) -> Iterator[PlanWarning]:
    """A limit that is taken for variants that the load test did not call, or not alone."""
    if not endpoint.variants or case.variant == endpoint.variant_name:
        return
    others = [name for name in _planned_with_limit(endpoint) if name != case.variant]
    options = " and ".join(f"--variant {name}" for name in others)
    yield PlanWarning(
        "load-test-of-another-variant",
        f"the load test called {case.variant or 'all variants'}, and its limit is taken for "
        f"that of {' and '.join(others)}: load-test with {options}",
    )


def _planned_with_limit(endpoint: EndpointSettings) -> list[str]:
    """The variants whose plans change with the endpoint's throughput: those without one of their own."""
    further = [
        variant.name
        for variant in further_variants(endpoint)
        if variant.settings.tps_per_instance is None
    ]
    return [endpoint.variant_name, *further]


def _longer_requests(measured: MeasuredTokens, planned: TokenTraffic) -> Iterator[PlanWarning]:
    """Prompts or answers that are longer than those of the load test, or cached less."""
    not_cached = planned.mean_input * (1 - planned.shared_prefix)
    uncached = "prompts without what was cached"
    means = (
        ("prompts", "input", measured.of_prompt, planned.mean_input),
        (uncached, "shared_prefix", measured.of_prompt_not_cached, not_cached),
        ("answers", "output", measured.of_answer, planned.mean_output),
    )
    for what, option, sent, expected in means:
        if sent is None or expected <= LONGER * sent:
            continue
        yield PlanWarning(
            f"load-test-tokens-{option}",
            f"the load test's {what} had {readable(sent, 3)} tokens on average, and by the settings' "
            f"tokens.{option} the callers' have {readable(expected, 3)}: an instance holds fewer of those. "
            "Find the limit again with --settings and without --tokens and --payload",
        )


def _goal(stated: Any) -> LatencyGoal | None:
    """The goal that a result states; None where it cannot be read."""
    try:
        targets = {name: time / 1000 for name, time in stated["targets_ms"].items()}
        confidence = stated.get("confidence", CONFIDENCE)
        return LatencyGoal(targets, stated["allowed_errors"], confidence)
    except (LowLatencyEndpointError, AttributeError, KeyError, TypeError):
        return None


def _load_steps(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The steps of a result, without that of one caller alone."""
    steps = content.get("steps")
    return [
        step
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, Mapping) and step.get("purpose") != "alone"
    ]


def _arrivals(step: Mapping[str, Any]) -> str:
    """The kind of a step's arrivals; empty where it is not known."""
    sent = step.get("step")
    arrivals = sent.get("arrivals") if isinstance(sent, Mapping) else None
    return str(arrivals.get("kind") or "") if isinstance(arrivals, Mapping) else ""


def _mean_tokens(steps: Sequence[Mapping[str, Any]]) -> MeasuredTokens:
    """The mean tokens of a request in all steps that were read token by token."""
    read = [step for step in steps if isinstance(step.get("tokens"), Mapping)]
    answers = sum(_number(step, "completed") for step in read)
    prompt = sum(_number(step["tokens"], "prompt_tokens") for step in read)
    cached = sum(_number(step["tokens"], "cached_tokens") for step in read)
    answered = sum(_number(step["tokens"], "output_tokens") for step in read)
    return MeasuredTokens(
        of_prompt=prompt / answers if answers and prompt else None,
        of_prompt_not_cached=(prompt - cached) / answers if answers and prompt else None,
        of_answer=answered / answers if answers and answered else None,
    )


def _number(content: Mapping[str, Any], name: str) -> float:
    """A number of a result; 0 where it has none."""
    value = content.get(name)
    return value if isinstance(value, (int, float)) else 0
