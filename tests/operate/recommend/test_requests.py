"""What is sent: whatever the options, botocore's own validation takes it or we refuse it first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.instance_types import instance_types
from low_latency_endpoint.operate.recommend.inference_requests import (
    JOB_SECONDS,
    LatencyThreshold,
    SamplePayload,
    check_types_to_try,
    describe_container,
    inference_job,
    load_test,
    parse_shape,
    parse_threshold,
    threshold_of,
)
from low_latency_endpoint.operate.recommend.jobs import parse_limit
from low_latency_endpoint.options.recommendation import TrafficPhase, TrafficStairs
from low_latency_endpoint.settings import EndpointSettings, parse_settings
from tests.refusals import refused

from .account import NETWORK, ROLE, faults

P95_200 = LatencyThreshold("P95", 200)
PACKAGE = "arn:aws:sagemaker:us-east-1:123456789012:model-package/bert/1"
BERT = {
    "Domain": "NATURAL_LANGUAGE_PROCESSING",
    "Task": "CLASSIFICATION",
    "Framework": "PYTORCH",
    "FrameworkVersion": "2.6.0",
}


def job(**changes: Any) -> dict[str, Any]:
    return inference_job(
        **{
            "name": "sentiment-1",
            "role_arn": ROLE,
            "model": {"ModelName": "Model-1"},
            "container": BERT,
            "payload": SamplePayload("s3://b/payload.tar.gz", "application/json"),
            **changes,
        }
    ).content


def phase(text: str) -> TrafficPhase:
    return parse_shape(TrafficPhase, text, "--phase")


def stairs(text: str) -> TrafficStairs:
    return parse_shape(TrafficStairs, text, "--stairs")


def test_a_default_job() -> None:
    model = {"ModelName": "Model-1", "VpcConfig": NETWORK}
    request = job(instance_types=("ml.c6i.xlarge", "ml.g5.xlarge"), model=model)
    assert faults("CreateInferenceRecommendationsJob", request) == ""
    assert request == {
        "JobName": "sentiment-1",
        "JobType": "Default",
        "RoleArn": ROLE,
        "Tags": [{"Key": "created-by", "Value": "low-latency-endpoint"}],
        "InputConfig": {
            **model,
            "ContainerConfig": {
                **BERT,
                "PayloadConfig": {
                    "SamplePayloadUrl": "s3://b/payload.tar.gz",
                    "SupportedContentTypes": ["application/json"],
                },
                "SupportedEndpointType": "RealTime",
                "SupportedInstanceTypes": ["ml.c6i.xlarge", "ml.g5.xlarge"],
            },
        },
    }


def test_an_advanced_job() -> None:
    """The example of AWS's page "Run a custom load test", in our words."""
    types = ("ml.c5.xlarge", "ml.m5.xlarge", "ml.r5.xlarge")
    request = job(
        model={"ModelPackageVersionArn": PACKAGE},
        instance_types=types,
        test=load_test(
            types,
            LatencyThreshold("P95", 100),
            [phase("users=1,spawn-rate=1,duration=2m")] * 2,
            max_invocations=1000,
            max_parallel=2,
            environment={"OMP_NUM_THREADS": ["1", "2", "4"]},
        ),
    )
    assert faults("CreateInferenceRecommendationsJob", request) == ""
    assert request["JobType"] == "Advanced"
    vary = {
        "EnvironmentParameterRanges": {
            "CategoricalParameterRanges": [{"Name": "OMP_NUM_THREADS", "Value": ["1", "2", "4"]}]
        }
    }
    configuration = request["InputConfig"]
    assert configuration["ModelPackageVersionArn"] == PACKAGE
    assert "ModelName" not in configuration
    assert "SupportedInstanceTypes" not in configuration["ContainerConfig"]
    assert configuration["EndpointConfigurations"] == [
        {"InstanceType": name, **vary} for name in ("ml.c5.xlarge", "ml.m5.xlarge", "ml.r5.xlarge")
    ]
    assert configuration["TrafficPattern"] == {
        "TrafficType": "PHASES",
        "Phases": [{"InitialNumberOfUsers": 1, "SpawnRate": 1, "DurationInSeconds": 120}] * 2,
    }
    assert configuration["JobDurationInSeconds"] == 7200
    assert configuration["ResourceLimit"] == {"MaxNumberOfTests": 9, "MaxParallelOfTests": 2}
    assert request["StoppingConditions"] == {
        "MaxInvocations": 1000,
        "FlatInvocations": "Stop",
        "ModelLatencyThresholds": [{"Percentile": "P95", "ValueInMilliseconds": 100}],
    }


def test_the_validation_of_these_tests_finds_faults() -> None:
    types = ("ml.c5.xlarge",)
    request = job(instance_types=types, test=load_test(types, P95_200))
    request["InputConfig"]["EndpointConfigurations"][0]["InstanceType"] = "ml.none.large"
    request["JobName"] = "a_b"
    found = faults("CreateInferenceRecommendationsJob", request)
    assert "ml.none.large" in found
    assert "a_b" in found
    with pytest.raises(KeyError):
        faults("CreateInferenceRecommendationsJob", {**request, "Unknown": 1})


TYPES = tuple(list(instance_types())[20:32])
#: Option -> values that work together with all others', and any values.
OPTIONS: dict[str, tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "name": (st.sampled_from(["a", "sentiment-1", "x" * 63]), st.text("ab-1_", max_size=70)),
    "role": (st.just(ROLE), st.sampled_from(["", "arn:aws:iam::1:role/x", ROLE + "\n"])),
    "seconds": (st.integers(7200, 18_000), st.integers(-3, 20_000)),
    "invocations": (st.integers(1, 30_000), st.integers(-3, 40_000)),
    "parallel": (st.integers(1, 10), st.integers(-3, 12)),
    "count": (st.integers(1, 10), st.integers(0, 12)),
    "environment": (
        st.just({}),
        st.dictionaries(
            st.sampled_from("ABCDEF"),
            st.lists(st.sampled_from("12345"), max_size=4, unique=True),
            max_size=6,
        ),
    ),
    "traffic": (
        st.lists(
            st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(120, 3600)),
            min_size=1,
            max_size=2,
        )
        | st.tuples(st.integers(1, 90), st.integers(1, 3), st.integers(120, 3600)),
        st.lists(st.tuples(*[st.integers(-1, 4)] * 2, st.integers(0, 4000)), max_size=6)
        | st.tuples(*[st.integers(-1, 4)] * 2, st.integers(0, 4000)),
    ),
}


@given(st.data(), st.sets(st.sampled_from(sorted(OPTIONS)), max_size=2))
def test_any_options(data: st.DataObject, wild: set[str]) -> None:
    """A request that the service's model takes, or a coded error of ours; never anything else."""
    drawn = {
        name: data.draw(strategies[name in wild], label=name)
        for name, strategies in OPTIONS.items()
    }
    try:
        traffic, types = drawn["traffic"], TYPES[: drawn["count"]]
        test = load_test(
            types,
            P95_200,
            stairs("steps={},users-per-step={},duration={}s".format(*traffic))
            if isinstance(traffic, tuple)
            else [phase("users={},spawn-rate={},duration={}s".format(*each)) for each in traffic],
            max_invocations=drawn["invocations"],
            max_duration=parse_limit(f"{drawn['seconds']}s", JOB_SECONDS),
            max_parallel=drawn["parallel"],
            environment=drawn["environment"],
        )
        request = job(name=drawn["name"], role_arn=drawn["role"], instance_types=types, test=test)
    except ConfigurationError as error:
        code = error.code
    else:
        assert faults("CreateInferenceRecommendationsJob", request) == ""
        assert 1 <= request["InputConfig"]["ResourceLimit"]["MaxNumberOfTests"] <= 10
        return
    assert wild
    assert "LLR101" <= code <= "LLR106"


ONE = ("ml.m5.large",)
HOUR = "users=1,spawn-rate=1,duration=1h"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: job(name="with_underscore"), "LLR101"),
        (lambda: job(role_arn=""), "LLR102"),
        (lambda: job(instance_types=tuple(list(instance_types())[4:15])), "LLR104"),
        (lambda: phase("users=4,spawn-rate=1,duration=2m"), "LLR105"),
        (lambda: phase("users=1,spawn-rate=4,duration=2m"), "LLR105"),
        (lambda: phase("users=1,spawn-rate=1,duration=119s"), "LLR105"),
        (lambda: stairs("steps=5,users-per-step=4,duration=10m"), "LLR105"),
        (lambda: stairs("steps=5,users-per-step=3,duration=3601s"), "LLR105"),
        (
            lambda: load_test(
                ONE, P95_200, [phase(HOUR)] * 2, max_duration=parse_limit("7199s", JOB_SECONDS)
            ),
            "LLR105",
        ),
        (lambda: load_test(ONE, P95_200, []), "LLR105"),
        (lambda: load_test((), P95_200), "LLR104"),
        (lambda: load_test(ONE * 4, P95_200, environment={"A": ["1", "2", "3"]}), "LLR106"),
        (lambda: load_test(ONE, P95_200, max_duration=timedelta(hours=6)), "LLR106"),
        (lambda: load_test(ONE, P95_200, max_invocations=30_001), "LLR106"),
        (lambda: load_test(ONE, P95_200, max_parallel=0), "LLR106"),
        (lambda: load_test(ONE, P95_200, environment={"A": ["1", "2", "3", "4"]}), "LLR104"),
        (lambda: phase("users=1,duration=2m"), "LLR105"),
        (lambda: phase("users=x,spawn-rate=1,duration=2m"), "LLR105"),
        (lambda: phase("users=1,spawn-rate=1,duration=2"), "LLR105"),
        (lambda: stairs("steps=1,users-per-step=1,duration=120.5s"), "LLR105"),
        (lambda: parse_limit("7200", JOB_SECONDS), "LLR106"),
        (lambda: parse_limit("1.5s", JOB_SECONDS), "LLR106"),
        (lambda: parse_limit("18001s", JOB_SECONDS), "LLR106"),
        (lambda: parse_threshold("p50=10ms"), "LLR106"),
        (lambda: parse_threshold("p95=10"), "LLR106"),
        (lambda: parse_threshold("p95=0.4ms"), "LLR106"),
    ],
)
def test_jobs_and_options_that_are_refused(make: Any, code: str) -> None:
    with refused(code):
        make()


def test_an_empty_phase_is_refused() -> None:
    with refused("LLR105", got=""):
        phase("")


@pytest.mark.parametrize(
    ("types", "code"),
    [
        (["ml.m5.large", "ml.m5.large"], "LLR104"),
        (["ml.t2.medium"], "LLR104"),
        (["m5.large"], "LLE405"),
        (["ml.m6g.large"], "LLE334"),  # the shipped image is for x86_64
    ],
)
def test_types_that_could_not_run_the_image_cost_nothing(
    endpoint: EndpointSettings, types: list[str], code: str
) -> None:
    with refused(code, where="--instance-type"):
        check_types_to_try(types, endpoint)


def test_doubts_about_types(endpoint: EndpointSettings) -> None:
    assert check_types_to_try(["ml.c6i.large"], endpoint) == []
    idle, unknown = check_types_to_try(["ml.g5.xlarge", "ml.new9.large"], endpoint)
    assert "would stand idle" in idle
    assert unknown == "ml.new9.large is not in this library's list of instance types"


@pytest.mark.parametrize(
    ("targets", "milliseconds", "noted"),
    [
        ({"p95": 120.0, "p99": 200.0}, 120, ""),
        ({"p50": 40.0, "p99": 200.0}, 200, "your p99 is already beyond its target"),
        ({"p99.9": 400.9}, 400, "your p99.9 is already"),
        ({"p50": 40.0, "p90": 100.0}, 100, "stricter"),
        ({"Average": 60.0}, 60, "average is stricter"),
        ({"p95": 0.5}, 1, "whole milliseconds"),
    ],
)
def test_threshold_of_the_target(targets: dict[str, float], milliseconds: int, noted: str) -> None:
    found = threshold_of(targets)
    assert (found.percentile, found.milliseconds) == ("P95", milliseconds)
    assert noted in found.note
    assert bool(found.note) == bool(noted)


@pytest.mark.parametrize(
    ("image", "environment", "expected", "assumed"),
    [
        (
            "dlc: {repository: huggingface-pytorch-inference, tag: 2.6.0-transformers4.51.3-cpu-py312}",
            "{HF_TASK: fill-mask}",
            ("NATURAL_LANGUAGE_PROCESSING", "FILL_MASK", "PYTORCH", "2.6.0"),
            (),
        ),
        (
            "dlc: {repository: tensorflow-inference, tag: 2.19.0-cpu}",
            "{}",
            ("MACHINE_LEARNING", "OTHER", "TENSORFLOW", "2.19.0"),
            ("Domain", "Task"),
        ),
        (
            "uri: 1.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1",
            "{}",
            ("MACHINE_LEARNING", "OTHER", "XGBOOST", "1.7"),
            ("Domain", "Task"),
        ),
        (
            "ecr: {repository: team/mine, tag: 1.4.2}",
            "{HF_TASK: image-classification}",
            ("COMPUTER_VISION", "IMAGE_CLASSIFICATION", "PYTORCH", None),
            ("Framework",),
        ),
    ],
)
def test_container_as_the_settings_describe_it(
    image: str, environment: str, expected: Any, assumed: tuple[str, ...]
) -> None:
    endpoint = parse_settings(f"""
client_zones: {{ids: [use1-az1, use1-az2]}}
endpoints:
  a:
    containers: [{{image: {{{image}}}, environment: {environment}}}]
    instance_type: ml.m5.large
    latency: {{p99: 200ms}}
""").endpoints["a"]
    found, general = describe_container(endpoint, {})
    assert tuple(map(found.get, BERT)) == expected
    assert tuple(general) == assumed
    given = dict(zip(BERT, ("COMPUTER_VISION", "OTHER", "TENSORFLOW", "2.1"), strict=True))
    assert describe_container(endpoint, {**given}) == (given, [])
