"""What came of a comparison: the sentence, the table, the JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ... import __version__
from ...report.document import Document, Listed, Row, Table
from ...report.json_text import json_text
from ...report.numbers import milliseconds, percent, readable
from ..engine.latencies import LatencyHistogram, summary_ms
from ..engine.measurement import TokenResult
from ..engine.steps import most_frequent
from ..search.result_file import iso_time
from .comparison import (
    CACHED,
    FEWEST_PAIRS,
    RATES,
    STATISTICS,
    TOKEN_STATISTICS,
    Difference,
    Pair,
    changes,
)
from .sides import Side, Sides

SCHEMA = "low-latency-endpoint/routing-comparison/1"
#: What the first sentence takes: of whole answers, and of those that are read token by token. Routing
#: decides in which queue a request waits, and whether its prompt's beginning is there: both show in
#: the time to first token, while a whole answer's takes mostly its length.
_HEADLINE, _TOKEN_HEADLINE = "p99", "ttft_p99"
#: As the sentence and warnings call them, where it is not their name.
_SAID = {"output_tokens": "output tokens per second", CACHED: "share of cached prompt tokens"}
_ROWS = {"mean": "Mean", "throughput": "Throughput"}
_TOKEN_ROWS = {
    **{name: f"Answer {name}" for name in ("p50", "p90", "p99", "mean")},
    "throughput": "Answers",
    "output_tokens": "Output tokens",
    CACHED: "Prompt cached",
}


@dataclass(frozen=True)
class RoutingComparison:
    """A comparison with all that belongs to it."""

    sides: Sides
    plan: Mapping[str, Any]  # as ``ComparisonPlan.to_dict`` gives it
    load: str  # in words
    pairs: tuple[Pair, ...] = ()  # in the order of time
    set_aside: tuple[Pair, ...] = ()  # repeated, as the generator was their limit
    started_at: float = 0.0  # epoch seconds
    ended_at: float = 0.0
    interrupted: bool = False  # the pairs are those that were whole
    payload: str = ""  # what was sent, in words
    after: Sides | None = None  # as they were when it ended
    doubts: tuple[str, ...] = ()  # beside what the sides and the blocks show

    @cached_property
    def changes(self) -> dict[str, Difference]:
        """The change of each statistic; none with fewer than four pairs."""
        if len(self.pairs) < FEWEST_PAIRS:
            return {}
        return changes(self.pairs, confidence=self.plan["confidence"])

    @property
    def of_tokens(self) -> bool:
        """Whether all answers were read token by token."""
        return bool(self.pairs) and all(
            result.tokens is not None for pair in self.pairs for result in pair.results
        )

    @property
    def headline(self) -> str:
        """The statistic of the first sentence: p99, or the p99 of the time to first token."""
        return _TOKEN_HEADLINE if self.of_tokens else _HEADLINE

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
            if share > self.plan["allowed_errors"]:
                problems.append(
                    f"{share:.2%} of the requests to {label} failed ({kinds}): the "
                    "latency of the others is no comparison"
                )
        if not problems and self.headline not in self.changes:
            problems.append("a side answered nothing")
        return tuple(problems)

    @property
    def valid(self) -> bool:
        """Whether it says something about the sides."""
        return not self.problems

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes it less sure, in words."""
        found = [*self.sides.warnings, *self.doubts, *self._of_tokens()]
        for before, after in zip(self.sides, self.after or (), strict=False):
            if before.fleet.instances != after.fleet.instances:
                found.append(
                    f"{before.name} had {before.fleet.instances} instances at the start "
                    f"and {after.fleet.instances} at the end"
                )
        weak = [named(change.statistic) for change in self.changes.values() if not change.reliable]
        if weak:
            found.append(
                f"Fewer requests lie beyond {' and '.join(weak)} than the interval "
                "needs (ten, and one for each pair): take longer blocks"
            )
        if self.set_aside:
            why = next(reason for pair in self.set_aside for reason in pair.client_bound)
            found.append(f"{len(self.set_aside)} pairs were repeated: {why}")
        seconds, slow = self.plan["block_seconds"], self.changes.get("p99")
        slowest = max(slow.base, slow.other) if slow else 0.0
        if slowest > seconds / 5:
            found.append(
                f"One request in a hundred takes {readable(slowest, 3)} s, so blocks of "
                f"{readable(seconds)} s are short: neighbouring blocks may not be independent"
            )
        return tuple(found)

    def _of_tokens(self) -> Iterator[str]:
        for at, label in enumerate(self.sides.labels):
            tokens = self.pooled_tokens(at)
            if tokens is not None and tokens.unstreamed:
                yield (
                    f"{tokens.unstreamed:,} answers of {label} came in one chunk: their time to "
                    "first token is that of the whole answer"
                )
            if tokens is not None and tokens.uncounted:
                yield (
                    f"{tokens.uncounted:,} answers of {label} did not say how many tokens they "
                    "have: chunks were counted"
                )
        if self.changes and self.of_tokens and CACHED not in self.changes:
            yield (
                "No answer tells of cached tokens (usage.prompt_tokens_details): what the prefix "
                "caches found is not seen"
            )

    def _errors(self) -> Iterator[tuple[str, float, str]]:
        for at, label in enumerate(self.sides.labels):
            results = [pair.results[at] for pair in self.pairs]
            sent = sum(result.sent for result in results)
            kinds: Counter[str] = Counter()
            for result in results:
                kinds.update(result.errors)
            yield label, kinds.total() / sent if sent else 0.0, most_frequent(kinds)

    @property
    def sentence(self) -> str:
        """The answer."""
        if self.problems:
            head = "Interrupted: " if self.interrupted else "No answer: "
            return head + "; ".join(self.problems)
        other = self.sides.labels[1]
        headline = self.changes[self.headline]
        text = self._said(headline, other)
        throughput = self.changes.get("output_tokens" if self.of_tokens else "throughput")
        if self.plan["users"] is not None and throughput is not None and throughput.found:
            verb = "raises" if throughput.change > 0 else "lowers"
            joint = ", and" if headline.found else f". But {other}"
            text += (
                f"{joint} {verb} {named(throughput.statistic)} by {percent(abs(throughput.change))} "
                f"({_ranged(throughput)})"
            )
        text += f" at {self.load}."
        if self.interrupted:
            text += f" Interrupted: {len(self.pairs)} of {self.plan['pairs']} pairs."
        return text

    def _said(self, change: Difference, other: str) -> str:
        name = named(change.statistic)
        if change.found:
            verb = "lowers" if change.change < 0 else "raises"
            return (
                f"{other} {verb} {name} by {percent(abs(change.change))} "
                f"({readable(change.confidence * 100)} % interval {_ranged(change)})"
            )
        return (
            f"No difference in {name} that this test can tell between {other} and "
            f"{self.sides.labels[0]}; it would have seen {percent(change.would_see)}"
        )

    def pooled(self, at: int) -> LatencyHistogram:
        """All latencies of the base (0) or of the other side (1)."""
        return LatencyHistogram.sum(pair.results[at].latency for pair in self.pairs)

    def pooled_tokens(self, at: int) -> TokenResult | None:
        """What all blocks of the base (0) or of the other side (1) showed of tokens."""
        if not self.of_tokens:
            return None
        found = (pair.results[at].tokens for pair in self.pairs)
        return TokenResult.sum(each for each in found if each is not None)

    def table(self) -> Table:
        """The statistics of both sides."""
        heads = [
            "",
            *self.sides.labels,
            "Change",
            f"{readable(self.plan['confidence'] * 100)} % interval",
            "Would have seen",
        ]
        names = [name for name in (*TOKEN_STATISTICS, *STATISTICS) if name in self.changes]
        return Table(heads, [self._row(name) for name in names])

    def document(self) -> Document:
        """The answer for people: a sentence, a table, what to be careful about."""
        table = self.table()
        sides = zip(self.sides.labels, self.sides, strict=True)
        return Document(
            " and ".join(self.sides.labels),
            [
                *([table] if table.rows else []),
                Listed([f"{label}: {side.text}" for label, side in sides], "soft"),
                Listed([Row("Careful", warning, tone="careful") for warning in self.warnings]),
                Listed([Row("Unknown", each) for each in self.sides.unknown], "soft"),
            ],
            verdict=self.sentence,
            tone="strong" if self.valid else "bad",
        )

    def _row(self, name: str) -> list[str]:
        remedy = self.changes[name]
        points = name == CACHED
        unit = "points" if points else "%"
        token_row = (_TOKEN_ROWS if self.of_tokens else _ROWS).get(name, named(name))
        return [
            token_row + ("" if remedy.reliable else " ?"),
            _value(name, remedy.base),
            _value(name, remedy.other),
            f"{100 * remedy.change:+.1f} {unit}",
            f"{100 * remedy.low:+.1f} to {100 * remedy.high:+.1f}" + ("" if points else " %"),
            f"{readable(100 * remedy.would_see, 2)} points"
            if points
            else percent(remedy.would_see),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The content of the file."""

        def side(one: Side, at: int) -> dict[str, Any]:
            content = {
                "label": self.sides.labels[at],
                **one.to_dict(),
                "latency_ms": summary_ms(self.pooled(at)),
            }
            if (tokens := self.pooled_tokens(at)) is not None:
                # The histograms are the pairs'.
                content["tokens"] = {
                    name: value
                    for name, value in tokens.to_dict().items()
                    if name not in ("histograms", "good")  # nobody said what is good
                }
            return content

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
            "load": self.load,
            "payload": self.payload,
            "plan": dict(self.plan),
            "base": side(self.sides.base, 0),
            "other": side(self.sides.other, 1),
            "differences": list(self.sides.differences),
            "unknown": list(self.sides.unknown),
            "changes": {name: change.to_dict() for name, change in self.changes.items()},
            "pairs": [pair.to_dict() for pair in self.pairs],
            "set_aside": [pair.to_dict() for pair in self.set_aside],
        }

    def to_json(self) -> str:
        """The file's text."""
        return json_text(self.to_dict())


def _ranged(change: Difference) -> str:
    """The interval of a change that was found, without its sign: ``19 to 27 %``."""
    low, high = sorted((abs(change.low), abs(change.high)))
    digits = 0 if 100 * (high - low) >= 2 else 1
    return f"{100 * low:.{digits}f} to {100 * high:.{digits}f} %"


def named(statistic: str) -> str:
    """A statistic in a sentence: ``p99``, ``TTFT p99``, ``output tokens per second``."""
    if statistic in _SAID:
        return _SAID[statistic]
    kind, _, percentile = statistic.rpartition("_")
    return f"{kind.upper()} {percentile}" if kind else percentile


def _value(statistic: str, value: float) -> str:
    """A figure of a side."""
    if not math.isfinite(value):
        return "-"
    if statistic in RATES:
        return f"{readable(value, 4)}/s"
    if statistic == CACHED:
        return percent(value)
    return milliseconds(1000 * value, 4) if value < 10 else f"{readable(value, 4)} s"
