"""compare-routing: blocks in turn, what each side really is, what is said, and the command."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.sessions import Unreadable
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.load_test.compare.compare_routing import Watch, compare_routing, run
from low_latency_endpoint.load_test.compare.comparison_plan import ComparisonPlan
from low_latency_endpoint.load_test.compare.sides import Side
from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals, PoissonArrivals
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.steps import Progress, Step, StepResult
from low_latency_endpoint.load_test.engine.target import OPENAI, Target
from low_latency_endpoint.load_test.search.serving import ServingFleet
from low_latency_endpoint.report.numbers import percent
from tests.refusals import refused

from .fake_generator import answered
from .servers import make_endpoint, make_model, read_both

pytestmark = pytest.mark.usefixtures("environment")

RANDOM = "RANDOM"
LEAST = "LEAST_OUTSTANDING_REQUESTS"
PREFIX = "PREFIX_AWARE"
PAYLOADS = Payloads.of_bytes(b"{}")
PLAN = ComparisonPlan(users=20, pairs=6, block_seconds=60.0, settle_seconds=5.0)


def side(name: str, routing: str, instances: int = 5, **more: Any) -> Side:
    fleet = ServingFleet(name, ("random", "least"), "ml.g5.xlarge", instances, routing, **more)
    return Side("sentiment", fleet, routing)


SIDES = (side("random", RANDOM), side("least", LEAST))


@dataclass
class Clock:
    """Time that passes as blocks are sent, and makes a machine slower."""

    now: float = 1_800_000_000.0
    drift: float = 0.0
    blocks: list[tuple[str, Step]] = field(default_factory=list)

    @property
    def slowness(self) -> float:
        return math.exp(self.drift * len(self.blocks))


@dataclass
class FakeSide:
    """Lognormal latencies around a mean, no faster or slower for what it is sent."""

    name: str
    mean: float
    clock: Clock
    errors: float = 0.0
    kind: str = "503 ServiceUnavailable"
    fails_from: int = 0
    bound_in: Callable[[int], bool] = lambda block: False
    interrupt_at: int = -1

    def run(
        self, step: Step, progress: Callable[[Progress], None] = lambda each: None
    ) -> StepResult:
        clock = self.clock
        if len(clock.blocks) == self.interrupt_at:
            raise KeyboardInterrupt
        generator = random.Random(f"{self.name}/{len(clock.blocks)}")
        mean = self.mean * clock.slowness
        clock.blocks.append((self.name, step))
        count = round((step.users or 20) * step.counted_seconds / mean)
        latency = LatencyHistogram.of(
            generator.lognormvariate(math.log(mean) - 0.02, 0.2) for _ in range(count)
        )
        failed = round(self.errors * count) if len(clock.blocks) > self.fails_from else 0
        started, clock.now = clock.now, clock.now + step.seconds
        progress(Progress(seconds=1.0, sent=count, completed=count, errors={"failed": failed}))
        bound = self.bound_in(len(clock.blocks) - 1)
        return answered(
            step,
            latency,
            started,
            intended=count + failed,
            sent=count + failed,
            errors={self.kind: failed} if failed else {},
            client_bound=("the event loop woke late",) if bound else (),
        )

    def close(self) -> None:
        pass


def sides_of(
    base: float = 0.2, other: float = 0.2, drift: float = 0.0, **more: Any
) -> tuple[FakeSide, FakeSide]:
    clock = Clock(drift=drift)
    at_once = {"interrupt_at": 0} if more.get("interrupt_at") == 0 else {}
    return FakeSide("random", base, clock, **at_once), FakeSide("least", other, clock, **more)


# ------------------------------------------------------------------------------------ blocks


def test_blocks_come_in_turn_and_the_order_turns():
    both = sides_of()
    run(PLAN, SIDES, both)
    order = "".join(name[0] for name, _ in both[0].clock.blocks)
    assert order == "rllrrllrrllr"


def test_both_sides_of_a_pair_get_the_same_arrivals_and_each_pair_others():
    both = sides_of()
    run(ComparisonPlan(rate=50.0, pairs=4, seed=7), SIDES, both)
    steps = [step for _, step in both[0].clock.blocks]
    assert [step.seed for step in steps] == [7, 7, 8, 8, 9, 9, 10, 10]
    assert all(step.arrivals == PoissonArrivals(50.0) and step.users is None for step in steps)
    assert all((step.seconds, step.settle_seconds) == (33.0, 3.0) for step in steps)
    assert ComparisonPlan(rate=5, poisson=False).step(0, "a").arrivals == ConstantArrivals(5)


def test_a_machine_that_becomes_slower_by_the_minute_favours_neither():
    """By 60 % over the test, far more than the difference, which is 5 %."""
    found = run(PLAN, SIDES, sides_of(0.2, 0.19, drift=0.04)).changes
    assert found["p50"].low < -0.05 < found["p50"].high
    assert found["p50"].high < 0
    assert found["mean"].high < 0


def test_pairs_in_which_the_generator_was_the_limit_are_repeated():
    both = sides_of(bound_in=lambda block: block in (2, 7))
    told = []
    report = run(PLAN, SIDES, both, Watch(pair=lambda *pair: told.append(pair)))
    assert (len(report.pairs), len(report.set_aside)) == (6, 2)
    assert report.valid
    assert (
        "2 pairs were repeated: LEAST_OUTSTANDING_REQUESTS: the event loop woke late"
        in report.warnings
    )
    order = "".join(name[0] for name, _ in both[0].clock.blocks)
    assert order == "rllrlrrlrllrrllr"  # a repeat takes its pair's order
    assert len(told) == 8


def test_a_generator_that_is_always_the_limit_ends_in_no_answer():
    both = sides_of(bound_in=lambda block: True)
    report = run(PLAN, SIDES, both)
    assert (len(report.pairs), len(report.set_aside)) == (6, 3)
    assert not report.valid
    assert report.sentence.startswith("No answer: client-bound: result invalid: ")


def test_interrupted_it_says_what_it_has():
    early = run(PLAN, SIDES, sides_of(interrupt_at=5))
    assert early.interrupted
    assert not early.valid
    assert early.sentence == ("Interrupted: 2 whole pairs of blocks: at least 4 make an interval")
    at_once = run(PLAN, SIDES, sides_of(interrupt_at=0))
    assert at_once.sentence.startswith("Interrupted: 0 whole pairs of blocks")
    late = run(PLAN, SIDES, sides_of(0.2, 0.15, interrupt_at=10))
    assert late.valid
    assert late.sentence.endswith("at 20 callers. Interrupted: 5 of 6 pairs.")


def test_each_pair_has_bodies_of_its_own_the_same_on_both_sides():
    """Or a cache would find whole prompts of earlier blocks, which no caller sends twice."""
    both = sides_of()
    run(PLAN, SIDES, both)
    numbers = {"random": [], "least": []}
    for name, step in both[0].clock.blocks:
        numbers[name].append(step.first_number)
    assert numbers["random"] == numbers["least"]
    assert len(set(numbers["random"])) == PLAN.pairs


# -------------------------------------------------------------------------------- what is said


def test_a_difference_is_the_first_sentence():
    report = run(PLAN, SIDES, sides_of(0.2, 0.15))
    change = report.changes["p99"]
    assert change.low < -0.25 < change.high
    assert report.sentence.startswith(
        f"LEAST_OUTSTANDING_REQUESTS lowers p99 by {percent(-change.change)} (95 % interval "
    )
    assert " and raises throughput by 33 % (" in report.sentence
    assert report.sentence.endswith(" at 20 callers.")


def test_no_difference_says_what_it_would_have_seen():
    report = run(PLAN, SIDES, sides_of())
    assert report.valid
    assert report.sentence == (
        "No difference in p99 that this test can tell between LEAST_OUTSTANDING_REQUESTS and "
        f"RANDOM; it would have seen {percent(report.changes['p99'].would_see)} at 20 callers."
    )
    assert 0.001 < report.changes["p99"].would_see < 0.05


def test_errors_of_a_side_make_it_no_comparison():
    report = run(PLAN, SIDES, sides_of(errors=0.02))
    assert not report.valid
    assert report.sentence.startswith(
        "No answer: 1.96% of the requests to LEAST_OUTSTANDING_REQUESTS failed ("
    )
    assert run(replace(PLAN, allowed_errors=0.05), SIDES, sides_of(errors=0.02)).valid


def test_what_makes_it_less_sure_is_said():
    uneven = (side("random", RANDOM), side("least", LEAST, 1, minimum=1, maximum=9))
    assert run(PLAN, uneven, sides_of()).warnings == (
        "sentiment/least has one instance: there is nothing to route",
        "Scaling may change the instances of sentiment/least meanwhile (1 to 9)",
    )
    short = run(replace(PLAN, users=1, block_seconds=0.9), SIDES, sides_of())
    assert short.warnings[0].startswith("Fewer requests lie beyond p90 and p99 than the interval")
    assert short.warnings[1].startswith("One request in a hundred takes 0.")


def test_json_holds_everything_and_no_nan():
    report = run(PLAN, SIDES, sides_of(0.2, 0.15))
    content = json.loads(report.to_json())
    assert content["schema"] == "low-latency-endpoint/routing-comparison/1"
    assert content["answer"] == report.sentence
    assert (content["base"]["label"], content["other"]["label"]) == (RANDOM, LEAST)
    assert content["changes"]["p99"]["found"] is True
    assert content["changes"]["p99"]["base_ms"] == 1000 * report.changes["p99"].base
    again = [StepResult.of_dict(each["base"]) for each in content["pairs"]]
    assert LatencyHistogram.sum(each.latency for each in again) == report.pooled(0)
    assert json.loads(run(PLAN, SIDES, sides_of(interrupt_at=0)).to_json())["pairs"] == []


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "LLT108"),
        ({"users": 1, "rate": 1.0}, "LLT108"),
        ({"users": 0}, "LLT129"),
        ({"rate": -1.0}, "LLT128"),
        ({"users": 1, "pairs": 3}, "LLT120"),
        ({"users": 1, "pairs": 4.5}, "LLT120"),
        ({"users": 1, "confidence": 1.0}, "LLT121"),
        ({"users": 1, "confidence": 95}, "LLT121"),
        ({"users": 1, "block_seconds": 0.0}, "LLT131"),
        ({"users": 1, "settle_seconds": -1.0}, "LLT130"),
        ({"users": 1, "allowed_errors": 2}, "LLT116"),
    ],
)
def test_plans_that_cannot_be_are_refused(options, code):
    with refused(code):
        ComparisonPlan(**options)


# ------------------------------------------------------------------ the sides, at a local AWS


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    server = SimulatedModelServer(
        service_time=ServiceTime.gamma(mean=0.1, variation=0.3), concurrency=64, slope=0.4, seed=1
    )
    with LocalAws.start(model_servers={"*": server}, runtime=RuntimeOptions(seed=1)) as running:
        make_model(running)
        make_model(running, "copy")
        make_model(running, "other", "2")
        make_endpoint(
            running,
            "sentiment",
            {"VariantName": "least", "Routing": LEAST},
            {"VariantName": "random"},
        )
        yield running


def test_two_variants_of_one_endpoint_need_no_names(aws):
    found = read_both("sentiment")
    assert [one.fleet.variant for one in found] == ["random", "least"]  # the base is RANDOM
    # What a variant without RoutingConfig has is RANDOM.
    assert [one.routing for one in found] == [RANDOM, LEAST]
    assert [one.fleet.instances for one in found] == [5, 5]
    assert [one.warnings for one in found] == [(), ()]
    assert read_both("sentiment", variants=("least", "random")) == found


def test_two_endpoints_are_compared_by_their_first_variants(aws):
    make_endpoint(aws, "with-least", {"Routing": LEAST})
    make_endpoint(aws, "with-random", {})
    found = read_both("with-least", "with-random")
    assert [one.name for one in found] == ["with-random/primary", "with-least/primary"]


def test_prefix_length_and_threshold_are_part_of_the_routing(aws):
    def prefix_aware(length: int) -> dict[str, Any]:
        config = {"PrefixLength": length, "ConcurrencyThreshold": 16}
        return {"RoutingStrategy": PREFIX, "PrefixAwareRoutingConfig": config}

    make_endpoint(
        aws,
        "chat",
        {"VariantName": "long", "RoutingConfig": prefix_aware(2048)},
        {"VariantName": "short", "RoutingConfig": prefix_aware(1024)},
        {"VariantName": "same", "RoutingConfig": prefix_aware(1024)},
        {"VariantName": "random"},
        {"VariantName": "least", "Routing": LEAST},
    )
    found = read_both("chat", variants=("long", "short"))
    assert [one.routing for one in found] == ["PREFIX_AWARE 2048/16", "PREFIX_AWARE 1024/16"]
    assert found[1].text == "chat/short: 5 x ml.g5.xlarge, PREFIX_AWARE 1024/16"
    for simpler, strategy in (("random", RANDOM), ("least", LEAST)):
        found = read_both("chat", variants=("long", simpler))
        assert [one.routing for one in found] == [strategy, "PREFIX_AWARE 2048/16"]
    with refused("LLT119", says="PREFIX_AWARE 1024/16 for chat/short and chat/same"):
        read_both("chat", variants=("short", "same"))
    with refused("LLT118"):
        read_both("chat")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"InstanceType": "ml.g5.2xlarge"}, "primary on 5 x ml.g5.2xlarge with the model model"),
        ({"InitialInstanceCount": 3}, "primary on 3 x ml.g5.xlarge with the model model"),
        ({"ModelName": "other"}, "primary on 5 x ml.g5.xlarge with the model other"),
    ],
    ids=["instance-type", "instances", "model"],
)
def test_sides_that_differ_in_more_than_routing_are_refused(aws, other, says):
    name = f"unlike-{next(iter(other)).lower()}"
    make_endpoint(aws, name, {"Routing": LEAST, **other})
    with refused("LLT172", says=says):
        read_both(name, "sentiment", variants=("primary", "random"))


def test_models_of_other_names_that_hold_the_same_are_no_difference(aws):
    make_endpoint(aws, "with-copy", {"Routing": LEAST, "ModelName": "copy"})
    found = read_both("with-copy", "sentiment", variants=("primary", "random"))
    assert [one.routing for one in found] == [RANDOM, LEAST]


def test_sides_that_route_alike_are_refused_before_anything_is_sent(aws):
    make_endpoint(
        aws, "alike", {"VariantName": "a", "Routing": LEAST}, {"VariantName": "b", "Routing": LEAST}
    )
    with refused("LLT119"):
        compare_routing(["alike"], PAYLOADS, PLAN)


def test_each_side_gets_its_own_endpoint_and_variant(aws):
    targets = []

    def generator(target: Target) -> FakeSide:
        targets.append(target)
        return sides_of()[0]

    report = compare_routing(["sentiment"], PAYLOADS, PLAN, generator=generator)
    assert [each.target_variant for each in targets] == ["random", "least"]
    assert report.payload == PAYLOADS.source
    assert report.labels == (RANDOM, LEAST)


def test_the_openai_path_cannot_choose_a_variant(aws):
    target = Target("sentiment", "us-east-1", streaming=True, api=OPENAI)
    with refused("LLT164"):
        compare_routing(["sentiment"], PAYLOADS, PLAN, target=target)


@pytest.mark.parametrize(
    ("endpoints", "variants", "code"),
    [
        (["sentiment"], ["least"], "LLT118"),
        (["sentiment"], ["least", "least"], "LLT118"),
        (["sentiment", "a", "b"], [], "LLT118"),
        (["sentiment", "sentiment"], [], "LLT118"),
        (["nobody"], [], "LLA101"),
        (["sentiment"], ["least", "most"], "LLA101"),
    ],
)
def test_what_are_no_two_sides_is_refused(aws, endpoints, variants, code):
    with refused(code):
        read_both(*endpoints, variants=tuple(variants))


def deny(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    """Let the account refuse to tell."""
    read = Account.read

    def reading(self: Account, service: str, name: str, *more: Any, **request: Any) -> Any:
        if name == operation:
            raise Unreadable("denied")
        return read(self, service, name, *more, **request)

    monkeypatch.setattr(Account, "read", reading)


def test_routing_that_may_not_be_read_is_not_random(aws, monkeypatch):
    deny(monkeypatch, "describe_endpoint_config")
    with pytest.raises(Unreadable, match="denied"):
        read_both("sentiment")


def test_models_that_may_not_be_read_are_not_the_same(aws, monkeypatch):
    make_endpoint(aws, "with-another", {"Routing": LEAST, "ModelName": "copy"})
    deny(monkeypatch, "describe_model")
    with pytest.raises(Unreadable, match="denied"):
        read_both("with-another", "sentiment", variants=("primary", "random"))


# --------------------------------------------------------------------------------- the command


def low_latency(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["compare-routing", *arguments])


@pytest.mark.realtime
def test_the_command_in_real_time_sees_the_direction(aws, tmp_path):
    """Seconds only: direction. Size is tested with a clock that jumps (test_published_table.py).

    A machine busy with other things makes the generator late, which the command says itself, or
    the difference unsure; then there is one more attempt.
    """
    result = tmp_path / "result.json"
    for _ in range(2):
        done = low_latency(
            *("sentiment", "--users", "20", "--payload", '{"inputs": "a"}', "--pairs", "5"),
            *("--block", "1200ms", "--settle", "400ms", "-o", str(result)),
        )
        content = json.loads(result.read_text())
        found = content["changes"]
        if content["valid"] and found["throughput"]["low"] > 0 and found["mean"]["high"] < 0:
            break
    assert done.exit_code == 0, done.output
    assert found["throughput"]["low"] > 0
    assert found["mean"]["high"] < 0
    assert found["p99"]["change"] < 0  # of some hundred requests: rarely sure
    assert "Reading both sides" in done.stderr
    assert "Pair 5: RANDOM p99" in done.stderr
    assert " ".join(done.stdout.split()).startswith(content["answer"])
    assert "raises throughput by" in content["answer"]


def test_a_length_that_is_no_time_is_refused(aws):
    arguments = ("sentiment", "--users", "4", "--payload", "{}", "--block", "soon")
    assert low_latency(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["sentiment", "--payload", "{}"], "LLT108"),
        (["sentiment", "--users", "4"], "LLT109"),
        (["nobody", "--users", "4", "--payload", "{}"], "LLA101"),
        (["sentiment", "--users", "4", "--payload", "{}", "-o", "no/such/folder/a"], "LLT115"),
    ],
)
def test_errors_have_codes(aws, arguments, code):
    done = low_latency(*arguments)
    assert isinstance(done.exception, ConfigurationError)
    assert done.exception.code == code


@pytest.mark.parametrize("kind", ["connection refused", "client OSError", "403 AccessDenied"])
def test_a_side_that_is_not_reached_any_more_ends_the_comparison(kind):
    """However busy the machine was with failing."""
    sides = sides_of(errors=3.0, kind=kind, fails_from=10, bound_in=lambda block: block > 9)
    found = run(PLAN, SIDES, sides)
    assert len(found.pairs) == 5
    assert found.interrupted
    assert "LLT143" in found.sentence
    assert kind in found.to_dict()["failure"]
    assert "client-bound" not in found.sentence
    with refused("LLT143", says=kind):
        run(PLAN, SIDES, sides_of(errors=3.0, kind=kind, bound_in=lambda block: True))


def test_a_side_that_is_throttled_is_compared_to_the_end_and_is_no_comparison():
    found = run(PLAN, SIDES, sides_of(errors=3.0, kind="400 ThrottlingException"))
    assert (len(found.pairs), found.valid, found.failure) == (PLAN.pairs, False, "")
