"""The shapes of PromQL that alarms on tokens, checks and dashboards write; no others are answered.

A query is data, ``(data)`` or ``FACTOR * (data)``, or an alarm's ``(data) > NUMBER``, to which ``and (data) >=
NUMBER`` may come. Data is one of these, or several with ``or`` between them:

- ``max(avg_over_time({"NAME", "LABEL"="VALUE"}[300s]))``
- ``sum(increase({...}[300s]))`` and ``histogram_count(sum(increase({...}[300s])))``
- ``histogram_quantile(0.95, sum(rate({...}[300s])))``, also with ``by ("LABEL")``, of an
  exponential histogram
- ``histogram_quantile(0.95, sum by (le) (rate({...}[300s])))``, also with ``(le, "LABEL")``, of an
  explicit one

Sources: Prometheus 3 documentation, "Query functions"; for rate and increase, the extrapolation of
its `promql/functions.go`.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .series import Labels, SeriesPoint, SeriesStore, bound_of

LONGEST_QUERY = 10_000  # characters. Source: CloudWatch API reference, AlarmPromQLCriteria.

_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
_SELECTOR = r'\{"(?P<metric>[^"\\]+)"(?P<labels>(?:, "[^"\\]+"="[^"\\]*")*)\}'
_RANGE = _SELECTOR + r"\[(?P<seconds>[0-9]{1,6})s\]"
_SHARE = r"histogram_quantile\((?P<share>0(?:\.[0-9]{1,15})?|1), sum"
_BY = r'"(?P<by>[^"\\]+)"'
_TERMS = {
    "average": re.compile(rf"max\(avg_over_time\({_RANGE}\)\)"),
    "increase": re.compile(rf"sum\(increase\({_RANGE}\)\)"),
    "count": re.compile(rf"histogram_count\(sum\(increase\({_RANGE}\)\)\)"),
    "exponential": re.compile(rf"{_SHARE}(?: by \({_BY}\) )?\(rate\({_RANGE}\)\)\)"),
    "explicit": re.compile(rf"{_SHARE} by \(le(?:, {_BY})?\) \(rate\({_RANGE}\)\)\)"),
}
_WORDS = re.compile(r'"[^"]*"?|([A-Za-z_]\w*)')
_KNOWN = {
    *("and", "avg_over_time", "by", "histogram_count", "histogram_quantile", "increase", "le"),
    *("max", "or", "rate", "s", "sum"),
}


class QueryError(ValueError):
    """A query that is not of a known shape."""


@dataclass(frozen=True)
class _Term:
    kind: str
    metric: str
    labels: Labels
    seconds: float
    share: float
    by: str


@dataclass(frozen=True)
class Query:
    """A query that was read: data, and of an alarm the threshold and the data that must suffice."""

    data: tuple[_Term, ...]
    factor: float = 1.0
    above: float | None = None
    enough: tuple[_Term, ...] = ()
    least: float = 0.0

    @property
    def by(self) -> str:
        """The label that tells the result's series apart; empty where there is at most one."""
        return self.data[0].by

    @property
    def reach(self) -> float:
        """Seconds before its moment that it looks at."""
        return max(term.seconds for term in (*self.data, *self.enough))

    def evaluate(self, store: SeriesStore, at: float) -> dict[str, float]:
        """Give the values at seconds since 1970, by the value of the label `by`."""
        found = {key: self.factor * value for key, value in _of(self.data, store, at).items()}
        if self.above is None:
            return found
        found = {key: value for key, value in found.items() if value > self.above}
        if not self.enough:
            return found
        enough = _of(self.enough, store, at)
        return {
            key: value for key, value in found.items() if enough.get(key, -math.inf) >= self.least
        }


class _Reader:
    """Takes a query piece by piece."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def take(self, pattern: str | re.Pattern[str]) -> re.Match[str] | None:
        found = re.compile(pattern).match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def expect(self, pattern: str) -> re.Match[str]:
        found = self.take(pattern)
        if found is None:
            raise self.unknown()
        return found

    def data(self) -> tuple[_Term, ...]:
        terms = [self._term()]
        while self.take(" or "):
            terms.append(self._term())
        if len({term.by for term in terms}) > 1:
            raise self.unknown()
        return tuple(terms)

    def _term(self) -> _Term:
        for kind, pattern in _TERMS.items():
            if found := self.take(pattern):
                given = found.groupdict("")
                labels, seconds = _labels(given["labels"]), float(given["seconds"])
                share, by = float(given.get("share", 0)), given.get("by", "")
                return _Term(kind, given["metric"], labels, seconds, share, by)
        raise self.unknown()

    def unknown(self) -> QueryError:
        strange = [word for word in _WORDS.findall(self._text) if word and word not in _KNOWN]
        rest = f"the query's shape from {self._text[self._at : self._at + 60]!r} on"
        return QueryError(f"{strange[0] if strange else rest} is not known to the local AWS")


def _labels(text: str) -> Labels:
    return tuple(re.findall(r'"([^"]+)"="([^"]*)"', text))


@functools.lru_cache(1024)  # alarms ask the same every minute
def parse(query: str) -> Query:
    """Read a query.

    Examples
    --------
    >>> found = parse('(max(avg_over_time({"vllm:x", "a"="b"}[60s]))) > 4')
    >>> found.data[0].metric, found.above
    ('vllm:x', 4.0)
    >>> parse("topk(3, x)")
    Traceback (most recent call last):
    ...
    local_sagemaker.promql.queries.QueryError: topk is not known to the local AWS
    """
    if not 1 <= len(query) <= LONGEST_QUERY:
        raise QueryError(f"a query has 1 to {LONGEST_QUERY} characters, not {len(query)}")
    reader = _Reader(query)
    factor = reader.take(_NUMBER + r" \* \(")
    opened = factor or reader.take(r"\(")
    found = Query(reader.data(), factor=float(factor[1]) if factor else 1.0)
    if opened and not factor and (above := reader.take(r"\) > " + _NUMBER)):
        found = replace(found, above=float(above[1]))
        if reader.take(r" and \("):
            enough = reader.data()
            least = float(reader.expect(r"\) >= " + _NUMBER)[1])
            found = replace(found, enough=enough, least=least)
    elif opened:
        reader.expect(r"\)")
    reader.expect(r"\Z")
    return found


def selector(text: str) -> tuple[str, Labels]:
    """Read a series selector; gives the metric's name and the labels' values."""
    found = re.fullmatch(_SELECTOR, text)
    if found is None:
        raise QueryError(f'match[] takes {{"NAME", "LABEL"="VALUE"}}, not {text[:200]}')
    return found["metric"], _labels(found["labels"])


# -------------------------------------------------------------------------------------- evaluation


def _of(data: Sequence[_Term], store: SeriesStore, at: float) -> dict[str, float]:
    """Give the values of each alternative whose labels no former one had."""
    found: dict[str, float] = {}
    for term in data:
        found = {**_values(term, store, at), **found}
    return found


def _values(term: _Term, store: SeriesStore, at: float) -> dict[str, float]:
    """Give the values of one alternative, by the label that it groups by."""
    groups: dict[str, dict[float, list[float]]] = {}
    for series in store.named(term.metric):
        if all(series.labels.get(name) == value for name, value in term.labels):
            points = series.between(at - term.seconds, at)
            for bound, numbers in _numbers(term.kind, series.labels, points).items():
                if term.kind == "average":
                    one: float | None = sum(number for _, number in numbers) / len(numbers)
                else:
                    one = increase(numbers, at, term.seconds)
                if one is not None:
                    group = groups.setdefault(series.labels.get(term.by, ""), {})
                    group.setdefault(bound, []).append(one)
    return {key: _merged(term, group) for key, group in groups.items()}


def _numbers(
    kind: str, labels: Mapping[str, str], points: Sequence[SeriesPoint]
) -> dict[float, list[tuple[float, float]]]:
    """Give the numbers of a series at each moment, by the bucket that they are of."""
    numbers: dict[float, list[tuple[float, float]]] = {}
    bound = bound_of(labels.get("le", "")) if kind == "explicit" else 0.0
    for time, value in points:
        if isinstance(value, Mapping):
            if kind in ("count", "exponential"):
                for high, count in value.items():
                    numbers.setdefault(high, []).append((time, count))
        elif kind not in ("count", "exponential") and not math.isnan(bound):
            numbers.setdefault(bound, []).append((time, value))
    return numbers


def _merged(term: _Term, group: Mapping[float, Sequence[float]]) -> float:
    """Make one number of all series of a group."""
    if term.kind == "average":
        return max(group[0.0])
    buckets = sorted((bound, sum(rises)) for bound, rises in group.items())
    is_quantile = term.kind in ("exponential", "explicit")
    return quantile(term.share, buckets) if is_quantile else buckets[-1][1]


def increase(points: Sequence[tuple[float, float]], at: float, length: float) -> float | None:
    """How much a counter rose, extrapolated to the whole window; counters set back are seen."""
    if len(points) < 2:
        return None
    (first, begun), (last, ended) = points[0], points[-1]
    rise = ended - begun + sum(a for (_, a), (_, b) in pairwise(points) if b < a)
    sampled = last - first
    to_start, to_end = first - (at - length), at - last
    between = sampled / (len(points) - 1)
    if to_start >= 1.1 * between:
        to_start = between / 2
    # A counter begins at zero: it is not extrapolated to before that.
    if rise > 0 and begun >= 0:
        to_start = min(to_start, sampled * begun / rise)
    if to_end >= 1.1 * between:
        to_end = between / 2
    return rise * ((sampled + to_start + to_end) / sampled)


def quantile(share: float, cumulative: Sequence[tuple[float, float]]) -> float:
    """Estimate a percentile of explicit buckets as Prometheus's histogram_quantile does.

    Source: Prometheus documentation, "histogram_quantile()": linear within the bucket; the highest
    bound when it lies above; the lowest bucket begins at 0 when its bound is above 0.

    Examples
    --------
    >>> quantile(0.5, [(1.0, 0), (2.0, 10), (float("inf"), 10)])
    1.5
    """
    if len(cumulative) < 2 or not math.isinf(cumulative[-1][0]):
        return math.nan
    counts: list[float] = []
    for _, count in cumulative:  # they never fall; float rates may, by a hair
        counts.append(max(count, counts[-1]) if counts else count)
    if counts[-1] == 0:
        return math.nan
    rank = share * counts[-1]
    found = next((i for i, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if found == len(counts) - 1:
        return cumulative[-2][0]
    high = cumulative[found][0]
    if found == 0 and high <= 0:
        return high
    low, before = (cumulative[found - 1][0], counts[found - 1]) if found else (0.0, 0.0)
    return low + (high - low) * ((rank - before) / (counts[found] - before))
