"""``low-latency simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..planning.decisions import LatencyPlan
    from ..planning.simulation import Comparison, SimulationResult
    from ..planning.simulation.assumptions import Model
    from ..planning.simulation.searching import SearchResult


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate)


def simulate(
    settings: Annotated[Path, typer.Argument(
        show_default=False, help="The settings file, such as endpoint.yaml.")],
    endpoint: Annotated[str | None, typer.Option(
        metavar="NAME", help="Which endpoint of the file; the first without it.")] = None,
    compare_routing: Annotated[bool, typer.Option(
        "--compare-routing", help="Compare the routing strategies.")] = False,
    search: Annotated[str | None, typer.Option(
        metavar="GOAL", help='Search fleets and policies: "p99<200ms at 1000 TPS, cheapest".',
    )] = None,
    traffic: Annotated[str | None, typer.Option(
        metavar="SHAPE", help="Traffic over time: steady, daily-wave, spike, deploy, zone-loss, or "
                              "all; with the plan's scaling.")] = None,
    from_load_test: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Service times and throughput as a load test measured them.")] = None,
    tps: Annotated[float | None, typer.Option(
        help="Requests per second at the peak; the settings' without it.")] = None,
    instances: Annotated[int | None, typer.Option(
        help="Instances; the plan's at peak without it.")] = None,
    routing: Annotated[str | None, typer.Option(
        metavar="STRATEGY", help="Routing strategy; the plan's without it.")] = None,
    service_time: Annotated[str | None, typer.Option(
        metavar="DURATION", help="Mean time of a request that has an instance to itself, such as "
                                 "45ms.")] = None,
    variation: Annotated[float | None, typer.Option(
        help="Standard deviation of service times divided by their mean.")] = None,
    concurrency: Annotated[int | None, typer.Option(
        help="Requests that an instance works on at once.")] = None,
    slope: Annotated[float | None, typer.Option(
        help="By how much each neighbour lengthens a request: batching.")] = None,
    replications: Annotated[int, typer.Option(help="Independent runs.")] = 8,
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.")] = 1,
    processes: Annotated[int | None, typer.Option(
        help="Processes; as many as there are processors without it.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write one self-contained page with charts.")] = None,
    adopt: Annotated[Path | None, typer.Option(
        metavar="FILE", help="With --search: write the plan with the point found, its numbers "
                             "naming the simulation as their source (Markdown).")] = None,
) -> None:
    """Say what would happen: latency, use and cost of an endpoint, without renting it.

    Answers with a sentence, then a table, then what it assumed. Quicker with the extra
    [simulation]; the results are the same.

    \b
    Examples:
      low-latency simulate endpoint.yaml
      low-latency simulate endpoint.yaml --compare-routing --from-load-test result.json
      low-latency simulate endpoint.yaml --search "p99<200ms at 1000 TPS, cheapest"
      low-latency simulate endpoint.yaml --traffic spike --html spike.html
    """
    import os

    from ..planning.simulation.assumptions import model_of_plan
    from ..planning.simulation.load_test_result import read_load_test_result

    if sum((compare_routing, search is not None, traffic is not None)) > 1:
        raise typer.BadParameter("give one of --compare-routing, --search and --traffic")
    if adopt is not None and search is None:
        raise typer.BadParameter("--adopt goes with --search")
    name, plan, throughput, latency = _planned(settings, endpoint)
    model = model_of_plan(
        plan, throughput=throughput, latency=latency,
        load_test=read_load_test_result(from_load_test) if from_load_test else None,
        service_seconds=_seconds(service_time), variation=variation, concurrency=concurrency,
        slope=slope, peak_tps=tps, instances=instances,
        routing=routing.upper().replace("-", "_") if routing else None)
    options = {"replications": replications, "seed": seed,
               "processes": processes or os.cpu_count() or 1}
    report = _Report(name, settings, model, plan)
    if search is not None:
        report.search(search, options, adopt)
    elif traffic is not None:
        report.over_time(traffic, options)
    elif compare_routing:
        report.compare(options)
    else:
        report.steady(options)
    report.show(json, html)


def _planned(path: Path, name: str | None) -> tuple[str, LatencyPlan, Any, Any]:
    from ..settings import load_settings, plan_endpoint

    settings = load_settings(path)
    chosen = name or next(iter(settings.endpoints))
    plan = plan_endpoint(settings, chosen)
    found = settings.endpoints[chosen]
    return (chosen, plan, found.throughput.measured if found.throughput else None,
            found.latency.target)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    from ..settings.breach import BreachError
    from ..settings.fields import parse_duration

    try:
        return parse_duration(text).total_seconds()
    except BreachError:
        raise typer.BadParameter(
            f"{text!r} is no duration; write a number and a unit, such as 45ms") from None


class _Report:
    """What is said: a sentence, tables, and what was assumed."""

    def __init__(self, name: str, settings: Path, model: Model, plan: LatencyPlan) -> None:
        self.name, self.settings, self.model, self.plan = name, settings, model, plan
        self.sentences: list[str] = []
        self.tables: list[tuple[str, list[str], list[list[str]]]] = []
        self.charts: list[Any] = []
        self.data: dict[str, Any] = {}
        self.assumed = list(model.assumed)

    def steady(self, options: dict[str, Any]) -> None:
        """The fleet at its peak."""
        from ..planning.simulation import simulate as run
        from ..planning.simulation.charts import latency_chart
        from ..planning.simulation.wording import steady_sentence, steady_table

        result = run(self.model.steady(), **options)
        self.sentences.append(steady_sentence(self.model, result))
        self.tables.append(("", *steady_table({self.model.routing: result})))
        self.charts.append(lambda: latency_chart({self.model.routing: result}, self.model))
        self.data = {"steady": result.to_dict()}

    def compare(self, options: dict[str, Any]) -> None:
        """The strategies under the same chance."""
        from ..planning.simulation import compare
        from ..planning.simulation.charts import latency_chart
        from ..planning.simulation.wording import (
            change_rows,
            comparison_sentence,
            steady_table,
        )

        both: Comparison = compare(
            {routing: self.model.steady(routing=routing)
             for routing in ("RANDOM", "LEAST_OUTSTANDING_REQUESTS")}, **options)
        self.sentences.append(comparison_sentence(self.model, both))
        self.tables.append(("", *steady_table(both.results)))
        self.tables.append(("", ["LEAST_OUTSTANDING_REQUESTS against RANDOM, the same requests",
                                 "Change"], change_rows(both)))
        self.charts.append(lambda: latency_chart(both.results, self.model))
        self.data = {"routing": {name: result.to_dict() for name, result in both.results.items()}}

    def over_time(self, wanted: str, options: dict[str, Any]) -> None:
        """The plan's scaling on shapes of traffic."""
        from ..planning.simulation import shape, shapes
        from ..planning.simulation import simulate as run
        from ..planning.simulation.charts import timeline_chart
        from ..planning.simulation.wording import shape_row, shape_sentence, shape_titles

        chosen = list(shapes().values()) if wanted == "all" else [shape(wanted)]
        rows, self.data = [], {"traffic": {}}
        # Hours of requests, in which luck evens out: fewer replications do.
        options = {**options, "replications": min(options["replications"],
                                                  4 if len(chosen) == 1 else 2)}
        for one in chosen:
            result: SimulationResult = run(self.model.over_time(one), **options)
            self.sentences.append(shape_sentence(self.model, one, result))
            rows.append(shape_row(one, result))
            self.charts.append(lambda one=one, result=result: timeline_chart(
                one, result, self.model))
            self.data["traffic"][one.name] = result.to_dict()
        self.tables.append(("", shape_titles(), rows))
        self.assumed += [
            "a new instance serves 300 s after the decision; metrics arrive 60 s after their "
            "minute; instances are paid for from their launch",
            "the shapes are made, not recorded: see shapes.json",
        ]

    def search(self, text: str, options: dict[str, Any], adopt_to: Path | None) -> None:
        """Fleets and policies for a goal."""
        from ..planning.simulation.charts import front_chart
        from ..planning.simulation.searching import adopt, parse_goal, search
        from ..planning.simulation.wording import (
            found_rows,
            found_titles,
            search_data,
            search_sentences,
            settings_fragment,
        )

        result: SearchResult = search(
            self.model, parse_goal(text), seed=options["seed"], processes=options["processes"],
            replications=max(2, options["replications"] // 2))
        self.sentences += search_sentences(result)
        self.tables.append((f"Pareto front at a steady {result.goal.tps:,g} TPS", found_titles(),
                            found_rows(result.front, result)))
        self.tables.append((f"Pareto front on the shape '{result.shape.name}': "
                            f"{result.shape.description}", found_titles(),
                            found_rows(result.front_over_time, result)))
        self.charts.append(lambda: front_chart(result))
        self.data = {"search": search_data(result)}
        best = result.best
        if best:
            self.sentences.append(settings_fragment(best, result))
            if adopt_to is not None:
                adopted = adopt(self.plan, best, result)
                _write(adopt_to, f"## {self.name}\n\n{adopted.to_markdown()}")
        elif adopt_to is not None:
            self.sentences.append(f"Nothing holds the goal, so {adopt_to} was not written.")

    def show(self, as_json: bool, html: Path | None) -> None:
        """Print it, and write the page."""
        if html is not None:
            from ..planning.simulation.charts import page

            title = f"{self.name}: what would happen"
            _write(html, page(title, self.sentences, self.tables,
                              [make() for make in self.charts], self.assumed))
        if as_json:
            import json

            typer.echo(json.dumps(
                {"settings": str(self.settings), "endpoint": self.name, "answer": self.sentences,
                 **self.data, "assumed": self.assumed}, indent=2, ensure_ascii=False))
            return
        _print_report(self.sentences, self.tables, self.assumed)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise typer.BadParameter(f"cannot write {path}: {problem.strerror}") from None


def _print_report(sentences: list[str], tables: list[tuple[str, list[str], list[list[str]]]],
                  assumed: list[str]) -> None:
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from .output import print_parts

    parts: list[Any] = [Padding(Text(sentence), (0, 0, 1, 0)) for sentence in sentences]
    for title, titles, rows in tables:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title or None,
                      title_justify="left")
        for number, head in enumerate(titles):
            table.add_column(Text(head), justify="left" if number == 0 else "right")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        parts.append(table)
    parts.append(Text("Assumed:"))
    parts += [Padding(Text(f"- {each}"), (0, 0, 0, 2)) for each in assumed]
    print_parts(*parts)
