"""``low-latency compare-routing``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from .load_inputs import Results, Sending, seconds_of
from .options import Markdown, flag, grouped, option
from .stated_endpoints import stated_sides


@dataclass
class Blocks:
    """How the sides are loaded in turn."""

    users: int | None = option("Closed loop: callers that each wait for their answer.", metavar="N")
    tps: float | None = option("Open loop: requests per second, whoever waits.", metavar="TPS")
    pairs: int = option(
        "How often each side is loaded; more see smaller differences.", 10, metavar="N"
    )
    block: str = option(
        "Length of each block that counts; much longer than an answer takes.", "30s", metavar="TIME"
    )
    settle: str = option("Sent after each switch, and not counted.", "3s", metavar="TIME")
    warm: str | None = option(
        "Sent to each side before the first pair and not counted, so that prefix caches fill. "
        "Default: as long as a block where --tokens makes the requests, else 0s.",
        metavar="TIME",
    )
    confidence: float = option("Of each interval.", 0.95, metavar="SHARE")
    same_routing: bool = flag("Compare sides that route alike: a test of the test.")


@grouped
def compare_routing(
    blocks: Blocks,
    sending: Sending,
    results: Results,
    endpoints: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENDPOINT",
            show_default=False,
            help="An endpoint of two variants, or two endpoints. Default: the settings' with two "
            "variants.",
        ),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Production variant of each side, in turn; give it twice. Default: "
            "the endpoint's only two, or the first of each endpoint.",
        ),
    ] = None,
    markdown: Markdown = False,
) -> None:
    """Compare two routing strategies on your model. Costs what the requests cost.

    Sends the same requests to two variants in turn, in blocks, so that a machine or a fleet that
    becomes slower meets both; says by how much latency and throughput differ, and how sure that is.
    Answers to --tokens are read token by token.

    \b
    Exit codes:
      0  compared, with a difference or without
      1  the figures are no comparison: errors, client-bound, interrupted early
      2  usage, or there are no two sides

    \b
    Examples:
      low-latency compare-routing sentiment --users 20 --payload body.json
      low-latency compare-routing --users 20     the two variants of endpoint.yaml
      low-latency compare-routing sentiment --variant random --variant least --tps 200
      low-latency compare-routing with-random with-least --users 40 --pairs 20 -o result.json
      low-latency compare-routing chat --variant least --variant prefix --users 40 \\
        --tokens input=1024,output=128,shared_prefix=0.8,prefixes=40
    """
    results.check()
    from ..load_test.compare.compare_routing import ComparisonPlan
    from ..load_test.compare.compare_routing import compare_routing as compared
    from ..load_test.search.result_file import write_text

    endpoints, variants, meant = stated_sides(
        endpoints or [],
        variant or [],
        sending.settings if endpoints else sending.needed_settings("compare-routing"),
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
        same_routing=blocks.same_routing,
        warm_seconds=None if blocks.warm is None else seconds_of(blocks.warm, "--warm"),
    )
    stated = sending.stated(meant)
    if stated is not None and stated.endpoint_name:
        endpoints = [stated.endpoint_name, *endpoints[1:]]
    payloads, target = sending.payloads(stated), sending.target(endpoints[0], stated)
    from .compare_routing_view import ComparisonDisplay, summary

    with ComparisonDisplay(quiet=results.json or markdown) as live:
        report = compared(
            endpoints,
            payloads,
            plan,
            variants=variants,
            target=target,
            processes=sending.processes,
            profile=sending.profile,
            region=sending.found_region(stated),
            watch=live.watch,
        )
    if results.output is not None:
        write_text(results.output, report.to_json())
    results.said()
    if results.json:
        typer.echo(report.to_json(), nl=False)
    else:
        summary(report, markdown=markdown)
    if not report.valid:
        raise typer.Exit(1)
