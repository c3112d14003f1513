"""``low-latency recommend`` and ``optimize``: what they ask AWS, say, write, and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.errors.installation import install_command
from low_latency_endpoint.settings import load_settings
from tests.fake_aws import Refused

from .account import (
    CREATE,
    DESCRIBE,
    DESCRIBE_OPTIMIZATION,
    NETWORK,
    OPTIMIZE,
    ROLE,
    JobAccount,
    result,
)
from .command import Command
from .conftest import SHIPPED, Recommend
from .test_model_optimization import AWQ, OUT, STATED, completed, written

FAST = result("ml.c6i.4xlarge", latency=88, invocations=9000, cost=0.816)
SLOW = result("ml.c6i.large", latency=450, invocations=800, cost=0.102)
START = ("--role-arn", ROLE, "--payload", "s3://b/p.tar.gz")


def test_from_start_to_results(recommend: Recommend, account: JobAccount) -> None:
    for status in ("PENDING", "IN_PROGRESS", "IN_PROGRESS"):
        account.describes(status)
    account.describes("COMPLETED", FAST, SLOW)
    types, slept = ("-t", "ml.c6i.4xlarge", "-t", "ml.c6i.large"), []
    done = recommend(*types, *START, "--yes", sleep=slept.append)
    # it ran through, against the deployed model in its VPC, up to the settings' target
    [request] = account.sent(CREATE)
    name = request["JobName"]
    assert name.startswith("sentiment-")
    assert request["InputConfig"]["ModelName"] == "Model-1"
    assert request["InputConfig"]["VpcConfig"] == NETWORK
    # what it costs is said before the start
    before, _, after = done.err.partition(f"{name}: PENDING\n")
    assert '"InstanceType": "ml.c6i.4xlarge"' in before
    assert "Time limit: 2 hours, so at most 4 instance hours" in before  # two at a time
    assert "This costs money" in before
    assert "the settings' target for p99" in before
    assert after.startswith(f"{name}: IN_PROGRESS\n{name}: COMPLETED\n")
    assert slept == [30, 30, 30]
    # the table: 9000 per minute are 150 per second, 0.816 / 540000 are 1.51 USD per million
    rows = [line.split() for line in done.out.splitlines()]
    assert ["1", "yes", "ml.c6i.4xlarge", "0.816", "1.51", "150.0", "88"] in rows
    assert ["2", "no", "ml.c6i.large", "0.102", "2.12", "13.3", "450"] in rows
    assert f"--job {name} --write N" in done.err


def test_an_endpoint_named_by_cloudformation(
    recommend: Recommend, account: JobAccount, file: Path
) -> None:
    file.write_text(SHIPPED.read_text().replace("    endpoint_name: sentiment\n", ""))
    made = {
        "LogicalResourceId": "sentimentEndpoint0A1B2C3D",
        "ResourceType": "AWS::SageMaker::Endpoint",
        "PhysicalResourceId": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/made-1",
    }
    account.answers |= {
        "cloudformation.ListStackResources": {"StackResourceSummaries": [made]},
        "sagemaker.DescribeEndpoint": {"EndpointName": "made-1", "EndpointConfigName": "C-1"},
        "cloudformation.GetTemplate": {
            "TemplateBody": json.dumps(
                {"Resources": {"sentimentEndpoint0A1B2C3D": {"Type": "AWS::SageMaker::Endpoint"}}}
            )
        },
        "cloudformation.DescribeStacks": {"Stacks": [{"StackStatus": "UPDATE_COMPLETE"}]},
    }
    account.describes("COMPLETED", FAST)
    recommend(*START, "--yes", settings=file)
    assert {"EndpointName": "made-1"} in account.sent("sagemaker.DescribeEndpoint")
    assert account.sent(CREATE)[0]["JobType"] == "Default"


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [("n", 1, "Start the job? [y/N]"), (None, 2, "Pass --yes")],  # None: there is no terminal
)
def test_starting_asks_first(
    recommend: Recommend, account: JobAccount, answer: str | None, status: int, said: str
) -> None:
    done = recommend("-t", "ml.c6i.4xlarge", *START, answer=answer, ends=status)
    assert account.sent(CREATE) == []
    assert said in done.err


def test_an_interrupt_leaves_the_job_running(recommend: Recommend, account: JobAccount) -> None:
    account.describes("IN_PROGRESS")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    done = recommend("--job", "sentiment-1", "--region", "us-east-2", sleep=interrupt, ends=130)
    assert "goes on in AWS, and so does its cost" in done.err
    for verb in ("describe", "stop"):
        command = f"aws sagemaker {verb}-inference-recommendations-job --job-name sentiment-1"
        assert f"  {command} --region us-east-2\n" in done.err


@pytest.mark.parametrize(
    ("status", "results", "expected"),
    [
        ("COMPLETED", [SLOW], 1),
        ("COMPLETED", [], 1),
        ("COMPLETED", [SLOW, FAST], 0),
        ("FAILED", [], 1),
        ("STOPPED", [FAST], 1),
    ],
)
def test_exit_codes_of_a_job_that_ended(
    recommend: Recommend, account: JobAccount, status: str, results: list[Any], expected: int
) -> None:
    account.describes(status, *results, reason="no capacity")
    done = recommend("--job", "j", ends=expected)
    assert f"j: {status}" in done.out
    assert "no capacity" in done.out


def test_json(recommend: Recommend, account: JobAccount) -> None:
    account.describes("COMPLETED", FAST, SLOW)
    found = json.loads(recommend("--job", "j", "--json").out)
    assert (found["job"], found["status"], found["target_ms"]) == ("j", "COMPLETED", 200)
    assert [each["within_target"] for each in found["results"]] == [True, False]
    assert found["results"][0]["tps_per_instance"] == 150


def test_a_row_of_the_table_is_written(
    recommend: Recommend, account: JobAccount, file: Path
) -> None:
    account.describes("COMPLETED", SLOW, FAST)
    assert recommend("--job", "j", settings=file)
    assert file.read_text() == SHIPPED.read_text()  # never silently
    account.describes("COMPLETED", SLOW, FAST)
    done = recommend("--job", "j", "--write", "2", settings=file)
    assert "+    instance_type: ml.c6i.4xlarge" in done.err
    assert "low-latency preflight --settings" in done.err  # which finds what takes two deployments
    sentiment = load_settings(file).endpoints["sentiment"]
    assert sentiment.instance_type == "ml.c6i.4xlarge"
    assert sentiment.throughput.tps_per_instance == 150
    assert file.read_text().count("#") == SHIPPED.read_text().count("#")
    account.describes("COMPLETED", SLOW, FAST)
    assert "says this already" in recommend("--job", "j", "--write", "2", settings=file).err


def test_what_does_not_fit_is_not_written(
    recommend: Recommend, account: JobAccount, file: Path
) -> None:
    arm = result("ml.m6g.xlarge", latency=10, invocations=6000)  # the image is for x86_64
    for answer, code in ((SLOW, "LLR109"), (arm, "LLE334")):
        account.describes("COMPLETED", answer)
        done = recommend("--job", "j", "--write", "1", settings=file, ends=2)
        assert code in done.err
    account.describes("STOPPED", FAST)
    recommend("--job", "j", "--write", "1", settings=file, ends=1)
    assert file.read_text() == SHIPPED.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("other",), "LLE933"),
        ((), "a new job needs --role-arn"),
        (("--role-arn", ROLE), "LLR107"),
        (("--role-arn", ROLE, "--payload", "s3://b/p.json"), "LLR107"),
        ((*START, "-t", "large"), "LLE405"),
    ],
)
def test_mistakes_ask_aws_nothing(
    recommend: Recommend, account: JobAccount, arguments: tuple[str, ...], said: str
) -> None:
    assert said in recommend(*arguments, ends=2).err
    assert account.asked == []


@pytest.mark.parametrize("operation", [CREATE, DESCRIBE])
def test_a_refusal_of_aws(recommend: Recommend, account: JobAccount, operation: str) -> None:
    account.answers[operation] = Refused("AccessDeniedException", "no", 400)
    arguments = ("--job", "j") if operation == DESCRIBE else (*START, "--yes")
    done = recommend(*arguments, ends=2)
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
    options = ("--quantize", "awq", "--role-arn", ROLE, "--s3-output", OUT)
    done = low_latency("optimize", "--settings", str(path), *options, answer="y")
    [request] = account.sent(OPTIMIZE)
    assert request["DeploymentInstanceType"] == "ml.g5.12xlarge"
    assert "Time limit: 10 hours, then AWS ends the job" in done.err
    assert f"The model is in {OUT}" in done.out
    assert "s3://my-bucket/llama/" in path.read_text()

    low_latency(
        "optimize", "--settings", str(path), "--job", request["OptimizationJobName"], "--write"
    )
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
        done = low_latency("optimize", "--settings", str(path), "--job", "llm-1", *more, ends=1)
        assert "No S3 objects found" in done.out
        assert "The model is in" not in done.out
    assert path.read_text().endswith(STATED)


def test_without_boto3_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['boto3'] = None; sys.modules['botocore'] = None\n"
        "from low_latency_endpoint.cli import main; main()"
    )
    for command in ("recommend", "optimize"):
        done = subprocess.run(
            [sys.executable, "-c", code, command, str(SHIPPED), "--job", "j"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert install_command("operations") in done.stderr
        assert "Traceback" not in done.stderr
