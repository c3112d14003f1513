"""What ``low-latency simulate`` says: a sentence, tables, costs, charts, and what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import typer

from ..facts.prices import HOURS_PER_MONTH
from ..options.throughput import counted_instances
from ..plan.hourly_cost import MILLION, StackCost
from ..plan.schedule_times import DAYS_PER_WEEK
from ..report.charts import PALETTE, Chart, Line, Panel
from ..report.document import Table
from ..report.numbers import milliseconds, readable
from ..simulate import Shape, SimulationResult
from ..simulate.assumptions import ModelTarget, SimulatedEndpoint
from .output import print_document, print_json

if TYPE_CHECKING:
    from ..plan.plan import Plan
    from ..report.document import Document, Tone
    from ..settings import Settings
    from ..simulate import Comparison
    from ..simulate.estimates import Estimate


@dataclass(frozen=True)
class SimulatedCost:
    """One endpoint of a settings file, with numbers of instances that a simulation gives."""

    stack: StackCost
    key: str

    def sentence(self, instances: float, tps: float, *, month: bool = False) -> str:
        """The cost of the instances at a request rate; with ``month``, per month too."""
        counted = counted_instances(instances)
        endpoint = self.stack.endpoints[self.key]
        if pool := endpoint.pool_text("at_first"):
            counted += f" of {pool}"
        copied = sum(shadow.serving("") for shadow in self.stack.shadows_of(self.key))
        if copied:
            counted += f" and {copied:,} of its shadow"
        hour = self.stack.usd_serving(self.key, instances, tps)
        million = self.stack.usd_per_million(self.key, instances, tps)
        if hour is None or million is None:
            kind = endpoint.types[0].instance_type
            return (
                f"{counted}: {readable(instances / tps / 3600 * MILLION, 3)} instance hours for a million "
                f"requests; the price of {kind} "
                f"is not known: low-latency prices reads it, or --price {kind}=USD states it."
            )
        monthly = f"{hour * HOURS_PER_MONTH:,.0f} a month of 730 hours, " if month else ""
        dearer = f" ({endpoint.dearer_pool})" if endpoint.dearer_pool else ""
        return (
            f"{counted}: {hour:,.2f} US dollars per hour, {monthly}{million:,.2f} for a million "
            f"requests{dearer}."
        )

    def to_dict(self, instances: float, tps: float) -> dict[str, Any]:
        return {
            "instances": instances,
            "instance_type": self.stack.endpoints[self.key].types[0].instance_type,
            "usd_per_hour": self.stack.usd_serving(self.key, instances, tps),
            "usd_per_million_requests": self.stack.usd_per_million(self.key, instances, tps),
        }


def simulated_cost(settings: Settings, key: str, given: Sequence[str] = ()) -> SimulatedCost:
    """Of settings, with the prices of the command line over their own."""
    from ..settings import stack_cost
    from .cost_view import with_prices

    return SimulatedCost(stack_cost(with_prices(settings, given)), key)


_COLOURS = {"RANDOM": "red", "LEAST_OUTSTANDING_REQUESTS": "blue"}
_PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


def latency_chart(
    results: Mapping[str, SimulationResult], model: SimulatedEndpoint, label: str = ""
) -> Chart:
    """Percentiles of the client latency, by strategy or peak, with intervals.

    ``label`` names the peak of all, where there are several.
    """
    lines = []
    for (name, result), other in zip(results.items(), cycle(PALETTE), strict=False):
        found = {at: result.percentile(at).scaled(1000) for at in _PERCENTILES}
        told = {at: value for at, value in found.items() if value.tells}
        lines.append(
            Line(
                name,
                [f"p{at:g}" for at in told],
                [each.mean for each in told.values()],
                _COLOURS.get(name, other),
                "bars",
                low=[each.low for each in told.values()],
                high=[each.high for each in told.values()],
            )
        )
    during = f": {label}" if label else ""
    return Chart(
        "-".join(["latency", *label.split()[:1]]),
        [
            Panel(
                f"Client latency by percentile{during}",
                lines,
                " ms",
                _target(model, "target at p99"),
            )
        ],
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


def _target(model: SimulatedEndpoint, name: str) -> list[tuple[str, float]]:
    target = 1000 * (model.latency_target or 0)
    return [(f"{name}: {milliseconds(target, 6)}", target)] if target else []


_DAY_SECONDS = 86_400.0


@dataclass
class SimulationReport:
    """The answer of one command, made by one of its methods and shown by the last."""

    name: str
    settings: Path | None  # the file; None where all numbers are stated
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
    data: dict[str, Any] = field(default_factory=dict)
    tone: Tone = "strong"

    def __post_init__(self) -> None:
        self.assumed = list(self.model.assumed)

    def steady(self) -> None:
        """The fleet at each peak of the day."""
        from ..simulate import simulate as run
        from ..simulate.wording import (
            burn_rate_sentences,
            steady_sentences,
            steady_table,
            with_label,
        )

        if not self.model.measured:
            self.tone = "careful"
            self._if_a_call_takes()
            self._say_cost()
            return
        results = {}
        for label, model in self.model.peaks:
            result = run(model.steady(), **self._run_options())
            results[label or model.routing] = result
            said = steady_sentences(model, result)
            said += burn_rate_sentences(self.plan.request.slow_limit, result)
            self.sentences += [with_label(label, sentence) for sentence in said]
            self._keep(
                label, {"steady": result.to_dict(), "verdicts": _verdicts(model.targets, result)}
            )
        self._assume(results.values())
        self.tables.append(steady_table(results, self.model.targets))
        self.charts.append(lambda: latency_chart(results, self.model))
        peaks = [self.data, *self.data.get("other_peaks", {}).values()]
        found = {verdict["verdict"] for peak in peaks for verdict in peak["verdicts"].values()}
        self._judge(missed="above" in found, sure=found <= {"above", "within"})
        self._say_cost()

    def _keep(self, label: str, data: dict[str, Any]) -> None:
        """The data of a peak: the usual one's as such, others by their label."""
        if not self.data:
            self.data = data
        else:
            self.data.setdefault("other_peaks", {})[label] = data

    def _if_a_call_takes(self) -> None:
        """Without a measured service time: p99 for several of them, and no verdict."""
        from ..simulate.scenario_sentences import fleet_sentences

        percentiles = self.model.percentiles
        self.assumed = [
            "a call's time is its mean, alone on an instance, with that coefficient of variation "
            "(CV); an instance works on as many at once as keep "
            f"it 90% busy at {readable(self.model.tps_per_instance)} requests per second",
            "the law is assumed to be log-normal. Under another law of the same mean and variation a "
            f"call alone can take up to {_times_of_the_mean(percentiles)}. Better: --from-load-test, "
            "which simulates the measured law",
            *(each for each in self.assumed if each not in self.model.assumed_service),
        ]
        runs = []
        for label, model in self.model.peaks:
            runs.append(_runs(self._at_a_peak_if(label, model)))
            self.assumed += fleet_sentences(model.steady())
        self.sentences = [*dict.fromkeys(self.sentences)]
        self.assumed = [*dict.fromkeys([*self.assumed, *runs])]

    def _at_a_peak_if(self, label: str, model: SimulatedEndpoint) -> SimulationResult:
        """Keep what follows at one peak without a measured service time; return the last result."""
        from ..simulate import simulate as run
        from ..simulate.wording import conditional_sentences, conditional_table, simulated_value

        results = {}
        for seconds in model.possible_service_seconds:
            for variation in (0.5, 1.0):
                scenario = model.taking(seconds, variation).steady()
                results[seconds, variation] = run(scenario, **self._run_options())
        needed = [
            result.requests_needed(target.percentile)
            for result in results.values()
            for target in model.targets
        ]
        found = {
            target: {tried: simulated_value(target, result) for tried, result in results.items()}
            for target in model.targets
        }
        p99 = {tried: result.percentile(99.0) for tried, result in results.items()}
        shown = {"p99": p99} | {target.name: values for target, values in found.items()}
        self.sentences += conditional_sentences(model, found, max(needed, default=0), label)
        self.tables.append(replace(conditional_table(shown, model), title=label))
        self._keep(label, {"verdicts": {}, "if_a_call_takes": _possible_latencies(shown)})
        return next(reversed(results.values()))

    def _assume(self, results: Iterable[SimulationResult]) -> None:
        """Name every input of steady fleets, each once, and what the intervals cover."""
        from ..simulate.scenario_sentences import scenario_sentences

        for result in results:
            said = scenario_sentences(result.scenario, self.model.percentiles)
            self.assumed += [sentence for sentence in said if sentence not in self.assumed]
        self.assumed += dict.fromkeys(_runs(result) for result in results)

    def _run_options(self) -> dict[str, Any]:
        """For a steady load: replications, and requests where they are stated."""
        return {"replications": self._replications(8), **self.options} | (
            {"requests": self.requests} if self.requests else {}
        )

    def _judge(self, *, missed: bool, sure: bool = True) -> None:
        """Good is only what rests on a measured service time."""
        self.tone = "bad" if missed else "good" if sure and self.model.measured else "careful"

    def compare(self) -> None:
        """The routing strategies, simulated with the same random numbers."""
        from ..simulate import compare
        from ..simulate.wording import change_table, comparison_sentence, steady_table, with_label

        # Without a measured service time there is no verdict.
        targets = self.model.targets if self.model.measured else ()
        results = []
        for label, model in self.model.peaks:
            both: Comparison = compare(
                {
                    routing: model.steady(routing=routing)
                    for routing in ("RANDOM", "LEAST_OUTSTANDING_REQUESTS")
                },
                **self._run_options(),
            )
            results.append(next(iter(both.results.values())))
            sentence = self.model.condition + comparison_sentence(model, both)
            self.sentences.append(with_label(label, sentence))
            self.tables += [
                replace(table, title=label)
                for table in (steady_table(both.results, targets), change_table(both))
            ]
            self.charts.append(partial(latency_chart, both.results, model, label))
            self._keep(
                label,
                {
                    "routing": {
                        name: {**result.to_dict(), "verdicts": _verdicts(targets, result)}
                        for name, result in both.results.items()
                    }
                },
            )
        self._assume(results)
        if self.plan.routing == "PREFIX_AWARE":
            self.sentences.append(
                "The settings route PREFIX_AWARE, which is not compared: what a cache saves depends "
                "on the prefixes of your requests."
            )

    def over_time(self, shapes: Sequence[Shape]) -> None:
        """The plan's scaling on shapes of traffic."""
        from ..plan.recorded_rise import contradicted_rises
        from ..simulate import simulate as run
        from ..simulate.wording import gives_up, not_judged_over_time, shape_row, shape_sentence

        rows = []
        self.data = {"traffic": {}}
        late = False
        left_out = False
        answered = True
        judged = True
        # Hours of requests, in which luck evens out: fewer replications do.
        replications = self._replications(4)
        for one in shapes:
            result: SimulationResult = run(
                self.model.over_time(one),
                replications=replications,
                **self.model.length_of(one),
                **self.options,
            )
            left_out = left_out or bool(self.model.without_set_times(one))
            sentence = shape_sentence(self.model, one, result)
            self.sentences.append(self.model.condition_along(one) + sentence)
            if one.warning:
                self.warnings.append(f"{one.name}: {one.warning}")
            if said := contradicted_rises(self.plan, one, self.model.peak_tps):
                self.warnings.append(said)
            rows.append(shape_row(one, result))
            over = result.time_over_target
            answered = answered and result.answered
            judged = judged and not not_judged_over_time(self.model.targets)
            late = late or gives_up(result) or (over is not None and over.mean > 0)
            self.charts.append(partial(timeline_chart, one, result, self.model))
            self.data["traffic"][one.name] = result.to_dict()
            # A recording lasts until its last answer, which can be later than its last request.
            seconds = max(one.seconds, fmean(run.seconds for run in result.replications))
            paid = result.instance_hours.mean * 3600 / seconds
            tps = self.model.peak_tps * self.model.traffic_along(one).mean_share
            tps *= one.seconds / seconds
            self.sentences.append(
                f"{one.name}, on average {self.cost.sentence(paid, tps, month=self._tells_a_month(one))}"
            )
            self.data["traffic"][one.name]["cost"] = self.cost.to_dict(paid, tps)
        sure = answered and judged and not self.warnings and not left_out
        self._judge(missed=late, sure=sure)
        self.tables.append(Table.of(rows, f"{replications} replications"))
        self._assume_over_time(shapes)
        self.assumed.append(_runs(result, steady=False))

    def _tells_a_month(self, shape: Shape) -> bool:
        """Whether what a shape costs can be told for a month: days do, of which others are like."""
        if self.model.without_set_times(shape) or shape.seconds < _DAY_SECONDS:
            return False
        times = self.model.times_along(shape)
        return times is None or times.same_each_day or shape.seconds >= DAYS_PER_WEEK * _DAY_SECONDS

    def _say_cost(self) -> None:
        from ..simulate.wording import with_label

        for label, model in self.model.peaks:
            sentence = self.cost.sentence(model.instances, model.peak_tps)
            self.sentences.append(with_label(label, sentence))
            data = self.data
            if model is not self.model:
                data = self.data["other_peaks"][label]
            data["cost"] = self.cost.to_dict(model.instances, model.peak_tps)

    def _replications(self, default: int) -> int:
        return default if self.replications is None else self.replications

    def _assume_over_time(self, shapes: Sequence[Shape]) -> None:
        from ..simulate import shapes as made

        self.assumed += dict.fromkeys(
            sentence for shape in shapes for sentence in self.model.assumed_over_time(shape)
        )
        if any(shape.name in made() for shape in shapes):
            self.assumed.append("the shapes are made by hand, not recorded from an endpoint")
        throughput = self.plan.request.throughput
        planned = [self.model.peak_tps if throughput is None else throughput.peak_tps]
        planned += [peak.tps for peak in self.model.other_peaks]
        self.assumed += filter(None, (shape.far_from(*planned) for shape in shapes))

    def show(self, as_json: bool, html: Path | None, *, markdown: bool = False) -> None:
        """Print it, and write the page."""
        document = self._document(charts=html is not None)
        if html is not None:
            from ..report.pages import page

            _write(html, page(document))
        if as_json:
            print_json(
                {
                    "settings": None if self.settings is None else str(self.settings),
                    "endpoint": self.name,
                    "answer": self.sentences,
                    "warnings": self.warnings,
                    **self.data,
                    "assumed": self.assumed,
                }
            )
        else:
            print_document(document, markdown=markdown)

    def _document(self, *, charts: bool) -> Document:
        from ..report.document import Document, Listed, Section, Sentence

        first, *others = self.sentences
        made = [make() for make in self.charts] if charts else []
        return Document(
            f"{self.name}: what would happen",
            [
                *others,
                *(Sentence(f"Warning: {warning}.", "careful") for warning in self.warnings),
                *(Section("", [each], detail=True) for each in made if each),
                *(Section(table.title, [replace(table, title="")]) for table in self.tables),
                Section("Assumed", [Listed(self.assumed, "soft")]),
            ],
            verdict=first,
            tone=self.tone,
        )


def _verdicts(targets: Sequence[ModelTarget], result: SimulationResult) -> dict[str, Any]:
    """Where a result lies against each target, for machines."""
    from ..simulate.wording import verdict_of

    return {
        target.name: {
            "callers_target_ms": 1000 * target.callers,
            "model_target_ms": 1000 * target.model,
            "verdict": verdict_of(target, result),
        }
        for target in targets
    }


def _possible_latencies(
    found: Mapping[str, Mapping[tuple[float, float], Estimate]],
) -> list[dict[str, float | None]]:
    """Latencies by name for each mean time and variation that was tried, for machines."""
    rows: dict[tuple[float, float], dict[str, float | None]] = {}
    for name, values in found.items():
        width = "half_width" if name == "p99" else f"{name}_half_width"
        for (seconds, variation), value in values.items():
            row = rows.setdefault(
                (seconds, variation), {"mean_service_ms": 1000 * seconds, "variation": variation}
            )
            row[f"{name}_ms"] = 1000 * value.mean
            row[width] = 1000 * value.half_width if value.tells else None
    return list(rows.values())


def _times_of_the_mean(percentiles: Sequence[float]) -> str:
    """The longest that a call alone can take, by percentile and for the variations that are tried."""
    from ..simulate.service_laws import highest_percentile

    return ", ".join(
        f"{highest_percentile(1.0, variation, percentile):.1f} times its mean at "
        f"p{percentile:g} (CV {readable(variation)})"
        for percentile in percentiles
        for variation in (0.5, 1.0)
    )


def _runs(result: SimulationResult, *, steady: bool = True) -> str:
    """How the runs were made, and what their intervals cover."""
    requests = (
        f" of {min(run.requests for run in result.replications):,} requests" if steady else ""
    )
    return (
        f"{len(result.replications)} runs{requests}, random seed {result.seed}; ± is the "
        f"{result.confidence:.0%} interval of their mean: it covers chance, not what is assumed here"
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise typer.BadParameter(f"cannot write {path}: {problem.strerror}") from None
