"""``low-latency recommend`` and ``optimize``: what they ask AWS, say, write, and their exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.settings import load_settings
from tests.fake_aws import Refused

from .account import (
    CREATE,
    DESCRIBE,
    DESCRIBE_OPTIMIZATION,
    OPTIMIZE,
    ROLE,
    THREADS,
    JobAccount,
    result,
)
from .conftest import SHIPPED, Command
from .test_model_optimization import AWQ, OUT, STATED, completed, written

FAST = result("ml.c6i.4xlarge", latency=88, invocations=9000, cost=0.816)
SLOW = result("ml.c6i.large", latency=450, invocations=800, cost=0.102, **THREADS)
START = ("--role-arn", ROLE, "--payload", "s3://b/p.tar.gz")
QUANTIZE = ("--quantize", "awq", "--role-arn", ROLE, "--s3-output", OUT)


def test_from_start_to_results(low_latency: Command, account: JobAccount) -> None:
    for status in ("PENDING", "IN_PROGRESS", "IN_PROGRESS"):
        account.describes(status)
    account.describes("COMPLETED", FAST, SLOW)
    slept: list[float] = []
    done = low_latency("recommend", "-t", "ml.c6i.4xlarge", *START, "--yes", sleep=slept.append)
    [request] = account.sent(CREATE)
    name = request["JobName"]
    assert name.startswith("sentiment-")
    assert request["RoleArn"] == ROLE
    assert f"Waiting for the job {name}." in done.err
    assert slept == [30, 30, 30]
    rows = [line.split() for line in done.out.splitlines()]
    assert ["1", "yes", "ml.c6i.4xlarge", "0.816", "150", "88"] in rows  # 9000 per minute
    assert ["2", "no", "ml.c6i.large", "0.102", "13.33", "450"] in rows
    assert "2: OMP_NUM_THREADS=8" in done.out


ELSEWHERE = ("recommend", "elsewhere", "--target", "p99=200ms")


def test_an_endpoint_without_a_settings_file(
    low_latency: Command, account: JobAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its model and image are the deployed ones, and its first variant is tested."""
    monkeypatch.chdir(tmp_path)
    image = "1.dkr.ecr.us-east-1.amazonaws.com/tensorflow-inference:2-cpu"
    account.answers["sagemaker.DescribeModel"] = {"PrimaryContainer": {"Image": image}}
    account.describes("COMPLETED", FAST, SLOW)
    done = low_latency(*ELSEWHERE, "-t", "ml.c6i.4xlarge", *START, "--yes", settings=None)
    [request] = account.sent(CREATE)
    assert request["JobName"].startswith("elsewhere-")
    assert {"EndpointName": "elsewhere"} in account.sent("sagemaker.DescribeEndpoint")
    tested = request["InputConfig"]
    assert tested["ModelName"] == "Model-1"
    assert tested["ContainerConfig"]["Framework"] == "TENSORFLOW"
    assert request["StoppingConditions"]["ModelLatencyThresholds"] == [
        {"Percentile": "P95", "ValueInMilliseconds": 200}
    ]
    assert "Target: 200 ms" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("recommend", "elsewhere", *START), "LLE928"),
        ((*ELSEWHERE, *START, "--write", "1"), "there is none"),
        (("recommend", *START), "LLA104"),
        (("optimize", "elsewhere", *QUANTIZE), "LLE901"),
    ],
)
def test_what_is_missing_without_a_settings_file(
    low_latency: Command,
    account: JobAccount,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    account.answers["sagemaker.ListEndpoints"] = {"Endpoints": []}
    assert says in low_latency(*arguments, settings=None, ends=2).err


MISSING = Refused("ValidationException", "Could not find endpoint", 400)
UNNAMED = "client_zones: {ids: [use1-az1, use1-az2]}\nregion: us-east-1\nendpoints:\n  sentiment:\n"
ALONE = f"""{UNNAMED}\
    containers: [{{image: {{ecr: {{repository: chat}}}}}}]
    instance_type: ml.m5.xlarge
    latency: {{p99: 200ms}}
"""


@pytest.mark.parametrize("has_settings", [False, True])
def test_an_endpoint_that_does_not_exist_is_told_with_those_that_do(
    low_latency: Command,
    account: JobAccount,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_settings: bool,
) -> None:
    """As by load-test and compare-routing; a settings file's only endpoint does not stand in for it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "endpoint.yaml"
    path.write_text(ALONE)
    account.answers["sagemaker.DescribeEndpoint"] = MISSING
    account.answers["sagemaker.ListEndpoints"] = {"Endpoints": [{"EndpointName": "not-here"}]}
    arguments = ("recommend", "nothere", "--target", "p99=200ms", *START, "--yes")
    done = low_latency(*arguments, settings=path if has_settings else None, ends=2)
    assert {"EndpointName": "nothere"} in account.sent("sagemaker.DescribeEndpoint")
    assert "LLA101" in done.err
    assert "not-here" in done.err
    assert "Deploy" not in done.err
    assert account.sent(CREATE) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ml.bogus.large", "ml.bogus.large is not in this version's table"),
        ("ml.c6i.4xlarg", "did you mean ml.c6i.4xlarge?"),
        ("ml.c6i.4xlarge", ""),
    ],
)
def test_a_type_that_is_not_known_is_told_before_aws_is_asked(
    low_latency: Command, account: JobAccount, name: str, said: str
) -> None:
    """AWS adds types, so it is a warning; it comes before an error of what is asked next."""
    account.answers["sagemaker.DescribeEndpoint"] = MISSING
    account.answers["sagemaker.ListEndpoints"] = {"Endpoints": []}
    done = low_latency("recommend", "-t", name, *START, "--yes", ends=2)
    warned = [line for line in done.err.splitlines() if line.startswith("Careful: ")]
    assert len(warned) == bool(said)
    assert said in "".join(warned)


def test_a_given_target_goes_before_that_of_the_settings(
    low_latency: Command, account: JobAccount
) -> None:
    account.describes("COMPLETED", FAST)
    done = low_latency("recommend", "--target", "p95=90ms", *START, "--yes")
    assert "Target: 90 ms" in done.out


def test_an_endpoint_named_by_cloudformation(
    low_latency: Command, account: JobAccount, file: Path
) -> None:
    file.write_text(SHIPPED.read_text().replace("    endpoint_name: sentiment\n", ""))
    resource = {
        "LogicalResourceId": "sentimentEndpoint0A1B2C3D",
        "ResourceType": "AWS::SageMaker::Endpoint",
        "PhysicalResourceId": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/made-1",
    }
    template = {"Resources": {"sentimentEndpoint0A1B2C3D": {"Type": "AWS::SageMaker::Endpoint"}}}
    account.answers |= {
        "cloudformation.ListStackResources": {"StackResourceSummaries": [resource]},
        "cloudformation.GetTemplate": {"TemplateBody": json.dumps(template)},
        "cloudformation.DescribeStacks": {"Stacks": [{"StackStatus": "UPDATE_COMPLETE"}]},
        "sagemaker.DescribeEndpoint": {"EndpointName": "made-1", "EndpointConfigName": "C-1"},
    }
    account.describes("COMPLETED", FAST)
    low_latency("recommend", *START, "--yes", settings=file)
    assert {"EndpointName": "made-1"} in account.sent("sagemaker.DescribeEndpoint")
    assert account.sent(CREATE)[0]["JobType"] == "Default"


@pytest.mark.parametrize(
    ("arguments", "limit", "cost"),
    [
        (("recommend", *START), "45 minutes, says AWS", "the instances under test"),
        (
            ("recommend", "-t", "ml.c6i.4xlarge", "-t", "ml.c6i.large", *START),
            "2 hours, so at most 4 instance hours",
            "the instances under test",
        ),
        (("optimize", *QUANTIZE), "10 hours, then AWS ends the job", "the job's instance"),
    ],
)
def test_request_and_cost_are_shown_before_anything_starts(
    low_latency: Command,
    account: JobAccount,
    tmp_path: Path,
    arguments: tuple[str, ...],
    limit: str,
    cost: str,
) -> None:
    settings = written(tmp_path, STATED) if arguments[0] == "optimize" else SHIPPED
    asked = low_latency(*arguments, settings=settings, answer="n", ends=1)
    refused = low_latency(*arguments, settings=settings, answer=None, ends=2)  # no terminal
    assert account.sent(CREATE) == account.sent(OPTIMIZE) == []
    assert "Start the job? [y/N]" in asked.err
    assert "pass --yes" in refused.err
    for done in (asked, refused):
        assert f'"RoleArn": "{ROLE}"' in done.err
        assert f"Time limit: {limit}" in done.err
        assert re.search(f"This costs money: .*{cost}", done.err)


@pytest.mark.parametrize(
    ("command", "noun"),
    [
        ("recommend", "inference-recommendations-job --job-name"),
        ("optimize", "optimization-job --optimization-job-name"),
    ],
)
def test_an_interrupt_leaves_the_job_running(
    low_latency: Command, account: JobAccount, command: str, noun: str
) -> None:
    account.describes("IN_PROGRESS")
    account.answers[DESCRIBE_OPTIMIZATION] = [{"OptimizationJobStatus": "INPROGRESS"}]

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    options = ("--job", "sentiment-1", "--region", "us-east-2")
    done = low_latency(command, *options, sleep=interrupt, ends=130)
    assert "goes on in AWS, and so does its cost" in done.err
    for verb in ("describe", "stop"):
        assert f"  aws sagemaker {verb}-{noun} sentiment-1 --region us-east-2\n" in done.err


@pytest.mark.parametrize(
    ("status", "results", "expected"),
    [
        ("COMPLETED", [SLOW, FAST], 0),
        ("COMPLETED", [SLOW], 1),
        ("COMPLETED", [], 1),
        ("FAILED", [], 1),
        ("STOPPED", [FAST], 1),
    ],
)
def test_exit_codes_of_a_job_that_ended(
    low_latency: Command, account: JobAccount, status: str, results: list[Any], expected: int
) -> None:
    account.describes(status, *results, reason="no capacity")
    done = low_latency("recommend", "--job", "j", ends=expected)
    assert f"j: {status}" in done.out
    assert "no capacity" in done.out


def test_json(low_latency: Command, account: JobAccount) -> None:
    account.describes("COMPLETED", FAST, SLOW)
    answer = json.loads(low_latency("recommend", "--job", "j", "--json").out)
    assert (answer["job"], answer["status"], answer["target_ms"]) == ("j", "COMPLETED", 200)
    assert [row["within_target"] for row in answer["results"]] == [True, False]
    assert answer["results"][0]["tps_per_instance"] == 150


def test_a_row_of_the_table_is_written(
    low_latency: Command, account: JobAccount, file: Path
) -> None:
    account.describes("COMPLETED", SLOW, FAST)
    low_latency("recommend", "--job", "j", settings=file)
    assert file.read_text() == SHIPPED.read_text()  # never silently
    account.describes("COMPLETED", SLOW, FAST)
    done = low_latency("recommend", "--job", "j", "--write", "2", settings=file)
    assert "+    instance_type: ml.c6i.4xlarge" in done.err
    assert "low-latency preflight --settings" in done.err  # which finds what takes two deployments
    sentiment = load_settings(file).endpoints["sentiment"]
    assert sentiment.instance_type == "ml.c6i.4xlarge"
    assert sentiment.throughput.tps_per_instance == 150
    assert file.read_text().count("#") == SHIPPED.read_text().count("#")
    account.describes("COMPLETED", SLOW, FAST)
    again = low_latency("recommend", "--job", "j", "--write", "2", settings=file)
    assert "says this already" in again.err


def test_what_does_not_fit_is_not_written(
    low_latency: Command, account: JobAccount, file: Path
) -> None:
    arm = result("ml.m6g.xlarge", latency=10, invocations=6000)  # the image is for x86_64
    for answer, code in ((SLOW, "LLR109"), (arm, "LLE334")):
        account.describes("COMPLETED", answer)
        done = low_latency("recommend", "--job", "j", "--write", "1", settings=file, ends=2)
        assert code in done.err
    account.describes("STOPPED", FAST)
    low_latency("recommend", "--job", "j", "--write", "1", settings=file, ends=1)
    assert file.read_text() == SHIPPED.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"), [(("other", "--job", "j"), "LLE933"), ((), "a new job needs --role-arn")]
)
def test_mistakes_ask_aws_nothing(
    low_latency: Command, account: JobAccount, arguments: tuple[str, ...], said: str
) -> None:
    assert said in low_latency("recommend", *arguments, ends=2).err
    assert account.asked == []


@pytest.mark.parametrize("operation", [CREATE, DESCRIBE])
def test_a_refusal_of_aws(low_latency: Command, account: JobAccount, operation: str) -> None:
    account.answers[operation] = Refused("AccessDeniedException", "no", 400)
    arguments = ("--job", "j") if operation == DESCRIBE else (*START, "--yes")
    done = low_latency("recommend", *arguments, ends=2)
    assert f"Allow {operation.removeprefix('sagemaker.')}" in done.err


# --- optimize ----------------------------------------------------------------------------------
def test_from_the_question_to_the_optimized_model(
    low_latency: Command, account: JobAccount, tmp_path: Path
) -> None:
    path = written(tmp_path, STATED)
    running = {"OptimizationJobStatus": "INPROGRESS"}
    location = {"OutputConfig": {"S3OutputLocation": OUT}}
    account.answers[DESCRIBE_OPTIMIZATION] = [
        completed(AWQ, **running).description,
        completed(AWQ, **location).description,
        completed(AWQ, **location).description,
    ]
    done = low_latency("optimize", *QUANTIZE, settings=path, answer="y")
    [request] = account.sent(OPTIMIZE)
    assert request["DeploymentInstanceType"] == "ml.g5.12xlarge"
    assert request["OptimizationConfigs"] == [
        {"ModelQuantizationConfig": {"OverrideEnvironment": {"OPTION_QUANTIZE": "awq"}}}
    ]
    assert f"The model is in {OUT}" in done.out
    assert "s3://my-bucket/llama/" in path.read_text()

    low_latency("optimize", "--job", request["OptimizationJobName"], "--write", settings=path)
    container = load_settings(path).endpoints["llm"].containers[0]
    assert container.data.s3_prefix == OUT
    assert container.environment["OPTION_QUANTIZE"] == "awq"
    assert "# the team's language model" in path.read_text()


def test_a_job_that_fails_says_why(
    low_latency: Command, account: JobAccount, tmp_path: Path
) -> None:
    path = written(tmp_path, STATED)
    failed = {"OptimizationJobStatus": "FAILED", "FailureReason": "No S3 objects found"}
    account.answers[DESCRIBE_OPTIMIZATION] = [completed(AWQ, **failed).description] * 2
    for more in ((), ("--write",)):
        done = low_latency("optimize", "--job", "llm-1", *more, settings=path, ends=1)
        assert "No S3 objects found" in done.out
        assert "The model is in" not in done.out
    assert path.read_text().endswith(STATED)
