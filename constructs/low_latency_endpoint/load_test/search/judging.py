"""Did a step hold the latency target? Judged with what its number of requests can tell.

A percentile of a sample is itself uncertain: of 300 requests, three lie beyond p99. The interval
here comes from order statistics: with *n* independent samples the number of those beyond the true
quantile follows a binomial law, whatever the law of the latencies, so ranks of the sample bound it
(David and Nagaraja, *Order Statistics*, 7.1). A step *held* when the upper bound keeps the target,
*broke* when the lower bound misses it, and is *unclear* in between: then it needs more requests.

Requests in a queue are not independent, which the binomial law takes them to be: the true interval
is wider. That is why a limit is confirmed by fresh requests, and why a step whose latency is still
rising when it ends never counts as held.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, median
from typing import Any, Literal

from ...errors import rule
from ...plan.limits import Range
from ..engine.latencies import LatencyHistogram

LATENCY_NEEDED = rule(
    "LLT110",
    "there is no latency target to judge by",
    fix="Give --target p99=200ms, or --settings with endpoints.<name>.latency.",
)
ALLOWED_ERRORS = Range(
    rule(
        "LLT116",
        "the allowed share of errors is out of range",
        fix="0.001 allows one failed request in a thousand.",
    ),
    "the share of errors",
    0,
    0.5,
    "",
    False,
)

Outcome = Literal["held", "broken", "unclear", "client-bound"]
#: Before a statistic's name: of the time to the first byte of a response stream.
FIRST_BYTE = "ttfb-"
CONFIDENCE = 0.95  # of each bound on its own
_RISING_TAU = 0.5
_RISING_FACTOR = 1.3
_TREND_POINTS = 6  # seconds below which a trend cannot be told from chance


@dataclass(frozen=True)
class LatencyGoal:
    """What callers may wait, and how many of them may fail.

    Parameters
    ----------
    targets : mapping of str to float
        Seconds by statistic: ``p99``, ``p99.9``, ``Average``, of the whole answer, and with
        ``ttfb-`` before it of the first byte of a response stream; empty to judge by errors alone.
    allowed_errors : float
        Share of requests that may fail. By default 0.001.
    confidence : float
        With which a bound is meant. By default 0.95.

    Raises
    ------
    ConfigurationError
        ``LLT116``; ``LLT110`` for a statistic of another form.

    Examples
    --------
    >>> LatencyGoal({"p99": 0.2}).text
    'p99 within 200 ms, at most 0.1 % errors'
    """

    targets: Mapping[str, float] = field(default_factory=dict)
    allowed_errors: float = 0.001
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        ALLOWED_ERRORS.check(self.allowed_errors, "allowed errors")
        for statistic, seconds in self.targets.items():
            if not is_mean(statistic):
                quantile_of(statistic)
            if not seconds > 0:
                raise LATENCY_NEEDED.error(got=f"{statistic} {seconds!r} s", allowed="above 0 s")

    @property
    def of_first_byte(self) -> tuple[str, ...]:
        """The statistics that only a response stream has."""
        return tuple(name for name in self.targets if name.startswith(FIRST_BYTE))

    @property
    def text(self) -> str:
        """The goal in words."""
        targets = [f"{name} within {1000 * seconds:g} ms" for name, seconds in self.targets.items()]
        return ", ".join([*targets, f"at most {100 * self.allowed_errors:g} % errors"])

    def to_dict(self) -> dict[str, Any]:
        """JSON; times in milliseconds."""
        return {
            "targets_ms": {name: 1000 * seconds for name, seconds in self.targets.items()},
            "allowed_errors": self.allowed_errors,
            "confidence": self.confidence,
        }


@dataclass(frozen=True)
class Bounds:
    """A statistic of a step and where the true one lies; seconds.

    ``high`` is infinite where there are too few requests to bound it.
    """

    value: float
    low: float
    high: float
    samples: int

    def to_dict(self) -> dict[str, Any]:
        """JSON; times in milliseconds, ``null`` for no bound."""
        return {
            "ms": _ms(self.value),
            "low_ms": _ms(self.low),
            "high_ms": _ms(self.high),
            "samples": self.samples,
        }


@dataclass(frozen=True)
class Judgement:
    """What a step showed.

    Attributes
    ----------
    outcome : str
        ``held``, ``broken``, ``unclear``, or ``client-bound`` when the generator was the limit.
    reasons : tuple of str
        Why, in words.
    bounds : mapping of str to Bounds
        By statistic.
    errors : bool
        Whether errors broke it.
    rising : bool
        Whether latency still rose when it ended.
    kept : bool
        Whether the goal was kept. That may be known of a ``client-bound`` step too: latencies
        include the generator's delay, so an endpoint that keeps the target with it keeps the
        target without. Its figures are no measurement of the endpoint nevertheless.
    """

    outcome: Outcome
    reasons: tuple[str, ...] = ()
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    errors: bool = False
    rising: bool = False
    kept: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "outcome": self.outcome,
            "reasons": list(self.reasons),
            "rising": self.rising,
            "errors": self.errors,
            "kept": self.kept,
            "statistics": {name: each.to_dict() for name, each in self.bounds.items()},
        }


def is_mean(statistic: str) -> bool:
    """Whether it is a mean, and no quantile."""
    return statistic.removeprefix(FIRST_BYTE) == "Average"


def quantile_of(statistic: str) -> float:
    """The quantile of a statistic's name.

    Examples
    --------
    >>> quantile_of("p99"), quantile_of("p99.9"), quantile_of("ttfb-p90")
    (0.99, 0.999, 0.9)
    """
    name = statistic.removeprefix(FIRST_BYTE)
    try:
        share = float(name.removeprefix("p")) / 100
    except ValueError:
        share = math.nan
    if not (name.startswith("p") and 0 < share < 1):
        raise LATENCY_NEEDED.error(
            got=repr(statistic),
            allowed="p50, p90, p99, p99.9 or Average, of response streams ttfb-p99 too",
        )
    return round(share, 9)


def samples_for(quantile: float, confidence: float = CONFIDENCE) -> int:
    """Fewest requests that can show a quantile to be within a target: none of them may miss it.

    Examples
    --------
    >>> samples_for(0.5), samples_for(0.99), samples_for(0.999)
    (5, 299, 2995)
    """
    return math.ceil(math.log(1 - confidence) / math.log(quantile))


def rank_bounds(samples: int, quantile: float, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Ranks (from 1) of the ordered sample that bound a quantile from below and from above.

    Each bound holds with the confidence on its own. Rank 0 and rank ``samples + 1`` stand for no
    bound.

    Examples
    --------
    >>> rank_bounds(298, 0.99), rank_bounds(299, 0.99), rank_bounds(1000, 0.99)
    ((292, 299), (293, 299), (985, 996))
    """
    beyond = 1 - quantile
    below_alpha, above_rest = _binomial_ranks(samples, beyond, 1 - confidence)
    return max(0, samples - above_rest), samples - below_alpha


def _binomial_ranks(samples: int, share: float, alpha: float) -> tuple[int, int]:
    """Largest k with P(X <= k) <= alpha (or -1), smallest m with P(X <= m) >= 1 - alpha."""
    mean, spread = samples * share, math.sqrt(samples * share * (1 - share))
    start = max(0, math.floor(mean - 12 * spread) - 1)
    below, summed, k = -1, 0.0, start
    while k <= samples:
        summed += math.exp(_log_binomial(samples, k, share))
        if summed <= alpha:
            below = k
        if summed >= 1 - alpha:
            return below, k
        k += 1
    return below, samples


def _log_binomial(n: int, k: int, p: float) -> float:
    return (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
    )


def binomial_tail(n: int, k: int, p: float) -> float:
    """The chance of at least ``k`` hits of ``n`` independent ones that each hit with chance ``p``.

    Examples
    --------
    >>> binomial_tail(10, 0, 0.5), round(binomial_tail(10, 9, 0.5) * 1024)
    (1.0, 11)
    """
    if k <= 0:
        return 1.0
    if k > n * p:  # the smaller side, whose terms fall quickly
        summed = 0.0
        for each in range(k, n + 1):
            term = math.exp(_log_binomial(n, each, p))
            summed += term
            if term < 1e-12 * summed:
                break
        return min(1.0, summed)
    return max(0.0, 1 - sum(math.exp(_log_binomial(n, each, p)) for each in range(k)))


def quantile_bounds(
    latencies: LatencyHistogram, quantile: float, confidence: float = CONFIDENCE
) -> Bounds:
    """A quantile with its bounds.

    Examples
    --------
    >>> made = quantile_bounds(LatencyHistogram.of(n / 1000 for n in range(1, 1001)), 0.99)
    >>> [round(each, 3) for each in (made.low, made.value, made.high)]
    [0.985, 0.99, 0.996]
    """
    count = latencies.count
    if not count:
        return Bounds(math.nan, 0.0, math.inf, 0)
    low, high = rank_bounds(count, quantile, confidence)
    value, lower, upper = latencies.quantiles(
        [quantile, max(low, 1) / count, min(high, count) / count]
    )
    return Bounds(value, lower if low >= 1 else 0.0, upper if high <= count else math.inf, count)


def mean_bounds(latencies: LatencyHistogram, confidence: float = CONFIDENCE) -> Bounds:
    """The mean with its bounds, by the normal law."""
    count = latencies.count
    if not count:
        return Bounds(math.nan, 0.0, math.inf, 0)
    steps = 200
    at = latencies.quantiles([(number + 0.5) / steps for number in range(steps)])
    mean = latencies.mean
    spread = math.sqrt(sum((each - mean) ** 2 for each in at) / steps)
    half = NormalDist().inv_cdf(confidence) * spread / math.sqrt(count)
    return Bounds(mean, max(0.0, mean - half), mean + half if count > 1 else math.inf, count)


def judge(
    goal: LatencyGoal,
    latencies: LatencyHistogram,
    *,
    failed: int,
    sent: int,
    client_bound: Sequence[str] = (),
    p50_by_second: Sequence[float] = (),
    errors: Mapping[str, int] | None = None,
    unsent: int = 0,
    first_byte: LatencyHistogram | None = None,
) -> Judgement:
    """Judge a step, or several of the same load taken together.

    Parameters
    ----------
    latencies : LatencyHistogram
        From the intended start to the whole answer, of all requests that were answered, and to
        giving up, of those that waited in vain.
    failed, sent : int
        Requests.
    client_bound : sequence of str
        Why the generator, not the endpoint, was the limit; empty when it was not.
    p50_by_second : sequence of float
        Median latency of each second, to see whether it still rises.
    errors : mapping of str to int
        Their number by kind, for the words.
    unsent : int
        Requests that were due and not sent: the load was another one.
    first_byte : LatencyHistogram, optional
        From the intended start to the first byte, of response streams; without it a target for the
        first byte is unclear.

    Notes
    -----
    Errors that the endpoint answers count even where the generator was at its limit: no slow
    client makes an endpoint answer 503. Latency does not count then.
    """
    bounds = {
        name: _bounds(
            name, first_byte if name.startswith(FIRST_BYTE) else latencies, goal.confidence
        )
        for name in goal.targets
    }
    # Kinds that begin with a status were answered: "503 ServiceUnavailable", not "timeout".
    answered = sum(count for kind, count in (errors or {}).items() if kind[:3].isdigit())
    by_errors = _errors(goal, answered if client_bound else failed, sent)
    rising = rises(p50_by_second)
    if client_bound and by_errors != "broken":
        kept = not (rising or unsent or _errors(goal, failed, sent)) and all(
            each.high <= goal.targets[name] for name, each in bounds.items()
        )
        return Judgement("client-bound", tuple(client_bound), bounds, kept=kept)
    broken: list[str] = []
    unclear: list[str] = []
    if by_errors:
        said = (
            f"{failed:,} of {sent:,} requests failed ({failed / max(sent, 1):.2%}){_kinds(errors)}"
        )
        (broken if by_errors == "broken" else unclear).append(said)
    for name, each in bounds.items():
        target = goal.targets[name]
        if each.low > target:
            broken.append(f"{name} {_span(each)} misses {1000 * target:g} ms")
        elif not each.high <= target:
            unclear.append(f"{name} {_span(each)} may miss {1000 * target:g} ms")
    if broken:
        return Judgement("broken", tuple(broken), bounds, by_errors == "broken", rising)
    if rising:
        unclear.append("latency still rose when the step ended")
    if unclear:
        return Judgement("unclear", tuple(unclear), bounds, False, rising)
    held = tuple(
        f"{name} {_span(each)} keeps {1000 * goal.targets[name]:g} ms"
        for name, each in bounds.items()
    )
    return Judgement("held", held or ("no more errors than allowed",), bounds, kept=True)


def _bounds(statistic: str, latencies: LatencyHistogram | None, confidence: float) -> Bounds:
    if latencies is None:
        return Bounds(math.nan, 0.0, math.inf, 0)
    return (
        mean_bounds(latencies, confidence)
        if is_mean(statistic)
        else quantile_bounds(latencies, quantile_of(statistic), confidence)
    )


def _errors(goal: LatencyGoal, failed: int, sent: int) -> str:
    """Whether errors break the goal, or may."""
    if not sent or failed / sent <= goal.allowed_errors:
        return ""
    if goal.allowed_errors == 0:
        return "broken"
    # The chance of so many failures if the true share were the allowed one.
    by_chance = binomial_tail(sent, failed, goal.allowed_errors)
    return "broken" if by_chance <= 1 - goal.confidence else "unclear"


def rises(values: Sequence[float]) -> bool:
    """Whether a series rises from its first third to its last, and steadily (Kendall's tau)."""
    known = [value for value in values if value > 0 and math.isfinite(value)]
    if len(known) < _TREND_POINTS:
        return False
    third = len(known) // 3
    if median(known[-third:]) < _RISING_FACTOR * median(known[:third]):
        return False
    # At most 60 points: the comparison of all pairs grows with their square.
    thin = known[:: max(1, len(known) // 60)]
    pairs = [
        (later > earlier) - (later < earlier)
        for at, earlier in enumerate(thin)
        for later in thin[at + 1 :]
    ]
    return sum(pairs) / len(pairs) > _RISING_TAU


def _kinds(errors: Mapping[str, int] | None) -> str:
    if not errors:
        return ""
    most = sorted(errors.items(), key=lambda each: -each[1])[:3]
    return ": " + ", ".join(f"{count:,} times {kind}" for kind, count in most)


def _span(each: Bounds) -> str:
    high = "no bound" if math.isinf(each.high) else f"{1000 * each.high:.4g}"
    return f"{1000 * each.value:.4g} ms ({1000 * each.low:.4g} to {high})"


def _ms(seconds: float) -> float | None:
    return 1000 * seconds if math.isfinite(seconds) else None
