"""Instant vectors: which labels make a pair or a group, and what operators make of two values."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import promql_parser as grammar

from .exposition import bound_of
from .functions import ARITHMETIC, COMPARISONS, total
from .histograms import Histogram, classic_quantile
from .series import NAME, Value


class QueryError(ValueError):
    """A query that cannot be read, or asks for what is not known here."""


@dataclass(frozen=True)
class Element:
    """One series of an instant vector."""

    labels: Mapping[str, str]
    value: Value


Vector = list[Element]

# ------------------------------------------------------------------------------------------ labels


def matchers(
    selector: Any, *, needs_name: bool = True
) -> tuple[list[str], list[Callable[[Mapping[str, str]], bool]]]:
    """Give the names that a selector asks for, and the tests of its labels.

    Raises
    ------
    QueryError
        Without a name, where one is needed: whether CloudWatch takes a pattern of names is not
        said, so the refusal, which is worse, is what happens here.
    """
    names = {selector.name} if selector.name else set()
    tests: list[Callable[[Mapping[str, str]], bool]] = []
    if selector.matchers.or_matchers:
        raise QueryError("or between matchers is not known to the local AWS")
    for matcher in selector.matchers.matchers:
        if matcher.name == NAME and matcher.op == grammar.MatchOp.Equal:
            names.add(matcher.value)
        elif matcher.name != NAME or not needs_name:
            tests.append(_test(matcher))
    if len(names) != 1 and (needs_name or names):
        raise QueryError(
            "The expression must select a metric by name. Selecting series only by labels, "
            "without a metric name, is not supported"
        )
    return sorted(names), tests


def _test(matcher: Any) -> Callable[[Mapping[str, str]], bool]:
    name, value, operation = matcher.name, matcher.value, matcher.op
    if operation in (grammar.MatchOp.Equal, grammar.MatchOp.NotEqual):
        wanted = operation == grammar.MatchOp.Equal
        return lambda labels: (labels.get(name, "") == value) is wanted
    try:
        pattern = re.compile(value, re.DOTALL)
    except re.error as error:
        raise QueryError(f"the regular expression {value} cannot be read: {error}") from None
    wanted = operation == grammar.MatchOp.Re
    return lambda labels: (pattern.fullmatch(labels.get(name, "")) is not None) is wanted


def nameless(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name != NAME}


def grouped(labels: Mapping[str, str], modifier: Any) -> tuple[tuple[str, str], ...]:
    if modifier is None:
        return ()
    named = set(modifier.labels)
    by = modifier.type == grammar.AggModifierType.By
    kept = {
        name: value
        for name, value in labels.items()
        if (name in named if by else name not in named and name != NAME)
    }
    return tuple(sorted(kept.items()))


def known_labels(node: Any) -> dict[str, str]:
    """Give the labels that absent() can tell: those that the selector says exactly."""
    if not isinstance(node, grammar.VectorSelector):
        return {}
    named = [matcher.name for matcher in node.matchers.matchers]
    return {
        matcher.name: matcher.value
        for matcher in node.matchers.matchers
        if matcher.op == grammar.MatchOp.Equal
        and matcher.name != NAME
        and named.count(matcher.name) == 1
    }


Matching = Callable[[Mapping[str, str]], tuple[tuple[str, str], ...]]


def matching(modifier: Any) -> Matching:
    """Give what makes two elements a pair: all labels but the name, or as on and ignoring say."""
    matching = modifier.matching if modifier is not None else None
    named = set(matching.labels) if matching is not None else set()
    on = matching is not None and matching.type == grammar.LabelModifierType.Include

    def key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        return tuple(
            sorted(
                (name, value)
                for name, value in labels.items()
                if (name in named if on else name not in named and name != NAME)
            )
        )

    return key


# ------------------------------------------------------------------------------------------ values


def of_numbers(vector: Vector, compute: Callable[[float], float]) -> Vector:
    return [
        Element(nameless(one.labels), compute(one.value))
        for one in vector
        if not isinstance(one.value, Histogram)
    ]


def histogram_quantile(share: float, vector: Vector) -> Vector:
    """Of exponential histograms each by itself; of explicit ones by the buckets' other labels."""
    found, buckets = [], dict[tuple[tuple[str, str], ...], dict[float, float]]()
    for one in vector:
        labels = nameless(one.labels)
        if isinstance(one.value, Histogram):
            found.append(Element(labels, one.value.quantile(share)))
            continue
        bound = bound_of(labels.pop("le", ""))
        if not math.isnan(bound):
            group = buckets.setdefault(tuple(sorted(labels.items())), {})
            group[bound] = group.get(bound, 0.0) + one.value
    for key, counts in buckets.items():
        found.append(Element(dict(key), classic_quantile(share, sorted(counts.items()))))
    return found


def operation_of(operation: str, as_bool: bool) -> Callable[[Value, Value, Value], Value | None]:
    """Give what an operator makes of two values; None drops the element.

    A comparison keeps the third. Between histograms and numbers only * and / mean anything: what
    does not is dropped, as by Prometheus.
    """

    def apply(left: Value, right: Value, kept: Value) -> Value | None:
        if isinstance(left, Histogram) or isinstance(right, Histogram):
            return _with_histogram(operation, left, right)
        if operation in ARITHMETIC:
            return ARITHMETIC[operation](left, right)
        holds = COMPARISONS[operation](left, right)
        if as_bool:
            return float(holds)
        return kept if holds else None

    return apply


def _with_histogram(operation: str, left: Value, right: Value) -> Value | None:
    match operation, left, right:
        case "*", Histogram(), float():
            return left * right
        case "*", float(), Histogram():
            return right * left
        case "/", Histogram(), float() if right:
            return left * (1 / right)
        case "+", Histogram(), Histogram():
            return left + right
        case "-", Histogram(), Histogram():
            return left - right
    return None


def one_to_one(
    left: Vector,
    right: Vector,
    modifier: Any,
    apply: Callable[[Value, Value, Value], Value | None],
    keeps: bool,
) -> Vector:
    if modifier is not None and modifier.card not in (
        None,
        grammar.VectorMatchCardinality.OneToOne,
    ):
        raise QueryError("group_left and group_right are not known to the local AWS")
    key = matching(modifier)
    others: dict[tuple[tuple[str, str], ...], Element] = {}
    for one in right:
        if others.setdefault(key(one.labels), one) is not one:
            raise QueryError("found duplicate series for the match group on the right side")
    seen, found = set(), []
    on = modifier is not None and modifier.matching is not None
    for one in left:
        group = key(one.labels)
        if group not in others:
            continue
        if group in seen:
            raise QueryError("found duplicate series for the match group on the left side")
        seen.add(group)
        value = apply(one.value, others[group].value, one.value)
        if value is not None:
            labels = dict(group) if on else one.labels if keeps else nameless(one.labels)
            found.append(Element(labels, value))
    return found


# -------------------------------------------------------------------------- sets and aggregations


def _and(left: Vector, right: Vector, key: Matching) -> Vector:
    there = {key(one.labels) for one in right}
    return [one for one in left if key(one.labels) in there]


def _unless(left: Vector, right: Vector, key: Matching) -> Vector:
    there = {key(one.labels) for one in right}
    return [one for one in left if key(one.labels) not in there]


def _or(left: Vector, right: Vector, key: Matching) -> Vector:
    there = {key(one.labels) for one in left}
    return [*left, *(one for one in right if key(one.labels) not in there)]


SETS = {"and": _and, "or": _or, "unless": _unless}


def _sum(values: Sequence[Value]) -> Value | None:
    histograms = [value for value in values if isinstance(value, Histogram)]
    if not histograms:
        return total(_plain(values))
    if len(histograms) < len(values):
        return None  # Prometheus gives nothing for a group of both kinds
    return functools.reduce(lambda added, one: added + one, histograms)


def _average(values: Sequence[Value]) -> Value | None:
    added = _sum(values)
    if added is None or isinstance(added, Histogram):
        return None if added is None else added * (1 / len(values))
    return added / len(values)


def _extreme(
    choose: Callable[[Iterable[float]], float],
) -> Callable[[Sequence[Value]], Value | None]:
    def compute(values: Sequence[Value]) -> Value | None:
        numbers = _plain(values)
        known = [number for number in numbers if not math.isnan(number)]
        if not numbers:
            return None
        return choose(known) if known else math.nan

    return compute


def _plain(values: Sequence[Value]) -> list[float]:
    return [value for value in values if not isinstance(value, Histogram)]


AGGREGATIONS: dict[str, Callable[[Sequence[Value]], Value | None]] = {
    "avg": _average,
    "count": lambda values: float(len(values)),
    "max": _extreme(max),
    "min": _extreme(min),
    "sum": _sum,
}
