"""``low-latency recommend``: what it asks AWS, says, writes, and its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.errors.installation import install_command
from low_latency_endpoint.settings import load_settings
from tests.fake_aws import Refused

from .account import CREATE, DESCRIBE, NETWORK, PUT, ROLE, Recommender, result
from .conftest import SHIPPED, Recommend

FAST = result("ml.c6i.4xlarge", latency=88, invocations=9000, cost=0.816)
SLOW = result("ml.c6i.large", latency=450, invocations=800, cost=0.102)
START = ("--role-arn", ROLE, "--payload", "s3://b/p.tar.gz", "--job-name", "sentiment-1")


def stated(folder: Path, **recommendation: Any) -> Path:
    """The shipped settings with what is to be tried."""
    content = yaml.safe_load(SHIPPED.read_text("utf-8"))
    content["endpoints"]["sentiment"]["recommendation"] = recommendation
    file = folder / "endpoint.yaml"
    file.write_text(yaml.safe_dump(content), "utf-8")
    return file


PHASES = [{"users": 2, "spawn_rate": 1, "duration": "5m"}]
STAIRS = {"steps": 4, "users_per_step": 2, "duration": "20m"}
FOUR_STAIRS = {
    "TrafficType": "STAIRS",
    "Stairs": {"DurationInSeconds": 1200, "NumberOfSteps": 4, "UsersPerStep": 2},
}


def phases(users: int, spawn_rate: int, seconds: int) -> dict[str, Any]:
    one = {"InitialNumberOfUsers": users, "SpawnRate": spawn_rate, "DurationInSeconds": seconds}
    return {"TrafficType": "PHASES", "Phases": [one]}


@pytest.mark.parametrize(
    ("recommendation", "options", "types", "traffic"),
    [
        ({"phases": PHASES}, (), ["ml.c6i.4xlarge"], phases(2, 1, 300)),
        (
            {"stairs": STAIRS},
            ("-t", "ml.g5.xlarge", "--continue-when-flat"),
            ["ml.g5.xlarge"],
            FOUR_STAIRS,
        ),
        (
            {"stairs": STAIRS},
            ("--phase", "users=1,spawn-rate=0,duration=2m"),
            ["ml.c6i.4xlarge"],
            phases(1, 0, 120),
        ),
        ({}, ("--any-type",), None, None),
    ],
)
def test_types_and_traffic_come_from_the_settings(
    recommend: Recommend,
    account: Recommender,
    tmp_path: Path,
    recommendation: dict[str, Any],
    options: tuple[str, ...],
    types: list[str] | None,
    traffic: dict[str, Any] | None,
) -> None:
    file = stated(tmp_path, instance_types=["ml.c6i.4xlarge"], **recommendation)
    recommend(*options, *START, "--yes", "--no-wait", settings=file)
    [request] = account.sent(CREATE)
    configuration = request["InputConfig"]
    assert request["JobType"] == ("Advanced" if types else "Default")
    assert configuration.get("TrafficPattern") == traffic
    flat = "Continue" if "--continue-when-flat" in options else "Stop"
    assert request.get("StoppingConditions", {}).get("FlatInvocations", flat) == flat
    assert [each["InstanceType"] for each in configuration.get("EndpointConfigurations", [])] == (
        types or []
    )


def test_from_start_to_results(recommend: Recommend, account: Recommender) -> None:
    account.describes("PENDING")
    account.steps()
    account.describes("IN_PROGRESS")
    account.steps("COMPLETED", "IN_PROGRESS", "IN_PROGRESS")
    account.describes("COMPLETED", FAST, SLOW)
    types, slept = ("-t", "ml.c6i.4xlarge", "-t", "ml.c6i.large"), []
    done = recommend(*types, *START, "--max-duration", "90m", "--yes", sleep=slept.append)
    # it ran through, against the deployed model in its VPC, up to the settings' target
    [request] = account.sent(CREATE)
    configuration = request["InputConfig"]
    assert configuration["ModelName"] == "Model-1"
    assert configuration["VpcConfig"] == NETWORK
    assert account.sent(PUT) == []  # the payload is in S3 already
    assert configuration["JobDurationInSeconds"] == 5400
    assert request["StoppingConditions"]["ModelLatencyThresholds"] == [
        {"Percentile": "P95", "ValueInMilliseconds": 200}
    ]
    # what it costs is said before the start
    before, _, after = done.err.partition("started sentiment-1")
    assert "{InstanceType: ml.c6i.4xlarge}" in before
    assert "{InstanceType: ml.c6i.large}" in before
    assert "duration limit   90m, so at most 3 instance hours" in before  # two at a time
    assert "This costs money" in before
    assert "your p99 is already beyond its target" in before
    assert "PENDING\n" in after
    assert "IN_PROGRESS, tests: 1 completed, 2 in progress" in after
    assert slept == [30, 30]
    # the table: 9000 per minute are 150 per second, 0.816 / 540000 are 1.51 USD per million
    rows = [line.split() for line in done.out.splitlines()]
    assert ["1", "yes", "ml.c6i.4xlarge", "1", "0.816", "1.51", "150.0", "88", "71", "22"] in rows
    assert ["2", "no", "ml.c6i.large", "1", "0.102", "2.12", "13.3", "450", "71", "22"] in rows
    assert (
        f"low-latency recommend --settings {SHIPPED} --job sentiment-1 --result N --write"
        in done.out
    )


def test_a_default_job_lets_aws_choose(recommend: Recommend, account: Recommender) -> None:
    account.answers["sagemaker.DescribeModel"] = {}
    done = recommend(*START, "--model-name", "mine", "--no-wait", "--json", "-y")
    assert json.loads(done.out) == {"format_version": 1, "job": "sentiment-1", "status": "PENDING"}
    [request] = account.sent(CREATE)
    assert request["JobType"] == "Default"
    assert "VpcConfig" not in request["InputConfig"]
    assert "StoppingConditions" not in request
    assert "AWS chooses the types" in done.err
    assert "within 45 minutes" in done.err


def test_the_warm_ups_payload_goes_to_s3_after_the_question(
    recommend: Recommend, account: Recommender
) -> None:
    to = ("--role-arn", ROLE, "--upload-to", "s3://my-bucket/samples/")
    arguments = ("-t", "ml.c6i.large", *to, "--no-wait")
    recommend(*arguments, answer="n", ends=1)
    assert account.sent(PUT) == []
    recommend(*arguments, answer="y")
    [put], [request] = account.sent(PUT), account.sent(CREATE)
    assert (put["Bucket"], put["ContentType"]) == ("my-bucket", "application/gzip")
    assert re.fullmatch(r"samples/sample-payload-[0-9a-f]{16}\.tar\.gz", put["Key"])
    with tarfile.open(fileobj=put["Body"], mode="r:gz") as archive:
        [name] = archive.getnames()
        assert archive.extractfile(name).read() == b'{"inputs":"I am super happy right now."}'
    payload = request["InputConfig"]["ContainerConfig"]["PayloadConfig"]
    assert payload == {
        "SamplePayloadUrl": f"s3://my-bucket/{put['Key']}",
        "SupportedContentTypes": ["application/json"],
    }
    assert request["JobName"].startswith("sentiment-")


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [("n", 1, "Start the job? [y/N]"), (None, 2, "Pass --yes")],  # None: there is no terminal
)
def test_starting_asks_first(
    recommend: Recommend, account: Recommender, answer: str | None, status: int, said: str
) -> None:
    done = recommend("-t", "ml.c6i.4xlarge", *START, answer=answer, ends=status)
    assert account.sent(CREATE) == []
    assert said in done.err


def test_an_interrupt_leaves_the_job_running(recommend: Recommend, account: Recommender) -> None:
    account.describes("IN_PROGRESS")
    account.steps("IN_PROGRESS")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    done = recommend("--job", "sentiment-1", "--profile", "prod", sleep=interrupt, ends=130)
    assert "goes on in AWS, and so does its cost" in done.err
    again = f"low-latency recommend --settings {SHIPPED} --profile prod --job sentiment-1"
    assert f"come back:  {again}\n" in done.err
    assert f"stop it:    {again} --stop\n" in done.err


@pytest.mark.parametrize(
    ("status", "results", "expected"),
    [
        ("COMPLETED", [SLOW], 1),
        ("COMPLETED", [SLOW, FAST], 0),
        ("FAILED", [], 1),
        ("STOPPED", [FAST], 1),
    ],
)
def test_exit_codes_of_a_job_that_ended(
    recommend: Recommend, account: Recommender, status: str, results: list[Any], expected: int
) -> None:
    account.describes(status, *results, reason="no capacity")
    done = recommend("--job", "j", ends=expected)
    assert f"j (Advanced): {status}" in done.out
    assert "no capacity" in done.out


def test_another_threshold_is_kept_for_coming_back(
    recommend: Recommend, account: Recommender
) -> None:
    account.describes("COMPLETED", FAST)
    done = recommend("--job", "j", "--target", "p95=50ms", ends=1)  # 88 ms
    assert "Target: 50 ms" in done.out
    assert "The job's tests ended at p95 200 ms." in done.out
    assert "--target p95=50ms --job j --result N --write" in done.out


def test_a_running_job_looked_at_once(recommend: Recommend, account: Recommender) -> None:
    account.describes("IN_PROGRESS")
    assert recommend("--job", "j", "--no-wait").out == "j (Advanced): IN_PROGRESS\n"


def test_json(recommend: Recommend, account: Recommender) -> None:
    account.describes("COMPLETED", FAST, SLOW)
    done = recommend("--job", "j", "--json")
    assert done.err == ""
    found = json.loads(done.out)
    assert found["target_ms"] == 200
    assert [each["within_target"] for each in found["results"]] == [True, False]
    assert found["results"][0]["tps_per_instance"] == 150


def test_a_result_is_shown_and_written_when_asked(
    recommend: Recommend, account: Recommender, file: Path
) -> None:
    for _ in range(2):
        account.describes("COMPLETED", SLOW, FAST)
    arguments = ("--job", "j", "--result", "2")
    shown = recommend(*arguments, settings=file)
    assert "+    instance_type: ml.c6i.4xlarge" in shown.out
    assert "scaling takes two deploys" in shown.out
    assert "--write changes it" in shown.err
    assert file.read_text() == SHIPPED.read_text()  # never silently
    recommend(*arguments, "--write", settings=file)
    sentiment = load_settings(file).endpoints["sentiment"]
    assert sentiment.instance_type == "ml.c6i.4xlarge"
    assert sentiment.throughput.tps_per_instance == 150
    assert file.read_text().count("#") == SHIPPED.read_text().count("#")


def test_adopting_what_does_not_fit_writes_nothing(
    recommend: Recommend, account: Recommender, file: Path
) -> None:
    account.describes("COMPLETED", SLOW)
    arm = result("ml.m6g.xlarge", latency=10, invocations=6000)  # the image is for x86_64
    account.describes("COMPLETED", arm)
    for code in ("LLR109", "LLE334"):
        done = recommend("--job", "j", "--result", "1", "--write", settings=file, ends=2)
        assert code in done.err
    assert file.read_text() == SHIPPED.read_text()


def test_scaling_beside_the_plan(recommend: Recommend, account: Recommender) -> None:
    account.describes("COMPLETED", FAST)
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    tracking = {"TargetValue": 6000.0, "MetricSpecification": {"Predefined": metric}}
    scaling = {
        "MinCapacity": 2,
        "MaxCapacity": 9,
        "ScalingPolicies": [{"TargetTracking": tracking}],
    }
    asked = "sagemaker.GetScalingConfigurationRecommendation"
    account.answers[asked] = {"DynamicScalingConfiguration": scaling}
    done = recommend("--job", "j", "--result", "1", "--scaling")
    assert "  MinCapacity: 2\n  MaxCapacity: 9\n" in done.out
    assert "TargetValue: 6000.0" in done.out
    assert "plan's target: 7,800 invocations" in done.out  # 200 * 0.65 * 60, of the old type
    assert account.sent(asked) == [
        {
            "InferenceRecommendationsJobName": "j",
            "RecommendationId": "sentiment-1/ml.c6i.4xlarge",
            "ScalingPolicyObjective": {"MaxInvocationsPerMinute": 60_000},
        }
    ]


def test_listing_and_stopping(recommend: Recommend, account: Recommender) -> None:
    listed = {"JobName": "j", "JobType": "Default", "Status": "STOPPING"}
    listing = "sagemaker.ListInferenceRecommendationsJobs"
    account.answers |= {
        listing: [{"InferenceRecommendationsJobs": jobs} for jobs in ([], [listed])],
        "sagemaker.StopInferenceRecommendationsJob": {},
    }
    assert "There are no jobs" in recommend("--list").out
    [found] = json.loads(recommend("--list", "--json").out)["jobs"]
    assert (found["job"], found["type"], found["status"]) == ("j", "Default", "STOPPING")
    assert found["created"] == "2026-01-01T00:00:00+00:00"
    newest = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 50}
    assert account.sent(listing) == [newest, newest]
    assert recommend("--job", "j", "--stop").err == "AWS stops j.\n"
    assert account.sent("sagemaker.StopInferenceRecommendationsJob") == [{"JobName": "j"}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--stop",), "add --job NAME"),
        (("--result", "1", "--write"), "add --job NAME"),
        (("--list", "--job", "j"), "exclude each other"),
        (("--job", "j", "--stop", "--result", "1", "--write"), "--stop excludes"),
        (("other",), "LLE933"),
        ((), "LLR102"),
        (("--role-arn", "me"), "LLR102"),
        (("--role-arn", ROLE), "LLR107"),
        ((*START, "--phase", "users=1,spawn-rate=1,duration=2m"), "--instance-type"),
        ((*START, "-t", "ml.c6i.large", "--phase", "users=9,spawn-rate=1,duration=2m"), "LLR105"),
        ((*START, "-t", "ml.c6i.large", "--phase", "x", "--stairs", "y"), "exclude each other"),
        ((*START, "-t", "ml.c6i.large", "--vary", "A"), "write NAME=A,B"),
        ((*START, "-t", "ml.c6i.large", "--max-duration", "6h"), "LLR106"),
        ((*START, "-t", "ml.c6i.large", "--max-duration", "7200"), "LLR106"),
        ((*START, "-t", "ml.c6i.large", "--target", "p99"), "LLR106"),
        ((*START, "-t", "ml.t2.large"), "LLR104"),
        ((*START, "-t", "large"), "LLE405"),
        ((*START, "--model-name", "a", "--model-package-arn", "b"), "LLR103"),
    ],
)
def test_mistakes_ask_aws_nothing(
    recommend: Recommend, account: Recommender, arguments: tuple[str, ...], said: str
) -> None:
    assert said in recommend(*arguments, ends=2).err
    assert account.asked == []


@pytest.mark.parametrize(
    ("operation", "code", "fix"),
    [
        (CREATE, "ResourceLimitExceeded", "try fewer instance types"),
        (CREATE, "ResourceInUse", "Choose another --job-name"),
        (CREATE, "AccessDenied", "Allow CreateInference"),
        (DESCRIBE, "ResourceNotFound", "--list"),
        (DESCRIBE, "AccessDeniedException", "Allow DescribeInference"),
    ],
)
def test_refusals_say_what_to_do(
    recommend: Recommend, account: Recommender, operation: str, code: str, fix: str
) -> None:
    account.answers[operation] = Refused(code, "no", 400)
    arguments = ("--job", "j") if operation == DESCRIBE else ("-t", "ml.c6i.large", *START, "--yes")
    done = recommend(*arguments, ends=2)
    assert f"{code}: no" in done.err
    assert fix in done.err.partition("fix:")[2]


def test_without_boto3_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['boto3'] = None; sys.modules['botocore'] = None\n"
        "from low_latency_endpoint.cli import main; main()"
    )
    for command in ("recommend", "optimize"):
        done = subprocess.run(
            [sys.executable, "-c", code, command, str(SHIPPED), "--list"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert install_command("operations") in done.stderr
        assert "Traceback" not in done.stderr
