"""``low-latency stage``: the same copy from a machine, between runs resumable."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from low_latency_endpoint.cli import app
from low_latency_endpoint.hugging_face.lock_file import lock_text
from low_latency_endpoint.plan.pinned_model import PinnedFile, PinnedModel
from tests.hub_of_files import FakeHub, FakeModel

TOKEN = "hf_granted"
FILES = {"config.json": b"{}", "a.safetensors": b"a" * 20_000_000, "b.safetensors": b"b" * 9}


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    model = FakeModel(files=FILES, gated="manual", tokens=(TOKEN,))
    with FakeHub({"acme/tiny": model}, tokens=["hf_stranger"]) as running:
        yield running


class Machine:
    """Credentials, a bucket and a lock file."""

    def __init__(self, aws: LocalAws, hub: FakeHub, lock: Path) -> None:
        self.s3, self.lock = aws.client("s3"), lock
        # Another one for each test: what moto holds outlives a local AWS in the same process.
        self.bucket = f"models-{uuid.uuid4().hex}"
        self.s3.create_bucket(Bucket=self.bucket)
        files = tuple(
            PinnedFile(path, len(body), hashlib.sha256(body).hexdigest())
            for path, body in FILES.items()
        )
        commit = hub.repositories["acme/tiny"].branches["main"]
        self.pinned = PinnedModel(model="acme/tiny", revision="main", commit=commit, files=files)
        lock.write_text(lock_text([self.pinned]))

    def stage(self, *models: str, bucket: str = "") -> Any:
        return CliRunner().invoke(
            app, ["stage", *models, "--bucket", bucket or self.bucket, "--lock", str(self.lock)]
        )

    def keys(self) -> set[str]:
        found = self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return {each["Key"] for each in found}


@pytest.fixture
def machine(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with LocalAws.in_process(region="us-east-1") as aws:
        for name, value in aws.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield Machine(aws, hub, tmp_path / "models.lock.yaml")


def test_all_files_arrive_with_a_note_that_no_stack_takes_away(machine):
    done = machine.stage("acme/tiny")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"s3://{machine.bucket}/{machine.pinned.prefix}\n"
    pinned = machine.pinned
    note = f"users/acme/tiny/{pinned.commit}/{pinned.file_list}/by-hand"
    assert machine.keys() == {machine.pinned.prefix + path for path in FILES} | {note}
    assert done.stderr.count("copied") == len(FILES)


def test_a_second_run_copies_what_the_first_did_not(machine, hub):
    hub.tamper("b.safetensors")
    failed = machine.stage()
    assert failed.exit_code == 1
    assert "LLE313" in failed.stderr
    assert "b.safetensors" in failed.stderr
    assert machine.pinned.prefix + "b.safetensors" not in set(machine.keys())
    hub.tamper("b.safetensors", False)
    assert machine.stage().exit_code == 0
    asked = len(hub.requests)
    again = machine.stage()
    assert again.exit_code == 0
    assert len(hub.requests) == asked
    assert again.stderr.count("there already") == len(FILES)


def test_without_access_it_says_so_and_no_token(machine, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_stranger")
    failed = machine.stage()
    assert failed.exit_code == 1
    assert "LLE349" in failed.stderr
    assert "hf_stranger" not in failed.output


@pytest.mark.parametrize(
    ("arguments", "code"), [({"bucket": "no such"}, "LLE387"), ({"models": "acme/none"}, "LLE344")]
)
def test_wrong_arguments_are_refused(machine, arguments, code):
    models = [arguments.pop("models")] if "models" in arguments else []
    failed = machine.stage(*models, **arguments)
    assert code in str(failed.exception) + failed.output
    assert machine.keys() == set()
