"""compare-routing of language models: figures of tokens, PREFIX_AWARE sides, what is said, caches."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import LanguageModelServer
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.sessions import Unreadable
from low_latency_endpoint.cli import app
from low_latency_endpoint.load_test.compare.compare_routing import (
    ComparisonPlan,
    Watch,
    compare_routing,
    run,
)
from low_latency_endpoint.load_test.compare.comparison import (
    CACHED,
    STATISTICS,
    TOKEN_STATISTICS,
    Pair,
    changes,
)
from low_latency_endpoint.load_test.compare.sides import Side, Sides, prefix_doubts
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.measurement import TokenResult
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.prompts import Prompts
from low_latency_endpoint.load_test.engine.steps import Progress, Step, StepResult
from low_latency_endpoint.load_test.engine.target import OPENAI, Target, TokenLimits
from low_latency_endpoint.load_test.search.serving import ServingFleet
from tests.refusals import refused

from .fake_generator import answered
from .servers import make_endpoint, make_model, read_both

pytestmark = pytest.mark.usefixtures("environment")

RANDOM, LEAST, PREFIX = "RANDOM", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE"
PLAN = ComparisonPlan(users=20, pairs=4, block_seconds=60.0, settle_seconds=5.0)
PROMPTS = Payloads.of_prompts(Prompts.of("input=600,output=8,shared_prefix=0.5,prefixes=3"))


def tokens_of(
    first: float = 0.2,
    gap: float = 0.02,
    *,
    requests: int = 1000,
    cached: int = 0,
    prompt: int = 512_000,
    output: int = 8000,
    **more: Any,
) -> TokenResult:
    """Equal streams: each of eight tokens."""
    return TokenResult(
        LatencyHistogram.of([first] * requests),
        LatencyHistogram.of([gap] * 7 * requests),
        LatencyHistogram.of([gap] * requests),
        output_tokens=output,
        tokens_in_time=output,
        prompt_tokens=prompt,
        cached_tokens=cached,
        **more,
    )


WHOLE = LatencyHistogram.of([0.4] * 1000)


def block(**tokens: Any) -> StepResult:
    return answered(Step("block", 10.0, users=1), WHOLE, tokens=tokens_of(**tokens))


def in_turn(*both: tuple[StepResult, StepResult]) -> list[Pair]:
    return [Pair(base, other, number % 2 == 0) for number, (base, other) in enumerate(both)]


def four(base: StepResult, other: StepResult) -> Any:
    """What four equal pairs of blocks tell."""
    return changes(in_turn(*[(base, other)] * 4))


# ----------------------------------------------------------------------------------- the figures


def test_each_figure_of_tokens_is_that_of_its_own_histogram_or_count() -> None:
    found = four(
        block(first=0.2, gap=0.02, output=8000, cached=128_000),
        block(first=0.1, gap=0.03, output=12_000, cached=384_000),
    )
    assert set(found) == {*STATISTICS, *TOKEN_STATISTICS}
    for name, before, after in (
        ("ttft_p50", 0.2, 0.1),
        ("ttft_p90", 0.2, 0.1),
        ("ttft_p99", 0.2, 0.1),
        ("itl_p50", 0.02, 0.03),
        ("itl_p99", 0.02, 0.03),
        ("output_tokens", 800.0, 1200.0),
    ):
        one = found[name]
        assert one.base == pytest.approx(before, rel=1e-3)
        assert one.other == pytest.approx(after, rel=1e-3)
        assert one.change == pytest.approx(after / before - 1, abs=2e-3)
        assert one.found
    share = found[CACHED]
    assert (share.base, share.other) == (0.25, 0.75)  # of 512,000 prompt tokens
    assert share.change == 0.5  # points: 0.75 - 0.25
    assert all(found[name].change == 0 for name in STATISTICS)


def test_a_cache_that_finds_nothing_on_one_side_has_a_figure_all_the_same() -> None:
    found = four(block(cached=0), block(cached=256_000))[CACHED]
    assert (found.base, found.other, found.change) == (0.0, 0.5, 0.5)
    assert found.found


def test_servers_that_do_not_tell_what_is_cached_have_no_such_figure() -> None:
    assert CACHED not in four(block(), block())
    assert CACHED not in four(block(prompt=0), block(prompt=0))


def test_one_block_that_was_not_read_token_by_token_leaves_all_figures_of_tokens_out() -> None:
    pairs = in_turn(*[(block(), block()) for _ in range(5)])
    pairs[2] = replace(pairs[2], other=replace(pairs[2].other, tokens=None))
    assert set(changes(pairs)) == set(STATISTICS)


def test_a_percentile_of_gaps_rests_on_streams_and_not_on_gaps() -> None:
    """Of 4 x 200 streams eight lie beyond the p99; of their 5,600 gaps 56 do."""
    found = four(block(requests=200), block(requests=200))
    assert found["itl_p99"].beyond == found["ttft_p99"].beyond == 8
    assert not found["itl_p99"].reliable
    assert found["itl_p50"].reliable
    assert found["output_tokens"].reliable


def test_json_of_a_figure_has_its_unit() -> None:
    found = four(block(cached=64_000), block(cached=256_000))
    content = {name: each.to_dict() for name, each in found.items()}
    assert content["ttft_p99"]["base_ms"] == pytest.approx(200, rel=1e-3)
    assert content["output_tokens"]["other_per_second"] == 800
    assert (content[CACHED]["base_share"], content[CACHED]["other_share"]) == (0.125, 0.5)


# ------------------------------------------------------------------------------- what is reported


def side(
    name: str, routing: str, *, length: int | None = None, threshold: int | None = None
) -> Side:
    fleet = ServingFleet(name, ("random", "least", "prefix"), "ml.g6.xlarge", 4, routing)
    return Side("chat", fleet, prefix_length=length, concurrency_threshold=threshold)


def prefix_of(length: int) -> Sides:
    return Sides(side("random", RANDOM), side("prefix", PREFIX, length=length, threshold=16))


SIDES = prefix_of(1024)


@dataclass
class FakeSide:
    """The same answers in each block."""

    tokens: TokenResult | None
    steps: list[Step] = field(default_factory=list)

    def run(self, step: Step, progress: Any = None) -> StepResult:
        self.steps.append(step)
        progress(Progress(seconds=1.0, sent=10, completed=10))
        return answered(step, WHOLE, 1.8e9 + 100 * len(self.steps), tokens=self.tokens)

    def close(self) -> None:
        pass


def report_of(base: TokenResult | None, other: TokenResult | None, **more: Any) -> Any:
    return run(PLAN, SIDES, [FakeSide(base), FakeSide(other)], **more)


FASTER = (tokens_of(0.2, cached=128_000), tokens_of(0.1, cached=384_000, output=12_000))


def test_the_first_sentence_takes_the_ttft_p99_and_output_tokens() -> None:
    report = report_of(*FASTER)
    assert report.headline == "ttft_p99"
    assert report.sentence.startswith("PREFIX_AWARE lowers TTFT p99 by 50 % (95 % interval ")
    assert ", and raises output tokens per second by 50 % (" in report.sentence
    same = report_of(FASTER[0], FASTER[0])
    assert same.sentence.startswith("No difference in TTFT p99 that this test can tell between ")


def test_whole_answers_keep_their_p99() -> None:
    report = report_of(None, None)
    assert report.headline == "p99"
    assert set(report.to_dict()["changes"]) == set(STATISTICS)
    assert "tokens" not in report.to_dict()["base"]
    assert [row[0] for row in report.table().rows] == ["p50", "p90", "p99", "Mean", "Throughput"]


def test_streams_without_any_token_are_no_comparison() -> None:
    empty = TokenResult()
    assert report_of(empty, empty).sentence == "No answer: a side answered nothing"


def test_the_table_says_points_where_it_means_them_and_fits_80_columns() -> None:
    report = report_of(*FASTER)
    rows = {row[0]: row for row in report.table().rows}
    assert list(rows)[:7] == [
        "TTFT p50",
        "TTFT p90",
        "TTFT p99",
        "ITL p50",
        "ITL p99",
        "Output tokens",
        "Prompt cached",
    ]
    assert rows["Prompt cached"][1:4] == ["25 %", "75 %", "+50.0 points"]
    assert "Answer p99" in rows
    for sides in (SIDES, Sides(side("least", LEAST), SIDES.other)):
        shown = io.StringIO()
        Console(file=shown, width=80).print(replace(report, sides=sides).table())
        lines = shown.getvalue().splitlines()
        assert max(map(len, lines)) <= 80
        assert any("+50.0 points" in line for line in lines)


def test_json_has_the_tokens_of_each_side_and_of_each_block() -> None:
    content = json.loads(report_of(*FASTER).to_json())
    assert content["base"]["tokens"]["cached_tokens"] == 4 * 128_000
    assert content["other"]["tokens"]["first_token_ms"]["count"] == 4000
    assert (content["other"]["prefix_length"], content["other"]["concurrency_threshold"]) == (
        1024,
        16,
    )
    assert "prefix_length" not in content["base"]
    again = [StepResult.of_dict(pair["other"]).tokens for pair in content["pairs"]]
    assert again == [FASTER[1]] * 4


def test_what_makes_figures_of_tokens_less_sure_is_said() -> None:
    odd = tokens_of(unstreamed=3, uncounted=2)
    said = "\n".join(report_of(odd, tokens_of(), doubts=("something else",)).warnings)
    assert "12 answers of RANDOM came in one chunk" in said
    assert "8 answers of RANDOM did not say how many tokens they have" in said
    assert "No answer tells of cached tokens" in said
    assert "something else" in said
    assert "cached tokens" not in "\n".join(report_of(*FASTER).warnings)


# --------------------------------------------------------------------------------------- warming


def test_caches_are_filled_on_each_side_before_the_first_pair_and_that_does_not_count() -> None:
    both, told = [FakeSide(each) for each in FASTER], list[tuple[str, int]]()
    plan = replace(PLAN, warm_seconds=90.0)
    report = run(plan, SIDES, both, Watch(lambda label, pair, _: told.append((label, pair))))
    assert [len(each.steps) for each in both] == [5, 5]
    assert len(report.pairs) == 4
    for each in both:
        first = each.steps[0]
        assert (first.seconds, first.settle_seconds, first.users) == (90.0, 0.0, 20)
        assert first.seed not in {step.seed for step in each.steps[1:]}
    assert told[:3] == [(RANDOM, 0), (PREFIX, 0), (RANDOM, 1)]
    assert plan.seconds == PLAN.seconds + 180
    assert plan.to_dict()["warm_seconds"] == 90.0
    assert "warm_seconds" not in PLAN.to_dict()


# ----------------------------------------------------------------------- what prompts share


def shared_bytes(text: str) -> int:
    """Where the bodies of two requests part: at the number that begins the user's message."""
    prompts = Prompts.of(text)
    body = prompts.body(0).decode()
    return body.index('"role": "user", "content": "') + len('"role": "user", "content": "')


def test_a_prefix_length_beyond_what_prompts_share_is_told() -> None:
    prompts = Prompts.of("input=400,output=8,shared_prefix=0.4")
    common = shared_bytes("input=400,output=8,shared_prefix=0.4")
    assert list(prefix_doubts(prefix_of(common), prompts)) == []
    (told,) = prefix_doubts(prefix_of(common + 2), prompts)  # two may begin with the same digit
    assert told.startswith(f"chat/prefix routes by the first {common + 2:,} bytes of the body, ")
    assert list(prefix_doubts(Sides(SIDES.base, side("least", LEAST)), prompts)) == []


def test_turns_of_a_conversation_share_its_first_question_too() -> None:
    prompts = Prompts.of("input=400,output=8,shared_prefix=0.4,turns=3,conversations=30")
    opened = next(number for number in range(30) if prompts.turn(number)[1] == 0)
    common = prompts.body(opened).index(b'], "max_tokens"')
    assert common > shared_bytes("input=400,output=8,shared_prefix=0.4")
    # Words differ in their length, questions of 240 of them by less than 120 characters.
    for length, count in ((common - 120, 0), (common + 120, 1)):
        told = list(prefix_doubts(prefix_of(length), prompts))
        assert len(told) == count
        assert all("turns of one conversation share" in each for each in told)


def test_on_the_openai_path_the_messages_characters_count() -> None:
    prompts = Prompts.of("input=400,output=8,shared_prefix=0.4")
    system = len(json.loads(prompts.body(0))["messages"][0]["content"])
    for length, count in ((system, 0), (system + 2, 1)):
        assert len(list(prefix_doubts(prefix_of(length), prompts, openai=True))) == count


# ------------------------------------------------------------------ the sides, at a local AWS

#: An instance has room for half of the prefixes, with what the prompts have of their own.
SERVER = LanguageModelServer(kv_tokens=4096, gap_seconds=0.005, seconds_per_prompt_token=1e-5)
TOKENS = "input=320,output=4,shared_prefix=0.8,prefixes=25"


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.start(model_servers={"*": SERVER}, runtime=RuntimeOptions(seed=1)) as running:
        make_model(running)
        serve(running, "chat", random=RANDOM, least=LEAST, prefix=(1024, 100))
        serve(running, "lengths", short=(1024, 16), long=(2048, 16), same=(1024, 16))
        serve(running, "with-random", primary=RANDOM)
        serve(running, "with-prefix", primary=(1024, 16))
        yield running


def serve(aws: LocalAws, name: str, **variants: str | tuple[int, int]) -> None:
    """An endpoint by the routing of its variants: a strategy, or prefix length and threshold."""
    made = []
    for variant, stated in variants.items():
        routing: dict[str, Any] = {"RoutingStrategy": stated}
        if not isinstance(stated, str):
            config = dict(zip(("PrefixLength", "ConcurrencyThreshold"), stated, strict=True))
            routing = {"RoutingStrategy": PREFIX, "PrefixAwareRoutingConfig": config}
        of = {"InstanceType": "ml.g6.xlarge", "InitialInstanceCount": 4, "RoutingConfig": routing}
        made.append({"VariantName": variant, **of})
    make_endpoint(aws, name, *made)


def test_a_prefix_aware_side_has_its_settings(aws: LocalAws) -> None:
    found = read_both("chat", variants=("prefix", "random"))
    assert found.labels == (RANDOM, PREFIX)
    assert (found.other.prefix_length, found.other.concurrency_threshold) == (1024, 100)
    assert found.other.text == (
        "chat/prefix: 4 x ml.g6.xlarge, PREFIX_AWARE (prefix length 1,024, "
        "concurrency threshold 100)"
    )
    assert (found.differences, found.warnings) == ((), ())
    assert found.base.prefix_length is None


def test_the_base_is_the_simpler_strategy_in_whatever_order(aws: LocalAws) -> None:
    for names in (("least", "prefix"), ("prefix", "least")):
        assert read_both("chat", variants=names).labels == (LEAST, PREFIX)


def test_three_variants_need_two_names(aws: LocalAws) -> None:
    with refused("LLT118"):
        read_both("chat")


def test_prefix_length_and_threshold_are_part_of_the_routing(aws: LocalAws) -> None:
    found = read_both("lengths", variants=("short", "long"))
    assert not found.same_routing
    assert found.labels == ("PREFIX_AWARE 1024/16", "PREFIX_AWARE 2048/16")
    assert found.warnings == ()
    same = read_both("lengths", variants=("short", "same"))
    assert same.same_routing
    assert same.labels == ("short", "same")
    assert same.warnings[0].startswith("Both sides route by PREFIX_AWARE 1024/16: ")


def test_without_the_configuration_the_endpoint_itself_tells(
    aws: LocalAws, monkeypatch: Any
) -> None:
    """DescribeEndpoint has a variant's RoutingConfig, too, where AWS gives it."""
    answered = Account.read

    def refused(self: Account, service: str, operation: str, *more: Any, **request: Any) -> Any:
        if operation == "describe_endpoint_config":
            raise Unreadable("denied")
        found = answered(self, service, operation, *more, **request)
        if operation == "describe_endpoint":
            (one,) = found["ProductionVariants"]
            one["RoutingConfig"] = {
                "RoutingStrategy": PREFIX,
                "PrefixAwareRoutingConfig": {"PrefixLength": 4096, "ConcurrencyThreshold": 5},
            }
        return found

    monkeypatch.setattr(Account, "read", refused)
    assert read_both("with-prefix", "with-random").base.routing == "PREFIX_AWARE 4096/5"


# ---------------------------------------------------------------------- how answers are read


def compared(
    payloads: Payloads, plan: ComparisonPlan = PLAN, target: Target | None = None, **more: Any
) -> tuple[list[Target], list[FakeSide], Any]:
    """What a comparison opens, and its report."""
    targets, both = list[Target](), [FakeSide(each) for each in FASTER]

    def generator(one: Target) -> FakeSide:
        targets.append(one)
        return both[len(targets) - 1]

    report = compare_routing(
        more.pop("endpoints", ["chat"]),
        payloads,
        plan,
        variants=more.pop("variants", ("random", "prefix")),
        target=target,
        generator=generator,
        **more,
    )
    return targets, both, report


def test_prompts_are_read_token_by_token_on_both_sides(aws: LocalAws) -> None:
    targets, both, report = compared(PROMPTS)
    assert [each.tokens for each in targets] == [TokenLimits()] * 2
    assert all(each.streaming for each in targets)
    assert [each.target_variant for each in targets] == ["random", "prefix"]
    # As long as a block, unless a plan says otherwise.
    assert [each.steps[0].seconds for each in both] == [PLAN.block_seconds] * 2
    assert report.plan["warm_seconds"] == PLAN.block_seconds
    _, cold, _ = compared(PROMPTS, replace(PLAN, warm_seconds=0.0))
    assert [len(each.steps) for each in cold] == [PLAN.pairs] * 2


def test_each_pair_has_prompts_of_its_own_the_same_on_both_sides(aws: LocalAws) -> None:
    """Or a cache would find whole prompts of earlier blocks, which no caller sends twice."""
    _, both, _ = compared(PROMPTS)
    base, other = ([step.first_number for step in each.steps] for each in both)
    assert base == other
    assert len(set(base)) == PLAN.pairs + 1
    _, both, _ = compared(Payloads.of_bytes(b"{}"))
    assert {step.first_number for each in both for step in each.steps} == {0}


def test_other_payloads_stay_bytes_unless_the_target_says_so(aws: LocalAws) -> None:
    targets, both, _ = compared(Payloads.of_bytes(b"{}"))
    assert [(each.tokens, each.streaming) for each in targets] == [(None, False)] * 2
    assert [len(each.steps) for each in both] == [PLAN.pairs] * 2
    limits = TokenLimits(first_token=0.5)
    target = Target("chat", "us-east-1", streaming=True, tokens=limits)
    targets, _, _ = compared(Payloads.of_bytes(b"{}"), target=target)
    assert [each.tokens for each in targets] == [limits] * 2


def test_a_prefix_length_that_does_not_fit_is_told_before_and_after(aws: LocalAws) -> None:
    said: list[str] = []
    short = Payloads.of_prompts(Prompts.of("input=100,output=8,shared_prefix=0.5"))
    _, _, report = compared(short, watch=Watch(say=said.append))
    assert any(each.startswith("Warning: chat/prefix routes by the first 1,024") for each in said)
    assert any(each.startswith("chat/prefix routes by the first 1,024") for each in report.warnings)


def test_the_openai_path_takes_endpoints_and_no_variants(aws: LocalAws) -> None:
    target = Target("with-random", "us-east-1", streaming=True, api=OPENAI)
    names = ["with-random", "with-prefix"]
    targets, _, _ = compared(PROMPTS, target=target, endpoints=names, variants=())
    assert [(each.endpoint_name, each.target_variant) for each in targets] == [
        ("with-random", None),
        ("with-prefix", None),
    ]
    with refused("LLT167"):
        compared(PROMPTS, target=target)


# --------------------------------------------------------------------------------- the command


@pytest.mark.realtime
def test_prefix_aware_routing_finds_more_of_the_prompts_in_the_caches(
    aws: LocalAws, tmp_path: Any
) -> None:
    """Only counts: how fast anything was is the machine's.

    25 prefixes of 256 tokens are 6,400, and each prompt has 64 of its own; an instance has room for
    4,096. Where each prefix has its home there are six on an instance, of twelve for which there is
    room; at random an instance meets all of them, and one of them again after 25 other requests on
    average, by when it is mostly forgotten.
    """
    result = tmp_path / "result.json"
    arguments = [
        *("compare-routing", "chat", "--variant", "random", "--variant", "prefix"),
        *("--users", "2", "--tokens", TOKENS, "--timeout", "60s"),
        *("--block", "2s", "--settle", "200ms", "--pairs", "4", "-o", str(result)),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code in (0, 1), done.output  # 1: the machine was the limit
    content = json.loads(result.read_text())
    assert (content["base"]["label"], content["other"]["label"]) == (RANDOM, PREFIX)
    for at in ("base", "other"):
        assert not any(pair[at]["errors"] for pair in content["pairs"])
    share = {at: content["changes"][CACHED][f"{at}_share"] for at in ("base", "other")}
    assert share["base"] + 0.1 < share["other"]
    for at, each in share.items():
        assert each <= 0.8  # what prompts share: no whole prompt is found again
        tokens = content[at]["tokens"]
        assert tokens["cached_tokens"] / tokens["prompt_tokens"] == pytest.approx(each)
        assert tokens["output_tokens"] == 4 * tokens["first_token_ms"]["count"]
