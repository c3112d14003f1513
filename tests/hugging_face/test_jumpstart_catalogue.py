"""Models of JumpStart as they are read from its catalogue: image, files, environment by type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.hugging_face.jumpstart_catalogue import differences, pin_jumpstart
from low_latency_endpoint.hugging_face.lock_file import (
    pinned_jumpstart_model,
    read_jumpstart_lock,
    read_lock,
    write_lock,
)
from tests.jumpstart_catalogue import (
    BOUGHT,
    DLC,
    EMBEDDER,
    EULA_KEY,
    KEY,
    LLAMA,
    NEURON_KEY,
    SCRIPTED,
    documents,
)
from tests.pinned_models import QWEN

REGION = "us-east-1"
READ = documents().__getitem__


def code_of(model: str, region: str = REGION, **given: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        pin_jumpstart(given.pop("read", READ), model, region, **given)
    return caught.value.code


def test_the_ranking_decides_and_each_type_has_its_own() -> None:
    pinned = pin_jumpstart(READ, LLAMA, REGION).model
    by_type = {name: each for each in pinned.servings for name in each.instance_types}
    # ml.g5.2xlarge is in two configurations: the better ranked one has it.
    assert sorted(by_type) == ["ml.g5.12xlarge", "ml.g5.2xlarge", "ml.inf2.24xlarge"]
    small, large, neuron = (
        by_type[name] for name in ("ml.g5.2xlarge", "ml.g5.12xlarge", "ml.inf2.24xlarge")
    )
    assert small.image == f"{DLC}/djl-inference:0.29.0-lmi11.0.0-cu124"
    assert (small.artifact, neuron.artifact) == (KEY, NEURON_KEY)
    base = {"HF_MODEL_ID": "/opt/ml/model", "SAGEMAKER_MODEL_SERVER_WORKERS": "1"}
    assert small.environment == {**base, "OPTION_MAX_MODEL_LEN": "8192"}
    assert large.environment == {
        **base,
        "OPTION_MAX_MODEL_LEN": "8192",  # of its family
        "OPTION_TENSOR_PARALLEL_DEGREE": "4",
    }
    assert neuron.environment == base
    assert (pinned.gated, pinned.eula, pinned.network_isolation) == (True, EULA_KEY, True)
    assert pinned.download_timeout == 1200
    assert pinned.start_timeout == 900


def test_the_newest_version_is_pinned_and_what_jumpstart_says_of_it() -> None:
    newest = pin_jumpstart(READ, EMBEDDER, REGION)
    assert newest.model.version == "1.10.0"
    assert newest.notes == ("JumpStart calls this version deprecated: Use 1.9.0.",)
    older = pin_jumpstart(READ, EMBEDDER, REGION, "1.9.0")
    assert older.notes == ()
    [serving] = older.model.servings
    assert serving.instance_types == ("ml.c5.xlarge",)  # of ml.p2.xlarge there is no image
    assert serving.artifact == f"acme/{EMBEDDER}-1.9.0.tar.gz"
    assert not older.model.requires_eula


@pytest.mark.parametrize(
    ("model", "given", "code"),
    [
        ("acme-embeder", {}, "LLE395"),
        (EMBEDDER, {"version": "7.0.0"}, "LLE395"),
        (SCRIPTED, {}, "LLE316"),
        (BOUGHT, {}, "LLE316"),
        (EMBEDDER, {"region": "eu-west-1"}, "LLE316"),  # no image there
        (EMBEDDER, {"region": "mars-north-1"}, "LLE397"),
        (EMBEDDER, {"read": lambda key: b"<html>"}, "LLE317"),
        (EMBEDDER, {"read": lambda key: b'[{"id": 7}]'}, "LLE317"),
        (EMBEDDER, {"read": lambda key: b"[" * 100_000}, "LLE317"),
    ],
)
def test_what_cannot_be_pinned_is_a_coded_error(
    model: str, given: dict[str, Any], code: str
) -> None:
    assert code_of(model, **given) == code


def test_a_close_name_is_proposed() -> None:
    with pytest.raises(ConfigurationError, match=EMBEDDER):
        pin_jumpstart(READ, "acme-embeder", REGION)


def test_a_key_outside_of_the_bucket_is_refused() -> None:
    changed = {
        key: value.replace(KEY.encode(), b"../" + KEY.encode())
        for key, value in documents().items()
    }
    assert code_of(LLAMA, read=changed.__getitem__) == "LLE317"


def test_what_differs_from_the_lock_is_said() -> None:
    older = pin_jumpstart(READ, EMBEDDER, REGION, "1.9.0").model
    assert differences(READ, older) == ["1.10.0 is newer than 1.9.0"]
    llama = pin_jumpstart(READ, LLAMA, REGION).model
    assert differences(READ, llama) == []
    changed = {key: value.replace(b"lmi11", b"lmi12") for key, value in documents().items()}
    assert differences(changed.__getitem__, llama) == [
        "1.0.0 is served otherwise than when it was pinned"
    ]


def test_both_kinds_of_models_stay_in_one_lock_file(tmp_path: Path) -> None:
    lock = tmp_path / "models.lock.yaml"
    llama = pin_jumpstart(READ, LLAMA, REGION).model
    assert write_lock(lock, jumpstart=[llama])
    assert read_lock(lock) == {}
    assert write_lock(lock, [QWEN])
    assert read_lock(lock) == {QWEN.model: QWEN}
    assert read_jumpstart_lock(lock) == {LLAMA: llama}
    assert not write_lock(lock, jumpstart=[llama])
    edited = lock.read_text().replace("eula: fmh", "eula: fnh")
    lock.write_text(edited)
    with pytest.raises(ConfigurationError) as caught:
        pinned_jumpstart_model(lock, LLAMA)
    assert caught.value.code == "LLE345"


def test_the_command_reads_the_bucket_with_boto3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "models.lock.yaml"
    with LocalAws.in_process(region=REGION) as aws:
        s3 = aws.client("s3")
        s3.create_bucket(Bucket=f"jumpstart-cache-prod-{REGION}")
        for key, body in documents().items():
            s3.put_object(Bucket=f"jumpstart-cache-prod-{REGION}", Key=key, Body=body)
        for name, value in aws.exports().items():
            monkeypatch.setenv(name, value)
        arguments = ["pin", "--jumpstart", LLAMA, "--region", REGION, "--lock", str(lock)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert f"https://jumpstart-cache-prod-{REGION}.s3.{REGION}.amazonaws.com/{EULA_KEY}" in (
            done.output
        )
        assert pinned_jumpstart_model(lock, LLAMA) == pin_jumpstart(READ, LLAMA, REGION).model
        same = CliRunner().invoke(app, ["pin", "--check", "--lock", str(lock)])
        assert (same.exit_code, same.stdout) == (0, f"{LLAMA}: as pinned\n")
        specification = f"community_models/{LLAMA}/specs_v1.0.0.json"
        other = json.loads(documents()[specification]) | {"hosting_eula_key": "terms/new.txt"}
        s3.put_object(
            Bucket=f"jumpstart-cache-prod-{REGION}", Key=specification, Body=json.dumps(other)
        )
        differs = CliRunner().invoke(app, ["pin", "--check", "--lock", str(lock)])
        assert (differs.exit_code, "served otherwise" in differs.stdout) == (1, True)
        elsewhere = ["pin", "--jumpstart", LLAMA, "--region", "eu-west-1", "--lock", str(lock)]
        missing = CliRunner().invoke(app, elsewhere)
        assert isinstance(missing.exception, ConfigurationError)
        assert missing.exception.code == "LLE317"


@pytest.mark.parametrize(
    "arguments",
    [
        ["acme/tiny", "--jumpstart", LLAMA],
        ["--jumpstart", LLAMA, "--revision", "main"],
        ["acme/tiny", "--version", "1.0.0"],
        ["--jumpstart", LLAMA, "--jumpstart", EMBEDDER, "--version", "1.0.0"],
        ["--jumpstart", LLAMA, "--check", "--version", "1.0.0"],
    ],
)
def test_options_that_do_not_go_together_are_a_matter_of_usage(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["pin", *arguments]).exit_code == 2
