"""``make demo`` from start to end: the real CDK CLI against the local AWS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from examples.demo_surroundings import region_of, uploaded
from local_sagemaker import LocalAws
from low_latency_endpoint.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


def _demo(*arguments: object, home: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(home), "COLUMNS": "140"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.mark.realtime
@pytest.mark.timeout(900)  # two busy cores take nine minutes
def test_the_demo_deploys_reads_back_changes_and_leaves_nothing(tmp_path: Path) -> None:
    status, text = _demo(home=tmp_path)
    assert status == 0, text
    headings = re.findall(r"^\[(\d+)/12\]", text, re.MULTILINE)
    assert headings == [str(number) for number in range(1, 13)]
    said = {int(part.partition("/")[0]): part for part in re.split(r"^\[", text, flags=re.M)[1:]}
    # What the reader sees first works, and nothing of it is left open.
    assert "0 fail, 0 warn, 0 unknown" in said[2]
    assert not re.findall(r"FAIL|WARN|UNKNOWN", "".join(said[number] for number in range(1, 5)))
    assert "on purpose" in said[10]
    assert "3 fail, 0 warn, 1 unknown" in said[10]  # how long nothing downloads is not known
    warm_up = re.search(r"warm-up of sentiment .*p99 (\d+) ms at first, (\d+) ms at last", said[3])
    assert warm_up
    # The first requests take five times 10 ms and more; how long the last take, the machine says.
    assert int(warm_up[1]) > 60
    for number, words in {
        3: ("created AWS::SageMaker::Endpoint",),
        4: (
            "sentiment InService 9 OK no",
            "primary: 2 of 2 x ml.m5.12xlarge",
            "starts with the instances",
        ),
        5: ("0 fail", "Nothing found: the endpoint is healthy."),
        6: ("20 TPS", "build/demo-load-test.html"),
        7: (
            "1. LLD704",
            "MaxCapacity is 2, the template says 24; RegisterScalableTarget by arn:aws:sts:",
            "run npx cdk deploy --revert-drift",
            "LLD102",
            "instances.max is 24 in the deployed template",
            "throughput.tps_per_instance # no number",
            "0 fail",
        ),
        8: ('"RoutingStrategy": "RANDOM"', "MetricsConfig", "UPDATE_COMPLETE"),
        9: ("1 finding.", "LLD501", "routing: least_outstanding_requests"),
        10: ("FAIL LLP403", "FAIL LLP404", "FAIL LLP503"),
        11: ("Nothing is left: no stack, no resource.",),
        12: ("No process is left.",),
    }.items():
        for found in words:  # which a table's cell may break
            assert found in re.sub(r"[│\s]+", " ", said[number]), (number, found)
    # Errors of one in a thousand need more requests than eight seconds send.
    assert "40 TPS kept the goal in this step" in said[6]
    assert not list(tmp_path.iterdir())


def test_a_bad_settings_file_is_told_before_anything_starts(tmp_path: Path) -> None:
    settings = tmp_path / "bad.yaml"
    settings.write_text("client_zones: {ids: [use1-az1]}\nendpoints: {}\n", encoding="utf-8")
    status, text = _demo("--settings", settings, home=tmp_path)
    assert status == 1
    assert "bad.yaml:1: LLE103" in text
    assert "Traceback" not in text
    assert "[1/" not in text
    assert list(tmp_path.iterdir()) == [settings]


def test_settings_of_an_account_of_yours_are_refused_before_anything_starts(tmp_path: Path) -> None:
    settings = tmp_path / "mine.yaml"
    lines = (
        'account: "999999999999"',
        "network: {vpc_id: vpc-0123456789abcdef0, subnets: "
        "{use1-az1: subnet-0123456789abcdef0, use1-az2: subnet-0123456789abcdef1}}",
    )
    settings.write_text(
        "\n".join([(ROOT / "endpoint.yaml").read_text(encoding="utf-8"), *lines, ""]),
        encoding="utf-8",
    )
    status, text = _demo("--settings", settings, home=tmp_path)
    assert status == 1
    for words in (
        "account: 999999999999. The local AWS has 123456789012 only.",
        "network.vpc_id: vpc-0123456789abcdef0. The local AWS has no such VPC.",
    ):
        assert words in " ".join(text.split())
    assert "leaves these out" in text
    assert "[1/" not in text


@pytest.mark.parametrize(
    ("given", "region"),
    [
        ({"region": "eu-west-1", "client_zones": {"ids": ["euw1-az1", "euw1-az2"]}}, "eu-west-1"),
        ({"client_zones": {"ids": ["euw1-az1", "euw1-az2"]}}, "eu-west-1"),
        ({"client_zones": {"names": ["us-west-2a", "us-west-2b"]}}, "us-west-2"),
    ],
)
def test_the_demo_s_region_is_that_of_the_settings(
    given: dict[str, object], region: str, tmp_path: Path
) -> None:
    shipped = yaml.safe_load((ROOT / "endpoint.yaml").read_text(encoding="utf-8"))
    del shipped["region"], shipped["alarm_topic_arn"]  # the topic is in the Region that goes
    settings = tmp_path / "mine.yaml"
    settings.write_text(yaml.safe_dump({**shipped, **given}), encoding="utf-8")
    assert region_of(load_settings(settings)) == region


def test_the_model_s_bucket_is_in_the_settings_region() -> None:
    with LocalAws.in_process(region="eu-west-1") as aws:
        s3 = aws.client("s3")
        with uploaded(aws, ["s3://demo-models/a/model.tar.gz"]):
            place = s3.get_bucket_location(Bucket="demo-models")["LocationConstraint"]
            assert place == "eu-west-1"
        assert "demo-models" not in [each["Name"] for each in s3.list_buckets()["Buckets"]]
