"""A model of JumpStart in a settings file: from the lock file, with the line of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from low_latency_endpoint.settings import Settings, plan_endpoint, served_containers
from tests.jumpstart_catalogue import EMBEDDER, KEY, LLAMA, written_jumpstart
from tests.settings_files import load_with, problems_with

# The keys of the endpoint begin in line 5.
HEAD = """\
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  guard:
    latency: {p99: 3s}
"""
KMS_KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ACCEPTED = f"jumpstart: {{model: {LLAMA}, accept_eula: true}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written_jumpstart(tmp_path)
    return tmp_path


def load(folder: Path, *lines: str) -> Settings:
    return load_with(folder, HEAD, *lines)


def problems(folder: Path, *lines: str) -> list[tuple[int, str]]:
    return problems_with(folder, HEAD, *lines)


def test_image_files_and_environment_follow_from_the_lock_file(folder: Path) -> None:
    settings = load(folder, ACCEPTED, "instance_type: ml.g5.2xlarge")
    endpoint = settings.endpoints["guard"]
    [container] = served_containers(endpoint, region="eu-west-1")
    assert container.image.dlc is not None
    assert (container.image.dlc.repository, container.image.dlc.tag) == (
        "djl-inference",
        "0.29.0-lmi11.0.0-cu124",
    )
    assert container.environment["OPTION_MAX_MODEL_LEN"] == "8192"
    assert container.data is not None
    assert container.data.s3_prefix == f"s3://jumpstart-private-cache-prod-eu-west-1/{KEY}"
    assert container.data.accept_eula
    assert plan_endpoint(settings, "guard").request.images == (
        "djl-inference:0.29.0-lmi11.0.0-cu124",
    )


def test_an_open_archive_in_an_image_of_another_registry(folder: Path) -> None:
    settings = load(folder, f"jumpstart: {{model: {EMBEDDER}}}", "instance_type: ml.c5.xlarge")
    [container] = served_containers(settings.endpoints["guard"])
    assert container.image.uri is not None
    assert container.image.uri.startswith("683313688378.")
    assert container.data is not None
    assert container.data.s3 == (
        f"s3://jumpstart-cache-prod-us-east-1/acme/{EMBEDDER}-1.10.0.tar.gz"
    )
    assert not container.data.accept_eula


def test_a_variant_has_a_model_of_its_own(folder: Path) -> None:
    settings = load(
        folder,
        ACCEPTED,
        "instance_type: ml.g5.2xlarge",
        "variants:",
        f"  b: {{jumpstart: {{model: {EMBEDDER}}}, instance_type: ml.c5.xlarge}}",
    )
    endpoint = settings.endpoints["guard"]
    [own] = served_containers(endpoint, endpoint.variants["b"])
    assert own.image.uri is not None


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([f"jumpstart: {{model: {LLAMA}}}", "instance_type: ml.g5.2xlarge"], (5, "LLE396")),
        ([ACCEPTED, "instance_type: ml.m5.xlarge"], (5, "LLE315")),
        (["jumpstart: {model: acme-other}", "instance_type: ml.g5.2xlarge"], (5, "LLE344")),
        (
            ["jumpstart:", f"  model: {LLAMA}", "  lock: no.yaml", "instance_type: ml.g5.2xlarge"],
            (7, "LLE343"),
        ),
        (
            [ACCEPTED, "hugging_face: {model: acme/tiny}", "instance_type: ml.g5.2xlarge"],
            (5, "LLE927"),
        ),
        (  # AWS's own bucket, which no key of ours encrypts
            [
                ACCEPTED.replace("}", f", kms_key_arn: '{KMS_KEY}'}}"),
                "instance_type: ml.g5.2xlarge",
            ],
            (5, "LLE904"),
        ),
    ],
)
def test_each_mistake_has_its_line(folder: Path, lines: list[str], found: tuple[int, str]) -> None:
    assert problems(folder, *lines) == [found]


def test_data_of_ones_own_says_the_agreement(folder: Path) -> None:
    image = "image: {uri: 123456789012.dkr.ecr.us-east-1.amazonaws.com/scorer:1}"
    data = "data: {s3_prefix: s3://models/llama/, accept_eula: true}"
    instance = "instance_type: ml.m5.xlarge"
    settings = load(folder, f"containers: [{{{image}, {data}}}]", instance)
    [container] = settings.endpoints["guard"].containers
    assert container.data is not None
    assert container.data.accept_eula
    many = data.replace("s3_prefix", "s3")
    found = problems(folder, f"containers: [{{{image}, {many}, multi_model: true}}]", instance)
    assert found == [(5, "LLE318")]
