"""Two routing strategies: load in blocks, to one side and the other in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from ...account.calls import Account
from ...account.sessions import aws_errors_in_words, open_clients
from ...errors import LowLatencyEndpointError
from ..engine.generator_process import GeneratorProcess
from ..engine.payloads import Payloads
from ..engine.prompts import PROMPTS_OF_A_STEP
from ..engine.steps import Generator, Progress
from ..engine.target import Target
from ..search.reached import check_reached
from .comparison import Pair
from .comparison_plan import ComparisonPlan
from .report import RoutingComparison
from .sides import Side, read_sides


@dataclass(frozen=True)
class Watch:
    """Who is told what happens."""

    #: Of each second of a block: the side's label, the pair's number, the second.
    second: Callable[[str, int, Progress], None] = lambda label, pair, second: None
    #: Of each pair that is measured, with what can be said so far.
    pair: Callable[[Pair, RoutingComparison], None] = lambda pair, so_far: None
    say: Callable[[str], None] = lambda text: None  # what is done between


_NOBODY = Watch()


def compare_routing(
    endpoints: Sequence[str],
    payloads: Payloads,
    plan: ComparisonPlan,
    *,
    variants: Sequence[str] = (),
    target: Target | None = None,
    processes: int = 1,
    profile: str | None = None,
    region: str | None = None,
    generator: Callable[[Target], Generator] | None = None,
    watch: Watch = _NOBODY,
) -> RoutingComparison:
    """Compare the routing of two variants, or of two endpoints.

    Parameters
    ----------
    endpoints : sequence of str
        One or two names.
    payloads : Payloads
        Both blocks of a pair send the same; those of the next pair have other numbers.
    plan : ComparisonPlan
        How much is sent, and in what order.
    variants : sequence of str
        One for each side; by default the only two of one endpoint.
    target : Target, optional
        Everything else about the requests; its endpoint and variant are each side's own.
    processes : int
        Of each side's generator.
    profile : str, optional
        A profile of the AWS CLI's configuration.
    region : str, optional
        By default that of ``target``, else the profile's.
    generator : callable, optional
        Opens another generator for a target. By default processes of this machine.
    watch : Watch, optional
        Is told what happens.

    Raises
    ------
    ConfigurationError
        ``LLT118``, ``LLT119``, ``LLT172`` before anything is sent; ``LLT143`` when the requests of
        the first pair reach no instance; ``LLA101``, ``LLA102`` and the
        generator's.
    """
    client, found_region = open_clients(profile, region or (target.region if target else None))
    watch.say("Reading both sides")
    with aws_errors_in_words():
        sides = read_sides(Account(client, found_region), endpoints, variants)
    for side in sides:
        for warning in side.warnings:
            watch.say(f"Warning: {warning}")
    common = target or Target(endpoints[0], found_region)
    targets = [
        replace(common, endpoint_name=side.endpoint, target_variant=side.fleet.variant)
        for side in sides
    ]
    with ExitStack() as stack:
        watch.say("Starting the load generators")
        generators = []
        for side_target in targets:
            opened = (
                generator(side_target)
                if generator is not None
                else GeneratorProcess.of_profile(side_target, payloads, processes, profile)
            )
            stack.callback(opened.close)
            generators.append(opened)
        watch.say(f"{plan.text}: {plan.seconds / 60:.1f} minutes")
        report = run(plan, sides, generators, watch)
    return replace(report, payload=payloads.source)


def run(
    plan: ComparisonPlan,
    sides: tuple[Side, Side],
    generators: Sequence[Generator],
    watch: Watch = _NOBODY,
) -> RoutingComparison:
    """Load both sides in turn, and compare."""
    report = RoutingComparison(sides, plan, started_at=time.time(), ended_at=time.time())
    try:
        # The order turns with the pairs that count, so that a repeat does not upset the balance.
        while len(report.pairs) < plan.pairs:
            number = len(report.pairs)
            # Or a cache would find whole prompts of earlier blocks, which no caller sends twice.
            first = PROMPTS_OF_A_STEP * (number + len(report.set_aside))
            pair = _pair(plan, sides, generators, number, first, watch)
            for result in pair.results:
                check_reached(result, lasting=True)
            if pair.client_bound and len(report.set_aside) < plan.pairs // 2:
                report = replace(report, set_aside=(*report.set_aside, pair))
            else:
                report = replace(report, pairs=(*report.pairs, pair), ended_at=time.time())
            watch.pair(pair, report)
    except KeyboardInterrupt:
        return replace(report, interrupted=True, ended_at=time.time())
    except LowLatencyEndpointError as error:
        if not report.pairs:
            raise
        return replace(report, interrupted=True, failure=str(error), ended_at=time.time())
    return report


def _pair(
    plan: ComparisonPlan,
    sides: tuple[Side, Side],
    generators: Sequence[Generator],
    number: int,
    first: int,
    watch: Watch,
) -> Pair:
    base_first = number % 2 == 0
    results = {}
    for at in (0, 1) if base_first else (1, 0):
        label = sides[at].routing
        results[at] = generators[at].run(
            replace(plan.step(number, label), first_number=first),
            partial(watch.second, label, number + 1),
        )
    return Pair(results[0], results[1], base_first)
