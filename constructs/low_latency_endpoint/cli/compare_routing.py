"""``low-latency compare-routing``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from .chosen_endpoints import stated_sides
from .load_inputs import ResultFiles, Sending, seconds_of
from .options import Markdown, argument, grouped, option


@dataclass
class Blocks:
    """How the sides are loaded in turn."""

    users: int | None = option(
        "Closed loop: this many callers, each waiting for its response.", metavar="N"
    )
    tps: float | None = option(
        "Open loop: send at this rate, regardless of outstanding requests.", metavar="TPS"
    )
    pairs: int = option(
        "How often each side is loaded. More pairs detect smaller differences.", 10, metavar="N"
    )
    block: str = option(
        "Length of each measured block. It should be much longer than a response takes.",
        "30s",
        metavar="TIME",
    )
    settle: str = option("Time after each switch that is not measured.", "3s", metavar="TIME")
    confidence: float = option("Confidence level of the intervals.", 0.95, metavar="SHARE")
    endpoints: list[str] | None = argument(
        "One endpoint with two variants, or two endpoints. Default: the one with two variants in "
        "the settings file.",
        metavar="ENDPOINT",
    )


@grouped
def compare_routing(
    blocks: Blocks,
    sending: Sending,
    results: ResultFiles,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Production variant of each side; give it twice. Default: both variants of the "
            "endpoint, or the first variant of each endpoint.",
        ),
    ] = None,
    markdown: Markdown = False,
) -> None:
    """Compare two routing strategies on your model. Requests cost money.

    Sends the same requests to two variants in alternating blocks, so that a slowdown of the machine
    or the fleet affects both. Reports the differences in latency and throughput with confidence
    intervals.

    \b
    Exit codes:
      0  compared, with or without a difference
      1  not a valid comparison: errors, client-bound, or interrupted early
      2  usage error, or there are not two sides to compare

    \b
    Examples:
      low-latency compare-routing sentiment --users 20 --payload body.json
      low-latency compare-routing --users 20
      low-latency compare-routing sentiment --variant a --variant b --tps 200
      low-latency compare-routing with-a with-b --users 40 -o result.json
    """
    results.check()
    from ..load_test.compare.compare_routing import compare_routing as compared
    from ..load_test.compare.comparison_plan import ComparisonPlan
    from ..load_test.search.result_file import write_text

    endpoints, meant = stated_sides(
        blocks.endpoints or [],
        sending.settings if blocks.endpoints else sending.needed_settings("compare-routing"),
        sending.profile,
        sending.region,
    )
    plan = ComparisonPlan(
        users=blocks.users,
        rate=blocks.tps,
        pairs=blocks.pairs,
        block_seconds=seconds_of(blocks.block, "--block"),
        settle_seconds=seconds_of(blocks.settle, "--settle"),
        poisson=not sending.constant,
        confidence=blocks.confidence,
        allowed_errors=sending.allowed_errors,
        seed=sending.seed,
    )
    endpoint = sending.stated(meant)
    payloads, target = sending.payloads(endpoint), sending.target(endpoints[0], endpoint)
    from .compare_routing_view import ComparisonDisplay
    from .output import print_document, say

    with ComparisonDisplay(quiet=results.json or markdown) as live:
        report = compared(
            endpoints,
            payloads,
            plan,
            variants=variant or (),
            target=target,
            processes=sending.processes,
            profile=sending.profile,
            region=sending.found_region(endpoint),
            watch=live.watch,
        )
    if results.output is not None:
        write_text(results.output, report.to_json())
    results.said()
    if results.json:
        say(report.to_json(), nl=False)
    else:
        print_document(report.document(), markdown=markdown)
    if not report.valid:
        raise typer.Exit(1)
