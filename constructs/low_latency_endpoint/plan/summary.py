"""A plan in six lines: what is deployed, what it costs, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..facts.prices import HOURS_PER_MONTH
from ..facts.token_values import is_token
from ..options.throughput import FEWEST_INSTANCES, counted_instances
from ..report.numbers import readable
from .alarm_thresholds import DEFAULT_OVERHEAD_SHARE
from .alarm_warnings import assumed_rates
from .decisions import SummaryLine
from .deployment_time import fewest_while_rising
from .floor_explanations import floor_lines
from .hourly_cost import EndpointCost
from .period_objectives import planned_objective
from .plan import Plan
from .scaling_policy import CONCURRENCY_METRIC
from .zone_outages import assumed_jump, assumed_outage

DERIVED_NAME = "follows stack and key: in production state endpoint_name"


def summary_of(
    plan: Plan,
    *,
    alarms: str | None = None,
    warm_up: int = 0,
    cost: EndpointCost | None = None,
    named: bool = True,
) -> tuple[SummaryLine, ...]:
    """The six lines of an endpoint; one more for a Hub's model, tokens, a warm-up, a derived name.

    ``warm_up`` is how many requests the endpoint's warm-up sends.
    """
    return (
        *_hub_model(plan),
        SummaryLine("Instances", _instances(plan)),
        *_jump(plan, cost),
        *_tokens(plan),
        *floor_lines(plan),
        SummaryLine("Routing", _routing(plan)),
        SummaryLine("Scaling", _scaling(plan)),
        SummaryLine("Alarms", _alarms(plan, alarms)),
        *_warm_up(warm_up),
        SummaryLine("Cost", _cost(plan, cost)),
        SummaryLine("Assumed", "; ".join(_assumed(plan))),
        *(() if named else (SummaryLine("Name", DERIVED_NAME),)),
    )


def _hub_model(plan: Plan) -> Iterator[SummaryLine]:
    serving = plan.request.serving.hub
    if serving is None:
        return
    pinned, container = serving.model.pinned, serving.container
    fit = container.fit
    room = []
    if fit.context is not None:
        less = f" of the model's {fit.model_context:,}" if fit.context != fit.model_context else ""
        room.append(f"context of {fit.context:,} tokens{less if fit.model_context else ''}")
    if fit.concurrent_requests is not None:
        count = fit.concurrent_requests
        room.append(f"{count} request{'s' if count != 1 else ''} of that length at a time")
    yield SummaryLine(
        "Model",
        f"{pinned.model} at {pinned.commit[:12]}, {pinned.license or 'no licence stated'}; "
        + "; ".join([container.server, *room]),
    )


def _alarms(plan: Plan, stated: str | None) -> str:
    """The alarms, as stated or the plan's own, and what the service level objective is about."""
    alarms = alarms_text(planned_thresholds(plan)) if stated is None else stated
    objective = planned_objective(plan)
    return alarms if objective is None else f"{alarms}; objective: {objective.text}"


def _warm_up(requests: int) -> Iterator[SummaryLine]:
    """The requests that reach the model though no caller sends them."""
    if requests:
        plural = "s" if requests > 1 else ""
        text = f"{requests:,} request{plural} after each deployment, sent by the stack itself"
        yield SummaryLine("Warm-up", text)


def alarms_text(thresholds: Mapping[str, Mapping[str, float]], others: int = 0) -> str:
    """Thresholds in milliseconds by metric and statistic, and how many other alarms, in words."""
    parts = [
        f"{metric} "
        + ", ".join(f"{name} {readable(value)}" for name, value in found.items())
        + " ms"
        for metric, found in thresholds.items()
        if found
    ]
    parts += [f"{others} others"] if others else []
    return "; ".join(parts) or "none"


def planned_thresholds(plan: Plan) -> dict[str, dict[str, float]]:
    """Milliseconds at which the plan's own alarms on latencies stand, by metric and statistic."""
    metrics = dict.fromkeys(alarm.metric for alarm in plan.alarms)
    found = {metric: plan.thresholds(metric) for metric in metrics}
    for threshold in plan.watched_thresholds:
        found.setdefault(threshold.measures, {})[threshold.percentile] = threshold.seconds * 1000
    return found


def _instances(plan: Plan) -> str:
    fleet = plan.fleet
    if plan.scaling is None:
        return f"{fleet.initial}, as nothing scales"
    times = "".join(f"; {text}" for text in plan.scheduled_ranges)
    peak = f"; {fleet.serving_at_peak} at peak" if plan.request.throughput else ""
    return (
        f"{fleet.initial} at first, then {fleet.minimum} to {fleet.maximum} as load changes"
        f"{peak}{times}"
    )


def _jump(plan: Plan, cost: EndpointCost | None) -> Iterator[SummaryLine]:
    """What a derived minimum for a jump takes at all hours, and what has it for some."""
    measured = plan.request.throughput
    more = plan.fleet.minimum - max(len(plan.request.client_zones), FEWEST_INSTANCES)
    derived = plan.scaling is not None and plan.request.instances.min is None and not plan.schedule
    if not derived or more <= 0 or measured is None or measured.from_tps is None:
        return
    usd = cost.usd_of(more * HOURS_PER_MONTH) if cost else None
    pool = cost.pool_text("at_first") if cost else ""
    yield SummaryLine(
        "Jump",
        f"{more} of the {plan.fleet.minimum} at least are there for it at every hour, "
        f"{more * HOURS_PER_MONTH:,.0f} instance hours a month"
        + ("" if usd is None else f", {usd:,.0f} USD" + (f" on {pool}" if pool else ""))
        + "; where its hour is known, throughput.peaks has them for that time alone",
    )


def _tokens(plan: Plan) -> Iterator[SummaryLine]:
    """Of a language model: what it writes, how long a call takes, what the cache holds."""
    made = plan.tokens
    if made is None or plan.request.tokens is None:
        return
    parts = [plan.request.tokens.text]
    if made.output_tokens is not None and made.output_tokens_per_instance is not None:
        parts.append(
            f"{made.output_tokens:,.0f} per second out at peak, "
            f"{made.output_tokens_per_instance:,.0f} at one instance's limit"
        )
    if made.call_seconds is not None:
        parts.append(f"{readable(made.call_seconds, 3)} s for a call at the targets")
    if made.room is not None:
        parts.append(f"KV cache for {made.room:,} such requests on an instance")
    yield SummaryLine("Tokens", "; ".join(parts))


def _routing(plan: Plan) -> str:
    return plan.routing + (" (your choice)" if plan.request.routing else "")


def _scaling(plan: Plan) -> str:
    policy = plan.scaling
    if policy is None:
        if not plan.request.scaling.enabled:
            return "off, as you chose"
        if plan.request.is_rare:
            return "none: a fixed fleet for so few calls"
        if plan.fleet.minimum == plan.fleet.maximum:
            return "none: minimum and maximum are the same"
        return "none: no throughput is measured"
    held = plan.held_tps
    limit = float(held.limit * 60) if held else 0
    if policy.metric == CONCURRENCY_METRIC:
        share = f", {readable(float(held.used * 100), 4)} % of its limit" if held else ""
        series = plan.tokens.in_flight if plan.tokens else None
        own = series is None or plan.request.scaling.concurrency_target is not None
        if own and not (held is not None and held.by_target):
            share = ""
        elif series is not None and series.bound_by_cache:
            share = ", as many as the KV cache holds"
        return f"{readable(policy.target)} requests in flight per instance{share}"
    share = f", {readable(policy.target / limit * 100, 4)} % of its limit" if limit else ""
    return f"{readable(policy.target)} invocations per instance and minute{share}"


def _cost(plan: Plan, cost: EndpointCost | None) -> str:
    if cost is None:
        name = plan.request.serving.instance_type
        return f"not known: low-latency prices, or --price {name}=USD"
    if cost.pools:
        return _cost_of_pools(cost)
    if cost.price is None:
        return f"not known: low-latency prices, or --price {cost.instance_type}=USD"
    if plan.scaling is None:
        return f"{cost.usd('at_first'):,.2f} (US dollars per hour)"
    amounts = [f"{cost.usd(moment):,.2f} {words}" for moment, words in _TOLD.items()]
    return f"{', '.join(amounts)} (US dollars per hour)"


_TOLD = {"at_least": "at least", "at_first": "at first", "at_most": "at most"}


def _cost_of_pools(cost: EndpointCost) -> str:
    """What is known of the cost, with the pool that counts for each amount."""
    parts = [
        f"{usd:,.2f} {words} on {cost.pool_text(moment)}"
        for moment, words in _TOLD.items()
        if (usd := cost.usd(moment)) is not None
    ]
    told = f"{'; '.join(parts)} (US dollars per hour)" if parts else ""
    missing = cost.without_price
    if not missing:
        return told
    unknown = "not known otherwise" if told else "not known"
    if len(missing) < len(cost.types):
        unknown += f", as {' and '.join(missing)} may be dearer"
    options = " ".join(f"--price {name}=USD" for name in missing)
    return f"{told}; {unknown}: low-latency prices, or {options}".removeprefix("; ")


def _assumed(plan: Plan) -> Iterator[str]:
    """The assumptions behind the numbers: neither stated nor measured."""
    request = plan.request
    split = plan.alarms or (plan.tokens and request.latency and request.latency.ttft_milliseconds)
    if split and request.overhead_share is None:
        yield f"{readable(DEFAULT_OVERHEAD_SHARE * 100, 3)} % of the target is overhead"
    if request.throughput is None:
        yield f"the peak is held by {counted_instances(plan.usual.serving_at_peak)}"
    if request.serving.instance_pools:
        yield (
            f"every instance is an {request.serving.instance_type}, the slowest of the pools, except "
            "in the cost"
        )
    if text := _assumed_load(plan):
        yield text
    if text := assumed_rates(request):
        yield text
    yield "instances spread evenly"
    if outage := assumed_outage(plan):
        yield outage
    if instances := fewest_while_rising(plan):
        yield f"no deployment while load rises and fewer than {instances:,} instances serve"
    yield from _assumed_ends(plan)
    if jump := assumed_jump(plan):
        yield jump
    if plan.scaling is not None and plan.fleet.minimum < plan.fleet.serving_at_peak:
        told = request.throughput is not None and request.throughput.states_rises
        if not told:
            yield "no jumps"
        elif request.scaling.instance_start is None:
            minutes = f"{readable(request.start_seconds / 60, 3)} minutes"
            yield f"a new instance takes traffic {minutes} after scaling decides"
    if request.of_tokens and request.serving.hub is None:
        yield (
            "the KV cache holds the requests in flight, and an instance can meet the targets on tokens: "
            "neither is checked, as the model is not pinned"
        )
    if plan.inference_ami is not None and request.serving.inference_ami is None:
        yield "the AMI of SageMaker's SDK"
    if request.routing is None and plan.routing_advice.assumed:
        yield plan.routing_advice.assumed


def _assumed_ends(plan: Plan) -> Iterator[str]:
    """That a higher peak is over when the usual maximum takes its instances away."""
    names = {action.name for action in plan.schedule}
    for peak in plan.standing_peaks:
        if f"after-{peak.name}" in names and plan.fleet.maximum < peak.at_peak:
            most = counted_instances(plan.fleet.maximum)
            yield f"{peak.name} is over at {peak.peak.end}, when {most} at most stay"


def _assumed_load(plan: Plan) -> str:
    """What a scaling target of your own is taken for where it says no requests per second."""
    held = plan.held_tps
    own = plan.request.scaling
    is_stated = own.invocations_target is not None or own.concurrency_target is not None
    if plan.scaling is None or held is None or not is_stated or held.by_target:
        return ""
    why = "your target says it only with throughput.concurrency_per_instance"
    if is_token(plan.scaling.target):
        why = "your target is known at deployment only"
    return (
        f"your scaling target keeps an instance at {readable(float(held.used * 100), 4)} % of its "
        f"limit, as the safety factor would: {why}"
    )
