"""What came of a comparison: the sentence, the table, the JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ... import __version__
from ...report.document import Document, Listed, Part, Row, Sentence, Table
from ...report.json_text import json_text
from ...report.numbers import milliseconds, percent, readable
from ..engine.latencies import LatencyHistogram, summary_ms
from ..engine.steps import most_frequent
from ..search.result_file import iso_time
from .comparison import FEWEST_PAIRS, Difference, Pair, changes
from .comparison_plan import ComparisonPlan
from .sides import Side

SCHEMA = "low-latency-endpoint/routing-comparison/1"
#: What the intervals of the table cover.
EACH_ON_ITS_OWN = Sentence(
    "Each interval covers one statistic on its own, between the blocks of this run.", "soft"
)
_ROWS = {"mean": "Mean", "throughput": "Throughput"}


@dataclass(frozen=True)
class RoutingComparison:
    """A comparison with all that belongs to it."""

    sides: tuple[Side, Side]  # the base, and the other one
    plan: ComparisonPlan
    pairs: tuple[Pair, ...] = ()  # in the order of time
    set_aside: tuple[Pair, ...] = ()  # repeated, as the generator was their limit
    started_at: float = 0.0  # epoch seconds
    ended_at: float = 0.0
    interrupted: bool = False  # the pairs are those that were whole
    failure: str = ""  # what ended it, where it was not Ctrl-C
    payload: str = ""  # what was sent, in words

    @property
    def labels(self) -> tuple[str, str]:
        """What the sides are called: by their routing."""
        base, other = self.sides
        return base.routing, other.routing

    @cached_property
    def changes(self) -> dict[str, Difference]:
        """The change of each statistic; none with fewer than four pairs."""
        if len(self.pairs) < FEWEST_PAIRS:
            return {}
        return changes(self.pairs, confidence=self.plan.confidence)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the comparison says nothing; empty when it does."""
        problems = []
        if len(self.pairs) < FEWEST_PAIRS:
            problems.append(
                f"{len(self.pairs)} whole pairs of blocks: at least {FEWEST_PAIRS} make an interval"
            )
        bound = [reason for pair in self.pairs for reason in pair.client_bound]
        if bound:
            problems.append(f"client-bound: result invalid: {bound[0]}")
        for label, share, kinds in self._errors():
            if share > self.plan.allowed_errors:
                problems.append(
                    f"{share:.2%} of the requests to {label} failed ({kinds}): the "
                    "latency of the others is no comparison"
                )
        if not problems and "p99" not in self.changes:
            problems.append("a side answered nothing")
        return tuple(problems)

    def _errors(self) -> Iterator[tuple[str, float, str]]:
        for at, label in enumerate(self.labels):
            results = [pair.results[at] for pair in self.pairs]
            sent = sum(result.sent for result in results)
            kinds: Counter[str] = Counter()
            for result in results:
                kinds.update(result.errors)
            yield label, kinds.total() / sent if sent else 0.0, most_frequent(kinds)

    @property
    def valid(self) -> bool:
        """Whether it says something about the sides."""
        return not self.problems

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes it less sure, in words."""
        base, other = self.sides
        warnings = [*base.warnings, *other.warnings]
        weak = [change.statistic for change in self.changes.values() if not change.reliable]
        if weak:
            warnings.append(
                f"Fewer requests lie beyond {' and '.join(weak)} than the interval "
                "needs (ten, and one for each pair): take longer blocks"
            )
        if self.set_aside:
            why = self.set_aside[0].client_bound[0]
            warnings.append(f"{len(self.set_aside)} pairs were repeated: {why}")
        seconds = self.plan.block_seconds
        p99 = self.changes.get("p99")
        slowest = max(p99.base, p99.other) if p99 else 0.0
        if slowest > seconds / 5:
            warnings.append(
                f"One request in a hundred takes {readable(slowest, 3)} s, so blocks of "
                f"{readable(seconds)} s are short: neighbouring blocks may not be independent"
            )
        return tuple(warnings)

    @property
    def sentence(self) -> str:
        """The answer."""
        if self.problems:
            head = "Interrupted: " if self.interrupted else "No answer: "
            return head + "; ".join(self.problems) + self._ended_by
        p99 = self.changes["p99"]
        text = self._p99(p99)
        throughput = self.changes.get("throughput")
        if self.plan.users is not None and throughput is not None and throughput.found:
            verb = "raises" if throughput.change > 0 else "lowers"
            joint = ", and" if p99.found else f". But {self.labels[1]}"
            text += (
                f"{joint} {verb} throughput by {percent(abs(throughput.change))} "
                f"({_ranged(throughput)})"
            )
        text += f" at {self.plan.load}."
        if self.interrupted:
            text += f" Interrupted: {len(self.pairs)} of {self.plan.pairs} pairs.{self._ended_by}"
        return text

    @property
    def _ended_by(self) -> str:
        return f"\n{self.failure}" if self.failure else ""

    def _p99(self, change: Difference) -> str:
        base, other = self.labels
        if change.found:
            verb = "lowers" if change.change < 0 else "raises"
            return (
                f"{other} {verb} p99 by {percent(abs(change.change))} "
                f"({readable(self.plan.confidence * 100)} % interval {_ranged(change)})"
            )
        return (
            f"No difference in p99 that this test can tell between {other} and {base}; it would "
            f"have seen {percent(change.would_see)}"
        )

    def pooled(self, at: int) -> LatencyHistogram:
        """All latencies of the base (0) or of the other side (1)."""
        return LatencyHistogram.sum(pair.results[at].latency for pair in self.pairs)

    def table(self) -> Table:
        """The statistics of both sides."""
        heads = [
            "",
            *self.labels,
            "Change",
            f"{readable(self.plan.confidence * 100)} % interval",
            "Would have seen",
        ]
        return Table(heads, [_row(change) for change in self.changes.values()])

    def document(self) -> Document:
        """The answer for people: a sentence, a table, what to be careful about."""
        table = self.table()
        parts: list[Part] = [table, EACH_ON_ITS_OWN] if table.rows else []
        return Document(
            " and ".join(self.labels),
            [
                *parts,
                Listed([side.text for side in self.sides], "soft"),
                Listed([Row("Careful", warning, tone="careful") for warning in self.warnings]),
            ],
            verdict=self.sentence,
            tone="strong" if self.valid else "bad",
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of the file."""
        base, other = (
            {**side.to_dict(), "latency_ms": summary_ms(self.pooled(at))}
            for at, side in enumerate(self.sides)
        )
        return {
            "schema": SCHEMA,
            "version": __version__,
            "answer": self.sentence,
            "valid": self.valid,
            "problems": list(self.problems),
            "warnings": list(self.warnings),
            "started_at": iso_time(self.started_at),
            "ended_at": iso_time(self.ended_at),
            "interrupted": self.interrupted,
            "failure": self.failure,
            "load": self.plan.load,
            "payload": self.payload,
            "plan": asdict(self.plan),
            "base": base,
            "other": other,
            "changes": {name: change.to_dict() for name, change in self.changes.items()},
            "pairs": [pair.to_dict() for pair in self.pairs],
            "set_aside": [pair.to_dict() for pair in self.set_aside],
        }

    def to_json(self) -> str:
        """The file's text."""
        return json_text(self.to_dict())


def _row(change: Difference) -> list[str]:
    name = _ROWS.get(change.statistic, change.statistic)
    return [
        name if change.reliable else f"{name} ?",
        _value(change.statistic, change.base),
        _value(change.statistic, change.other),
        f"{100 * change.change:+.1f} %",
        f"{100 * change.low:+.1f} to {100 * change.high:+.1f} %",
        percent(change.would_see),
    ]


def _value(statistic: str, value: float) -> str:
    """A figure of a side."""
    if statistic == "throughput":
        return f"{readable(value, 4)}/s"
    return milliseconds(1000 * value, 4) if value < 10 else f"{readable(value, 4)} s"


def _ranged(change: Difference) -> str:
    """The interval of a change that was found, without its sign: ``19 to 27 %``."""
    low, high = sorted((abs(change.low), abs(change.high)))
    digits = 0 if 100 * (high - low) >= 2 else 1
    return f"{100 * low:.{digits}f} to {100 * high:.{digits}f} %"
