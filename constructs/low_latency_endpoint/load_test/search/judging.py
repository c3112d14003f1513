"""Did a step hold the latency target? Judged with what its number of requests can tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal

from ...errors import rule
from ...facts.limit_kinds import Range
from ...report.numbers import milliseconds, readable
from ..engine.failure_causes import cause_of_most
from ..engine.measurement import Measurement
from ..engine.steps import most_frequent
from ..engine.target import TokenLimits
from .bounds import (
    CONFIDENCE,
    Bounds,
    binomial_tail,
    clustered_share_bounds,
    few_enough,
    mean_bounds,
    quantile_bounds,
    requests_at_share,
)

LATENCY_NEEDED = rule(
    "LLT110",
    "the load test has no latency target",
    fix="Give --target p99=200ms, or --settings with endpoints.<name>.latency.",
)
ALLOWED_ERRORS = Range(
    rule(
        "LLT116",
        "the allowed share of errors is out of range",
        fix="Give a share: 0.001 allows one failure in a thousand.",
    ),
    "the share of errors",
    0,
    0.5,
    "",
    False,
)

Outcome = Literal["held", "broken", "unclear", "client-bound"]
#: Before a statistic's name: of the time to the first byte of a response stream, and of a language
#: model's answer the time to its first token, between tokens, and per output token.
FIRST_BYTE, FIRST_TOKEN, INTER_TOKEN, PER_TOKEN = "ttfb-", "ttft-", "itl-", "tpot-"
PREFIXES = {
    FIRST_BYTE: "first_byte",
    FIRST_TOKEN: "first_token",
    INTER_TOKEN: "inter_token",
    PER_TOKEN: "per_token",
}
GOODPUT = "goodput"
#: Beside the statistics' names: how many requests are worth an independent one among the failed.
FAILURES = "failures"
_GOOD = ((FIRST_TOKEN,), (INTER_TOKEN, PER_TOKEN))
_RISING_TAU = 0.5
_RISING_FACTOR = 1.3
_SENT_SHARE = 0.5  # of the requests that were due: fewer are the generator's limit, whoever failed
_TREND_POINTS = 6  # seconds below which a trend cannot be told from chance


@dataclass(frozen=True)
class LatencyGoal:
    """What callers may wait, and how many of them may fail.

    Parameters
    ----------
    targets : mapping of str to float
        Seconds by statistic: ``p99``, ``p99.9``, ``Average``, of the whole answer; with ``ttfb-``
        before it of the first byte of a response stream, and of a language model's answer with
        ``ttft-`` of the first token, ``itl-`` of the gaps between tokens, ``tpot-`` of the time per
        output token; empty to judge by errors alone.
    allowed_errors : float
        Share of requests that may fail. By default 0.001.
    confidence : float
        With which a step holds: that every target is met, the share of errors too. By default 0.95.

    Raises
    ------
    ConfigurationError
        ``LLT116``; ``LLT110`` for a statistic of another form.

    Examples
    --------
    >>> LatencyGoal({"p99": 0.2}).text
    'p99 within 200 ms, at most 0.1 % errors'
    >>> LatencyGoal({"ttft-p95": 0.5, "itl-p95": 0.05}).text
    'ttft-p95 within 500 ms, itl-p95 within 50 ms, goodput of at least 95 %, at most 0.1 % errors'
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
    def of_streams(self) -> tuple[str, ...]:
        """The statistics that only a response stream has."""
        return tuple(name for name in self.targets if name.startswith(tuple(PREFIXES)))

    @property
    def of_tokens(self) -> tuple[str, ...]:
        """The statistics that only a language model's answers have."""
        return tuple(name for name in self.of_streams if not name.startswith(FIRST_BYTE))

    @property
    def limits(self) -> TokenLimits | None:
        """What a good answer keeps: the target of the highest percentile of each kind.

        The gaps between tokens are judged together, an answer by its own time per output token.
        """
        if not self.of_tokens:
            return None
        return TokenLimits(*(self._highest(kinds)[1] for kinds in _GOOD))

    @property
    def goodput(self) -> float | None:
        """Share of the requests that must be good ones: as the targets' percentiles say.

        Where they differ, the lower one.
        """
        shares = [self._highest(kinds)[0] for kinds in _GOOD]
        return min((share for share in shares if share is not None), default=None)

    def _highest(self, kinds: tuple[str, ...]) -> tuple[float | None, float | None]:
        """The highest percentile of these kinds, and its target."""
        found = [
            (quantile_of(name), seconds)
            for name, seconds in self.targets.items()
            if name.startswith(kinds) and not is_mean(name)
        ]
        return max(found, default=(None, None))

    @property
    def text(self) -> str:
        """The goal in words."""
        targets = [
            f"{name} within {milliseconds(1000 * seconds, 6)}"
            for name, seconds in self.targets.items()
        ]
        if self.goodput is not None:
            targets.append(f"goodput of at least {readable(100 * self.goodput)} %")
        return ", ".join([*targets, f"at most {readable(100 * self.allowed_errors)} % errors"])

    def to_dict(self) -> dict[str, Any]:
        """JSON; times in milliseconds."""
        return {
            "targets_ms": {name: 1000 * seconds for name, seconds in self.targets.items()},
            "allowed_errors": self.allowed_errors,
            "confidence": self.confidence,
        }


@dataclass(frozen=True)
class Judgement:
    """What a step showed."""

    # ``held``, ``broken``, ``unclear``, or ``client-bound`` when the generator was the limit
    outcome: Outcome
    reasons: tuple[str, ...] = ()  # why, in words
    bounds: Mapping[str, Bounds] = field(default_factory=dict)  # by statistic
    errors: bool = False  # whether errors broke it
    rising: bool = False  # whether latency still rose when it ended
    # whether the goal was kept in what was measured, for certain or not; of a ``client-bound`` step
    # too: latencies include the generator's delay, so an endpoint that keeps the target with it
    # keeps the target without. Its figures are no measurement of the endpoint nevertheless.
    kept: bool = False
    # share of the requests that were good ones, where the goal asks for one
    goodput: Bounds | None = None
    failures: Bounds | None = None  # share of requests that fail; ``None`` where none was sent
    # whether all targets but the share of errors are met, with the confidence
    latency_held: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "outcome": self.outcome,
            "reasons": list(self.reasons),
            "rising": self.rising,
            "errors": self.errors,
            "kept": self.kept,
            "statistics": {name: bound.to_dict() for name, bound in self.bounds.items()},
            "goodput": None if self.goodput is None else self.goodput.share_to_dict(),
            "failures": None if self.failures is None else self.failures.share_to_dict(),
            "latency_held": self.latency_held,
        }


def is_mean(statistic: str) -> bool:
    """Whether it is a mean, and no quantile."""
    return without_prefix(statistic) == "Average"


def without_prefix(statistic: str) -> str:
    """The statistic itself."""
    kind, dash, name = statistic.partition("-")
    return name if kind + dash in PREFIXES else statistic


def histogram_of(statistic: str) -> str:
    """What of a step's result it is a statistic of."""
    kind, dash, _ = statistic.partition("-")
    return PREFIXES.get(kind + dash, "latency")


def quantile_of(statistic: str) -> float:
    """The quantile of a statistic's name."""
    name = without_prefix(statistic)
    try:
        share = float(name.removeprefix("p")) / 100
    except ValueError:
        share = math.nan
    if not (name.startswith("p") and 0 < share < 1):
        raise LATENCY_NEEDED.error(
            got=repr(statistic),
            allowed="p50, p90, p99, p99.9 or Average, of response streams ttfb-p99 too, of "
            "language models ttft-p95, itl-p95, tpot-p95",
        )
    return round(share, 9)


def judge(
    goal: LatencyGoal,
    measured: Measurement,
    *,
    client_bound: Sequence[str] = (),
    p50_by_second: Sequence[float] = (),
    worth: Mapping[str, float] | None = None,
    piling_up: bool = False,
) -> Judgement:
    """Judge a step; ``worth``, by statistic: how many requests are worth one independent one.

    Returns
    -------
    Judgement
        ``held`` only where every target is met with the goal's confidence, the share of errors too.
    """
    worth = worth or {}
    failed = measured.failed
    sent = measured.sent
    bounds = _bounds_of_targets(goal, measured, worth)
    good = _goodput(goal, measured, worth)
    failures = failure_bounds(failed, sent, worth.get(FAILURES, 1.0), goal.confidence)
    # Kinds that begin with a status were answered: "503 ServiceUnavailable", not "timeout".
    answered = sum(count for kind, count in measured.errors.items() if kind[:3].isdigit())
    # Where most requests reached no instance, the generator was not what failed them by being busy.
    by_others = bool(cause_of_most(measured))
    counted = answered if client_bound and not by_others else failed
    too_many = _too_many_failed(goal, counted, sent)
    # Where most requests were never sent, those that were are not the load that the step is of.
    few_sent = measured.sent < _SENT_SHARE * measured.intended and not by_others
    rising = rises(p50_by_second)
    overloaded = rising or piling_up
    judgement = Judgement(
        "unclear",
        bounds=bounds,
        rising=rising,
        kept=not overloaded and _kept(goal, measured, bounds, good),
        goodput=good,
        failures=failures,
    )
    if client_bound and (few_sent or not too_many):
        return replace(
            judgement,
            outcome="client-bound",
            reasons=tuple(client_bound),
            kept=judgement.kept and sent >= measured.intended,
            rising=False,
        )
    broken, unclear, held = _against(goal, measured, bounds, good, overloaded)
    if too_many:
        broken.insert(0, failures_text(measured, failures))
    if broken:
        return replace(
            judgement, outcome="broken", reasons=tuple(broken), errors=too_many, kept=False
        )
    if rising:
        unclear.append("latency still rose when the step ended")
    if piling_up:
        unclear.append("ever more requests were under way: answers did not keep pace")
    judgement = replace(judgement, latency_held=not unclear)
    if few_failures(goal, failed, sent, worth.get(FAILURES, 1.0)):
        held.append(failures_text(measured, failures))
    else:
        unclear.insert(0 if failed else len(unclear), why_unclear(goal, measured, failures))
    if unclear:
        return replace(judgement, reasons=tuple(unclear))
    return replace(judgement, outcome="held", reasons=tuple(held))


def _kept(
    goal: LatencyGoal, measured: Measurement, bounds: Mapping[str, Bounds], good: Bounds | None
) -> bool:
    """Whether what was measured is within the goal, for certain or not."""
    if measured.failed > goal.allowed_errors * measured.sent:
        return False
    if goal.goodput is not None and (good is None or not good.value >= goal.goodput):
        return False
    return all(bound.value <= goal.targets[name] for name, bound in bounds.items())


def _against(
    goal: LatencyGoal,
    measured: Measurement,
    bounds: Mapping[str, Bounds],
    good: Bounds | None,
    overloaded: bool,
) -> tuple[list[str], list[str], list[str]]:
    """Texts of statistics that miss the goal, may miss it, and meet it."""
    broken: list[str] = []
    unclear: list[str] = []
    held: list[str] = []
    for name, bound in bounds.items():
        target = goal.targets[name]
        said, limit = f"{name} {_span(bound)}", milliseconds(1000 * target, 6)
        if bound.low > target or (overloaded and bound.value > target):
            broken.append(f"{said} misses {limit}")
        elif not bound.high <= target:
            unclear.append(f"{said} may miss {limit}{_enough_for(name, goal, measured, bound)}")
        else:
            held.append(f"{said} keeps {limit}")
    if good is not None and goal.goodput is not None:
        said, limit = f"goodput {_share(good)}", f"{readable(100 * goal.goodput)} %"
        if good.high < goal.goodput:
            broken.append(f"{said} misses {limit}")
        elif good.low < goal.goodput:
            unclear.append(f"{said} may miss {limit}")
        else:
            held.append(f"{said} keeps {limit}")
    return broken, unclear, held


def _enough_for(name: str, goal: LatencyGoal, measured: Measurement, bound: Bounds) -> str:
    """How many requests would show that a percentile keeps its target, if as many stay late."""
    if is_mean(name) or name.startswith(INTER_TOKEN) or not bound.samples:
        return ""
    latencies = measured.histogram(histogram_of(name))
    late = latencies.count_above(goal.targets[name]) / latencies.count
    needed = requests_at_share(late, 1 - quantile_of(name), goal.confidence)
    if needed is None:
        return ""
    worth = latencies.count / bound.samples
    share = f"{late:.2%} stay" if late else "none is"
    return f"; if {share} late, {_whole(needed * worth)} requests would show that it keeps it"


def _whole(requests: float) -> str:
    return f"{math.ceil(requests):,}"


def _bounds_of_targets(
    goal: LatencyGoal, measured: Measurement, worth: Mapping[str, float]
) -> dict[str, Bounds]:
    """The bounds of each statistic that has a target."""
    tokens = measured.tokens
    bounds = {}
    for name in goal.targets:
        latencies = measured.histogram(histogram_of(name))
        samples = None
        # Gaps of one stream depend on each other: a stream counts once.
        if name.startswith(INTER_TOKEN) and tokens is not None:
            samples = tokens.per_token.count
        if name in worth:
            samples = max(1, int(latencies.count / worth[name]))
        if is_mean(name):
            bounds[name] = mean_bounds(latencies, goal.confidence, samples)
        else:
            bounds[name] = quantile_bounds(latencies, quantile_of(name), goal.confidence, samples)
    return bounds


def _goodput(goal: LatencyGoal, measured: Measurement, worth: Mapping[str, float]) -> Bounds | None:
    """The share of good answers with its bounds; ``None`` where the goal has none."""
    if goal.goodput is None or measured.tokens is None:
        return None
    sent = measured.sent
    if not sent:
        return Bounds(0.0, 0.0, 1.0, 0)
    missed = sent - measured.tokens.good
    bad = clustered_share_bounds(missed, sent, worth.get(GOODPUT, 1.0), goal.confidence)
    return Bounds(1 - bad.value, 1 - bad.high, 1 - bad.low, bad.samples)


def failure_bounds(failed: int, sent: int, worth: float, confidence: float) -> Bounds | None:
    """The share of requests that fail, with its bounds; ``None`` where none was sent."""
    return clustered_share_bounds(failed, sent, worth, confidence) if sent else None


def few_failures(goal: LatencyGoal, failed: int, sent: int, worth: float = 1.0) -> bool:
    """Whether so few failed that no more than the allowed share do, with the goal's confidence.

    A goal of no errors is one for the requests that were sent: no number of them shows that no
    other one will ever fail.
    """
    if goal.allowed_errors == 0:
        return failed == 0
    return few_enough([sent], [failed], worth, goal.allowed_errors, 1 - goal.confidence)


def failures_text(measured: Measurement, failures: Bounds | None) -> str:
    """How many failed, and what that shows."""
    failed = measured.failed
    sent = measured.sent
    if not failed:
        said = f"none of {sent:,} requests failed"
        return said if failures is None else f"{said}: at most {percent_at_most(failures.high)} do"
    kinds = most_frequent(measured.failures)
    return f"{failed:,} of {sent:,} requests failed ({failed / max(sent, 1):.2%}): {kinds}"


def why_unclear(goal: LatencyGoal, measured: Measurement, failures: Bounds | None) -> str:
    """Why it is not certain that no more fail than may, and how many requests would show it."""
    said = failures_text(measured, failures)
    allowed = goal.allowed_errors
    if measured.failed > allowed * measured.sent or failures is None:
        return said
    if measured.failed:
        said = f"{said}; at most {percent_at_most(failures.high)} do"
    worth = measured.sent / failures.samples
    needed = requests_at_share(measured.failed / measured.sent, allowed, goal.confidence)
    if needed is None:
        return said
    share = "a failure" if not measured.failed else "a larger share of failures"
    return (
        f"{said}; {_whole(needed * worth)} requests without {share} would show at most "
        f"{readable(100 * allowed)} %"
    )


def percent_at_most(share: float) -> str:
    """A bound from above in percent, rounded up to two digits."""
    percent = 100 * share
    unit = 10.0 ** (math.floor(math.log10(percent)) - 1)
    return f"{readable(math.ceil(percent / unit - 1e-9) * unit, 3)} %"


def _share(bounds: Bounds) -> str:
    return f"{bounds.value:.1%} ({bounds.low:.1%} to {bounds.high:.1%})"


def _too_many_failed(goal: LatencyGoal, failed: int, sent: int) -> bool:
    """Whether more failed than chance explains at the allowed share."""
    if failed <= goal.allowed_errors * sent:
        return False
    if goal.allowed_errors == 0:
        return True
    by_chance = binomial_tail(sent, failed, goal.allowed_errors)
    return by_chance <= 1 - goal.confidence


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


def piles_up(under_way: Sequence[float]) -> bool:
    """Whether ever more requests are under way, by more than chance moves their number.

    Independent requests under way are a Poisson number, whose deviation is its root.
    """
    third = len(under_way) // 3
    if not third or not rises(under_way):
        return False
    before, after = median(under_way[:third]), median(under_way[-third:])
    return after - before > 3 * math.sqrt(before + 1)


def _span(bounds: Bounds) -> str:
    told, low = milliseconds(1000 * bounds.value, 4), milliseconds(1000 * bounds.low, 4)
    high = "no bound" if math.isinf(bounds.high) else milliseconds(1000 * bounds.high, 4)
    unit = f" {told.split()[-1]}"  # said once where it is the same
    return f"{told} ({low.removesuffix(unit)} to {high.removesuffix(unit)})"
