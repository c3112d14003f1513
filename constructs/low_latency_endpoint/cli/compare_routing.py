"""``low-latency compare-routing``."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .load_inputs import (
    check_installed,
    check_writable,
    content_type_of,
    payloads_of,
    region_of,
    seconds_of,
    stated_in,
)
from .options import (
    Accept,
    AllowedErrors,
    Constant,
    ContentType,
    Expect,
    Html,
    Json,
    Payload,
    PlainHttp,
    Profile,
    Region,
    Seed,
    Stream,
    Timeout,
    Zonal,
)

if TYPE_CHECKING:
    from ..load_test.compare_routing import ComparisonPlan, Watch
    from ..load_test.compare_routing_published import PublishedComparison
    from ..load_test.compare_routing_report import RoutingComparison


class Preset(StrEnum):
    """Comparisons that have a name."""

    PUBLISHED = "published"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare-routing")(compare_routing)


def compare_routing(
    endpoints: Annotated[list[str], typer.Argument(
        metavar="ENDPOINT [OTHER]", show_default=False,
        help="An endpoint of two variants, or two endpoints.")],
    variant: Annotated[list[str] | None, typer.Option(
        metavar="NAME", help="Production variant of each side, in turn; give it twice. Default: "
        "the endpoint's only two, or the first of each endpoint.")] = None,
    users: Annotated[int | None, typer.Option(
        metavar="N", help="Closed loop: callers that each wait for their answer.")] = None,
    rate: Annotated[float | None, typer.Option(
        metavar="TPS", help="Open loop: requests per second, whoever waits.")] = None,
    preset: Annotated[Preset | None, typer.Option(
        help="published: AWS's table, four users for each of 1, 5, 10, 15 and 20 instances. "
        "Prints how, and what it costs; see --change-instances.")] = None,
    change_instances: Annotated[bool, typer.Option(
        "--change-instances", help="With --preset: change the instance counts of both variants "
        "from size to size, and set them back. Costs instance-hours; asks before.")] = False,
    size: Annotated[list[int] | None, typer.Option(
        metavar="N", min=1, help="With --preset: only these numbers of instances.")] = None,
    hourly_price: Annotated[float | None, typer.Option(
        metavar="USD", min=0, help="With --preset: of one instance, to tell the cost.")] = None,
    yes: Annotated[bool, typer.Option(
        "--yes", "-y", help="With --change-instances: do not ask.")] = False,
    pairs: Annotated[int, typer.Option(
        help="How often each side is loaded; more see smaller differences.")] = 10,
    block: Annotated[str, typer.Option(
        metavar="TIME", help="Length of each block that counts; much longer than an answer "
        "takes.")] = "30s",
    settle: Annotated[str, typer.Option(
        metavar="TIME", help="Sent after each switch, and not counted.")] = "3s",
    confidence: Annotated[float, typer.Option(
        help="Of each interval.")] = 0.95,
    allowed_errors: AllowedErrors = 0.001,
    constant: Constant = False,
    seed: Seed = 1,
    same_routing: Annotated[bool, typer.Option(
        "--same-routing", help="Compare sides that route alike: a test of the test.")] = False,
    settings: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Settings file: warm-up payload.")] = None,
    payload: Payload = None,
    content_type: ContentType = None,
    accept: Accept = None,
    expect: Expect = None,
    stream: Stream = False,
    timeout: Timeout = "60s",
    zonal: Zonal = None,
    allow_plain_http: PlainHttp = False,
    output: Annotated[Path | None, typer.Option(
        "--output", "-o", metavar="FILE", help="Write the result as JSON.")] = None,
    html: Html = None,
    json: Json = False,
    processes: Annotated[int, typer.Option(
        help="Generator processes on this machine, for each side.")] = 1,
    profile: Profile = None,
    region: Region = None,
) -> None:
    """Compare RANDOM with LEAST_OUTSTANDING_REQUESTS on your model. Costs what the requests cost.

    Sends the same requests to two variants in turn, in blocks, so that a machine or a fleet that
    becomes slower meets both; says by how much latency and throughput differ, and how sure that is.

    Exit codes: 0 compared, with a difference or without; 1 the figures are no comparison (errors,
    client-bound, interrupted early); 2 usage, or there are no two sides.

    \b
    Examples:
      low-latency compare-routing sentiment --users 20 --payload body.json --html routing.html
      low-latency compare-routing sentiment --variant random --variant least --rate 200
      low-latency compare-routing with-random with-least --users 40 --pairs 20 -o result.json
      low-latency compare-routing sentiment --preset published --change-instances
    """
    check_installed(html)
    files = [each for each in (output, html) if each is not None]
    check_writable(files)
    from ..load_test.compare_routing import ComparisonPlan
    from ..load_test.compare_routing import compare_routing as compared
    from ..load_test.result_file import write_text
    from ..load_test.steps import Target

    _check_options(preset, change_instances, size, users, rate)
    plan = ComparisonPlan(
        users=4 if preset else users, rate=rate, pairs=pairs,
        block_seconds=seconds_of(block, "--block"), settle_seconds=seconds_of(settle, "--settle"),
        poisson=not constant, confidence=confidence, allowed_errors=allowed_errors, seed=seed,
        same_routing=same_routing)
    stated = stated_in(settings, endpoints[0])
    if stated is not None and stated.endpoint_name:
        endpoints = [stated.endpoint_name, *endpoints[1:]]
    found_region = region_of(profile, region, stated)
    sizes = tuple(size) if size else None
    if preset and not change_instances:
        _print_instructions(endpoints, variant or [], plan, sizes, hourly_price, profile,
                            found_region)
        return
    payloads = payloads_of(payload, stated)
    target = Target(
        endpoints[0], found_region, tuple(zonal or ()),
        content_type=content_type_of(content_type, payload, stated),
        accept=accept, target_model=stated.target_model if stated else None, streaming=stream,
        timeout_seconds=seconds_of(timeout, "--timeout"), expected=expect,
        allow_plain_http=allow_plain_http)
    if preset:
        _agree(plan, sizes, hourly_price, yes)
    from .compare_routing_view import Live, summary

    with Live(quiet=json) as live:
        def compare(one: ComparisonPlan) -> RoutingComparison:
            return compared(endpoints, payloads, one, variants=variant or [], target=target,
                            processes=processes, profile=profile, region=found_region,
                            watch=live.watch)

        report: RoutingComparison | PublishedComparison
        if preset:
            report = _walk(endpoints, variant or [], plan, compare, sizes, profile, found_region,
                           live.watch)
        else:
            report = compare(plan)
    if output is not None:
        write_text(output, report.to_json())
    if html is not None:
        from ..load_test.compare_routing_page import write_page

        write_page(report, html)
    for file in files:
        typer.echo(f"wrote {file}", err=True)
    if json:
        typer.echo(report.to_json(), nl=False)
    else:
        summary(report)
    if not report.valid:
        raise typer.Exit(1)


def _check_options(preset: Preset | None, change_instances: bool, size: list[int] | None,
                   users: int | None, rate: float | None) -> None:
    if preset and (users is not None or rate is not None):
        raise typer.BadParameter("--preset states the load: leave out --users and --rate")
    if not preset and (change_instances or size):
        raise typer.BadParameter("--change-instances and --size go with --preset published")


def _print_instructions(endpoints: list[str], variants: list[str], plan: ComparisonPlan,
                        sizes: tuple[int, ...] | None, price: float | None, profile: str | None,
                        region: str) -> None:
    from ..account.calls import Account
    from ..account.sessions import open_clients
    from ..load_test.compare_routing_published import PublishedCost, instructions
    from ..load_test.compare_routing_sides import read_sides

    client, _ = open_clients(profile, region)
    sides = read_sides(Account(client, region), endpoints, variants)
    for line in instructions(sides, PublishedCost.of(plan, sizes, price)):
        typer.echo(line)


def _agree(plan: ComparisonPlan, sizes: tuple[int, ...] | None, price: float | None,
           yes: bool) -> None:
    """Tell the cost, and go on only if that is wanted."""
    from ..load_test.compare_routing_published import PublishedCost

    cost = PublishedCost.of(plan, sizes, price)
    typer.echo(f"{cost}, with up to {2 * max(cost.sizes)} instances at once.", err=True)
    if not yes:
        typer.confirm("Change the instance counts?", abort=True, err=True)


def _walk(endpoints: list[str], variants: list[str], plan: ComparisonPlan,
          compare: Callable[[ComparisonPlan], RoutingComparison], sizes: tuple[int, ...] | None,
          profile: str | None, region: str, watch: Watch) -> PublishedComparison:
    from ..load_test.compare_routing_published import compare_published

    return compare_published(endpoints, plan, compare, variants=variants, sizes=sizes,
                             profile=profile, region=region, watch=watch)
