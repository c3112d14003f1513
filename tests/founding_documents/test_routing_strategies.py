"""AWS's blog: "Minimize real-time inference latency by using Amazon SageMaker routing strategies".

https://aws.amazon.com/blogs/machine-learning/minimize-real-time-inference-latency-by-using-amazon-sagemaker-routing-strategies/
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hosting_site import Site, taking

from examples.published_routing_gains import CASES, LEAST, SIZES, USERS_EACH, gains
from low_latency_endpoint import ComponentHost, RoutingStrategy
from low_latency_endpoint.load_test.compare.compare_routing import run as compared
from low_latency_endpoint.operate.diagnose import Diagnosis
from low_latency_endpoint.simulate import (
    ClosedLoop,
    Comparison,
    Constant,
    Lognormal,
    OpenLoop,
    Scenario,
    compare,
)
from tests.depth import sampled
from tests.load_test.test_compare_routing import PLAN, SIDES, sides_of
from tests.operate.diagnose.scenarios import Scenario as Account
from tests.settings_files import mistakes
from tests.synth.conftest import Parts, Synthesised, make_stack, make_template
from tools.fuzzing.agreement import text_of

from .conftest import page, stated, told
from .statements import ROOT

says = pytest.mark.says
Template = Callable[..., Synthesised]

CONFIGURATION, ENDPOINT = "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Endpoint"


def both(**scenario: Any) -> Comparison:
    """The same load with both strategies."""
    random = Scenario(**{"instances": 8, "concurrency": 1, **scenario})
    scenarios = {"RANDOM": random, LEAST: random.with_(routing=LEAST)}
    return compare(scenarios, requests=20_000, replications=3)


@says(1, "deployed across multiple Availability Zones for high availability")
def test_instances_in_several_zones(template: Template) -> None:
    zones = [
        subnet["AvailabilityZoneId"] for subnet in template().of_type("AWS::EC2::Subnet").values()
    ]
    assert len({*zones}) == 2
    target = template().only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert target["MinCapacity"] >= 2


@says(2, "auto scaling can dynamically adjust the number of ML instances")
def test_the_number_of_instances_follows_the_load(template: Template) -> None:
    policy = template().only("AWS::ApplicationAutoScaling::ScalingPolicy")
    assert policy["PolicyType"] == "TargetTrackingScaling"


@says(3, "using a round-robin algorithm")
@says(6, "By default, SageMaker endpoints have a random routing strategy")
def test_awss_default_is_random(find: Callable[..., Diagnosis]) -> None:
    """An endpoint without RoutingConfig: some instance has a queue while others are idle."""
    (finding,) = find(Account(routing=None, spread=1.0)).findings
    assert finding.id == "LLD502"
    assert "RANDOM" in told(finding)
    assert "round robin" not in told(finding)
    assert "routing: least_outstanding_requests" in told(finding)


@says(4, "work very well when there is not a lot of variability")
@pytest.mark.parametrize(
    ("concurrency", "use", "low", "high"),
    [(8, 0.005, -0.01, 0.01), (64, 0.7, -0.01, 0.01), (1, 0.2, -0.7, -0.4), (1, 0.7, -0.9, -0.5)],
)
def test_requests_that_are_alike(concurrency: int, use: float, low: float, high: float) -> None:
    """Changed: RANDOM does as well only where nearly no request waits, however alike they are."""
    rate = use * 8 * concurrency / 0.04
    alike = both(service=Constant(0.04), traffic=OpenLoop(rate), concurrency=concurrency)
    assert low <= alike.percentile_change(LEAST, 99.0).mean <= high


VARIATIONS = (0.0, 0.5, 1.0)


def cut(instances: int, workers: int, use: float, variation: float) -> float:
    """The simulator's cut in p99, in percent."""
    service = Lognormal(0.1, variation) if variation else Constant(0.1)
    random = Scenario(
        service=service,
        traffic=OpenLoop(use * instances * workers / 0.1),
        instances=instances,
        concurrency=workers,
    )
    scenarios = {"RANDOM": random, LEAST: random.with_(routing=LEAST)}
    change = compare(scenarios, requests=60_000, replications=4).percentile_change(LEAST, 99.0)
    return -100 * change.mean


def rows_of_the_page() -> list[tuple[int, float, list[int]]]:
    """Workers, use and the three cuts of each cell of the table on the page about routing."""
    text = (ROOT / "docs" / "explanation" / "zones-and-routing.md").read_text("utf-8")
    uses = [int(use) / 100 for use in re.findall(r"(\d+) % busy \|", text)]
    cells = []
    for workers, line in re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE):
        for use, cell in zip(uses, line.split(" | "), strict=True):
            cells.append((int(workers), use, [int(number) for number in re.findall(r"\d+", cell)]))
    return cells


@says(4, "when there is not a lot of variability")
@says(5, "load balance by considering the capacity and utilization of the instance")
@pytest.mark.parametrize(("workers", "use", "cuts"), sampled(rows_of_the_page(), 2))
def test_the_table_of_gains_is_what_the_simulator_says(
    workers: int, use: float, cuts: list[int]
) -> None:
    """Variation never makes the cut in p99 larger."""
    simulated = [cut(5, workers, use, variation) for variation in VARIATIONS]
    assert simulated == pytest.approx(cuts, abs=5)
    assert simulated[0] >= max(simulated[1:]) - 1


def test_the_table_of_gains_is_whole() -> None:
    cells = {(workers, use) for workers, use, _ in rows_of_the_page()}
    assert cells == {(workers, use) for workers in (1, 4, 16, 64) for use in (0.2, 0.5, 0.7)}


@pytest.mark.parametrize("instances", [2, 20])
def test_more_instances_gain_more(instances: int) -> None:
    text = page("explanation/zones-and-routing.md")
    (told,) = re.findall(rf"(\d+) % on {instances}\b", text)
    assert cut(instances, 1, 0.7, 0.0) == pytest.approx(int(told), abs=5)


@says(5, "load balance by considering the capacity and utilization of the instance")
def test_requests_that_vary() -> None:
    """Seven tenths of what eight instances of one worker can do, with a CV of 1."""
    vary = both(service=Lognormal(0.04, 1.0), traffic=OpenLoop(0.7 * 8 / 0.04))
    assert vary.percentile_change(LEAST, 99.0).mean < -0.3


@says(6, "By default, SageMaker endpoints have a random routing strategy")
def test_the_default_here_is_another_and_says_why(template: Template, command: Any) -> None:
    assert template().variant["RoutingConfig"] == {"RoutingStrategy": LEAST}
    why = command("plan", "-v", "--settings", str(ROOT / "endpoint.yaml"))
    assert "the lower p99 in AWS's measurements" in why
    assert "no higher one in any simulation" in why


@says(7, "the instance that has the least number of outstanding requests")
@pytest.mark.parametrize(
    ("routing", "least", "most"),
    [({"RoutingStrategy": LEAST}, 0.0, 0.2), ({"RoutingStrategy": "RANDOM"}, 0.25, 0.75)],
    ids=["least", "random"],
)
def test_a_busy_instance_gets_no_request(
    routing: dict[str, str], least: float, most: float, site: Site
) -> None:
    """Of two instances one takes a hundred times as long: it is nearly always busy."""
    site.aws.set_model_servers({"*": taking(0.004, concurrency=8, slow_instances={0: 50.0})})
    endpoint = site.endpoint(
        {"InitialInstanceCount": 2, "RoutingConfig": routing},
        wait=False,
        MetricsConfig={"EnableEnhancedMetrics": True},
    )
    site.settle(endpoint)
    ended = time.monotonic() + 1.5

    def calls(_: int) -> None:
        while time.monotonic() < ended:
            site.invoke(endpoint)

    with ThreadPoolExecutor(3) as callers:
        list(callers.map(calls, range(3)))
    few, many = site.by_instance(endpoint)
    assert least <= few / (few + many) <= most


@says(7, "least number of outstanding requests")
def test_nobody_waits_while_an_instance_is_idle() -> None:
    """As many callers as workers: none waits with the one strategy, many do with the other."""
    results = both(service=Constant(1.0), traffic=ClosedLoop(8)).results
    assert results[LEAST].percentile(99.0).mean == pytest.approx(1, rel=0.01)
    assert results["RANDOM"].percentile(99.0).mean > 2


@says(8, "the models or inference components")
def test_inference_components_are_routed_alike() -> None:
    """The variant that hosts them says how."""
    stack, parts = make_stack(), Parts()
    host = ComponentHost(stack, "Host", network=parts.network(stack), max_instances=4)
    variant = parts.variant(
        stack,
        model=host,
        instance_type="ml.g5.xlarge",
        initial_instance_count=2,
        routing=RoutingStrategy.LEAST_OUTSTANDING_REQUESTS,
    )
    parts.endpoint(stack, variants=[variant])
    assert make_template(stack).variant["RoutingConfig"] == {"RoutingStrategy": LEAST}


@says(9, "foundational models or generative AI models")
def test_a_language_model(template: Template, command: Any, tmp_path: Any) -> None:
    file = tmp_path / "endpoint.yaml"
    slow = {"latency": {"p99": "8s"}, "instance_type": "ml.g5.xlarge"}
    file.write_text(text_of(stated(slow | {"warm_up": None})), "utf-8")
    assert f"Routing {LEAST}" in command("plan", "--settings", str(file))
    assert "more from RANDOM" not in assumed(command("plan", "--settings", str(file)))


def assumed(plan: str) -> str:
    """The plan's line of what nobody stated."""
    return plan.partition(" Assumed ")[2].partition(" Warning ")[0]


@says(
    10, "lower latency (up to hundreds of milliseconds), you may benefit more from random routing"
)
def test_the_caveat_stands_where_a_reader_lands(command: Any) -> None:
    """In the plan of the shipped endpoint, for 200 ms, and on both pages about routing."""
    plan = command("plan", "--settings", str(ROOT / "endpoint.yaml"))
    assert "up to hundreds of milliseconds may benefit more from RANDOM" in assumed(plan)
    for path in ("explanation/zones-and-routing.md", "how-to/from-random-routing.md"):
        text = page(path)
        assert "one language model" in text
        assert "up to hundreds of milliseconds" in text
        assert "compare-routing" in text


@says(11, "test and identify the best routing algorithm for your workloads")
@pytest.mark.parametrize(
    ("mean", "sentence"),
    [(0.15, f"{LEAST} lowers p99 by"), (0.2, "No difference in p99 that this test can tell")],
)
def test_both_are_measured_on_your_model(mean: float, sentence: str) -> None:
    """Blocks of both in turn: a quarter less than RANDOM's 0.2 s is told, nothing less is not."""
    assert compared(PLAN, SIDES, sides_of(0.2, mean)).sentence.startswith(sentence)


@says(12, "set the RoutingStrategy parameter while creating the EndpointConfiguration")
@says(13, "RoutingConfig")
@pytest.mark.parametrize(
    ("routing", "strategy"), [("least_outstanding_requests", LEAST), ("random", "RANDOM")]
)
def test_either_strategy_in_each_variant(routing: str, strategy: str, template: Template) -> None:
    shadow = {"variants": {"other": {"routing": routing, "weight": 1}}}
    configuration = template({"routing": routing, **shadow}).only(CONFIGURATION)
    routed = [variant["RoutingConfig"] for variant in configuration["ProductionVariants"]]
    assert routed == 2 * [{"RoutingStrategy": strategy}]


@says(12, "RoutingStrategy")
def test_no_third_value() -> None:
    (line, error), *_ = mistakes(text_of(stated({"routing": "round_robin"})))
    assert line
    assert "least_outstanding_requests" in str(error)
    assert "random" in str(error)


@says(14, "Create the endpoint using the endpoint configuration (no change)")
def test_only_the_configuration_says_how_to_route(template: Template) -> None:
    least, random = template(), template({"routing": "random"})
    assert "Routing" not in str(
        {k: v for k, v in least.only(ENDPOINT).items() if "Config" not in k}
    )
    assert least.only(ENDPOINT)["EndpointName"] == random.only(ENDPOINT)["EndpointName"]


@says(15, "codegen2-7B model hosted on ml.g5.24xl")
@says(17, "improvement in latency")
@says(18, "improvement in the throughput per minute per instance")
@pytest.mark.parametrize(
    "path", ["docs/explanation/simulation.md", "examples/published_routing_gains.py"]
)
def test_the_measurement_is_quoted_with_its_model(path: str) -> None:
    text = " ".join((ROOT / path).read_text("utf-8").split())
    assert "CodeGen2-7B on ml.g5.24xlarge" in text
    assert re.search(r"15(-| to )16 ?%", text)
    assert re.search(r"4(-| to )33 ?%", text)


@says(16, "1 4 1 2 20 5 3 40 10 4 60 15 5 80 20")
def test_the_five_tests_of_the_table() -> None:
    assert [(USERS_EACH * size, size) for size in SIZES] == [
        (4, 1),
        (20, 5),
        (40, 10),
        (60, 15),
        (80, 20),
    ]


@says(17, "improvement in latency")
@says(18, "throughput per minute per instance")
def test_instances_that_gain_as_much() -> None:
    """Of the instances looked at, those that batch gain what AWS measured, at both ends."""
    (case,) = (known for known in CASES if known.slope == 0.35)
    sizes = gains(case, (5, 20), requests=20_000, replications=3)
    for gain in sizes:
        assert 0.12 < gain.throughput.mean < 0.18
        assert -0.33 < gain.p99.mean < -0.04
