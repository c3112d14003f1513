"""Instance types against each other: latency against the cost of a million requests.

Each result file of a load test holds the steps of one fleet. A step costs what its instances cost
for an hour divided by what they answered in one, so that a fleet that is loaded more is cheaper and
slower: one instance type is a line, and where it ends is its limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import rule
from ...plan.load_test_cost import usd_per_million
from ...plan.load_test_validity import check_result_is_valid, read_result
from ...plan.pareto import pareto_front
from ...plan.prices import HOSTING_PRICES, Price, price_of
from ...report.charts import Chart, Line, Panel
from ...report.colours import PALETTE
from ...report.pages import Listed, Section, page
from ...report.tables import Cell, Table
from ..search.result_file import RESULT_FILE, write_text

SAME_TARGET = rule(
    "LLT160",
    "the load tests were judged by different targets",
    fix="Compare load tests with the same --target and payload.",
)
PRICES_NEEDED = rule(
    "LLT161",
    "there is no price for what a load test ran on",
    fix="Give --price ml.g5.xlarge=USD for each type, or --prices with a file of low-latency "
    "prices.",
    source=HOSTING_PRICES,
)
COMPARABLE = rule(
    "LLT162",
    "the load tests do not allow comparing instance types",
    fix="Give results with --target, of endpoints whose instance type and count are known.",
)


@dataclass(frozen=True)
class Point:
    """One step.

    Attributes
    ----------
    instance_type : str
    tps : float
        Requests per second that one instance answered.
    milliseconds, low, high : float
        The statistic, and where the true one lies.
    usd_per_million : float
    held : bool
        Whether it held the target for certain.
    limit : bool
        Whether it is the highest of its load test that did.
    """

    instance_type: str
    tps: float
    milliseconds: float
    low: float
    high: float
    usd_per_million: float
    held: bool
    limit: bool = False


@dataclass(frozen=True)
class MeasuredType:
    """One load test.

    Attributes
    ----------
    name : str
        Its instance type; with the file's name where several ran on the same.
    points : tuple of Point
        By rate.
    lower_bound : bool
        Whether its limit is higher, and was not looked for.
    """

    name: str
    price: Price
    source: str
    points: tuple[Point, ...]
    lower_bound: bool


@dataclass(frozen=True)
class TypeComparison:
    """Load tests on several instance types.

    Attributes
    ----------
    statistic : str
        What is compared, such as p99.
    target : float
        Milliseconds.
    types : tuple of MeasuredType
    payloads : tuple of str
        What was sent, each once.
    """

    statistic: str
    target: float
    types: tuple[MeasuredType, ...]
    payloads: tuple[str, ...]

    @property
    def front(self) -> tuple[Point, ...]:
        """Points that held the target, and that no other beats in both cost and latency."""
        return pareto_front(
            (point for each in self.types for point in each.points if point.held),
            lambda point: point.usd_per_million,
            lambda point: point.milliseconds,
        )

    @property
    def sentence(self) -> str:
        """The answer."""
        front = self.front
        if not front:
            return f"None of them held {self.statistic} within {self.target:g} ms."
        cheapest, quickest = front[0], front[-1]
        text = (
            f"{self.statistic} within {self.target:g} ms is cheapest on {cheapest.instance_type}: "
            f"{cheapest.usd_per_million:,.2f} US dollars for a million requests."
        )
        names = list(dict.fromkeys(point.instance_type for point in front))
        if len(names) > 1:
            text += (
                f" {quickest.instance_type} is quicker, {quickest.milliseconds:,.4g} ms for "
                f"{quickest.usd_per_million:,.2f}."
            )
        beaten = [each.name for each in self.types if each.name not in names]
        if beaten:
            text += f" Beaten in both at every rate: {', '.join(beaten)}."
        return text

    def table(self) -> Table:
        """Each type at its limit, and all points of the frontier, by cost."""
        front = self.front
        shown = {point for each in self.types for point in each.points if point.limit} | {*front}
        price = {each.name: each.price for each in self.types}
        rows: list[list[str | Cell]] = [
            [
                point.instance_type,
                f"{point.tps:,.4g}",
                f"{point.milliseconds:,.4g}",
                f"{point.low:,.4g} to {point.high:,.4g}",
                f"{price[point.instance_type].usd:g}",
                f"{point.usd_per_million:,.2f}",
                ", ".join(["limit"] * point.limit + ["frontier"] * (point in front)),
            ]
            for point in sorted(shown, key=lambda each: (each.usd_per_million, each.milliseconds))
        ]
        rows += [
            [each.name, "-", "-", "-", f"{each.price.usd:g}", "-", "nothing held"]
            for each in self.types
            if not any(point.held for point in each.points)
        ]
        return Table(
            [
                *("Instance type", "TPS each", f"{self.statistic} ms", "interval"),
                *("USD/h", "USD/million", ""),
            ],
            rows,
            f"{self.statistic} within {self.target:g} ms",
            align="lrrrrrl",
        )

    def remarks(self) -> Iterator[str]:
        """What the figures rest on."""
        for each in self.types:
            bound = "; its limit is higher, and was not looked for" if each.lower_bound else ""
            yield f"{each.name}: {each.price.usd:g} an hour, {each.price.origin}; {each.source}{bound}"
        if len(self.payloads) > 1:
            yield f"The payloads differ: {', '.join(self.payloads)}."
        yield (
            "Without reserve: with a safety factor of 0.65 each costs 1 / 0.65 as much. Where "
            "intervals overlap, neither is certainly quicker."
        )

    def chart(self) -> Chart:
        """A line for each type, its steps from little load to much, and the frontier."""
        lines = [
            Line(
                each.name,
                [point.usd_per_million for point in each.points],
                [point.milliseconds for point in each.points],
                colour,
                marks=["●" if point.held else "✕" for point in each.points],
                notes=[
                    f"{each.name} at {point.tps:,.4g} a second each: {point.milliseconds:,.4g} ms, "
                    f"{point.usd_per_million:,.2f} USD a million"
                    for point in each.points
                ],
                low=[point.low for point in each.points],
                high=[point.high for point in each.points],
            )
            for each, colour in zip(self.types, _colours(len(self.types)), strict=True)
        ]
        front = self.front
        lines.append(
            Line(
                "frontier",
                [point.usd_per_million for point in front],
                [point.milliseconds for point in front],
                "grey",
                "steps",
                dash=True,
                marks=["◎"] * len(front),
                notes=[f"frontier: {point.instance_type}" for point in front],
            )
        )
        # A step far over the target must not press the others flat.
        values = [point.milliseconds for each in self.types for point in each.points]
        wide = max(values) > 30 * min(values)
        return Chart(
            "types",
            [
                Panel(
                    self.statistic,
                    lines,
                    " ms",
                    [(f"target {self.target:g} ms", self.target)],
                    logarithmic=wide,
                )
            ],
            title="US dollars for a million requests",
            height=360,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        front = self.front
        return {
            "statistic": self.statistic,
            "target_ms": self.target,
            "sentence": self.sentence,
            "types": [
                {
                    "name": each.name,
                    "price": {"usd": each.price.usd, "origin": each.price.origin},
                    "source": each.source,
                    "lower_bound": each.lower_bound,
                    "points": [
                        {**asdict(point), "frontier": point in front} for point in each.points
                    ],
                }
                for each in self.types
            ],
            "remarks": list(self.remarks()),
        }

    def write_page(self, path: Path) -> None:
        """Write the page.

        Raises
        ------
        ConfigurationError
            ``LLT115``.
        """
        parts = [
            Section(f"{self.statistic} against cost", [self.chart()]),
            Section("At their limits, and on the frontier", [self.table()]),
            Section("What it rests on", [Listed(list(self.remarks()))]),
        ]
        text = page(
            "Instance types compared",
            parts,
            verdict=self.sentence,
            tone="good" if self.front else "bad",
        )
        write_text(path, text)


def compare_instance_types(
    files: Sequence[Path], prices: Mapping[str, Price], statistic: str | None = None
) -> TypeComparison:
    """Compare the load tests in result files.

    Parameters
    ----------
    files : sequence of Path
        Of one target.
    prices : mapping of str to Price
        By instance type; the price that a load test was told stands in its file.
    statistic : str, optional
        Of the target; by default its highest percentile.

    Raises
    ------
    ConfigurationError
        ``LLT113`` and ``LLT114`` for files that are no valid results, ``LLT160`` for different
        targets, ``LLT161`` without a price, ``LLT162`` for a result without instance type or
        target.
    """
    results = {path: read_result(path, RESULT_FILE) for path in files}
    for path, content in results.items():
        check_result_is_valid(content, str(path))
    targets = _one_target(results)
    if not targets:
        raise COMPARABLE.error(got="no latency target", allowed="a target such as p99=200ms")
    statistic = statistic or max(targets, key=_rank)
    if statistic not in targets:
        raise COMPARABLE.error(got=statistic, allowed=", ".join(targets), where="--statistic")
    kinds = {path: _instance_type(content, path) for path, content in results.items()}
    costs = {
        path: price_of(kinds[path], str(content.get("region") or "") or None, prices)
        or _recorded_price(content)
        for path, content in results.items()
    }
    without = {kinds[path]: path for path, price in costs.items() if price is None}
    if without:
        raise PRICES_NEEDED.error(
            got=", ".join(f"{kind} ({path})" for kind, path in without.items()),
            allowed="a price for each",
        )
    twice = {kind for kind in kinds.values() if list(kinds.values()).count(kind) > 1}
    return TypeComparison(
        statistic,
        targets[statistic],
        tuple(
            _measured(
                f"{kinds[path]} ({path.stem})" if kinds[path] in twice else kinds[path],
                content,
                price,
                statistic,
                path,
            )
            for path, content in results.items()
            if (price := costs[path]) is not None
        ),
        tuple(dict.fromkeys(str(content.get("payload") or "?") for content in results.values())),
    )


def _recorded_price(content: Mapping[str, Any]) -> Price | None:
    """The price that the load test was told."""
    price = (content.get("cost") or {}).get("price")
    return Price(float(price["usd"]), f"{price['origin']}, in the result file") if price else None


def _one_target(results: Mapping[Path, Mapping[str, Any]]) -> dict[str, float]:
    """The target of all; milliseconds by statistic."""
    found = {
        path: dict((content.get("latency_target") or {}).get("targets_ms") or {})
        for path, content in results.items()
    }
    first, *others = found
    for path in others:
        if found[path] != found[first]:
            raise SAME_TARGET.error(
                got=f"{first}: {_in_words(found[first])}; {path}: {_in_words(found[path])}",
                allowed="one target",
            )
    return found[first]


def _in_words(targets: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g} ms" for name, value in targets.items()) or "none"


def _rank(statistic: str) -> tuple[bool, float]:
    """Whole answers before first bytes, percentiles by size, means last."""
    name = statistic.rpartition("-")[2]
    return "-" not in statistic, float(name[1:]) if name[1:].replace(".", "").isdigit() else 0.0


def _instance_type(content: Mapping[str, Any], path: Path) -> str:
    found = (content.get("fleet") or {}).get("instance_type")
    if not found or not content.get("instances"):
        raise COMPARABLE.error(
            got="no instance type" if not found else "no number of instances",
            allowed="a result that says on how many instances of which type it ran",
            where=str(path),
        )
    return str(found)


def _measured(
    name: str, content: Mapping[str, Any], price: Price, statistic: str, path: Path
) -> MeasuredType:
    instances = int(content["instances"])
    found = []
    for step in content.get("steps") or ():
        judged = step.get("judgement") or {}
        latency = (judged.get("statistics") or {}).get(statistic) or {}
        rate, value = step.get("rate"), latency.get("ms")
        if step.get("purpose") == "alone" or not rate or value is None:
            continue
        if judged.get("outcome") == "client-bound":  # figures of the generator
            continue
        tps = rate / instances
        found.append(
            Point(
                name,
                tps,
                value,
                value if latency.get("low_ms") is None else latency["low_ms"],
                value if latency.get("high_ms") is None else latency["high_ms"],
                usd_per_million(price.usd, tps),
                judged.get("outcome") == "held",
            )
        )
    if not found:
        raise COMPARABLE.error(
            got=f"no step with {statistic}", allowed="steps with a load", where=str(path)
        )
    limit = content.get("limit") or {}
    highest = max((each.tps for each in found if each.held), default=None)
    return MeasuredType(
        name,
        price,
        str(content.get("source") or path),
        tuple(
            replace(each, limit=each.held and each.tps == highest)
            for each in sorted(found, key=lambda each: each.tps)
        ),
        bool(limit.get("lower_bound")),
    )


def _colours(count: int) -> list[str]:
    return [PALETTE[number % len(PALETTE)] for number in range(count)]
