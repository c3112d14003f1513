"""``low-latency plan``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .cost_view import along_line, cost_data, cost_parts, total_line, with_prices
from .options import Json, SettingsFile, flag, grouped, option
from .output import print_json, print_parts

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..load_test.search.plan_adoption import AdoptedLimit
    from ..plan.decisions import Explanation
    from ..plan.stack_minutes import StackMinutes
    from ..settings import Settings
    from ..simulate import Shape


@dataclass
class PlanOptions:
    """What is planned, and what is shown of it."""

    endpoint: str | None = option(
        "Only this endpoint of the file; all of them without it.", metavar="NAME"
    )
    against: Path | None = option(
        "Show only what differs from this settings file's plan.", metavar="OTHER"
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
def plan(settings: SettingsFile, options: PlanOptions) -> None:
    """Show every number of the stack with its reason. Needs neither Node.js nor AWS.

    --json and --markdown hold everything, --verbose shows it in the table.

    \b
    Examples:
      low-latency plan endpoint.yaml
      low-latency plan endpoint.yaml --endpoint sentiment --json
      low-latency plan endpoint.yaml --against production.yaml
      low-latency plan endpoint.yaml --from-load-test result.json --write
      low-latency plan endpoint.yaml --cost --minutes --price ml.g5.xlarge=1.00
      low-latency plan endpoint.yaml --cost --traffic-from invocations.json
    """
    options.check()
    if options.cost or options.minutes:
        _before_a_deploy(settings, options)
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
    if options.against is not None:
        other = _plans(_loaded(options.against, options), options.endpoint)
        _show_changes(_changes(other, plans), settings, options)
    elif options.json:
        data = {
            "settings": str(settings),
            "endpoints": {name: each.to_dict() for name, each in plans.items()},
        }
        if loaded is not None:
            data |= _stack_data(loaded, options.day)
        if adopted is not None:
            data["from_load_test"] = _adopted_data(adopted, options)
        print_json(data)
    elif options.markdown:
        parts = (f"## {name}\n\n{each.to_markdown()}" for name, each in plans.items())
        typer.echo("\n".join(parts), nl=False)
    else:
        for name, each in plans.items():
            print_parts(*_plan_table(name, each, options.verbose))
        if loaded is not None and options.endpoint is None:
            print_parts(_total_line(loaded, options.day))
    if adopted is not None:
        _adopt(adopted, settings, options.write, quiet=options.json or options.markdown)


def _show_changes(changes: list[dict[str, Any]], settings: Path, options: PlanOptions) -> None:
    before, after = str(options.against), str(settings)
    if options.json:
        print_json({"settings": after, "against": before, "changes": changes})
    elif options.markdown:
        typer.echo(_changes_markdown(changes, before, after))
    else:
        _print_changes(changes, before, after)


def _adopt(adopted: AdoptedLimit, settings: Path, write: bool, *, quiet: bool) -> None:
    """Say what the load test changes, and write it when that was asked for."""
    if not quiet:
        from rich.text import Text

        print_parts(Text(f"{adopted.key}: {adopted.limit.source}: {adopted.limit.how}\n"))
        changes = _changes(adopted.before, adopted.after)
        if changes:
            _print_changes(changes, "before", "as measured")
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
    return {
        "file": str(options.from_load_test),
        "endpoint": adopted.key,
        "source": adopted.limit.source,
        "tps_per_instance": adopted.limit.tps_per_instance,
        "how": adopted.limit.how,
        "changes": _changes(adopted.before, adopted.after),
        "raised": list(adopted.raised),
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


def _total_line(settings: Settings, day: Shape | None) -> str:
    from ..settings import stack_cost

    cost = stack_cost(settings)
    along = "" if day is None else along_line(settings, cost, day)
    return "\n".join(filter(None, (total_line(cost), along)))


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


def _changes(before: dict[str, Explanation], after: dict[str, Explanation]) -> list[dict[str, Any]]:
    """What differs, by endpoint and decision; values as text, none where it is not decided."""
    changes = []
    for name in [*before, *(name for name in after if name not in before)]:
        old = {each.name: each for each in before.get(name, ())}
        new = {each.name: each for each in after.get(name, ())}
        for decision in [*old, *(each for each in new if each not in old)]:
            was, now = old.get(decision), new.get(decision)
            if was is None or now is None or was.value != now.value:
                changes.append(
                    {
                        "endpoint": name,
                        "decision": decision,
                        "title": (now or was).title,  # type: ignore[union-attr]  # one of them is there
                        "before": was.value_text if was else None,
                        "after": now.value_text if now else None,
                    }
                )
    return changes


def _changes_markdown(changes: list[dict[str, Any]], before: str, after: str) -> str:
    if not changes:
        return f"{after} and {before} have the same plan."
    rows = [f"| Endpoint | Decision | {before} | {after} |", "|---|---|---|---|"]
    rows += [
        f"| {each['endpoint']} | {each['title']} | {each['before'] or '-'} | "
        f"**{each['after'] or '-'}** |"
        for each in changes
    ]
    return "\n".join(rows)


def _print_changes(changes: list[dict[str, Any]], before: str, after: str) -> None:
    from ..report.tables import Cell, Table

    if not changes:
        typer.echo(f"{after} and {before} have the same plan.")
        return
    print_parts(
        Table(
            ("Endpoint", "Decision", before, after),
            [
                (
                    each["endpoint"],
                    each["title"],
                    each["before"] or "-",
                    Cell(each["after"] or "-", "strong"),
                )
                for each in changes
            ],
            align="l",
        )
    )
