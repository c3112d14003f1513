"""``make bootstrap``, ``make deploy`` and ``make destroy`` as a user types them, in a local AWS."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.demo_surroundings import model_uris, stand_ins_for_images, uploaded
from local_sagemaker import LocalAws
from low_latency_endpoint.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = load_settings(ROOT / "endpoint.yaml")
OUTER_MAKE = ("ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS")
# The environment that the tests run in is the one to test: nothing is to be installed into it.
INSTALLED = [f"--old-file={folder}/.installed" for folder in (".venv", "node_modules")]


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.start(region="us-east-1") as aws:
        yield aws


def make(aws: LocalAws | None, target: str, *more: str) -> tuple[int, str]:
    environment = aws.environment() if aws else os.environ
    # Not the variables of a make that runs this test.
    inner = {name: value for name, value in environment.items() if name not in OUTER_MAKE}
    done = subprocess.run(
        ["make", "--no-print-directory", *INSTALLED, target, *more],
        cwd=ROOT,
        env={**inner, "COLUMNS": "140"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def stacks(aws: LocalAws) -> set[str]:
    return {each["StackName"] for each in aws.client("cloudformation").describe_stacks()["Stacks"]}


@pytest.mark.realtime  # four times make, the CDK CLI's bootstrap, preflights: ten processes, 12 s
def test_from_an_account_never_used_to_what_the_cdk_is_told(aws: LocalAws, tmp_path: Path) -> None:
    """The CDK's part is the demo's: test_demo.py runs it, with the same settings."""
    told = tmp_path / "told"
    cdk = tmp_path / "cdk"
    cdk.write_text(f'#!/bin/sh\necho "$@" >> "{told}"\n', encoding="utf-8")
    cdk.chmod(0o755)

    status, text = make(aws, "deploy", f"CDK={cdk}")
    assert status != 0
    cost, failure = text.index("US dollars per hour"), text.index("LLP103")
    assert cost < text.index("not seen on AWS yet") < failure
    assert "make bootstrap" in text
    assert "PREFLIGHT=no" in text
    assert "npx cdk validate -c settings=endpoint.yaml" in text
    assert not told.exists()  # it stopped before the CDK

    status, text = make(aws, "bootstrap")
    assert (status, stacks(aws)) == (0, {"CDKToolkit"}), text

    with contextlib.ExitStack() as there:
        list(stand_ins_for_images(aws, SHIPPED))
        there.enter_context(uploaded(aws, model_uris(SHIPPED), SHIPPED.alarm_topic_arn))
        status, text = make(aws, "deploy", f"CDK={cdk}", "PRICES=ml.m5.12xlarge=3")
    assert status == 0, text
    assert "together" in text[: text.index("0 fail")]

    status, text = make(aws, "destroy", f"CDK={cdk}", "ARGS=--force")
    assert status == 0, text
    assert "Deleting takes about 20 to 45 minutes; not seen on AWS yet" in " ".join(text.split())
    assert told.read_text("utf-8").splitlines() == [
        "deploy --all -c settings=endpoint.yaml",
        "destroy --all -c settings=endpoint.yaml --force",
    ]


@pytest.mark.realtime  # the CDK CLI synthesises twice
def test_synth_without_an_account_and_diff_against_one(aws: LocalAws) -> None:
    status, text = make(None, "synth")
    assert (status, "Templates: cdk.out/" in text) == (0, True), text
    status, text = make(aws, "diff")
    assert status == 0, text
    assert "[+] AWS::SageMaker::Endpoint " in text


def test_what_pages_say_to_commit_is_not_ignored() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = " ".join(" ".join(page.read_text(encoding="utf-8").split()) for page in pages)
    committed = set(re.findall(r"commit (?:the )?`([\w./-]+)`|`([\w./-]+)`: commit", text))
    names = {first or second for first, second in committed}
    assert "cdk.context.json" in names
    assert not names.intersection(ignored)


def test_preflight_can_be_left_out() -> None:
    status, text = make(None, "deploy", "--dry-run", "PREFLIGHT=no", "ARGS=--profile production")
    assert status == 0
    assert "low-latency plan" in text
    assert "preflight" not in text
    assert "cdk deploy --all" in text


def test_preflight_and_cdk_cannot_be_sent_to_two_accounts() -> None:
    status, text = make(None, "deploy", "--dry-run", "ARGS=--profile production")
    assert status != 0
    assert "AWS_PROFILE=... make deploy" in text


def test_settings_with_a_mistake_stop_before_anything_is_asked(tmp_path: Path) -> None:
    settings = tmp_path / "bad.yaml"
    settings.write_text("client_zones: {ids: [use1-az1]}\nendpoints: {}\n", encoding="utf-8")
    for target in ("deploy", "destroy"):
        status, text = make(None, target, f"SETTINGS={settings}")
        assert status != 0
        assert "bad.yaml:1: LLE103" in text
        assert "preflight" not in text
