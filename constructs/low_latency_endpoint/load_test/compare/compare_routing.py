"""Two routing strategies: load in blocks, to one side and the other in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from ...account.calls import Account
from ...account.sessions import open_clients
from ...errors import LowLatencyEndpointError, rule
from ...facts.limit_kinds import Range
from ...report.numbers import readable
from ..engine.arrivals import Arrivals, ConstantArrivals, PoissonArrivals
from ..engine.generator_process import GeneratorProcess
from ..engine.payloads import Payloads
from ..engine.prompts import PROMPTS_OF_A_STEP
from ..engine.steps import Generator, Progress, Step
from ..engine.target import OPENAI, Target, TokenLimits
from ..search.judging import ALLOWED_ERRORS
from ..search.run_plans import LOAD_FORM
from .comparison import Pair
from .report import RoutingComparison
from .sides import Sides, prefix_doubts, read_sides

SAME_ROUTING = rule(
    "LLT119",
    "both sides use the same routing",
    fix="Give the variants different RoutingConfig.RoutingStrategy values, or pass --same-routing.",
    source="/sagemaker/latest/APIReference/API_ProductionVariantRoutingConfig.html",
)
OPENAI_SIDES = rule(
    "LLT167",
    "SageMaker's OpenAI-compatible path cannot select a variant by name",
    fix="Compare two endpoints with one variant each, or leave --openai out.",
    source="/sagemaker/latest/dg/realtime-endpoints-openai-compatible.html",
)
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
    same_routing : bool
        Whether sides that route alike are compared all the same. By default they are refused.
    warm_seconds : float, optional
        Sent to each side before the first pair and not counted, so that prefix caches fill. By
        default as long as a block where prompts for a language model are sent, else 0.

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
    same_routing: bool = False
    warm_seconds: float | None = None

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
        if self.warm_seconds:
            self.warming("warming")

    @property
    def seconds(self) -> float:
        """How long it all takes."""
        block = self.settle_seconds + self.block_seconds
        return 2 * (self.pairs * block + (self.warm_seconds or 0.0))

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

    def warming(self, name: str) -> Step:
        """What each side gets before the first pair."""
        return Step(
            name,
            self.warm_seconds or 0.0,
            self._arrivals,
            self.users,
            seed=self.seed + self.pairs,  # of no pair
        )

    @property
    def _arrivals(self) -> Arrivals | None:
        if self.rate is None:
            return None
        return PoissonArrivals(self.rate) if self.poisson else ConstantArrivals(self.rate)

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        content = asdict(self)
        del content["same_routing"]
        if not self.warm_seconds:
            del content["warm_seconds"]
        poisson = content.pop("poisson")
        return {
            **content,
            "arrivals": None if self.rate is None else "poisson" if poisson else "constant",
        }


@dataclass(frozen=True)
class Watch:
    """Who is told what happens."""

    #: Of each second of a block: the side's label, the pair's number (0 before the first), the second.
    second: Callable[[str, int, Progress], None] = lambda label, pair, second: None
    #: Of each pair that is measured, with what can be said so far.
    pair: Callable[[Pair, RoutingComparison], None] = lambda pair, so_far: None
    say: Callable[[str], None] = lambda text: None  # what is done between


_NOBODY = Watch()


def run(
    plan: ComparisonPlan,
    sides: Sides,
    generators: Sequence[Generator],
    watch: Watch = _NOBODY,
    doubts: Sequence[str] = (),
    *,
    numbers: int = 0,
) -> RoutingComparison:
    """Load both sides in turn, and compare."""
    report = RoutingComparison(
        sides,
        plan.to_dict(),
        plan.load,
        started_at=time.time(),
        ended_at=time.time(),
        doubts=tuple(doubts),
    )
    try:
        if plan.warm_seconds:
            for generator, label in zip(generators, sides.labels, strict=True):
                generator.run(plan.warming(label), partial(watch.second, label, 0))
        # The order turns with the pairs that count, so that a repeat does not upset the balance.
        while len(report.pairs) < plan.pairs:
            number = len(report.pairs)
            first = numbers * (1 + number + len(report.set_aside))
            pair = _pair(plan, sides, generators, number, first, watch)
            if pair.client_bound and len(report.set_aside) < plan.pairs // 2:
                report = replace(report, set_aside=(*report.set_aside, pair))
            else:
                report = replace(report, pairs=(*report.pairs, pair), ended_at=time.time())
            watch.pair(pair, report)
    except KeyboardInterrupt:
        return replace(report, interrupted=True, ended_at=time.time())
    return report


def _pair(
    plan: ComparisonPlan,
    sides: Sides,
    generators: Sequence[Generator],
    number: int,
    first: int,
    watch: Watch,
) -> Pair:
    base_first = number % 2 == 0
    results = {}
    for at in (0, 1) if base_first else (1, 0):
        label = sides.labels[at]
        results[at] = generators[at].run(
            replace(plan.step(number, label), first_number=first),
            partial(watch.second, label, number + 1),
        )
    return Pair(results[0], results[1], base_first)


def compare_routing(
    endpoints: Sequence[str],
    payloads: Payloads,
    plan: ComparisonPlan,
    *,
    variants: Sequence[str] = (),
    target: Target | None = None,
    processes: int = 1,
    profile: str | None = None,
    region: str | None = None,
    generator: Callable[[Target], Generator] | None = None,
    watch: Watch = _NOBODY,
) -> RoutingComparison:
    """Compare the routing of two variants, or of two endpoints.

    Parameters
    ----------
    endpoints : sequence of str
        One or two names.
    payloads : Payloads
        Each block sends them from the first on; of prompts each pair has its own. Answers to prompts
        are read token by token, as are those of the OpenAI-compatible path and of a target that says
        so.
    variants : sequence of str
        One for each side; by default the only two of one endpoint.
    target : Target, optional
        Everything else about the requests; its endpoint and variant are each side's own.
    processes : int
        Of each side's generator.
    profile, region : str, optional
        As for the AWS CLI.
    generator : callable, optional
        Opens another generator for a target. By default processes of this machine.
    watch : Watch, optional
        Is told what happens.

    Raises
    ------
    ConfigurationError
        ``LLT118``, ``LLT119``, ``LLT167`` before anything is sent; ``LLA101``, ``LLA102`` and the generator's.
    """
    client, found_region = open_clients(profile, region or (target.region if target else None))
    account = Account(client, found_region, once=False)
    watch.say("Reading both sides")
    sides = read_sides(account, endpoints, variants)
    if sides.same_routing and not plan.same_routing:
        raise SAME_ROUTING.error(
            got=f"{sides.base.routing} for {sides.base.name} and {sides.other.name}",
            allowed="different routing strategies",
        )
    common = target or Target(endpoints[0], found_region)
    openai, prompts = common.api == OPENAI, payloads.prompts
    if openai:
        _check_openai(sides)
    if prompts is not None or openai:
        common = replace(common, streaming=True, tokens=common.tokens or TokenLimits())
    if prompts is not None and plan.warm_seconds is None:
        plan = replace(plan, warm_seconds=plan.block_seconds)
    doubts = [] if prompts is None else list(prefix_doubts(sides, prompts, openai=openai))
    for warning in (*sides.warnings, *doubts):
        watch.say(f"Warning: {warning}")
    with ExitStack() as stack:
        watch.say("Starting the load generators")
        opened = []
        for side in sides:
            variant = None if openai else side.fleet.variant or None
            one = replace(common, endpoint_name=side.endpoint, target_variant=variant)
            opened.append(
                generator(one)
                if generator is not None
                else GeneratorProcess.of_profile(one, payloads, processes, profile)
            )
            stack.callback(opened[-1].close)
        watch.say(f"{plan.text}: {plan.seconds / 60:.1f} minutes")
        report = run(
            plan, sides, opened, watch, doubts, numbers=0 if prompts is None else PROMPTS_OF_A_STEP
        )
    after = None
    if all(side.fleet.variant for side in sides):
        names = [sides.base.endpoint, sides.other.endpoint]
        try:
            after = read_sides(
                account, names, [sides.base.fleet.variant, sides.other.fleet.variant]
            )
        except LowLatencyEndpointError as error:  # such as credentials that expired meanwhile
            doubt = f"whether the endpoint changed meanwhile could not be read: {error}"
            report = replace(report, doubts=(*report.doubts, doubt))
    return replace(report, payload=payloads.source, after=after)


def _check_openai(sides: Sides) -> None:
    """Refuse sides between which only TargetVariant could choose."""
    for side in sides:
        if len(side.fleet.variants) > 1:
            raise OPENAI_SIDES.error(
                got=f"{side.endpoint} with {', '.join(side.fleet.variants)}",
                allowed="endpoints of one variant",
            )
