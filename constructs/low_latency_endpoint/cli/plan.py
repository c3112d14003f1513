"""``low-latency plan``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .cost_view import cost_parts, minutes_data, minutes_parts, total_line, with_prices
from .options import Json, SettingsFile
from .output import print_json, print_parts

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..load_test.search.plan_adoption import AdoptedLimit
    from ..plan.decisions import Explanation
    from ..settings import Settings


def plan(
    settings: SettingsFile,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only this endpoint of the file; all of them without it."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="OTHER", help="Show only what differs from this settings file's plan."
        ),
    ] = None,
    from_load_test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Plan with the throughput that low-latency load-test --find-limit "
            "measured; its result file.",
        ),
    ] = None,
    peak_tps: Annotated[
        float | None,
        typer.Option(
            metavar="TPS",
            help="With --from-load-test: the peak to hold, where the settings do not state it.",
        ),
    ] = None,
    accept_lower_bound: Annotated[
        bool,
        typer.Option(
            "--accept-lower-bound",
            help="With --from-load-test: plan with the highest rate that was "
            "tried, though the limit was not reached.",
        ),
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="With --from-load-test: write that throughput into the settings file, and "
            "raise numbers of instances that are too low for it; comments stay.",
        ),
    ] = False,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost",
            help="Show only what the stack costs for an hour, at least, at first, at most "
            "and in an update.",
        ),
    ] = False,
    minutes: Annotated[
        bool,
        typer.Option(
            "--minutes", help="Show only how long AWS takes to create and to delete the stack."
        ),
    ] = False,
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ITEM=USD",
            help="What an instance type, or interface_endpoint in one zone, costs "
            "for an hour; over the settings' prices. Repeat it.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Add notes and sources to the table.")
    ] = False,
    json: Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")
    ] = False,
) -> None:
    """Show every number of the stack with its reason. Needs neither Node.js nor AWS.

    --json and --markdown hold everything, --verbose shows it in the table.

    \b
    Examples:
      low-latency plan endpoint.yaml
      low-latency plan endpoint.yaml --endpoint sentiment --json
      low-latency plan endpoint.yaml --against production.yaml
      low-latency plan endpoint.yaml --from-load-test result.json --write
      low-latency plan endpoint.yaml --cost --minutes --price ml.g5.xlarge=1.00
    """
    if json and markdown:
        raise typer.BadParameter("give --json or --markdown, not both")
    if from_load_test is None and (write or accept_lower_bound or peak_tps is not None):
        raise typer.BadParameter(
            "--write, --peak-tps and --accept-lower-bound go with --from-load-test"
        )
    if from_load_test is not None and price:
        raise typer.BadParameter("with --from-load-test, state prices in the settings file")
    if cost or minutes:
        if endpoint or against or from_load_test or markdown:
            raise typer.BadParameter(
                "--cost and --minutes are about the whole stack, as text or with --json"
            )
        _before_a_deploy(settings, price or (), cost=cost, minutes=minutes, json=json)
        return
    adopted, loaded = None, None
    if from_load_test is not None:
        from ..load_test.search.plan_adoption import adopt_limit

        adopted = adopt_limit(
            settings,
            from_load_test,
            endpoint=endpoint,
            peak_tps=peak_tps,
            accept_lower_bound=accept_lower_bound,
        )
        plans = _only(adopted.after, endpoint)
    else:
        loaded = _loaded(settings, price or ())
        plans = _plans(loaded, endpoint)
    if against is not None:
        changes = _changes(_plans(_loaded(against, price or ()), endpoint), plans)
        if json:
            print_json({"settings": str(settings), "against": str(against), "changes": changes})
        elif markdown:
            typer.echo(_changes_markdown(changes, str(against), str(settings)))
        else:
            _print_changes(changes, str(against), str(settings))
    elif json:
        print_json(
            {
                "settings": str(settings),
                "endpoints": {name: each.to_dict() for name, each in plans.items()},
                **({} if loaded is None else _stack_data(loaded)),
                **(
                    {}
                    if adopted is None
                    else {"from_load_test": _adopted_data(adopted, from_load_test, write)}
                ),
            }
        )
    elif markdown:
        typer.echo(
            "\n".join(f"## {name}\n\n{each.to_markdown()}" for name, each in plans.items()),
            nl=False,
        )
    else:
        for name, each in plans.items():
            print_parts(*_plan_table(name, each, verbose))
        if loaded is not None and endpoint is None and (line := _total_line(loaded)):
            typer.echo(line)
    if adopted is not None:
        _adopt(adopted, settings, write, quiet=json or markdown)


def _only(plans: dict[str, Explanation], endpoint: str | None) -> dict[str, Explanation]:
    return plans if endpoint is None else {endpoint: plans[endpoint]}


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


def _adopted_data(adopted: AdoptedLimit, file: Path | None, written: bool) -> dict[str, Any]:
    return {
        "file": str(file),
        "endpoint": adopted.key,
        "source": adopted.limit.source,
        "tps_per_instance": adopted.limit.tps_per_instance,
        "how": adopted.limit.how,
        "changes": _changes(adopted.before, adopted.after),
        "raised": list(adopted.raised),
        "diff": adopted.edit.diff(),
        "written": written and adopted.edit.changed,
    }


def _before_a_deploy(
    path: Path, price: Sequence[str], *, cost: bool, minutes: bool, json: bool
) -> None:
    settings = _loaded(path, price)
    if json:
        found = _stack_data(settings)
        print_json(
            {
                "settings": str(path),
                **{
                    name: found[name]
                    for name, asked in (("cost", cost), ("minutes", minutes))
                    if asked
                },
            }
        )
        return
    from ..settings import stack_cost

    print_parts(
        *(cost_parts(settings, stack_cost(settings)) if cost else ()),
        *(minutes_parts(settings) if minutes else ()),
    )


def _stack_data(settings: Settings) -> dict[str, Any]:
    from ..settings import stack_cost

    return {"cost": stack_cost(settings).to_dict(), "minutes": minutes_data(settings)}


def _total_line(settings: Settings) -> str:
    from ..settings import stack_cost

    return total_line(stack_cost(settings))


def _loaded(path: Path, price: Sequence[str]) -> Settings:
    from ..settings import load_settings

    return with_prices(load_settings(path), price)


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
