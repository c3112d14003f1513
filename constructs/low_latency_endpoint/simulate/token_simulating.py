"""Simulate a language model's endpoint in several replications."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ..plan.limits import number_range
from . import kernels
from .compilation import loops, token_loop
from .estimates import Estimate, estimate
from .run_length import WARM_UP
from .simulating import CONFIDENCE, PERCENTILE, REPLICATIONS
from .token_blocks import BATCHED, BUSY, GAP_SUM, GAPS, ITERATIONS, LONGEST_GAP, TOKENS, USED
from .token_serving import TokenScenario, TokenTrace
from .token_world import Served, served
from .traffic import OpenLoop

TOKEN_REQUESTS = number_range("LLS143", "the number of simulated streams", 1, 50_000_000)
PERCENTILES = (50.0, 90.0, 95.0, 99.0)
DEFAULT_REQUESTS = 20_000
_AFTER = 0.1  # of the counted requests follow them, so that the last meet as many others


@dataclass(frozen=True)
class TokenReplication:
    """What one run found; times in seconds.

    Attributes
    ----------
    requests, refused : int
        Requests counted, and those of them that can never fit into the KV cache.
    seconds : float
        Time in which gaps and tokens were counted.
    ttft, tpot, itl, latency : dict of float to float
        Percentiles of the time to first token, of the requests' time per output token, of all gaps
        between tokens, and of the whole call.
    mean_ttft, mean_tpot, mean_itl, longest_itl, mean_latency : float
    goodput : float
        Share of the requests that keep both targets; 1 without targets. A refused one does not.
    tokens_per_second, requests_per_second : float
        Output tokens, and requests that ended, of all instances.
    kv_use : float
        Mean share of the KV cache's blocks that running requests hold; 0 without a limit.
    batch : float
        Mean tokens of an iteration.
    busy : float
        Share of the instances' time in iterations.
    preemptions : float
        Times that a request was preempted, on average.
    cache_hits : float
        Share of the prompts' tokens that a prefix cache had.
    """

    requests: int
    refused: int
    seconds: float
    ttft: dict[float, float]
    tpot: dict[float, float]
    itl: dict[float, float]
    latency: dict[float, float]
    mean_ttft: float
    mean_tpot: float
    mean_itl: float
    longest_itl: float
    mean_latency: float
    goodput: float
    tokens_per_second: float
    requests_per_second: float
    kv_use: float
    batch: float
    busy: float
    preemptions: float
    cache_hits: float


@dataclass(frozen=True)
class TokenResult:
    """What the replications of one scenario found.

    Attributes
    ----------
    scenario : TokenScenario
    replications : tuple of TokenReplication
    seed : int
    confidence : float
        Of all intervals.
    """

    scenario: TokenScenario
    replications: tuple[TokenReplication, ...]
    seed: int
    confidence: float = 0.99

    def estimate(self, value: Callable[[TokenReplication], float]) -> Estimate:
        """Any number of a replication, as mean with interval."""
        return estimate([value(each) for each in self.replications], confidence=self.confidence)

    def ttft(self, percentile: float) -> Estimate:
        """A percentile of the time to first token, in seconds: 50, 90, 95 or 99."""
        return self._percentile("ttft", percentile)

    def itl(self, percentile: float) -> Estimate:
        """A percentile of the inter-token latency: of all gaps of all streams, in seconds."""
        return self._percentile("itl", percentile)

    def tpot(self, percentile: float) -> Estimate:
        """A percentile over requests of the time per output token, in seconds."""
        return self._percentile("tpot", percentile)

    def latency(self, percentile: float) -> Estimate:
        """A percentile of the whole call, in seconds."""
        return self._percentile("latency", percentile)

    def _percentile(self, kind: str, percentile: float) -> Estimate:
        if percentile not in PERCENTILES:
            raise PERCENTILE.error(
                got=f"{percentile!r}",
                where="percentile",
                allowed=", ".join(f"{each:g}" for each in PERCENTILES),
            )
        return self.estimate(lambda run: getattr(run, kind)[percentile])

    @property
    def goodput(self) -> Estimate:
        """Share of the requests that keep both targets."""
        return self.estimate(lambda run: run.goodput)

    @property
    def tokens_per_second(self) -> Estimate:
        """Output tokens per second of all instances."""
        return self.estimate(lambda run: run.tokens_per_second)

    @property
    def requests_per_second(self) -> Estimate:
        """Requests that end per second, of all instances."""
        return self.estimate(lambda run: run.requests_per_second)

    @property
    def kv_use(self) -> Estimate:
        """Mean share of the KV cache that running requests hold."""
        return self.estimate(lambda run: run.kv_use)

    @property
    def preemptions(self) -> Estimate:
        """Times that a request was preempted, on average."""
        return self.estimate(lambda run: run.preemptions)

    @property
    def cache_hits(self) -> Estimate:
        """Share of the prompts' tokens that a prefix cache had."""
        return self.estimate(lambda run: run.cache_hits)

    def to_dict(self) -> dict[str, Any]:
        """The estimates as JSON-safe data; latencies in milliseconds."""

        def shown(value: Estimate, factor: float = 1.0) -> dict[str, float]:
            return {"mean": value.mean * factor, "half_width": value.half_width * factor}

        def named(name: str) -> Estimate:
            return self.estimate(attrgetter(name))

        found: dict[str, Any] = {
            "instances": self.scenario.instances,
            "routing": self.scenario.routing,
            "replications": len(self.replications),
            "seed": self.seed,
            "confidence": self.confidence,
            "requests": sum(run.requests for run in self.replications),
            "refused": sum(run.refused for run in self.replications),
        }
        if isinstance(self.scenario.traffic, OpenLoop):
            found["requests_offered_per_second"] = self.scenario.traffic.rate
        for kind in ("ttft", "itl", "tpot", "latency"):
            found[f"{kind}_ms"] = {
                "mean": shown(named(f"mean_{kind}"), 1e3),
                **{f"p{at:g}": shown(self._percentile(kind, at), 1e3) for at in PERCENTILES},
            }
        for name in (
            *("goodput", "tokens_per_second", "requests_per_second", "kv_use", "batch", "busy"),
            *("preemptions", "cache_hits"),
        ):
            found[name] = shown(named(name))
        return found


Job = tuple[TokenScenario, int, float, int, int, "bool | None"]


def simulate_tokens(
    scenario: TokenScenario,
    *,
    requests: int | None = None,
    discard: float = 0.2,
    replications: int = 8,
    seed: int = 1,
    confidence: float = 0.99,
    processes: int = 1,
    compiled: bool | None = None,
) -> TokenResult:
    """Simulate a language model's endpoint.

    Parameters
    ----------
    scenario : TokenScenario
        What to simulate.
    requests : int, optional
        Requests to count in each replication. By default 20,000; a trace is run whole.
    discard : float
        Requests simulated before and not counted, as a share of these: an empty server is quicker.
        By default 0.2; a trace counts from its start.
    replications, seed, confidence, processes, compiled
        As for :func:`.simulating.simulate`.

    Raises
    ------
    ConfigurationError
        ``LLS109``, ``LLS115``, ``LLS128``, ``LLS143`` for numbers out of range.

    Examples
    --------
    >>> from low_latency_endpoint.plan.token_traffic import TokenTraffic
    >>> from low_latency_endpoint.simulate import IterationTime, OpenLoop, TokenServer
    >>> server = TokenServer(iteration=IterationTime(points=((1, 0.010),)))
    >>> result = simulate_tokens(
    ...     TokenScenario(server=server, traffic=OpenLoop(2.0),
    ...                   tokens=TokenTraffic(input=100, output=50)),
    ...     requests=500, replications=2)
    >>> print(f"{result.itl(99).mean:.3f}")  # every iteration takes 10 ms
    0.010
    """
    return compare_tokens(
        {"": scenario},
        requests=requests,
        discard=discard,
        replications=replications,
        seed=seed,
        confidence=confidence,
        processes=processes,
        compiled=compiled,
    )[""]


def compare_tokens(
    scenarios: Mapping[str, TokenScenario],
    *,
    requests: int | None = None,
    discard: float = 0.2,
    replications: int = 8,
    seed: int = 1,
    confidence: float = 0.99,
    processes: int = 1,
    compiled: bool | None = None,
) -> dict[str, TokenResult]:
    """Simulate scenarios with the same requests: arrivals, lengths and prefixes.

    Parameters
    ----------
    scenarios : mapping of str to TokenScenario
        By name.
    requests, discard, replications, seed, confidence, processes, compiled
        As for :func:`simulate_tokens`.
    """
    REPLICATIONS.check(replications, "replications")
    CONFIDENCE.check(confidence, "confidence")
    counted = DEFAULT_REQUESTS if requests is None else requests
    TOKEN_REQUESTS.check(counted, "requests")
    if not 0 <= discard < 100:
        raise WARM_UP.error(got=discard, allowed="a share from 0 on", where="discard")
    jobs: list[Job] = [
        (scenario, counted, discard, seed, number, compiled)
        for scenario in scenarios.values()
        for number in range(replications)
    ]
    token_loop(compiled)  # say what is missing and compile here, and not in each process
    if processes > 1:
        with ProcessPoolExecutor(processes) as pool:
            runs = list(pool.map(_replicate, jobs))
    else:
        runs = [_replicate(job) for job in jobs]
    return {
        name: TokenResult(
            scenario, tuple(runs[at * replications : (at + 1) * replications]), seed, confidence
        )
        for at, (name, scenario) in enumerate(scenarios.items())
    }


def _replicate(job: Job) -> TokenReplication:
    scenario, counted, discard, seed, number, compiled = job
    window = None
    if isinstance(scenario.traffic, TokenTrace):
        first, count, total = 0, len(scenario.traffic.seconds), len(scenario.traffic.seconds)
    else:
        first, count = math.ceil(discard * counted), counted
        total = first + count + math.ceil(_AFTER * counted)
        if first or total > count:
            window = (first, first + count)
    run = served(
        scenario,
        loops(compiled),
        token_loop(compiled),
        requests=total,
        window=window,
        seed=seed,
        replication=number,
    )
    return _found(scenario, run, first, first + count, window)


def _found(
    scenario: TokenScenario, run: Served, first: int, last: int, window: tuple[int, int] | None
) -> TokenReplication:
    """Count what a run left behind."""
    network = scenario.network_seconds
    good_first = math.inf if scenario.ttft_target is None else scenario.ttft_target
    good_next = math.inf if scenario.itl_target is None else scenario.itl_target
    firsts: list[float] = []
    nexts: list[float] = []
    wholes: list[float] = []
    good = refused = 0
    for j in range(first, last):
        if run.first[j] == math.inf:
            refused += 1
            continue
        ttft = run.first[j] - run.arrival[j] + network
        tpot = (run.end[j] - run.first[j]) / (run.output[j] - 1) if run.output[j] > 1 else 0.0
        firsts.append(ttft)
        nexts.append(tpot)
        wholes.append(run.end[j] - run.arrival[j] + network)
        good += ttft <= good_first and tpot <= good_next
    for values in (firsts, nexts, wholes):
        values.sort()
    begin = run.arrival[window[0]] if window else 0.0
    end = run.arrival[window[1]] if window else max(run.end)
    seconds = max(end - begin, 1e-300)
    sums, instances, server = run.sums, scenario.instances, scenario.server
    gaps = sums[GAPS]
    blocks = server.kv_tokens // server.block_tokens if server.kv_tokens else math.inf
    return TokenReplication(
        requests=last - first,
        refused=refused,
        seconds=seconds,
        ttft=_percentiles(firsts),
        tpot=_percentiles(nexts),
        itl={
            at: float(kernels.quantile(run.gaps, at / 100 * gaps)) if gaps else 0.0
            for at in PERCENTILES
        },
        latency=_percentiles(wholes),
        mean_ttft=_mean(firsts),
        mean_tpot=_mean(nexts),
        mean_itl=sums[GAP_SUM] / gaps if gaps else 0.0,
        longest_itl=sums[LONGEST_GAP],
        mean_latency=_mean(wholes),
        goodput=good / (last - first),
        tokens_per_second=sums[TOKENS] / seconds,
        requests_per_second=sum(begin < each <= end for each in run.end) / seconds,
        kv_use=sums[USED] / seconds / instances / blocks,
        batch=sums[BATCHED] / sums[ITERATIONS] if sums[ITERATIONS] else 0.0,
        busy=sums[BUSY] / seconds / instances,
        preemptions=sum(run.preempted[first:last]) / (last - first),
        cache_hits=sum(run.hit[first:last]) / sum(run.prompt[first:last]),
    )


def _percentiles(values: Sequence[float]) -> dict[float, float]:
    """The smallest value that as large a share of sorted values does not exceed."""
    count = len(values)
    return {
        at: values[math.ceil(at / 100 * count) - 1] if count else math.inf for at in PERCENTILES
    }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.inf
