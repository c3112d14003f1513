"""``low-latency plan``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import LowLatencyEndpointError
from .cost_view import cost_parts, total_line, with_prices
from .options import Json, SettingsFile, flag, grouped, option
from .output import print_json, print_parts

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..load_test.search.plan_adoption import AdoptedLimit
    from ..plan.decisions import Explanation
    from ..plan.stack_minutes import StackMinutes
    from ..settings import Settings


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
    minutes: bool = flag("Show only how long AWS takes to create and to delete the stack.")
    price: list[str] | None = option(
        "What an instance type, or interface_endpoint in one zone, costs for an hour; over the "
        "settings' prices. Repeat it.",
        metavar="ITEM=USD",
    )
    verbose: bool = flag("Add notes and sources to the table.", short="-v")
    json: Json = False
    markdown: bool = flag("Print Markdown, for a pull request.")

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
        if self.against is not None and self.from_load_test is not None:
            raise typer.BadParameter(
                "--from-load-test says itself what it changes: give it without --against"
            )
        about_endpoints = self.endpoint or self.against or self.from_load_test or self.markdown
        if (self.cost or self.minutes) and about_endpoints:
            raise typer.BadParameter(
                "--cost and --minutes are about the whole stack, as text or with --json"
            )


@grouped
def plan(settings: SettingsFile, options: PlanOptions) -> None:
    """Show every number of the stack with its reason. Needs neither Node.js nor AWS.

    --json and --markdown hold everything, --verbose shows it in the table.

    \b
    Examples:
      low-latency plan endpoint.yaml
      low-latency plan endpoint.yaml --endpoint sentiment --json
      low-latency plan endpoint.yaml --against production.yaml
      low-latency plan new.yaml --against old.yaml --markdown --detailed-exitcode
      low-latency plan endpoint.yaml --from-load-test result.json --write
      low-latency plan endpoint.yaml --cost --minutes --price ml.g5.xlarge=1.00
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


def _plan(settings: Path, options: PlanOptions) -> None:
    if options.cost or options.minutes:
        _before_a_deploy(settings, options)
        return
    if options.against is not None:
        _compared(settings, options)
        return
    loaded, adopted = None, None
    if options.from_load_test is None:
        loaded = _loaded(settings, options)
        plans = _plans(loaded, options.endpoint)
    else:
        from ..load_test.search.plan_adoption import adopt_limit

        adopted = adopt_limit(
            settings,
            options.from_load_test,
            endpoint=options.endpoint,
            peak_tps=options.peak_tps,
            accept_lower_bound=options.accept_lower_bound,
        )
        named = options.endpoint
        plans = adopted.after if named is None else {named: adopted.after[named]}
    if options.json:
        data = {
            "settings": str(settings),
            "endpoints": {name: each.to_dict() for name, each in plans.items()},
        }
        if loaded is not None:
            data |= _stack_data(loaded)
        if adopted is not None:
            data["from_load_test"] = _adopted_data(adopted, options)
        print_json(data)
    elif options.markdown:
        parts = (f"## {name}\n\n{each.to_markdown()}" for name, each in plans.items())
        typer.echo("\n".join(parts), nl=False)
    else:
        for name, each in plans.items():
            print_parts(*_plan_table(name, each, options.verbose))
        if loaded is not None and options.endpoint is None and (line := _total_line(loaded)):
            typer.echo(line)
    if adopted is not None:
        _adopt(adopted, settings, options.write, quiet=options.json or options.markdown)


def _compared(path: Path, options: PlanOptions) -> None:
    """Print what deploying a file over another one does; exit as was asked for."""
    from ..settings.update.comparison import compare
    from .plan_changes import comparison_markdown, comparison_parts

    assert options.against is not None
    comparison = compare(_loaded(options.against, options), _loaded(path, options))
    if options.endpoint is not None:
        comparison = comparison.of(options.endpoint)
    before, after = str(options.against), str(path)
    if options.json:
        print_json({"settings": after, "against": before, **comparison.to_dict()})
    elif options.markdown:
        typer.echo(comparison_markdown(comparison, before, after), nl=False)
    else:
        print_parts(*comparison_parts(comparison, before, after))
    if options.detailed_exitcode and comparison.differences:
        raise typer.Exit(2)


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


def _adopted_data(adopted: AdoptedLimit, options: PlanOptions) -> dict[str, Any]:
    from ..settings.update.comparison import changed_decisions

    return {
        "file": str(options.from_load_test),
        "endpoint": adopted.key,
        "source": adopted.limit.source,
        "tps_per_instance": adopted.limit.tps_per_instance,
        "how": adopted.limit.how,
        "changes": changed_decisions(adopted.before, adopted.after),
        "raised": list(adopted.raised),
        "diff": adopted.edit.diff(),
        "written": options.write and adopted.edit.changed,
    }


def _before_a_deploy(path: Path, options: PlanOptions) -> None:
    settings = _loaded(path, options)
    if options.json:
        wanted = {"cost": options.cost, "minutes": options.minutes}
        found = {name: data for name, data in _stack_data(settings).items() if wanted[name]}
        print_json({"settings": str(path), **found})
        return
    from ..settings import stack_cost

    print_parts(
        *(cost_parts(settings, stack_cost(settings)) if options.cost else ()),
        *(map(str, _minutes(settings)) if options.minutes else ()),
    )


def _minutes(settings: Settings) -> tuple[StackMinutes, ...]:
    """How long creating and deleting the settings' stack take."""
    from ..plan.stack_minutes import stack_minutes

    return stack_minutes(warm_up=any(each.warm_up for each in settings.endpoints.values()))


def _stack_data(settings: Settings) -> dict[str, Any]:
    from ..settings import stack_cost

    minutes = {each.what: each.to_dict() for each in _minutes(settings)}
    return {"cost": stack_cost(settings).to_dict(), "minutes": minutes}


def _total_line(settings: Settings) -> str:
    from ..settings import stack_cost

    return total_line(stack_cost(settings))


def _loaded(path: Path, options: PlanOptions) -> Settings:
    from ..settings import load_settings

    return with_prices(load_settings(path), options.price or ())


def _plans(settings: Settings, only: str | None) -> dict[str, Explanation]:
    from ..settings import explain_endpoint

    names = list(settings.endpoints) if only is None else [only]
    return {name: explain_endpoint(settings, name) for name in names}


def _plan_table(name: str, plan: Explanation, verbose: bool) -> list[RenderableType]:
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=name,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        leading=1,
    )
    # Two columns, not three: at 80 characters the reasons would be columns of single words.
    # Names such as the scaling metric's stay whole, to be copied.
    longest = max((len(word) for each in plan for word in each.value_text.split()), default=0)
    table.add_column("Decision", ratio=4, min_width=min(longest, 42), overflow="fold")
    table.add_column("Why", ratio=7, overflow="fold")
    for decision in plan:
        what = Text(decision.title + "\n")
        what.append(decision.value_text, style="bold cyan")
        if decision.overridden:
            what.append(" (your choice)", style="dim")
        why = [Text(decision.rule)]
        if decision.inputs:
            why.append(Text(decision.inputs_text, style="dim"))
        if verbose:
            why += [Text(text, style="italic") for text in (decision.note, decision.source) if text]
        table.add_row(what, Text("\n").join(why))
    warnings = [
        Padding(Text.assemble(("Warning: ", "yellow"), warning), (0, 0, 1, 0))
        for warning in plan.warnings
    ]
    return [table, *warnings]
