"""Find the highest rate that an endpoint holds: alone, rising, bisecting, confirming."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors.impossible import out_of_range, refuse
from ...facts.limits import TPS_PER_INSTANCE
from ...options.throughput import counted_instances
from ...plan.load_test_validity import impossible_limit
from ...report.numbers import readable
from ..engine.arrivals import ConstantArrivals, PoissonArrivals
from ..engine.failure_causes import cause_of_most, not_the_instances
from ..engine.latencies import IMPOSSIBLE
from ..engine.steps import Step
from .early_verdict import Looks
from .judging import Judgement, LatencyGoal, why_unclear
from .measured_steps import MeasuredStep
from .reached import check_answered, check_reached
from .run_plans import INSTANCES_KNOWN, RISE, SearchPlan, settle_seconds, settled
from .steadiness import NOT_ALIKE, minutes_text, unsteadiness

_DOWN_AT_MOST = 8  # halvings of the first rate before the search gives up
_STEPS_AT_MOST = 60
# How often a confirming step may be limited by a generator that a busy machine held up.
_CONFIRMATIONS = 3
#: Shares of a limit without a confidence, at which a step with one is tried.
_ASSURES_AT = (0.9, 0.8)
_SHOWS_CLUSTERS = 6.0  # seconds of a step whose failures can be told to come at once
_ANSWERS_TO_SETTLE = 2.0
# Requests under way on an instance at the first rate. A language model's server batches: of few
# answers a step learns little in much time.
_FIRST_UNDER_WAY, _FIRST_STREAMS = 0.5, 4.0


@dataclass(frozen=True)
class AssuredRate:
    """The highest rate that a step showed to hold with the goal's confidence."""

    rate: float  # of requests per second, of all instances together
    # share of requests that fail at most: the allowed share, or more where its requests were too
    # few to show that one
    failures: float
    requests: int  # that it rests on
    when: str  # from when to when
    concurrency: float | None = None  # of language models: requests under way


@dataclass(frozen=True)
class Limit:
    """The throughput that was found."""

    # highest rate of requests per second that all instances together held; ``None`` for none
    rate: float | None
    broken_rate: float | None  # lowest rate above that did not hold; ``None`` when all did
    instances: int
    # that ``rate`` meets every target, the share of errors too; ``None`` where its requests are too
    # few, or depend on each other so much that they only say what was seen
    confidence: float | None
    confirmed: bool  # whether a fresh step kept the goal too
    how: str  # in words
    problem: str = ""  # why the limit must not be planned with; empty when it may
    # whether the highest rate that the search was to try held: the limit is higher
    lower_bound: bool = False
    # of language models only: requests under way and output tokens per second at ``rate``, of all
    # instances together
    concurrency: float | None = None
    token_rate: float | None = None
    assured: AssuredRate | None = None  # what a plan may rest on; at ``rate`` or below
    when: str = ""  # from when to when ``rate`` held
    unsteady: str = ""  # how two steps contradict each other by more than chance

    def __post_init__(self) -> None:
        rates = {"rate that held": self.rate, "rate that did not": self.broken_rate}
        refuse(IMPOSSIBLE, "limit", out_of_range(rates))
        refuse(IMPOSSIBLE, "limit", out_of_range({"instances": self.instances}, low=1))
        refuse(IMPOSSIBLE, "limit", impossible_limit(self.to_dict()))

    @property
    def found(self) -> bool:
        """Whether a rate is known to hold: the limit, or a lower bound of it."""
        return self.rate is not None and not self.problem

    @property
    def usable(self) -> bool:
        """Whether a plan may rest on it without a further word."""
        return self.found and not self.lower_bound

    @property
    def tps_per_instance(self) -> float | None:
        """Requests per second of one instance, rounded down to three digits."""
        found = self._of_one(self.rate)
        return None if found is None else float(TPS_PER_INSTANCE.check(found))

    @property
    def assured_tps_per_instance(self) -> float | None:
        """Requests per second of one instance that a plan may rest on, rounded down likewise."""
        return self._of_one(None if self.assured is None else self.assured.rate)

    @property
    def concurrency_per_instance(self) -> float | None:
        """Requests under way on one instance at the limit, rounded down to three digits."""
        return self._of_one(self.concurrency)

    @property
    def tokens_per_instance(self) -> float | None:
        """Output tokens per second of one instance, rounded down to three digits."""
        return self._of_one(self.token_rate)

    def _of_one(self, of_all: float | None) -> float | None:
        if not of_all or not math.isfinite(of_all):
            return None
        one = of_all / self.instances
        digits = 2 - math.floor(math.log10(one))
        unit = 10.0**-digits
        return round(math.floor(one / unit * (1 + 1e-12)) * unit, digits)

    def to_dict(self) -> dict[str, Any]:
        """JSON; ``low`` and ``high`` are requests per second of one instance."""
        return {
            "tps_per_instance": self.tps_per_instance,
            "concurrency_per_instance": self.concurrency_per_instance,
            "tokens_per_instance": self.tokens_per_instance,
            "low": None if self.rate is None else self.rate / self.instances,
            "high": None if self.broken_rate is None else self.broken_rate / self.instances,
            "confidence": self.confidence,
            "confirmed": self.confirmed,
            "how": self.how,
            "rate": self.rate,
            "instances": self.instances,
            "problem": self.problem,
            "lower_bound": self.lower_bound,
            "when": self.when,
            "unsteady": self.unsteady,
            "assured": self._assured_to_dict(),
        }

    def _assured_to_dict(self) -> dict[str, Any] | None:
        assured = self.assured
        if assured is None:
            return None
        return {
            "tps_per_instance": self.assured_tps_per_instance,
            "concurrency_per_instance": self._of_one(assured.concurrency),
            "failures": assured.failures,
            "requests": assured.requests,
            "when": assured.when,
        }


#: Runs a step until its verdict is certain, and judges it; told with it is how long is left.
Measure = Callable[[Step, str, Looks | None, float], MeasuredStep]


def limit_so_far(plan: SearchPlan, steps: Sequence[MeasuredStep]) -> Limit | None:
    """What a search that was stopped knows: the highest rate that held, as a lower bound."""
    held: dict[float, MeasuredStep] = {}
    missed: list[float] = []
    for measured_step in steps:
        rate = measured_step.offered
        if rate is None:
            continue
        if measured_step.judgement.kept and measured_step.judgement.outcome != "client-bound":
            held[rate] = measured_step
        elif measured_step.purpose == "confirm" and not cause_of_most(measured_step.result):
            # what held above it was luck too
            held = {one: step for one, step in held.items() if one < rate}
        if _bounds(plan.goal, measured_step):
            missed.append(rate)
    if not held:
        return None
    rate = max(held)
    broken = min((one for one in missed if one > rate), default=None)
    above = f"{_undecided(steps, rate)}the limit may be higher"
    if broken is not None:
        above = f"{readable(broken, 4)} did not: the limit lies between them"
    step, instances = held[rate], plan.instances or 1
    confirmed = step.purpose == "confirm"
    confidence = plan.goal.confidence if step.judgement.outcome == "held" else None
    return Limit(
        rate,
        broken,
        instances,
        confidence,
        confirmed,
        f"{readable(rate, 4)} requests a second held ({_goal_and_confidence(plan.goal, step)}) "
        f"before the search was stopped; {above}; {counted_instances(instances)}",
        lower_bound=True,
        assured=_assured(plan.goal, step),
        when=minutes_text(step),
        **_of_tokens(plan.goal, step),
    )


def _undecided(steps: Sequence[MeasuredStep], held: float) -> str:
    """The lowest rate above the one that held, of which no step has decided; empty without one."""
    above = [step for step in steps if step.offered is not None and step.offered > held]
    rates = [step.offered for step in above if step.offered is not None]
    if not rates:
        return ""
    outcomes = {step.judgement.outcome for step in above if step.offered == min(rates)}
    why = ", as the machine that sent was late" if "client-bound" in outcomes else ""
    return f"{readable(min(rates), 4)} was not decided{why}; "


def _bounds(goal: LatencyGoal, step: MeasuredStep) -> bool:
    """Whether a step missed the goal, and the instances did: the limit is below its rate."""
    result = step.result
    if step.judgement.outcome != "broken":
        return False
    return not not_the_instances(result.errors, result.sent, goal.allowed_errors)


def _goal_and_confidence(goal: LatencyGoal, step: MeasuredStep, unsteady: str = "") -> str:
    """The goal, and how certain a step at the limit is that all of it is met."""
    result = step.result
    judgement = step.judgement
    if unsteady:
        return f"{goal.text}; {minutes_text(step)}, without a confidence: {NOT_ALIKE}: {unsteady}"
    if judgement.outcome == "held":
        return (
            f"{goal.text}; {goal.confidence:.0%} confidence that all of it is met, "
            f"{minutes_text(step)}"
        )
    said = f"{goal.text}; {minutes_text(step)}, without a confidence"
    if judgement.latency_held:
        return f"{said}: {why_unclear(goal, result, judgement.failures)}"
    fewest = min((bound.samples for bound in judgement.bounds.values()), default=0)
    return (
        f"{said}: {result.sent:,} requests, late together, tell as much as {fewest:,} independent "
        "ones"
    )


def _assured(goal: LatencyGoal, step: MeasuredStep) -> AssuredRate | None:
    """The step's rate, if it held with the confidence in all that its requests can show."""
    judgement = step.judgement
    result = step.result
    failures = judgement.failures
    rate = step.offered
    held = judgement.outcome == "held"
    too_few = judgement.latency_held and not result.failed
    if failures is None or rate is None or not (held or too_few):
        return None
    return AssuredRate(
        rate,
        min(failures.high, goal.allowed_errors) if held else failures.high,
        result.sent,
        minutes_text(step),
        _of_tokens(goal, step).get("concurrency"),
    )


def _of_tokens(goal: LatencyGoal, step: MeasuredStep | None) -> dict[str, Any]:
    """Concurrency and token rate of a language model's step."""
    if not goal.of_tokens or step is None:
        return {}
    result = step.result
    return {"concurrency": result.concurrency, "token_rate": result.token_rate}


def find_limit(plan: SearchPlan, measure: Measure) -> Limit:
    """Look for the limit."""
    if plan.instances is None:
        raise INSTANCES_KNOWN.error(got="none", allowed="SearchPlan(..., instances=1)")
    return _Search(plan, measure, plan.instances).run()


class _Stop(Exception):
    """The search cannot go on; says why."""


class _Search:
    def __init__(self, plan: SearchPlan, measure: Measure, instances: int) -> None:
        self.plan, self._measure, self.instances = plan, measure, instances
        self._seed, self._steps = plan.seed, 0
        self.held: list[float] = []
        self.passed: list[float] = []  # held, or seemed to: where the search goes on
        self.broken: list[float] = []
        self._measured: dict[float, MeasuredStep] = {}
        self._others: dict[float, str] = {}  # rates that missed the goal by no fault of an instance
        self._settles = 0.0
        self.confirmed = False
        self.confidence: float | None = None
        self._assured: AssuredRate | None = None
        self._loads: list[MeasuredStep] = []
        self.ceiling: float | None = None
        self.bracketed = False

    def run(self) -> Limit:
        problem = ""
        try:
            self._search(self._first_rate())
        except _Stop as stopped:
            problem = str(stopped)
        return self._limit(problem)

    def _first_rate(self) -> float:
        if not self.plan.alone_seconds:
            return min(self.plan.first_rate or self.plan.slowest_rate, self.plan.highest_rate)
        alone = self._measure(
            Step("alone", self.plan.alone_seconds, None, 1, seed=self.plan.seed),
            "alone",
            None,
            RISE,
        )
        check_answered(alone)
        if alone.judgement.errors and (others := self._others_doing(alone)):
            raise _Stop(others)
        under_way = _FIRST_UNDER_WAY
        if self.plan.goal.of_tokens:
            under_way = _FIRST_STREAMS
            # As many answers are under way as there will be only when the first have ended.
            longest = alone.result.latency.percentile(90)
            self._settles = min(_ANSWERS_TO_SETTLE * longest, self.plan.seconds)
        if alone.judgement.outcome == "broken":
            raise _Stop(
                "one caller at a time already breaks the goal: "
                + "; ".join(alone.judgement.reasons)
            )
        return min(
            self.plan.first_rate or under_way * self.instances / alone.result.service.mean,
            self.plan.highest_rate,
        )

    def _search(self, rate: float) -> None:
        ceiling = self._bracket(rate)
        self.bracketed = ceiling is not None
        while ceiling is not None:
            low = max(self.passed)
            while ceiling / low > 1 + self.plan.precision:
                middle = math.sqrt(low * ceiling)
                self.ceiling = ceiling
                if self._holds(middle, "bisect"):
                    low = middle
                else:
                    ceiling = middle
            if self._confirmed(low):
                self._assure(low)
                return
            ceiling = low
            self.held = [each for each in self.held if each < low]
            self.passed = [each for each in self.passed if each < low]
            if not self.passed:
                below = low / (1 + self.plan.precision)
                for _ in range(_DOWN_AT_MOST):
                    if self._holds(below, "bisect"):
                        break
                    below /= 1 + self.plan.precision
                else:
                    raise _Stop("no rate below the first was held again")
        highest = max(self.passed)
        if not self._confirmed(highest):
            raise _Stop(f"{readable(highest, 4)} requests a second held once, and not again")
        self._assure(highest)

    def _bracket(self, rate: float) -> float | None:
        """Rise, or go down, until a rate holds and the next does not: that next one."""
        if not self._holds(rate, "rise"):
            for _ in range(_DOWN_AT_MOST):
                ceiling, rate = rate, rate / RISE
                if self._holds(rate, "rise"):
                    return ceiling
            raise _Stop(f"nothing held, down to {readable(rate, 3)} requests a second")
        while rate < self.plan.highest_rate:
            rate = min(rate * RISE, self.plan.highest_rate)
            if not self._holds(rate, "rise"):
                return rate
        return None

    def _holds(self, rate: float, purpose: str) -> bool:
        """Run the step until it is clear; of one that is not clear counts what was seen."""
        seconds = self.plan.seconds_at(rate)
        for again in (False, True):
            step = self._step(rate, seconds)
            looks = self.plan.guide_looks(rate)
            measured = self._load(
                step, "repeat" if again else purpose, looks, self._bracket_now(rate)
            )
            judgement = measured.judgement
            if judgement.kept:
                self.held.append(rate)
                self._measured[rate] = measured
                self.passed.append(rate)
                return True
            if judgement.outcome != "client-bound":  # once may be chance on a busy machine
                break
        if judgement.outcome == "client-bound":
            raise _client_bound(judgement, f" at {readable(rate, 4)} requests a second")
        self._missed(rate, measured)
        return False

    def _missed(self, rate: float, measured: MeasuredStep) -> None:
        self.broken.append(rate)
        if others := self._others_doing(measured):
            self._others[rate] = others

    def _others_doing(self, measured: MeasuredStep) -> str:
        result = measured.result
        return not_the_instances(result.errors, result.sent, self.plan.goal.allowed_errors)

    def _bracket_now(self, rate: float) -> float:
        """What bisecting has left, this step included."""
        if not (self.ceiling and self.passed):
            return RISE**2  # this step, and those between it and the next
        return self.ceiling / max(self.passed)

    def _confirmed(self, rate: float) -> bool:
        """Whether a fresh step keeps the goal, for certain or not."""
        measured = self._confirming_step(rate)
        judgement = measured.judgement
        if judgement.outcome == "client-bound":
            raise _client_bound(
                judgement,
                f", in every step that was to confirm {readable(rate, 4)} requests a second",
            )
        self.confirmed = judgement.kept
        if not self.confirmed:
            self._missed(rate, measured)
            return False
        self.held.append(rate)
        self._measured[rate] = measured
        # A step of an endpoint that changes says nothing for certain of other minutes.
        if unsteadiness(self.plan.goal, self._loads):
            return True
        if judgement.outcome == "held":
            self.confidence = self.plan.goal.confidence
        # Where errors decided, a step that does not cover them is not enough.
        if judgement.outcome == "held" or self._failures_worth == 1:
            self._assured = _assured(self.plan.goal, measured)
        return True

    def _assure(self, limit: float) -> None:
        """Where the limit held without a confidence, look for a rate below that holds with one.

        Not where steps contradict each other: one more says nothing for certain of other minutes.
        """
        if unsteadiness(self.plan.goal, self._loads):
            return
        for share in _ASSURES_AT:
            if self._assured is not None or self._steps + _CONFIRMATIONS > _STEPS_AT_MOST:
                return
            rate = share * limit
            if math.isinf(self.plan.seconds_at(rate)):
                return
            measured = self._confirming_step(rate)
            self._assured = _assured(self.plan.goal, measured)

    def _confirming_step(self, rate: float) -> MeasuredStep:
        """Run a step that is to show, with the goal's confidence, that the rate meets every target.

        Returns
        -------
        MeasuredStep
            Of steps that the generator limited the last, where it limited all.
        """
        worth = self._failures_worth
        longest = self.plan.confirms_for(rate, worth)
        looks = self.plan.confirming_looks(rate, worth)
        for _ in range(_CONFIRMATIONS):
            step = self._step(rate, longest, confirms=True)
            measured = self._load(step, "confirm", looks, 1.0)
            if measured.judgement.outcome != "client-bound":
                break
        return measured

    def _load(self, step: Step, purpose: str, looks: Looks, bracket: float) -> MeasuredStep:
        """Run a step of load."""
        measured = self._measure(step, purpose, looks, bracket)
        check_reached(measured.result, measured.timeline)
        self._loads.append(measured)
        return measured

    @property
    def _failures_worth(self) -> float:
        """How many requests failed at once, in the step of the lowest rate that shows it."""
        failing = [step for step in self._loads if step.result.failed and step.offered]
        long = [step for step in failing if step.result.seconds >= _SHOWS_CLUSTERS]
        lowest = min(long or failing, key=lambda step: step.offered or 0.0, default=None)
        return 1.0 if lowest is None else lowest.failures_worth

    def _step(self, rate: float, seconds: float, *, confirms: bool = False) -> Step:
        if math.isinf(seconds):
            raise _Stop(
                f"at {readable(rate, 3)} requests a second, {' and '.join(self.plan.goal.targets)} "
                "would take too long to judge: make steps longer, or state a target for a "
                "lower percentile"
            )
        self._steps += 1
        if self._steps > _STEPS_AT_MOST:
            raise _Stop(
                f"no limit after {_STEPS_AT_MOST} steps: the endpoint does not answer alike twice"
            )
        self._seed += 1
        arrivals = PoissonArrivals(rate) if self.plan.poisson else ConstantArrivals(rate)
        settle = max(self._settles, settle_seconds(seconds, kept=confirms))
        name = f"{readable(rate, 4)} TPS"
        return settled(name, seconds, settle, self._seed, arrivals=arrivals)

    def _limit(self, problem: str) -> Limit:
        plan, instances = self.plan, self.instances
        rate = max(self.held) if self.held else None
        # A rate that broke once and held later is no bound.
        above = [each for each in self.broken if rate is None or each > rate]
        broken = min(above) if above else None
        # Where others' doing bounds the limit from above, nothing is known of an instance.
        for missed, others in sorted(self._others.items()):
            if (rate is None or missed > rate) and (broken is None or missed <= broken):
                rate, broken, problem = (
                    None,
                    None,
                    f"{others}, at {readable(missed, 4)} requests a second",
                )
                break
        unsteady = unsteadiness(plan.goal, self._loads)
        how = "nothing held" if not self.held else "no limit of an instance"
        if rate is not None:
            times = "twice" if self.held.count(rate) > 1 else "once"
            said = _goal_and_confidence(plan.goal, self._measured[rate], unsteady)
            how = f"{readable(rate, 4)} requests a second held {times} ({said})"
            how += f"; {readable(broken, 4)} did not" if broken else "; no rate tried missed it"
            if not (problem or self.bracketed):
                how += (
                    f", and no higher one was to be tried (--up-to {readable(plan.highest_rate)})"
                )
            how += f"; {counted_instances(instances)}"
        return Limit(
            rate,
            broken,
            instances,
            self.confidence,
            self.confirmed,
            how,
            problem,
            rate is not None and not problem and not self.bracketed,
            assured=None if rate is None else self._assured,
            when="" if rate is None else minutes_text(self._measured[rate]),
            unsteady=unsteady,
            **_of_tokens(plan.goal, None if rate is None else self._measured[rate]),
        )


def _client_bound(judgement: Judgement, where: str) -> _Stop:
    """The generator was the limit, and not the endpoint."""
    return _Stop(f"client-bound: result invalid: {'; '.join(judgement.reasons)}{where}")
