"""Every input of a scenario in a sentence: what an answer rests on.

:func:`scenario_sentences` is the start. A test changes each field of a scenario and of its parts, and
asks that a sentence changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch

from ..options.throughput import counted_instances
from ..plan.traffic_shapes import Shape
from ..report.numbers import milliseconds, readable
from .fleet_changes import Rollout, TargetTracking, ZoneOutage
from .scenario import Scenario
from .service_laws import (
    FINEST_SHARE,
    Empirical,
    Exponential,
    ServiceLaw,
    highest_percentile,
    percentile_name,
)
from .traffic import ArrivalTrace, ClosedLoop, OpenLoop, ShapedLoop, Traffic

_MOST_RANGES = 28  # of one sentence: two weeks of two a day


def scenario_sentences(
    scenario: Scenario, percentiles: Sequence[float] = (95.0, 99.0)
) -> list[str]:
    """All inputs of a scenario, each once; ``percentiles`` are those that the answer is about."""
    return [
        service_sentence(scenario.service, percentiles),
        f"requests at work on an instance at once: {scenario.concurrency}; {_slope_words(scenario.slope)}",
        *fleet_sentences(scenario),
    ]


def fleet_sentences(scenario: Scenario) -> list[str]:
    """The same without what is known of one instance."""
    return [
        traffic_sentence(scenario.traffic),
        *_sentences_of_instances(scenario),
        *(_outage_sentence(fault, scenario.zones) for fault in scenario.faults),
        *_sentences_of_deployment(scenario),
    ]


def service_sentence(law: ServiceLaw, percentiles: Sequence[float]) -> str:
    """The law of the service time; of one that is assumed, how far others can be off."""
    mean = f"a request alone takes {_time(law.mean_seconds)} on average"
    variation = f"coefficient of variation {readable(law.variation, 4)}"
    if not law.variation:
        return f"a request alone takes {_time(law.mean_seconds)}, each the same"
    if isinstance(law, Empirical):
        return f"{mean}, {variation}; the law is the measured one{_unknown_words(law)}"
    name = "exponential" if isinstance(law, Exponential) else "log-normal"
    return (
        f"{mean}, {variation}; the law is assumed to be {name}. {_other_laws(law, percentiles)} "
        "Better: --from-load-test, which simulates the measured law"
    )


def _unknown_words(law: Empirical) -> str:
    """What the measured quantiles leave open, what is taken, and what would tell."""
    gap = law.gap
    if gap is None:
        return f", to {FINEST_SHARE:.1%} of the requests"
    apart = f"p{readable(100 * gap.low, 4)} ({_time(gap.below)}) and p{readable(100 * gap.high, 4)}"
    return (
        f". Between quantiles with more than {FINEST_SHARE:.1%} of the requests between them nothing "
        f"is known, such as between {apart} ({_time(gap.above)}): there every request is taken to "
        "last as long as the upper one, so real percentiles can be lower. Better: a quantile at each "
        f"{FINEST_SHARE:.1%}, from {round(1 / FINEST_SHARE):,} requests or more"
    )


def _other_laws(law: ServiceLaw, percentiles: Sequence[float]) -> str:
    """The longest that a request alone can take at each percentile, beside the assumed law's."""
    bounds = [
        f"{percentile_name(percentile)} "
        f"{_time(highest_percentile(law.mean_seconds, law.variation, percentile))} "
        f"(here {_time(law.percentile(percentile))})"
        for percentile in percentiles
    ]
    return (
        "Under another law of the same mean and variation a request alone, without any wait, can "
        f"take up to: {', '.join(bounds)}."
    )


def _time(seconds: float) -> str:
    return milliseconds(1000 * seconds, 3)


def _slope_words(slope: float) -> str:
    if not slope:
        return "they do not slow each other down (slope 0)"
    return f"with n at work each takes 1 + {readable(slope)} x (n - 1) times as long"


# --- who sends requests --------------------------------------------------------------------------


@singledispatch
def traffic_sentence(traffic: Traffic) -> str:
    """Who sends requests, and when."""
    raise TypeError(f"no words for {type(traffic).__name__}")


@traffic_sentence.register
def _(traffic: OpenLoop) -> str:
    return f"{_callers(poisson=traffic.poisson)}, {readable(traffic.rate)} requests per second"


@traffic_sentence.register
def _(traffic: ClosedLoop) -> str:
    users = f"{traffic.users:,} users each wait for the answer"
    pause = traffic.think
    if not pause.mean_seconds:
        return f"{users} and send the next request at once"
    return (
        f"{users}, pause {_time(pause.mean_seconds)} on average ({type(pause).__name__.lower()}, "
        f"coefficient of variation {readable(pause.variation, 4)}), and send the next request"
    )


@traffic_sentence.register
def _(traffic: ArrivalTrace) -> str:
    times = traffic.seconds
    return (
        f"{len(times):,} requests arrive at their recorded times, from {_time(times[0])} to "
        f"{_time(times[-1])}, the same in every replication: ± is of service times alone, and "
        "another recording of the same callers may differ by more"
    )


@traffic_sentence.register
def _(traffic: ShapedLoop) -> str:
    shape = traffic.shape
    peak = traffic.peak_rate
    highest = peak * max(share for _, share in shape.levels)
    return (
        f"the traffic of {shape.name} ({shape.description}) has its peak at {readable(highest)} "
        f"requests per second, {readable(peak * shape.mean_share, 4)} on average over "
        f"{readable(shape.seconds / 60, 4)} minutes; {_callers_of(shape, poisson=traffic.poisson)}"
    )


def _callers(*, poisson: bool) -> str:
    if not poisson:
        return "requests come at equal gaps"
    return "callers are many and independent (Poisson arrivals)"


def _callers_of(shape: Shape, *, poisson: bool) -> str:
    """The callers within a level of a shape; of recorded counts what they show of them."""
    if shape.recorded_peak is None or not poisson:
        return _callers(poisson=poisson)
    if shape.warning:
        index = readable(shape.dispersion.index if shape.dispersion else None, 2)
        return (
            "within a period requests are spread at random, which the counts contradict (index of "
            f"dispersion {index}): bursts are left out"
        )
    if shape.dispersion is None:
        return (
            "within a period requests are spread at random; whether they come in bursts the counts do "
            "not tell: they are too few, or the load bends within a few of their periods"
        )
    if shape.dispersion.is_too_even:
        return (
            "within a period requests are spread at random; the counts scatter less than those of "
            f"independent callers do (index of dispersion {readable(shape.dispersion.index, 2)}): they are "
            "averages or rates, or callers keep a pace"
        )
    return (
        "within a period callers are taken as many and independent (Poisson arrivals): the counts "
        f"scatter as theirs do (index of dispersion {readable(shape.dispersion.index, 2)}); bursts "
        "within a period do not show in counts, the time of each request would show them"
    )


# --- the fleet -----------------------------------------------------------------------------------


def _sentences_of_instances(scenario: Scenario) -> Iterator[str]:
    """How many there are, where, and how their number changes."""
    counted = counted_instances(scenario.instances)
    zones = "one zone" if scenario.zones == 1 else f"{scenario.zones} zones"
    late = ""
    if scenario.latency_target is not None:
        late = f"; late is what takes longer than {milliseconds(1000 * scenario.latency_target, 6)}"
    yield f"{counted} at the start, without requests, in {zones}; routing {scenario.routing}{late}"
    if scenario.scaling is not None:
        yield from _sentences_of_scaling(scenario.scaling)


def _sentences_of_scaling(scaling: TargetTracking) -> Iterator[str]:
    what = (
        "invocations per instance and minute"
        if scaling.metric == "invocations"
        else "requests in flight on the instance that has most (AWS does not say which "
        "statistic it takes)"
    )
    yield (
        f"scaling from {scaling.minimum} to {scaling.maximum} instances aims at "
        f"{readable(scaling.target)} {what}, every {readable(scaling.period)} s; it acts after "
        f"{scaling.out_datapoints} values above it, or {scaling.in_datapoints} below 90 % of it; "
        f"cooldowns {readable(scaling.scale_out_cooldown)} s out and "
        f"{readable(scaling.scale_in_cooldown)} s in. A scale-out that adds more than the last one does "
        "not wait for the cooldown (AWS does not say what is larger); the plan does not count on it"
    )
    if scaling.limits:
        yield _sentence_of_limits(scaling)
    yield (
        f"a new instance serves {readable(scaling.instance_seconds)} s after the decision; metrics "
        f"arrive {readable(scaling.metric_delay)} s after their {readable(scaling.period)} s"
    )
    yield (
        f"taking instances away is an update of {readable(scaling.scale_in_seconds)} s, in which "
        "nothing else scales (assumed: AWS states no number)"
    )


def _sentence_of_limits(scaling: TargetTracking) -> str:
    """The ranges that stand later; those of many times by their number and the first ones."""
    ranges = [
        f"{limits.minimum} to {limits.maximum} after {readable(limits.at / 60, 5)} minutes"
        for limits in scaling.limits
    ]
    more = len(ranges) - _MOST_RANGES
    if more > 0:
        ranges = [*ranges[:_MOST_RANGES], f"and {more} later ones"]
    return f"minimum and maximum change: {', '.join(ranges)}"


def _outage_sentence(outage: ZoneOutage, zones: int) -> str:
    return (
        f"zone {outage.zone + 1} of {zones} fails after {readable(outage.at)} s; its calls hang "
        f"for {readable(outage.detection_seconds)} s, then fail, and "
        f"{readable(outage.replacement_seconds)} s later as many instances serve in other zones "
        "(assumed: AWS states no number)"
    )


def _sentences_of_deployment(scenario: Scenario) -> Iterator[str]:
    rollout = scenario.deployment
    if rollout is None:
        return
    yield (
        f"the deployment after {readable(rollout.at)} s is {rollout_words(rollout)}; its instances "
        f"serve {readable(rollout.instance_seconds)} s after their launch; nothing scales meanwhile"
    )
    traffic = scenario.traffic
    takes = rollout.seconds(scenario.instances)
    if isinstance(traffic, ShapedLoop) and rollout.at + takes > traffic.shape.seconds:
        yield (
            f"the deployment of {counted_instances(scenario.instances)} takes {takes:,.0f} s: it "
            f"has not ended when the traffic of '{traffic.shape.name}' does"
        )


def rollout_words(rollout: Rollout) -> str:
    """A deployment."""
    share = f"{readable(100 * rollout.step_share)} %"
    wait = f"{readable(rollout.wait_seconds)} s"
    text = {
        "all_at_once": "blue/green, all at once",
        "canary": f"blue/green, a canary of {share}, the rest {wait} later",
        "linear": f"blue/green, in steps of {share}, {wait} apart",
        "rolling": f"rolling, in batches of {share}, {wait} apart",
    }[rollout.kind]
    if rollout.bake_seconds:
        text += f", the old fleet kept for {readable(rollout.bake_seconds)} s"
    return text
