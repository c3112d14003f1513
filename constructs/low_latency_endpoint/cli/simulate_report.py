"""What ``low-latency simulate`` says: a sentence, tables, costs, charts, and what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import LowLatencyEndpointError
from ..facts.prices import HOURS_PER_MONTH
from ..options.throughput import counted_instances
from ..plan.hourly_cost import MILLION, StackCost
from ..report.charts import Chart, Line, Panel
from ..report.document import Table
from ..report.numbers import milliseconds, readable
from ..simulate import Shape, SimulationResult
from ..simulate.assumptions import SimulatedEndpoint
from ..simulate.search_goals import Found, SearchResult
from ..simulate.wording import traffic_name
from .output import print_document, print_json

if TYPE_CHECKING:
    from ..plan.decisions import Explanation
    from ..plan.plan import Plan
    from ..report.document import Document, Tone
    from ..settings.yaml_editing import YamlEdit
    from ..simulate import Comparison
    from ..simulate.search_goals import Goal
    from .search_adoption import AdoptedPoint


@dataclass(frozen=True)
class SimulatedCost:
    """One endpoint of a settings file, with numbers of instances that a simulation gives."""

    stack: StackCost
    key: str

    @property
    def known(self) -> bool:
        return self.stack.endpoints[self.key].price is not None

    def sentence(self, instances: float, tps: float, *, month: bool = False) -> str:
        """The cost of the instances at a request rate; with ``month``, per month too."""
        counted = counted_instances(instances)
        hour = self.stack.usd_for(self.key, instances)
        million = self.stack.usd_per_million(self.key, instances, tps)
        if hour is None or million is None:
            kind = self.stack.endpoints[self.key].instance_type
            return (
                f"{counted}: {readable(instances / tps / 3600 * MILLION, 3)} instance hours for a million "
                f"requests; the price of {kind} "
                f"is not known: low-latency prices reads it, or --price {kind}=USD states it."
            )
        monthly = f"{hour * HOURS_PER_MONTH:,.0f} a month of 730 hours, " if month else ""
        return (
            f"{counted}: {hour:,.2f} US dollars per hour, {monthly}{million:,.2f} for a million "
            "requests."
        )

    def cells(self, instances: float, tps: float) -> dict[str, str]:
        """US dollars per hour and for a million requests, for a table; nothing without a price."""
        hour = self.stack.usd_for(self.key, instances)
        million = self.stack.usd_per_million(self.key, instances, tps)
        found = {"USD/h": hour, "USD per million": million} if self.known else {}
        return {head: f"{usd or 0:,.2f}" for head, usd in found.items()}

    def to_dict(self, instances: float, tps: float) -> dict[str, Any]:
        return {
            "instances": instances,
            "usd_per_hour": self.stack.usd_for(self.key, instances),
            "usd_per_million_requests": self.stack.usd_per_million(self.key, instances, tps),
        }


def simulated_cost(path: Path, key: str, given: Sequence[str] = ()) -> SimulatedCost:
    """Of a settings file, with the prices of the command line over its own."""
    from ..settings import load_settings, stack_cost
    from .cost_view import with_prices

    return SimulatedCost(stack_cost(with_prices(load_settings(path), given)), key)


_COLOURS = {"RANDOM": "red", "LEAST_OUTSTANDING_REQUESTS": "blue"}
_PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


def latency_chart(results: Mapping[str, SimulationResult], model: SimulatedEndpoint) -> Chart:
    """Percentiles of the client latency, by strategy, with intervals."""
    lines = []
    for name, result in results.items():
        found = {at: result.percentile(at).scaled(1000) for at in _PERCENTILES}
        told = {at: value for at, value in found.items() if value.tells}
        lines.append(
            Line(
                name,
                [f"p{at:g}" for at in told],
                [each.mean for each in told.values()],
                _COLOURS.get(name, "purple"),
                "bars",
                low=[each.low for each in told.values()],
                high=[each.high for each in told.values()],
            )
        )
    return Chart(
        "latency",
        [Panel("Client latency by percentile", lines, " ms", _target(model, "target at p99"))],
        "names",
        height=280,
    )


def timeline_chart(shape: Shape, result: SimulationResult, model: SimulatedEndpoint) -> Chart:
    """Requests, instances and p99, minute by minute."""
    lines = result.replications[0].timeline
    minutes = [line.end / 60 for line in lines]
    rates = [line.requests / (line.end - line.begin) for line in lines]
    return Chart(
        f"timeline-{shape.name}",
        [
            Panel("Answers a second", [Line("answers", minutes, rates, "grey", "area")]),
            Panel(
                "Instances",
                [
                    Line(
                        "paid",
                        minutes,
                        [line.launched for line in lines],
                        "grey",
                        "steps",
                        dash=True,
                    ),
                    Line("serving", minutes, [line.serving for line in lines], "blue", "steps"),
                ],
            ),
            Panel(
                "Client latency",
                [Line("p99", minutes, [1000 * line.p99 for line in lines], "red")],
                " ms",
                _target(model, "target"),
                logarithmic=True,
            ),
        ],
        title=f"Minutes of {shape.name}: {shape.description}",
        height=150,
    )


def front_chart(result: SearchResult) -> Chart:
    """Cost against the goal's percentile: all that was tried, and the fronts."""
    goal = result.goal
    lines = [*_points(result.steady, result.front, f"steady {readable(goal.tps)} TPS", "blue")]
    if result.over_time:
        lines += _points(result.over_time, result.front_over_time, traffic_name(result), "red")
    return Chart(
        "front",
        [
            Panel(
                f"p{goal.percentile:g} against cost: up and to the right is worse",
                lines,
                " ms",
                [(f"goal: {milliseconds(1000 * goal.seconds, 6)}", 1000 * goal.seconds)],
                logarithmic=True,
            )
        ],
        title="Paid instances on average",
        height=320,
    )


def _points(found: Sequence[Found], front: Sequence[Found], name: str, colour: str) -> list[Line]:
    return [
        Line(
            title,
            [point.cost for point in points],
            [1000 * point.latency.mean for point in points],
            colour,
            kind,
            marks=[mark] * len(points),
            notes=[
                f"{point.candidate}: {point.cost:.2f} instances, {milliseconds(1000 * point.latency.mean, 3)}"
                for point in points
            ],
        )
        for title, points, kind, mark in (
            (name, found, "marks", "○"),
            (f"{name}, front", front, "line", "●"),
        )
    ]


def _target(model: SimulatedEndpoint, name: str) -> list[tuple[str, float]]:
    target = 1000 * (model.latency_target or 0)
    return [(f"{name}: {milliseconds(target, 6)}", target)] if target else []


_DAY_SECONDS = 86_400.0


@dataclass
class SimulationReport:
    """The answer of one command, made by one of its methods and shown by the last."""

    name: str
    settings: Path
    model: SimulatedEndpoint
    plan: Plan
    options: dict[str, Any]
    replications: int | None
    requests: int | None
    cost: SimulatedCost
    sentences: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    charts: list[Callable[[], Chart]] = field(default_factory=list)
    code: list[tuple[str, str]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    failed: bool = False
    tone: Tone = "strong"
    adopted: Explanation | None = None
    edit: YamlEdit | None = None  # of the settings file, to be written when all else is done

    def __post_init__(self) -> None:
        self.assumed = list(self.model.assumed)

    def steady(self) -> None:
        from ..simulate import simulate as run
        from ..simulate.wording import steady_sentences, steady_table, verdict

        if not self.model.measured:
            self.tone = "careful"
            self._if_a_call_takes()
            self._say_cost(self.model.instances, self.model.peak_tps)
            return
        result = run(self.model.steady(), **self._run_options(8))
        self.sentences += steady_sentences(self.model, result)
        self.tables.append(steady_table({self.model.routing: result}))
        self.charts.append(lambda: latency_chart({self.model.routing: result}, self.model))
        self.data = {
            "steady": result.to_dict(),
            "verdicts": {
                f"p{target.percentile:g}": {
                    "callers_target_ms": 1000 * target.callers,
                    "model_target_ms": 1000 * target.model,
                    "verdict": verdict(result.percentile(target.percentile), target.model),
                }
                for target in self.model.targets
            },
        }
        found = {verdict["verdict"] for verdict in self.data["verdicts"].values()}
        self._judge(missed="above" in found, sure=found <= {"above", "within"})
        self._say_cost(self.model.instances, self.model.peak_tps)

    def _if_a_call_takes(self) -> None:
        """Without a measured service time: p99 for several of them, and no verdict."""
        from ..simulate import simulate as run
        from ..simulate.wording import conditional_sentences, conditional_table

        found, requests = {}, 0
        for seconds in self.model.possible_service_seconds:
            for variation in (0.5, 1.0):
                result = run(self.model.taking(seconds, variation).steady(), **self._run_options(8))
                found[seconds, variation] = result.percentile(99.0)
                requests = max(requests, result.requests_needed(99.0))
        self.sentences += conditional_sentences(self.model, found, requests)
        self.assumed = [
            "a call's time is its mean, alone on an instance; it varies like a lognormal law with "
            "that coefficient of variation (CV); an instance works on as many at once as keep "
            f"it 90% busy at {readable(self.model.tps_per_instance)} requests per second",
            *(each for each in self.assumed if each not in self.model.assumed_service),
        ]
        self.tables.append(conditional_table(found, self.model))
        self.data = {
            "verdicts": {},
            "if_a_call_takes": [
                {
                    "mean_service_ms": 1000 * seconds,
                    "variation": variation,
                    "p99_ms": 1000 * p99.mean,
                    "half_width": 1000 * p99.half_width if p99.tells else None,
                }
                for (seconds, variation), p99 in found.items()
            ],
        }

    def _run_options(self, replications: int) -> dict[str, Any]:
        """For a steady load: replications, and requests where they are stated."""
        return {"replications": self._replications(replications), **self.options} | (
            {"requests": self.requests} if self.requests else {}
        )

    def _judge(self, *, missed: bool, sure: bool = True) -> None:
        """Good is only what rests on a measured service time."""
        self.tone = "bad" if missed else "good" if sure and self.model.measured else "careful"

    def compare(self) -> None:
        """The routing strategies, simulated with the same random numbers."""
        from ..simulate import compare
        from ..simulate.wording import change_table, comparison_sentence, steady_table

        both: Comparison = compare(
            {
                routing: self.model.steady(routing=routing)
                for routing in ("RANDOM", "LEAST_OUTSTANDING_REQUESTS")
            },
            **self._run_options(8),
        )
        self.sentences.append(self.model.condition + comparison_sentence(self.model, both))
        self._say_prefix_aware("compared")
        self.tables += [steady_table(both.results), change_table(both)]
        self.charts.append(lambda: latency_chart(both.results, self.model))
        self.data = {"routing": {name: result.to_dict() for name, result in both.results.items()}}

    def over_time(self, shapes: Sequence[Shape]) -> None:
        """The plan's scaling on shapes of traffic."""
        from ..simulate import simulate as run
        from ..simulate.wording import gives_up, shape_row, shape_sentence

        rows, self.data = [], {"traffic": {}}
        late = False
        # Hours of requests, in which luck evens out: fewer replications do.
        replications = self._replications(4)
        for one in shapes:
            result: SimulationResult = run(
                self.model.over_time(one), replications=replications, **self.options
            )
            self.sentences.append(self.model.condition + shape_sentence(self.model, one, result))
            rows.append(shape_row(one, result))
            over = result.time_over_target
            late = late or gives_up(result) or (over is not None and over.mean > 0)
            self.charts.append(partial(timeline_chart, one, result, self.model))
            self.data["traffic"][one.name] = result.to_dict()
            paid = result.instance_hours.mean * 3600 / one.seconds
            tps = self.model.peak_tps * one.mean_share
            # A month of spikes is none: only of what is a day can a month be told.
            day = one.seconds >= _DAY_SECONDS
            self.sentences.append(
                f"{one.name}, on average {self.cost.sentence(paid, tps, month=day)}"
            )
            self.data["traffic"][one.name]["cost"] = self.cost.to_dict(paid, tps)
        self._judge(missed=late)
        self.tables.append(Table.of(rows, f"{replications} replications"))
        self._assume_over_time(
            shapes,
            self.model.peak_tps,
            dict.fromkeys(each for shape in shapes for each in self.model.assumed_over_time(shape)),
        )

    def search(
        self,
        goal: Goal,
        shapes: Sequence[Shape],
        number: int | None,
        *,
        write: bool,
        safety_factor: float | None,
        zone_reserve: bool,
    ) -> None:
        """Fleets and policies for a goal."""
        from ..simulate import shape
        from ..simulate.searching import search
        from ..simulate.wording import points_tables, search_data, search_sentences

        shapes = shapes or [shape("spike")]
        _say_how_long(shapes, goal.tps)
        result: SearchResult = search(
            self.model,
            goal,
            over=shapes,
            replications=self._replications(8),
            shape_replications=self._replications(4),
            requests=self.requests,
            safety_factor=safety_factor,
            zone_reserve=zone_reserve,
            **self.options,
        )
        self.sentences += search_sentences(result)
        self._judge(missed=result.none_holds, sure=result.best is not None)
        self._say_prefix_aware("searched")
        self.tables += points_tables(
            result, lambda found: self.cost.cells(*_paid_for(found, result))
        )
        best = result.best or result.best_over_time
        if best and not self.cost.known:
            self.sentences.append(self.cost.sentence(*_paid_for(best, result)))
        self.charts.append(lambda: front_chart(result))
        self.data = {"search": search_data(result)}
        self.data["search"]["cost"] = [
            {"result": number, **self.cost.to_dict(*_paid_for(each, result))}
            for number, each in enumerate(result.points, 1)
        ]
        if self.model.concurrency_target is not None:
            self.assumed.append(
                "the search tries scaling on invocations per instance, while the "
                "settings scale on requests in flight"
            )
        self._assume_over_time(
            result.shapes,
            result.goal.tps,
            [
                f"a new instance serves {readable(self.model.instance_seconds)} s after the decision; "
                "metrics arrive 60 s after their minute; instances are paid for from their launch"
            ],
        )
        points = result.points
        if number is not None and not 1 <= number <= len(points):
            raise typer.BadParameter(
                f"--result {number}: the search found the results 1 to {len(points)}"
            )
        found = result.best if number is None else points[number - 1]
        if found is None:
            if write:
                self.failed = True
                self.sentences.append(
                    "No result is known to hold the target, so nothing was written; --result takes one "
                    "all the same."
                )
            return
        self._adopt(found, points.index(found) + 1, result, write=write)

    def _adopt(self, found: Found, number: int, result: SearchResult, *, write: bool) -> None:
        from .search_adoption import adopt_found, check_measured

        if write:
            check_measured(result)
        try:
            adopted: AdoptedPoint = adopt_found(self.settings, self.name, found, result)
        except LowLatencyEndpointError as problem:
            if write:
                raise
            self.sentences.append(f"Result {number} cannot be put into {self.settings}: {problem}")
            return
        self.adopted = adopted.after
        done = write and adopted.edit.changed
        self.data["adoption"] = {"result": number, "diff": adopted.edit.diff(), "written": done}
        if not adopted.edit.changed:
            self.sentences.append(f"{self.settings} has result {number} already.")
        else:
            self.code.append(
                (
                    f"Result {number} in the settings ("
                    + ("written" if done else "--write changes them")
                    + ")",
                    adopted.edit.diff(),
                )
            )
        if done:
            self.edit = adopted.edit

    def _say_cost(self, instances: float, tps: float) -> None:
        self.sentences.append(self.cost.sentence(instances, tps))
        self.data["cost"] = self.cost.to_dict(instances, tps)

    def _replications(self, default: int) -> int:
        return default if self.replications is None else self.replications

    def _say_prefix_aware(self, done: str) -> None:
        if self.plan.routing == "PREFIX_AWARE":
            self.sentences.append(
                f"The settings route PREFIX_AWARE, which is not {done}: what a cache saves depends "
                "on the prefixes of your requests."
            )

    def _assume_over_time(
        self, shapes: Sequence[Shape], peak_tps: float, said: Iterable[str]
    ) -> None:
        from ..simulate import shapes as made

        self.assumed += said
        if any(shape.name in made() for shape in shapes):
            self.assumed.append("the shapes are made by hand, not recorded from an endpoint")
        self.assumed += [
            f"the traffic of {shape.name} ({shape.description}) has its peak at "
            f"{readable(peak_tps)} requests per second. {shape.far_from(peak_tps)}".rstrip(". ")
            for shape in shapes
            if shape.name not in made()
        ]

    def show(self, as_json: bool, html: Path | None, *, markdown: bool = False) -> None:
        """Print it, and write the page."""
        document = self._document(charts=html is not None)
        if html is not None:
            from ..report.pages import page

            _write(html, page(document))
        if self.edit is not None:  # after all that may fail
            from ..settings.yaml_editing import write_edit

            write_edit(self.edit)
            typer.echo(f"wrote {self.settings}", err=True)
        if as_json:
            print_json(
                {
                    "settings": str(self.settings),
                    "endpoint": self.name,
                    "answer": self.sentences,
                    "warnings": self.warnings,
                    **self.data,
                    "assumed": self.assumed,
                }
            )
        else:
            print_document(document, markdown=markdown)
            if markdown and self.adopted is not None:
                typer.echo(f"\n## {self.name}\n\n{self.adopted.to_markdown()}", nl=False)
        if self.failed:
            raise typer.Exit(1)

    def _document(self, *, charts: bool) -> Document:
        from ..report.document import Code, Document, Listed, Section, Sentence

        first, *others = self.sentences
        made = [make() for make in self.charts] if charts else []
        return Document(
            f"{self.name}: what would happen",
            [
                *others,
                *(Sentence(f"Warning: {warning}.", "careful") for warning in self.warnings),
                *(Section("", [each], detail=True) for each in made if each),
                *(Section(table.title, [replace(table, title="")]) for table in self.tables),
                *(Section(head, [Code([(text, "")])]) for head, text in self.code),
                Section("Assumed", [Listed(self.assumed, "soft")]),
            ],
            verdict=first,
            tone="bad" if self.failed else self.tone,
        )


def _say_how_long(shapes: Sequence[Shape], tps: float) -> None:
    """Minutes without a word look like a program that hangs."""
    runs = 25  # a dozen policies once, and three or four of them with all replications
    million = runs * tps * sum(shape.seconds * shape.mean_share for shape in shapes) / 1e6
    if million > 200:
        typer.echo(
            f"About {million:,.0f} million requests to simulate: this takes minutes.", err=True
        )


def _paid_for(found: Found, result: SearchResult) -> tuple[float, float]:
    """The instances paid for, and requests per second."""
    shares = [shape.mean_share for shape in result.shapes] if found.shape else [1.0]
    return found.cost, result.goal.tps * sum(shares) / len(shares)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise typer.BadParameter(f"cannot write {path}: {problem.strerror}") from None
