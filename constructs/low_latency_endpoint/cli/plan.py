"""``low-latency plan``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import LowLatencyEndpointError
from .cost_view import along_line, cost_data, cost_parts, total_line, with_prices
from .options import (
    ENDPOINT_YAML,
    Json,
    Markdown,
    Prices,
    SettingsFile,
    Strict,
    flag,
    grouped,
    option,
)
from .output import print_json, print_parts

if TYPE_CHECKING:
    from ..load_test.search.plan_adoption import AdoptedLimit
    from ..plan.decisions import Explanation
    from ..plan.stack_minutes import StackMinutes
    from ..settings import Settings
    from ..settings.update.comparison import Comparison
    from ..settings.update.effects import Consequence
    from ..simulate import Shape


@dataclass
class PlanOptions:
    """What is planned, and what is shown of it."""

    endpoint: str | None = option(
        "Only this endpoint of the file; all of them without it.", metavar="NAME"
    )
    against: Path | None = option(
        "Show what deploying the file over this one does, difference by difference.", metavar="OLD"
    )
    detailed_exitcode: bool = flag(
        "With --against, exit as terraform plan does: 0 no difference, 1 error, 2 differences."
    )
    from_load_test: Path | None = option(
        "Plan with the throughput that low-latency load-test --find-limit measured; its result "
        "file.",
        metavar="FILE",
    )
    peak_tps: float | None = option(
        "With --from-load-test: the peak to hold, where the settings do not state it.",
        metavar="TPS",
    )
    accept_lower_bound: bool = flag(
        "With --from-load-test: plan with the highest rate that was tried, though the limit "
        "was not reached."
    )
    write: bool = flag(
        "With --from-load-test: write that throughput into the settings file, and raise "
        "numbers of instances that are too low for it; comments stay."
    )
    cost: bool = flag(
        "Show only what the stack costs for an hour, at least, at first, at most and in an update."
    )
    traffic: str | None = option(
        "A usual day, to say what a month costs: daily-wave, or another shape of low-latency "
        "simulate.",
        metavar="SHAPE",
    )
    traffic_from: Path | None = option(
        "The same as it was recorded: CSV of times and counts, or CloudWatch's answer with sums "
        "of Invocations (JSON).",
        metavar="FILE",
    )
    minutes: bool = flag("Show only how long AWS takes to create and to delete the stack.")
    price: Prices = None
    strict: Strict = False
    verbose: bool = flag(
        "Show every decision too, with its rule, its inputs, notes and source.", short="-v"
    )
    json: Json = False
    markdown: Markdown = False

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.json and self.markdown:
            raise typer.BadParameter("give --json or --markdown, not both")
        if self.from_load_test is None and (
            self.write or self.accept_lower_bound or self.peak_tps is not None
        ):
            raise typer.BadParameter(
                "--write, --peak-tps and --accept-lower-bound go with --from-load-test"
            )
        if self.from_load_test is not None and self.price:
            raise typer.BadParameter("with --from-load-test, state prices in the settings file")
        if self.detailed_exitcode and self.against is None:
            raise typer.BadParameter("--detailed-exitcode goes with --against")
        if self.traffic is not None and self.traffic_from is not None:
            raise typer.BadParameter("give one of --traffic and --traffic-from")
        about_endpoints = self.endpoint or self.against or self.from_load_test or self.markdown
        whole = self.cost or self.minutes or self.traffic or self.traffic_from
        if whole and about_endpoints:
            raise typer.BadParameter(
                "--cost, --minutes and --traffic are about the whole stack, as text or with --json"
            )

    @property
    def day(self) -> Shape | None:
        """The usual day; none where nobody said what it is like."""
        from ..simulate import read_recorded_traffic, shape

        if self.traffic_from is not None:
            return read_recorded_traffic(self.traffic_from)
        return None if self.traffic is None else shape(self.traffic)


@grouped
def plan(options: PlanOptions, settings: SettingsFile = ENDPOINT_YAML) -> None:
    """Show what follows from a settings file. Needs neither Node.js nor AWS.

    Six lines and the warnings for each endpoint; with --verbose, --json and --markdown every number
    with its reason. With --against, what deploying the file over another one does.

    \b
    Exit codes:
      0  planned; with --detailed-exitcode: no difference
      1  with --strict: a warning; with --detailed-exitcode: usage, or a file is wrong
      2  usage, or the settings file is wrong; with --detailed-exitcode: differences

    \b
    Examples:
      low-latency plan                             endpoint.yaml of this folder
      low-latency plan endpoint.yaml --endpoint sentiment --json
      low-latency plan endpoint.yaml --against production.yaml
      low-latency plan new.yaml --against old.yaml --markdown --detailed-exitcode
      low-latency plan endpoint.yaml --from-load-test result.json --write
      low-latency plan endpoint.yaml --cost --minutes --price ml.g5.xlarge=1.00
      low-latency plan endpoint.yaml --cost --traffic-from invocations.json
    """
    with _exit_codes(options):
        _plan(settings, options)


@contextmanager
def _exit_codes(options: PlanOptions) -> Iterator[None]:
    """With --detailed-exitcode an error is 1, as 2 says that there are differences."""
    try:
        options.check()
        yield
    except (LowLatencyEndpointError, typer.BadParameter, OSError) as error:
        if not options.detailed_exitcode:
            raise
        text = error.format_message() if isinstance(error, typer.BadParameter) else str(error)
        typer.echo(text, err=True)
        raise typer.Exit(1) from None


def _plan(path: Path, options: PlanOptions) -> None:
    if options.cost or options.minutes:
        _before_a_deploy(path, options)
        return
    adopted = None if options.from_load_test is None else _adopted(path, options)
    settings = _loaded(path, options) if adopted is None else adopted.settings_after
    different = False
    if options.against is not None:
        comparison = _compared(path, settings, options)
        different, warned = bool(comparison.differences), bool(comparison.warnings["gained"])
    else:
        warned = _show(path, settings, adopted, options)
    if adopted is not None:
        _adopt(adopted, path, options.write, quiet=options.json or options.markdown)
    if different and options.detailed_exitcode:
        raise typer.Exit(2)
    if warned and options.strict:
        raise typer.Exit(1)


def _adopted(path: Path, options: PlanOptions) -> AdoptedLimit:
    from ..load_test.search.plan_adoption import adopt_limit

    assert options.from_load_test is not None
    return adopt_limit(
        path,
        options.from_load_test,
        endpoint=options.endpoint,
        peak_tps=options.peak_tps,
        accept_lower_bound=options.accept_lower_bound,
    )


def _show(
    path: Path, settings: Settings, adopted: AdoptedLimit | None, options: PlanOptions
) -> bool:
    """Print the plans of a file's endpoints, or of the one that was asked for; whether one warns."""
    named = options.endpoint
    plans = _plans(settings, named) if adopted is None else adopted.after
    if adopted is not None and named is not None:
        plans = {named: plans[named]}
    if options.json:
        data: dict[str, Any] = {
            "settings": str(path),
            "endpoints": {name: each.to_dict() for name, each in plans.items()},
        }
        if adopted is None:
            data |= _stack_data(settings, options.day) | _shared_data(settings)
        else:
            data["from_load_test"] = _adopted_data(adopted, options)
        print_json(data)
    elif options.markdown:
        parts = (f"## {name}\n\n{each.to_markdown()}" for name, each in plans.items())
        typer.echo("\n".join(parts), nl=False)
    else:
        from ..settings import shared_resources
        from .plan_view import plan_parts, shared_lines

        zones = ", ".join(settings.client_zones.zones)
        print_parts(
            f"{settings.stack_name}: callers in {zones}\n",
            *plan_parts(plans, verbose=options.verbose),
        )
        if named is None:
            print_parts(*shared_lines(shared_resources(settings)))
        if adopted is None and named is None and (line := _total_line(settings, options.day)):
            print_parts(line)
        if not options.verbose:
            typer.echo("-v shows every decision with its rule and its source.")
    return any(each.warnings for each in plans.values())


def _compared(path: Path, after: Settings, options: PlanOptions) -> Comparison:
    """Print what deploying settings over another file does."""
    from ..settings.update.comparison import compare
    from .plan_changes import comparison_markdown, comparison_parts

    assert options.against is not None
    comparison = compare(_loaded(options.against, options), after)
    if options.endpoint is not None:
        comparison = comparison.of(options.endpoint)
    names = str(options.against), str(path)
    if options.json:
        print_json({"settings": names[1], "against": names[0], **comparison.to_dict()})
    elif options.markdown:
        typer.echo(comparison_markdown(comparison, *names), nl=False)
    else:
        print_parts(*comparison_parts(comparison, *names))
    return comparison


def _adopt(adopted: AdoptedLimit, settings: Path, write: bool, *, quiet: bool) -> None:
    """Say what the load test changes, and write it when that was asked for."""
    if not quiet:
        from rich.text import Text

        from ..settings.update.comparison import changed_decisions
        from .plan_changes import decision_table

        print_parts(Text(f"{adopted.key}: {adopted.limit.source}: {adopted.limit.how}\n"))
        changes = changed_decisions(adopted.before, adopted.after)
        if changes:
            print_parts(decision_table(changes, "before", "as measured"))
        for line in adopted.raised:
            typer.echo(f"Raised too, as the settings state it: {line}")
        effect, said, _ = _deploying(adopted)
        print_parts(Text(f"Deploying it: {effect.word}: {said}\n"))
        if adopted.edit.changed:
            typer.echo(adopted.edit.diff())
        else:
            typer.echo(f"{settings} says so already.")
    if not adopted.edit.changed:
        return
    if write:
        from ..settings.yaml_editing import write_edit

        write_edit(adopted.edit)
        typer.echo(f"wrote {settings}", err=True)
    else:
        typer.echo(f"{settings} is as it was; --write changes it.", err=True)


def _deploying(adopted: AdoptedLimit) -> Consequence:
    """What deploying the written file does to the endpoint, if the file as it was is deployed."""
    from ..settings.update.comparison import compare

    return compare(adopted.settings_before, adopted.settings_after).outcomes[adopted.key]


def _adopted_data(adopted: AdoptedLimit, options: PlanOptions) -> dict[str, Any]:
    from ..settings.update.comparison import changed_decisions

    effect, said, _ = _deploying(adopted)
    return {
        "file": str(options.from_load_test),
        "endpoint": adopted.key,
        "source": adopted.limit.source,
        "tps_per_instance": adopted.limit.tps_per_instance,
        "how": adopted.limit.how,
        "changes": changed_decisions(adopted.before, adopted.after),
        "raised": list(adopted.raised),
        "deploying": {"effect": effect.word, "text": said},
        "diff": adopted.edit.diff(),
        "written": options.write and adopted.edit.changed,
    }


def _before_a_deploy(path: Path, options: PlanOptions) -> None:
    settings = _loaded(path, options)
    if options.json:
        wanted = {"cost": options.cost, "minutes": options.minutes}
        found = {
            name: data for name, data in _stack_data(settings, options.day).items() if wanted[name]
        }
        print_json({"settings": str(path), **found})
        return
    from ..settings import stack_cost

    print_parts(
        *(cost_parts(settings, stack_cost(settings), options.day) if options.cost else ()),
        *(map(str, _minutes(settings)) if options.minutes else ()),
    )


def _minutes(settings: Settings) -> tuple[StackMinutes, ...]:
    """How long creating and deleting the settings' stack take."""
    from ..plan.stack_minutes import stack_minutes

    return stack_minutes(warm_up=any(each.warm_up for each in settings.endpoints.values()))


def _stack_data(settings: Settings, day: Shape | None) -> dict[str, Any]:
    minutes = {each.what: each.to_dict() for each in _minutes(settings)}
    return {"cost": cost_data(settings, day), "minutes": minutes}


def _shared_data(settings: Settings) -> dict[str, Any]:
    from ..settings import shared_resources

    return {"shared": shared_resources(settings).to_dict()}


def _total_line(settings: Settings, day: Shape | None) -> str:
    from ..settings import stack_cost

    cost = stack_cost(settings)
    along = "" if day is None else along_line(settings, cost, day)
    return "\n".join(filter(None, (total_line(cost), along)))


def _loaded(path: Path, options: PlanOptions) -> Settings:
    from ..settings import load_settings

    return with_prices(load_settings(path), options.price or ())


def _plans(settings: Settings, only: str | None) -> dict[str, Explanation]:
    from ..settings import explain_variants

    return explain_variants(settings, only)
