"""What both sides of a comparison get: how many callers or requests, in which blocks."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import rule
from ...facts.limit_kinds import Range
from ...report.numbers import readable
from ..engine.arrivals import Arrivals, ConstantArrivals, PoissonArrivals
from ..engine.steps import Step
from ..search.judging import ALLOWED_ERRORS
from ..search.run_plans import LOAD_FORM

PAIRS = Range(
    rule(
        "LLT120",
        "the number of pairs of a comparison is out of range",
        fix="Give the number of turns per side (default 10). Smaller differences need more turns.",
    ),
    "the number of pairs",
    4,
    1000,
)
CONFIDENCE = Range(
    rule(
        "LLT121",
        "the confidence of a comparison is out of range",
        fix="Give the confidence of the intervals (default 0.95).",
    ),
    "the confidence",
    0.5,
    0.9999,
    "",
    whole=False,
)


@dataclass(frozen=True)
class ComparisonPlan:
    """What both sides get.

    Parameters
    ----------
    users : int, optional
        Closed loop: callers that wait for their answers. Exactly one of users and rate.
    rate : float, optional
        Open loop: requests per second, whoever waits.
    pairs : int
        How often each side is loaded. By default 10.
    block_seconds : float
        That count in each block; much longer than an answer takes. By default 30.
    settle_seconds : float
        After each switch, sent and not counted. By default 3.
    poisson : bool
        Whether an open loop's requests come at random. By default they do.
    confidence : float
        Of each interval. By default 0.95.
    allowed_errors : float
        Share of a side's requests that may fail. By default 0.001.
    seed : int
        Both sides of a pair get the same arrivals.

    Raises
    ------
    ConfigurationError
        ``LLT108`` with both or neither of users and rate; ``LLT116``, ``LLT120``, ``LLT121`` and
        the codes of a step for values out of range.

    Examples
    --------
    >>> plan = ComparisonPlan(users=20)
    >>> plan.seconds, plan.text
    (660.0, '20 callers, 10 pairs of blocks of 30 s')
    """

    users: int | None = None
    rate: float | None = None
    pairs: int = 10
    block_seconds: float = 30.0
    settle_seconds: float = 3.0
    poisson: bool = True
    confidence: float = 0.95
    allowed_errors: float = 0.001
    seed: int = 1

    def __post_init__(self) -> None:
        if (self.users is None) == (self.rate is None):
            got = "none" if self.users is None else "--users and --tps"
            raise LOAD_FORM.error(
                got=got,
                allowed="one of --users and --tps",
                fix="Give --users (callers that wait for their answers) or "
                "--tps (requests per second).",
            )
        PAIRS.check(self.pairs, "pairs")
        CONFIDENCE.check(self.confidence, "confidence")
        ALLOWED_ERRORS.check(self.allowed_errors, "allowed errors")
        # So that the rules of steps are asked before anything is sent.
        self.step(0, "block")

    @property
    def seconds(self) -> float:
        """How long it all takes."""
        return 2 * self.pairs * (self.settle_seconds + self.block_seconds)

    @property
    def load(self) -> str:
        """The load in words."""
        if self.rate is not None:
            return f"{readable(self.rate)} requests a second"
        return f"{self.users:,} caller{'s' if self.users != 1 else ''}"

    @property
    def text(self) -> str:
        """The plan in words."""
        return f"{self.load}, {self.pairs} pairs of blocks of {readable(self.block_seconds)} s"

    def step(self, number: int, name: str) -> Step:
        """One block of the pair of this number."""
        return Step(
            name,
            self.settle_seconds + self.block_seconds,
            self._arrivals,
            self.users,
            seed=self.seed + number,
            settle_seconds=self.settle_seconds,
        )

    @property
    def _arrivals(self) -> Arrivals | None:
        if self.rate is None:
            return None
        return PoissonArrivals(self.rate) if self.poisson else ConstantArrivals(self.rate)
