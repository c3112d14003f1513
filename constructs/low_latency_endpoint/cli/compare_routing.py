"""``low-latency compare-routing``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from .load_inputs import Results, Sending, seconds_of
from .options import Markdown, flag, grouped, option
from .stated_endpoints import stated_sides

if TYPE_CHECKING:
    from ..load_test.compare.compare_routing import ComparisonPlan
    from ..load_test.compare.published import PublishedComparison
    from ..load_test.compare.report import RoutingComparison


class Preset(StrEnum):
    """Comparisons that have a name."""

    PUBLISHED = "published"


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


@dataclass
class Walk:
    """The published comparison, from size to size."""

    preset: Preset | None = option(
        "published: AWS's table, four users for each of 1, 5, 10, 15 and 20 instances. Prints "
        "how, and what it costs; see --change-instances."
    )
    change_instances: bool = flag(
        "With --preset: change the instance counts of both variants from size to size, and set "
        "them back. Costs instance-hours; asks before."
    )
    size: list[int] | None = option(
        "With --preset: only these numbers of instances.", metavar="N", min=1
    )
    yes: bool = flag("With --change-instances: do not ask.", short="-y")

    def check(self, blocks: Blocks) -> None:
        """Refuse options that do not go together."""
        if self.preset and (blocks.users is not None or blocks.tps is not None):
            raise typer.BadParameter("--preset states the load: leave out --users and --tps")
        if not self.preset and (self.change_instances or self.size):
            raise typer.BadParameter("--change-instances and --size go with --preset published")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of instances, by default the published ones."""
        from ..load_test.compare.published import SIZES

        return tuple(self.size or SIZES)


@grouped
def compare_routing(
    blocks: Blocks,
    walk: Walk,
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
      low-latency compare-routing sentiment --users 20 --payload body.json --html routing.html
      low-latency compare-routing --users 20     the two variants of endpoint.yaml
      low-latency compare-routing sentiment --variant random --variant least --tps 200
      low-latency compare-routing with-random with-least --users 40 --pairs 20 -o result.json
      low-latency compare-routing chat --variant least --variant prefix --users 40 \\
        --tokens input=1024,output=128,shared_prefix=0.8,prefixes=40
      low-latency compare-routing sentiment --preset published --change-instances
    """
    results.check()
    from ..load_test.compare.compare_routing import ComparisonPlan
    from ..load_test.compare.compare_routing import compare_routing as compared
    from ..load_test.search.result_file import write_text

    walk.check(blocks)
    endpoints, variants, meant = stated_sides(
        endpoints or [],
        variant or [],
        sending.settings if endpoints else sending.needed_settings(),
        sending.profile,
        sending.region,
    )
    plan = ComparisonPlan(
        users=4 if walk.preset else blocks.users,
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
    if sending.sends_prompts(stated):
        plan = plan.for_prompts()
    if stated is not None and stated.endpoint_name:
        endpoints = [stated.endpoint_name, *endpoints[1:]]
    profile, region = sending.profile, sending.found_region(stated)
    if walk.preset:
        from ..account.calls import Account
        from ..account.sessions import open_clients
        from ..load_test.compare.published import compare_published, cost_of, instructions
        from ..load_test.compare.sides import read_sides
        from ..plan.prices import price_of

        client, _ = open_clients(profile, region)
        sides = read_sides(Account(client, region), endpoints, variants)
        prices = sending.prices(stated, region)
        price = price_of(sides.base.fleet.instance_type, region, prices)
        cost = cost_of(plan, walk.sizes, None if price is None else price.usd)
        if not walk.change_instances:
            typer.echo("\n".join([f"{cost}.", *instructions(sides, walk.sizes)]))
            return
    payloads, target = sending.payloads(stated), sending.target(endpoints[0], stated)
    if walk.preset:
        typer.echo(f"{cost}, with up to {2 * max(walk.sizes)} instances at once.", err=True)
        if not walk.yes:
            typer.confirm("Change the instance counts?", abort=True, err=True)
    from .compare_routing_view import ComparisonDisplay, summary

    with ComparisonDisplay(quiet=results.json or markdown) as live:

        def compare(one: ComparisonPlan) -> RoutingComparison:
            return compared(
                endpoints,
                payloads,
                one,
                variants=variants,
                target=target,
                processes=sending.processes,
                profile=profile,
                region=region,
                watch=live.watch,
            )

        report: RoutingComparison | PublishedComparison
        if walk.preset:
            report = compare_published(
                endpoints,
                plan,
                compare,
                variants=variants,
                sizes=walk.sizes,
                profile=profile,
                region=region,
                watch=live.watch,
            )
        else:
            report = compare(plan)
    if results.output is not None:
        write_text(results.output, report.to_json())
    if results.html is not None:
        from ..load_test.compare.page import write_page

        write_page(report, results.html)
    results.said()
    if results.json:
        typer.echo(report.to_json(), nl=False)
    else:
        summary(report, markdown=markdown)
    if not report.valid:
        raise typer.Exit(1)
