"""``low-latency simulate`` for language models: time to first token, between tokens, goodput."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import rule
from .options import flag, option
from .output import print_json, print_parts

if TYPE_CHECKING:
    from ..plan.latency_plan import Plan
    from ..plan.token_traffic import TokenTraffic
    from ..settings import EndpointSettings
    from ..simulate import IterationTime, TokenResult, TokenScenario, TokenTargets
    from .simulate import SimulationOptions

ITERATION_UNKNOWN = rule(
    "LLS145",
    "how long an iteration of the server takes is not known",
    fix="Give --iteration-ms 1=23.9,128=30.3,2048=259 as measured, or --iteration-profile of a "
    "device and model like yours.",
)
RATE_UNKNOWN = rule(
    "LLS146",
    "the rate of requests is not known",
    fix="Give --tps, targets to search the largest rate for, or throughput in the settings.",
)
_ROUTINGS = ("RANDOM", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE")
_SHARES = (0.5, 0.8, 1.0, 1.2)  # of the largest rate, in the table
_REQUESTS, _REPLICATIONS = 3000, 8
_PRECISION = 0.03  # of the largest rate
_NOT_WITH = (
    *("search", "traffic", "traffic_from", "from_load_test", "service_time", "variation"),
    *("concurrency", "slope", "instance_start", "price", "html"),
)


@dataclass
class LanguageModelOptions:
    """What is simulated of a language model."""

    tokens: str | None = option(
        "Simulate a language model, by the tokens of its requests: input=512,output=128, a length "
        "that varies as input=300:1800 (median:p95), shared_prefix=0.5 for the share that "
        "requests have in common, of prefixes=N kinds. Default: the settings' tokens.",
        metavar="LENGTHS",
    )
    iteration_ms: str | None = option(
        "With tokens: milliseconds of an iteration by the tokens in its batch, as measured: "
        "1=23.9,128=30.3,2048=259.",
        metavar="TOKENS=MS",
    )
    iteration_profile: str | None = option(
        "With tokens: measured times that ship, such as a100/llama-3-8b/tp1.", metavar="NAME"
    )
    cached_token_us: float | None = option(
        "With --iteration-ms: microseconds for each token that an iteration reads from the KV "
        "cache. Default: 0.",
        metavar="US",
    )
    kv_tokens: int | None = option(
        "With tokens: tokens that the KV cache has room for. Default: the plan's, else no limit.",
        metavar="N",
    )
    max_batched_tokens: int | None = option(
        "With tokens: tokens of an iteration at most. Default: 2048.", metavar="N"
    )
    max_sequences: int | None = option(
        "With tokens: requests that an instance works on at once. Default: 256.", metavar="N"
    )
    concurrency_threshold: int | None = option(
        "With PREFIX_AWARE: outstanding requests at which an instance is passed over. Default: "
        "the settings'.",
        metavar="N",
    )
    whole_prompts: bool = flag("With tokens: prompts are not read in chunks beside answers.")
    no_prefix_cache: bool = flag("With tokens: the server keeps no cache of prefixes.")

    @property
    def asked(self) -> bool:
        """Whether any of them is given."""
        return any(value not in (None, False) for value in vars(self).values())

    def check(self, options: SimulationOptions) -> None:
        """Refuse what would be dropped in silence."""
        for name in _NOT_WITH:
            if getattr(options, name) not in (None, False, []):
                raise typer.BadParameter(
                    f"--{name.replace('_', '-')} does not go with the tokens of a language model"
                )
        if self.iteration_ms is not None and self.iteration_profile is not None:
            raise typer.BadParameter("give one of --iteration-ms and --iteration-profile")
        if self.cached_token_us is not None and self.iteration_ms is None:
            raise typer.BadParameter("--cached-token-us goes with --iteration-ms")

    def simulate(
        self,
        options: SimulationOptions,
        settings: Path,
        name: str,
        plan: Plan,
        stated: EndpointSettings,
    ) -> None:
        """Answer, and print it."""
        self.check(options)
        traffic, prefixes = self._traffic(stated)
        routing = (options.routing or plan.routing).upper().replace("-", "_")
        threshold = self._threshold(plan)
        instances = options.instances or plan.fleet.serving_at_peak
        scenario = self._scenario(traffic, prefixes, instances, routing, threshold, plan)
        targets = _targets(options.target, stated)
        rate = options.tps or (stated.throughput.peak_tps if stated.throughput else None)
        report = TokenReport(
            name,
            settings,
            scenario,
            {
                "requests": options.requests or _REQUESTS,
                "replications": options.replications or _REPLICATIONS,
                "seed": options.seed,
                "processes": options.processes or 1,
            },
        )
        report.assume(self, plan)
        routings = _ROUTINGS[: 3 if traffic.shared_prefix and threshold else 2]
        report.run(
            targets, rate, routings if options.compare_routing else (scenario.routing,), threshold
        )
        report.show(as_json=options.json, markdown=options.markdown)

    def _traffic(self, stated: EndpointSettings) -> tuple[TokenTraffic, int]:
        from ..load_test.engine.prompts import Prompts

        if self.tokens is None:
            if stated.tokens is None:
                raise typer.BadParameter(
                    "give --tokens, or state tokens in the settings: the other options are of a "
                    "language model"
                )
            return stated.tokens.traffic, 1
        prompts = Prompts.of(self.tokens)
        if prompts.traffic is None:
            raise typer.BadParameter(
                "--tokens file=... is not simulated; in Python, TokenTrace takes recorded requests"
            )
        if prompts.turns > 1:
            raise typer.BadParameter(
                "--tokens turns=... is not simulated: leave turns and conversations out, and give "
                "the input that a mean prompt has with what was said before"
            )
        return prompts.traffic, prompts.prefixes

    def _threshold(self, plan: Plan) -> int | None:
        if self.concurrency_threshold is not None:
            return self.concurrency_threshold
        return plan.request.concurrency_threshold

    def _law(self) -> IterationTime:
        from ..simulate.iteration_times import iteration_profile, parse_iteration_times

        if self.iteration_profile is not None:
            return iteration_profile(self.iteration_profile)
        if self.iteration_ms is None:
            raise ITERATION_UNKNOWN.error(
                got="neither --iteration-ms nor --iteration-profile", allowed="one of them"
            )
        return parse_iteration_times(self.iteration_ms, self.cached_token_us or 0.0)

    def _scenario(
        self,
        traffic: TokenTraffic,
        prefixes: int,
        instances: int,
        routing: str,
        threshold: int | None,
        plan: Plan,
    ) -> TokenScenario:
        from ..simulate import OpenLoop, TokenScenario, TokenServer

        server = TokenServer(
            iteration=self._law(),
            kv_tokens=self.kv_tokens or _kv_tokens(plan),
            prefix_cache=not self.no_prefix_cache,
            chunked_prefill=not self.whole_prompts,
        )
        for option_name in ("max_batched_tokens", "max_sequences"):
            if (given := getattr(self, option_name)) is not None:
                server = replace(server, **{option_name: given})
        return TokenScenario(
            server=server,
            traffic=OpenLoop(1.0),
            tokens=traffic,
            prefixes=prefixes,
            instances=instances,
            routing=routing,
            concurrency_threshold=threshold if routing == "PREFIX_AWARE" else None,
        )


class TokenReport:
    """The answer, made by one method and shown by another."""

    def __init__(
        self, name: str, settings: Path, scenario: TokenScenario, options: dict[str, Any]
    ) -> None:
        self.name, self.settings = name, settings
        self.scenario, self.options = scenario, options
        self.sentences: list[str] = []
        self.rows: list[list[str]] = []
        self.data: dict[str, Any] = {"tokens": {}}
        self.assumed: list[str] = []

    def assume(self, given: LanguageModelOptions, plan: Plan) -> None:
        """What the answer rests on."""
        server, tokens = self.scenario.server, self.scenario.tokens
        assert tokens is not None
        law = server.iteration
        what = given.iteration_profile or "as stated"
        self.assumed.append(
            f"{tokens.text}; an iteration takes {1e3 * law.seconds(1):.3g} ms for one token, "
            f"{1e3 * law.seconds(server.max_batched_tokens):.3g} ms for "
            f"{server.max_batched_tokens:,} ({what})"
        )
        if given.iteration_profile:
            self.assumed.append(
                "the profile leaves out the output head, communication between accelerators and the "
                "processor's work between iterations: real ones are slower"
            )
        room = "without a limit" if server.kv_tokens is None else f"{server.kv_tokens:,} tokens"
        self.assumed.append(
            f"KV cache {room}"
            + ("" if given.kv_tokens or server.kv_tokens is None else " (the plan's)")
            + f", at most {server.max_sequences} requests and {server.max_batched_tokens:,} tokens "
            "in a batch"
        )
        self.assumed.append(
            "times are the model's: network and SageMaker's overhead come on top; calls arrive at "
            "random (Poisson)"
        )

    def run(
        self,
        targets: TokenTargets | None,
        rate: float | None,
        routings: tuple[str, ...],
        threshold: int | None,
    ) -> None:
        """Rates up to the largest that keeps the targets and beyond, or one rate."""
        from ..simulate import OpenLoop, compare_tokens, largest_rate

        if targets is None and rate is None:
            raise RATE_UNKNOWN.error(got="neither a rate nor targets", allowed="one of them")
        for routing in routings:
            scenario = self.scenario.with_(
                routing=routing,
                concurrency_threshold=threshold if routing == "PREFIX_AWARE" else None,
            )
            rates = [rate] if rate else []
            if targets is not None:
                largest, _ = largest_rate(scenario, targets, precision=_PRECISION, **self.options)
                scenario = targets.on(scenario)
                self._say_largest(routing, largest, targets, rate)
                rates += [largest * share for share in _SHARES] if largest else []
                self.data["tokens"].setdefault(routing, {})["largest_rate"] = largest
            results = compare_tokens(
                {
                    f"{each:.6g}": scenario.with_(traffic=OpenLoop(each))
                    for each in sorted(set(rates))
                },
                **self.options,
            )
            self.rows += [_row(routing, found, targets) for found in results.values()]
            self.data["tokens"].setdefault(routing, {})["rates"] = [
                found.to_dict() for found in results.values()
            ]
            if targets is None:
                self._say_one(routing, next(iter(results.values())))

    def _say_largest(
        self, routing: str, largest: float, targets: TokenTargets, rate: float | None
    ) -> None:
        from ..plan.capacity import counted_instances

        instances = self.scenario.instances
        goal = ", ".join(
            f"{kind}-p{at:g} within {1000 * limit:g} ms"
            for kind, each in (("ttft", targets.ttft), ("itl", targets.itl))
            for at, limit in sorted(each.items())
        )
        if not largest:
            self.sentences.append(
                f"{routing}: even a lone request misses {goal}: the server is too slow for that."
            )
            return
        sentence = (
            f"{routing} on {counted_instances(instances)}: up to {largest:.3g} requests per second, "
            f"{largest / instances:.3g} for each instance, keep {goal} and a goodput of "
            f"{100 * targets.share:g} %."
        )
        if rate:
            sentence += f" {rate:g} per second {'keep' if rate <= largest else 'do not keep'} it."
        self.sentences.append(sentence)

    def _say_one(self, routing: str, found: TokenResult) -> None:
        from ..simulate.wording import milliseconds

        rate = found.scenario.traffic.rate  # type: ignore[union-attr]
        self.sentences.append(
            f"{routing}: at {rate:g} requests per second 95 of 100 first tokens come within "
            f"{milliseconds(found.ttft(95.0))}, 95 of 100 gaps between tokens are at most "
            f"{milliseconds(found.itl(95.0))}."
        )

    def show(self, *, as_json: bool, markdown: bool) -> None:
        """Print it."""
        if as_json:
            print_json(
                {
                    "settings": str(self.settings),
                    "endpoint": self.name,
                    "answer": self.sentences,
                    **self.data,
                    "assumed": self.assumed,
                }
            )
            return
        from rich.padding import Padding
        from rich.text import Text

        from ..report.tables import Table

        heads = [
            *("Routing", "Requests/s", "TTFT p95, ms", "ITL p95, ms", "Goodput"),
            *("Tokens/s", "KV use", "Hits", "Preempted"),
        ]
        print_parts(
            *(Padding(Text(each), (0, 0, 1, 0)) for each in self.sentences),
            Table(heads, self.rows),
            Text("Assumed:"),
            *(Padding(Text(f"- {each}"), (0, 0, 0, 2)) for each in self.assumed),
            markdown=markdown,
        )


def _row(routing: str, found: TokenResult, targets: TokenTargets | None) -> list[str]:
    limited = found.scenario.server.kv_tokens is not None
    ttft, itl = (each.scaled(1000) for each in (found.ttft(95.0), found.itl(95.0)))
    return [
        routing,
        f"{found.scenario.traffic.rate:.3g}",  # type: ignore[union-attr]
        f"{ttft.mean:,.0f} ± {ttft.half_width:,.0f}",
        f"{itl.mean:,.1f} ± {itl.half_width:,.1f}",
        f"{100 * found.goodput.mean:.1f} %" if targets is not None else "-",
        f"{found.tokens_per_second.mean:,.0f}",
        f"{100 * found.kv_use.mean:.0f} %" if limited else "-",
        f"{100 * found.cache_hits.mean:.0f} %",
        f"{found.preemptions.mean:.2g}",
    ]


def _targets(given: list[str] | None, stated: EndpointSettings) -> TokenTargets | None:
    """By the options, else by the settings."""
    from ..operate.diagnose.options import TARGET_FORM, parse_latencies
    from ..simulate import TokenTargets

    by_kind: dict[str, dict[str, float]] = {"ttft": {}, "itl": {}}
    if given is not None:
        for kind, found in by_kind.items():
            found.update(
                parse_latencies(
                    [each.removeprefix(f"{kind}-") for each in given if each.startswith(kind)],
                    TARGET_FORM,
                )
            )
        if other := [each for each in given if not each.startswith(tuple(by_kind))]:
            raise typer.BadParameter(
                f"--target {other[0]}: a language model is simulated for ttft-p95=500ms and "
                "itl-p95=50ms, at p50, p90, p95 or p99"
            )
    elif stated.latency is not None:
        by_kind["ttft"] = dict(stated.latency.target.ttft_milliseconds)
        by_kind["itl"] = dict(stated.latency.target.itl_milliseconds)
    if not any(by_kind.values()):
        return None
    ttft, itl = (
        {float(name.removeprefix("p")): value / 1000 for name, value in found.items()}
        for found in by_kind.values()
    )
    return TokenTargets(ttft, itl)


def _kv_tokens(plan: Plan) -> int | None:
    """Tokens that the plan's KV cache has room for, where it knows the model."""
    serving = plan.request.hub_serving
    rooms = [each.fit.kv_tokens for each in serving.containers] if serving else []
    return min((each for each in rooms if each is not None), default=None)
