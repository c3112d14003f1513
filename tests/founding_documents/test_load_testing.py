"""AWS's blog: "Best practices for load testing Amazon SageMaker real-time inference endpoints".

https://aws.amazon.com/blogs/machine-learning/best-practices-for-load-testing-amazon-sagemaker-real-time-inference-endpoints/

Its endpoint is DistilBERT on ml.m5.12xlarge: an instance of 48 vCPUs holds 200 requests a second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from aws_cdk.aws_cloudwatch import Metric
from hosting_site import Site, taking
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.instance_types import instance_facts
from low_latency_endpoint.hosting.scaling import ScalingStep
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.run_plans import (
    SearchPlan,
    confirm_plan,
    limit_plan,
    rate_plan,
)
from low_latency_endpoint.load_test.search.saturation import verdicts
from low_latency_endpoint.operate.diagnose import Diagnosis
from low_latency_endpoint.settings import load_settings
from tests.load_test.fake_account import FLEET, FakeAws, kinds, loaded, metrics_of, report_of
from tests.load_test.fake_generator import QUEUE_FULL, FakeGenerator
from tests.load_test.servers import serve_sentiment
from tests.load_test.test_saturation import ending, overloaded
from tests.operate.diagnose.scenarios import Scenario, constant
from tests.operate.sagemaker_jobs.account import JobAccount
from tests.operate.sagemaker_jobs.test_inference_recommender import request
from tests.synth.conftest import Parts, Synthesised, make_stack, make_template

from .conftest import planned, told
from .statements import ROOT

says = pytest.mark.says
Find = Callable[..., Diagnosis]
Template = Callable[..., Synthesised]

SHIPPED = ROOT / "endpoint.yaml"
GOAL = LatencyGoal({"p99": 0.2})
ALARM = "AWS::CloudWatch::Alarm"
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"


def alarm(template: Synthesised, metric: str) -> dict[str, Any]:
    """The fleet's alarm on a metric; that of a deployment watches the new fleet alone."""
    alarms = [
        watching
        for watching in template.of_type(ALARM).values()
        if watching.get("MetricName") == metric
    ]
    return min(alarms, key=lambda watching: len(watching["Dimensions"]))


# --- the endpoint -------------------------------------------------------------------------------


@says(1, "real-time, interactive, low-latency requirements")
def test_a_real_time_endpoint_and_no_other_kind(template: Template) -> None:
    configuration = template().only("AWS::SageMaker::EndpointConfig")
    assert "AsyncInferenceConfig" not in configuration
    assert "ServerlessConfig" not in template().variant
    rare = {"peak_tps": 0.005, "tps_per_instance": 200}
    assert "Serverless inference" in str(planned(throughput=rare).explanation.warnings)


@says(8, "a pre-trained Hugging Face DistilBERT model")
def test_the_shipped_endpoint_is_this_model(template: Template) -> None:
    """From S3: the VPC has no way out to the Hub."""
    assert template().container["Environment"]["HF_TASK"] == "text-classification"
    assert "distilbert-base-uncased" in template().container["ModelDataUrl"]
    assert "huggingface-pytorch-inference" in str(template().container["Image"])
    assert template().variant["InstanceType"] == "ml.m5.12xlarge"


@says(9, "initial_instance_count=1")
def test_a_single_instance(template: Template) -> None:
    one = {"instances": {"min": 1, "max": 1}, "throughput": None}
    assert template(one).variant["InitialInstanceCount"] == 1
    assert "outage" in str(planned(**one).explanation.warnings)


@says(10, "test our endpoint quickly with the sample payload")
def test_the_sample_payload(site: Site) -> None:
    """Of the warm-up, the load test's default and the example's; boto3's answer comes back."""
    payload = load_settings(SHIPPED).endpoints["sentiment"].warm_up.payload.data
    assert payload == {"inputs": "I am super happy right now."}
    assert json.dumps(payload) in (ROOT / "examples" / "locustfile.py").read_text("utf-8")
    site.aws.set_model_servers({"*": taking(0.005)})
    endpoint = site.endpoint({}, wait=False)
    site.settle(endpoint)
    body = json.dumps(payload).encode()
    assert site.invoke(endpoint, body, ContentType="application/json")["Body"] == body


@says(11, "ml.m5.12xlarge, which contains 48 vCPU and 192 GiB of memory")
@says(12, "The number of vCPUs is a good indication of the concurrency")
def test_what_the_instance_has(command: Callable[..., str]) -> None:
    facts = instance_facts("ml.m5.12xlarge")
    assert facts is not None
    assert (facts.vcpus, facts.memory_gib) == (48, 192)
    assert "workers per instance: 48" in command("plan", "-v", "--settings", str(SHIPPED))


# --- how many instances -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "instances"),
    [
        pytest.param(1.0, 5, marks=says(58, "increase our instance count to 5")),
        pytest.param(0.5, 10, marks=says(59, "even more in a production setting")),
        pytest.param(0.45, 12, marks=says(59, "even more in a production setting")),
    ],
)
@says(3, "the proper instance type and count")
def test_a_thousand_a_second_at_two_hundred_each(factor: float, instances: int) -> None:
    throughput = {"peak_tps": 1000, "tps_per_instance": 200, "safety_factor": factor}
    plan = planned(throughput=throughput)
    assert plan.fleet.at_peak == instances
    note = str(plan.explanation["instances_at_peak"])
    assert "at saturation, with nothing in reserve, 5 would do" in note or instances == 5


@says(4, "minimum provisioned instance requirements")
def test_the_fewest_instances_and_why() -> None:
    """A rise of 15 a minute for 12.5 minutes, into the 110 that the factor leaves: 1.7; and the zones."""
    plan = planned()
    assert plan.fleet.minimum == 2
    assert "12.5" in str(plan.explanation["min_instances"])


@says(2, "achieve a target transactions per second (TPS)")
@says(5, "benchmark the performance of our model on a single instance")
@says(53, "We first run the distributed test on a single instance")
@pytest.mark.parametrize("instances", [1, pytest.param(5, marks=says(60, "nearly 1000"))])
def test_the_limit_within_the_target(instances: int) -> None:
    """Four workers of 20 ms: 200 a second each; a queue of 20 refuses what is more."""
    generator = FakeGenerator(instances=instances, queue_limit=20)
    search = SearchPlan(GOAL, 20, instances=instances, poisson=False)
    limit = run(limit_plan(search), generator).limit
    assert limit is not None
    assert limit.tps_per_instance == pytest.approx(200, rel=0.06)
    assert limit.rate == pytest.approx(200 * instances, rel=0.06)


@says(6, "extrapolate the findings")
def test_from_one_instance_to_the_fleet() -> None:
    """The limit of one, and a peak: the plan's arithmetic without a settings file."""
    plan = limit_plan(SearchPlan(GOAL, 20, instances=1, poisson=False))
    throughput = report_of(plan, more={"peak_tps": 1000.0, "safety_factor": 0.5}).throughput
    assert throughput is not None
    assert throughput.instances_at_peak(1) in (10, 11)


@says(6, "extrapolate the findings")
def test_a_count_without_a_settings_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Callable[..., str]
) -> None:
    """Of any endpoint: the rate of one instance, and how many hold 1,000."""
    monkeypatch.chdir(tmp_path)
    of = "low_latency_endpoint.load_test.search.load_testing"
    account = FakeAws(instances=[1], scaled=False)
    monkeypatch.setattr(f"{of}.open_clients", lambda profile, region: (account, region))
    monkeypatch.setattr(f"{of}.GeneratorProcess.of_profile", lambda *given: FakeGenerator())
    line = "load-test sentiment --find-limit --target p99=200ms --duration 20s --constant"
    more = "--payload {} --metrics-wait 0s --region us-east-1 --peak-tps 1000"
    said = command(*line.split(), *more.split())
    count = re.search(r"([\d.]+) requests a second each: 1,000 a second are (\d+) instances", said)
    assert count, said
    assert float(count[1]) == pytest.approx(200, rel=0.06)
    assert count[2] in ("10", "11")  # at factor 0.5, at which AWS starts


@says(7, "simulate production-level traffic")
@says(60, "we have a TPS of nearly 1000 with five instances")
@pytest.mark.parametrize(("instances", "held"), [(4, False), (6, True)])
def test_the_production_load_is_confirmed(instances: int, held: bool) -> None:
    """1,000 a second at random: too much for four, and six hold it with the reserve that chance needs."""
    plan = confirm_plan(1000, GOAL, seconds=30, alone_seconds=0)
    assert run(plan, FakeGenerator(instances=instances, queue_limit=20)).held is held


@says(13, "recommended to test different instance types")
@says(40, "SageMaker Inference Recommender is a more efficient option")
@says(41, "pass an array of the instance types")
def test_instance_types_are_tested_by_the_recommender(find: Find) -> None:
    types = ("ml.c6i.xlarge", "ml.m5.xlarge")
    tested = request(JobAccount(), *types).content["InputConfig"]["EndpointConfigurations"]
    assert tested == [{"InstanceType": name} for name in types]
    (slow,) = find(Scenario(latency=lambda m, i: 400, cpu=constant(60))).findings
    assert "low-latency recommend" in told(slow)


# --- metrics ------------------------------------------------------------------------------------


@says(14, "CloudWatch is the primary logging tool that SageMaker uses")
@says(16, "CPUUtilization and MemoryUtilization (for GPU-based instances, GPUUtilization)")
@pytest.mark.parametrize(
    ("instance_type", "has_gpu"), [("ml.m5.12xlarge", False), ("ml.g5.xlarge", True)]
)
def test_alarms_and_charts_of_the_hardware(
    instance_type: str, has_gpu: bool, template: Template
) -> None:
    hosting = template({"instance_type": instance_type})
    watched = {watching.get("MetricName") for watching in hosting.of_type(ALARM).values()}
    assert {"CPUUtilization", "MemoryUtilization"} <= watched
    drawn = str(hosting.only("AWS::CloudWatch::Dashboard"))
    for metric in ("CPUUtilization", "MemoryUtilization", "ModelLatency", "Invocations"):
        assert metric in drawn
    assert ("GPUUtilization" in drawn) is has_gpu


@says(16, "for GPU-based instances, GPUUtilization")
def test_an_alarm_on_all_gpus(template: Template) -> None:
    """Four GPUs, 100 each."""
    hosting = template({"instance_type": "ml.g5.12xlarge", "alarms": {"gpu_utilization": 85}})
    assert alarm(hosting, "GPUUtilization")["Threshold"] == 340


@says(17, "the range of utilization is up to 400%")
@says(18, "MemoryUtilization, on the other hand, is in the range")
@says(20, "pick an instance with greater compute/memory")
@pytest.mark.parametrize(
    ("instance_type", "threshold"), [("ml.m5.xlarge", 340), ("ml.m5.12xlarge", 4080)]
)
def test_an_alarm_at_85_percent_of_all_cores(
    instance_type: str, threshold: float, template: Template
) -> None:
    hosting = template({"instance_type": instance_type})
    assert alarm(hosting, "CPUUtilization")["Threshold"] == threshold
    assert alarm(hosting, "MemoryUtilization")["Threshold"] == 90


@says(25, "This unit is captured in microseconds as an invocation metric")
@says(26, "a percentile across CloudWatch (p99, p90, and so on)")
@pytest.mark.parametrize("percentile", ["p99", "p90"])
def test_a_percentile_in_microseconds(percentile: str, template: Template) -> None:
    """80 % of 200 ms, on the percentile of the target."""
    watching = alarm(template({"latency": {percentile: "200ms"}}), "ModelLatency")
    assert (watching["ExtendedStatistic"], watching["Threshold"]) == (percentile, 160_000)


@says(34, "ModelLatency, OverheadLatency, and InvocationsPerInstance")
@says(44, "captures end-to-end latency as a metric")
def test_the_report_has_the_endpoints_metrics_beside_the_clients() -> None:
    report = report_of(rate_plan([50], seconds=130, goal=GOAL, alone_seconds=60), metrics=True)
    step = report.to_dict()["steps"][-1]
    assert {"ModelLatency.p99", "OverheadLatency.Average", "InvocationsPerInstance.Sum"} <= set(
        step["metrics"]["values"]
    )
    assert step["latency_ms"]["percentiles"]["p99"]["ms"] > 0


# --- scaling ------------------------------------------------------------------------------------


@says(37, "different scaling options, such as TargetTrackingScaling")
def test_target_tracking_and_steps(template: Template) -> None:
    steps = {"metric": "concurrency", "adds": [{"requests": 8, "add": 2}]}
    policies = template({"scaling": {"steps": steps}}).of_type(POLICY).values()
    assert {policy["PolicyType"] for policy in policies} == {"TargetTrackingScaling", "StepScaling"}
    api = botocore.session.get_session().get_service_model("application-autoscaling")
    assert "SimpleScaling" not in api.shape_for("PolicyType").enum


@says(38, "specify a CloudWatch metric or custom metric")
@says(39, "tracking the InvocationsPerInstance metric")
@pytest.mark.parametrize(
    ("scaling", "metric", "target"),
    [
        ({}, "SageMakerVariantInvocationsPerInstance", 5400),  # 200 a second x 0.45 x 60
        (
            {"metric": "concurrency", "concurrency_target": 4},
            "SageMakerVariantConcurrentRequestsPerModelHighResolution",
            4,
        ),
    ],
)
def test_what_scaling_tracks(
    scaling: dict[str, Any], metric: str, target: float, template: Template
) -> None:
    policy = template({"scaling": scaling}).only(POLICY)["TargetTrackingScalingPolicyConfiguration"]
    assert policy["PredefinedMetricSpecification"] == {"PredefinedMetricType": metric}
    assert policy["TargetValue"] == target


@says(38, "specify a CloudWatch metric or custom metric")
def test_steps_on_a_metric_of_ones_own() -> None:
    stack = make_stack()
    scaling = Parts().endpoint(stack).scale("primary", min_instances=1, max_instances=4)
    scaling.step_on_metric(
        "Queue",
        metric=Metric(namespace="Shop", metric_name="Waiting"),
        threshold=100,
        steps=[ScalingStep(lower=0, change=2)],
    )
    template = make_template(stack)
    assert template.only(POLICY)["PolicyType"] == "StepScaling"
    assert template.only(ALARM)["Namespace"] == "Shop"


# --- the load test ------------------------------------------------------------------------------


@says(21, "utilization of your hardware")
@says(54, "we start noticing 5xx errors")
@says(55, "CPUUtilization at nearly 4,800%")
@says(56, "saturating the entire instance, which also helps explain our 5xx errors")
def test_the_overload_in_the_load_test() -> None:
    """230 a second on an instance for 200: refused by the container, with the hardware full."""
    done = overloaded(queue_limit=20)
    metrics = metrics_of(CPUUtilization_Average=[25, 25, 25, 70, 75, 75, 99.9, 99.9])
    errors, cpu, *_ = verdicts(done, FLEET, metrics)
    assert errors.title == "Requests fail at 230 TPS: the instances are full (CPU 100 %)"
    assert QUEUE_FULL in errors.evidence[0]
    assert "AWS advises 60 to 70 %" in cpu.evidence[0]
    assert cpu.advice.startswith("A safety factor of at most 0.65 keeps it near 65 %.")


@says(61, "something at the container or model level")
@says(62, "proper environment variable for number of workers not set")
def test_errors_beside_idle_hardware_in_the_load_test() -> None:
    metrics = metrics_of(CPUUtilization_Average=[20] * 8)
    errors = verdicts(overloaded(queue_limit=20), FLEET, metrics)[0]
    assert errors.title == "Requests fail at 230 TPS, though the hardware is not full"
    assert "more workers" in errors.advice


@says(56, "which also helps explain our 5xx errors")
@says(57, "We also see an increase in ModelLatency")
def test_the_closed_loop_does_not_blame_the_network() -> None:
    """Nine of ten calls are refused in 6 ms, so ModelLatency's average is low; the others wait 608 ms."""
    done = ending(
        overloaded(queue_limit=20),
        latency=LatencyHistogram.of([0.608] * 1_192),
        refused=LatencyHistogram.of([0.006] * 139_958),
        errors={QUEUE_FULL: 139_958},
        sent=141_150,
    )
    metrics = metrics_of(ModelLatency_Average=[20] * 5 + [7] * 3, CPUUtilization_Average=[99.9] * 8)
    said = verdicts(done, FLEET, metrics)
    assert "errors" in kinds(said)
    assert "before-the-model" not in kinds(said)
    assert not any("network" in f"{verdict.title} {verdict.advice}" for verdict in said)


@says(46, "run out of compute power on the client side")
@says(47, "a location of sufficient compute power")
def test_a_client_without_compute_is_no_endpoint_error() -> None:
    plan = rate_plan([50, 150], seconds=20, goal=GOAL)
    said = verdicts(run(plan, FakeGenerator(client_bound_above=100)), FLEET, metrics_of())
    assert (said[0].kind, said[0].severity) == ("client-bound", "invalid")
    assert "errors" not in kinds(said)
    advice = said[0].advice
    assert "processes" in advice
    assert "fleet" in advice
    idle = verdicts(overloaded(queue_limit=20), FLEET, metrics_of())
    assert "client-bound" not in kinds(idle)


@says(43, "multiple processes and client machines")
@says(48, "scoping the source down to the specific IP address")
def test_the_fleet_listens_to_nobody_else() -> None:
    """Locust's workers reach their master on 5557, from the fleet's own group alone."""
    stack = make_stack()
    Parts().fleet(stack)
    template = make_template(stack)
    rules = template.of_type("AWS::EC2::SecurityGroupIngress").values()
    ports = {rule["FromPort"] for rule in rules}
    assert ports == {5557, 443}
    assert not any("CidrIp" in rule for rule in rules)


@pytest.mark.realtime
@says(42, "we use Locust")
@says(43, "multiple processes")
@says(44, "end-to-end latency")
@says(45, "whatever environment is compatible for you")
@says(49, "retries = { 'max_attempts': 0")
@says(50, "time.perf_counter()")
@says(51, "240 users will be distributed across the 60 workers")
@says(52, "removes the UI feature of Locust")
def test_the_posts_command(tmp_path: Path) -> None:
    """A tenth of its users, without a page, for some seconds; each request is sent once."""
    result, table = tmp_path / "result.json", tmp_path / "results.csv"
    server = taking(0.05, concurrency=12, failure_share=0.5, failure_status=503)
    line = "load-test sentiment --users 24 --processes 2 --duration 4s --alone 0s --metrics-wait 0s"
    with LocalAws.start(model_servers={"*": server}) as aws:
        serve_sentiment(aws, instances=1, of="ml.m5.12xlarge")
        options = ["--payload", '{"inputs": "I am super happy right now."}']
        files = ["-o", str(result), "--csv", str(table)]
        done = CliRunner().invoke(app, [*line.split(), *options, *files], env=aws.environment())
        assert result.exists(), done.output
        aws.flush_metrics()
        came = Site(aws).statistics("sentiment", "Invocations", "Sum")["Sum"]
    step = json.loads(result.read_text("utf-8"))["steps"][-1]
    counted = 1 - step["step"]["settle_seconds"] / step["step"]["seconds"]
    assert sum(step["errors"].values()) == pytest.approx(0.5 * step["sent"], rel=0.3)
    assert step["sent"] == pytest.approx(counted * came, rel=0.1)  # with one retry half as many
    assert step["latency_ms"]["percentiles"]["p50"]["ms"] >= 50
    assert table.read_text("utf-8").count("\n") == 2


# --- clean up -----------------------------------------------------------------------------------


@says(65, "make sure to clean up any resources")
def test_how_to_delete_it() -> None:
    use = (ROOT / "README.md").read_text("utf-8").partition("## Use it")[2].partition("## After")[0]
    assert "make destroy" in use
    assert "\ndestroy:" in (ROOT / "Makefile").read_text("utf-8")


@says(66, "stop your EC2 instance or whatever client setup")
def test_nothing_sends_after_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """However a test ends, its generator is stopped, a fleet's tasks with it."""
    generator = FakeGenerator()
    loaded(monkeypatch, FakeAws(), rate_plan([10.0], seconds=5), generator, metrics_wait=None)
    assert generator.closed
    broken = FakeGenerator(broken="500 InternalFailure")
    with pytest.raises(ConfigurationError):
        loaded(monkeypatch, FakeAws(), rate_plan([10.0], seconds=5), broken, metrics_wait=None)
    assert broken.closed
