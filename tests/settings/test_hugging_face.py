"""A model of the Hub in a settings file: from the lock file, with the line of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from low_latency_endpoint.hugging_face.lock_file import LOCK_NAME
from low_latency_endpoint.settings import Settings, load_settings, plan_endpoint, served_containers
from tests.pinned_models import EMBEDDER, LLAMA, QWEN, written_lock
from tests.settings_files import mistakes, problems

HEAD = """\
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  chat:
    latency: {p99: 3s}
"""


def load(folder: Path, *lines: str) -> Settings:
    path = folder / "endpoint.yaml"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in lines), encoding="utf-8")
    return load_settings(path)


def test_image_and_environment_follow_from_the_lock_file(tmp_path: Path) -> None:
    written_lock(tmp_path)
    settings = load(
        tmp_path,
        "hugging_face: {model: Qwen/Qwen3-8B, environment: {SM_VLLM_MAX_NUM_SEQS: 64}}",
        "instance_type: ml.g6.2xlarge",
    )
    [container] = served_containers(settings.endpoints["chat"])
    assert container.image.dlc is not None
    assert container.image.dlc.repository == "vllm"
    assert container.environment["HF_HUB_OFFLINE"] == "1"
    assert container.environment["SM_VLLM_MAX_NUM_SEQS"] == "64"
    assert container.data is None
    plan = plan_endpoint(settings, "chat")
    assert plan.request.serving.hub is not None
    assert plan.request.serving.images == (f"vllm:{container.image.dlc.tag}",)
    assert plan.inference_ami.value == "al2023-ami-sagemaker-inference-gpu-4-1"  # of CUDA 13


def test_images_elsewhere_than_the_deep_learning_containers_have_their_account(
    tmp_path: Path,
) -> None:
    written_lock(tmp_path, EMBEDDER)
    settings = load(
        tmp_path, f"hugging_face: {{model: {EMBEDDER.model}}}", "instance_type: ml.c7i.xlarge"
    )
    [container] = served_containers(settings.endpoints["chat"], region="us-east-1")
    assert container.image.dlc is not None
    # sagemaker-core 2.27.0, huggingface-tei-cpu.json
    assert (container.image.dlc.repository, container.image.dlc.account) == (
        "tei-cpu",
        "683313688378",
    )


def test_a_variant_beside_the_first_has_a_model_of_its_own(tmp_path: Path) -> None:
    written_lock(tmp_path)
    settings = load(
        tmp_path,
        "hugging_face: {model: Qwen/Qwen3-8B}",
        "instance_type: ml.g6.2xlarge",
        "variants:",
        "  b: {hugging_face: {model: meta-llama/Llama-3.1-8B-Instruct, accept_license: llama3.1}}",
    )
    endpoint = settings.endpoints["chat"]
    [own] = served_containers(endpoint, endpoint.variants["b"])
    assert own.image.dlc is not None


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["hugging_face: {model: Qwen/Qwen3-4B}"], [(5, "LLE344")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, lock: other.yaml}"], [(5, "LLE343")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, accept_license: mit}"], [(5, "LLE346")]),
        (["hugging_face: {model: meta-llama/Llama-3.1-8B-Instruct}"], [(5, "LLE346")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, server: tgi}"], [(5, "LLE909")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, context_length: 0}"], [(5, "LLE391")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, context_length: 40961}"], [(5, "LLE391")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, context_length: 40960}"], [(5, "LLE355")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, bucket: my models}"], [(5, "LLE387")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, token_secret_arn: hf_x}"], [(5, "LLE949")]),
        (["hugging_face: {model: Qwen/Qwen3-8B, environment: {1: a}}"], [(5, "LLE306")]),
        (["containers: [{image: {uri: a}}]", "hugging_face: {model: a/b}"], [(6, "LLE927")]),
        ([], [(3, "LLE905")]),
    ],
)
def test_mistakes_are_found_at_their_lines(tmp_path: Path, lines, found) -> None:
    written_lock(tmp_path, QWEN, LLAMA)
    lines = [*lines, "instance_type: ml.g6.2xlarge"]
    assert problems(lines, lambda lines: load(tmp_path, *lines)) == found


def test_a_model_that_does_not_fit_names_types_that_hold_it(tmp_path: Path) -> None:
    written_lock(tmp_path)
    lines = ("hugging_face: {model: Qwen/Qwen3-8B}", "instance_type: ml.g4dn.xlarge")
    [(_, error)] = mistakes(lines, lambda lines: load(tmp_path, *lines))
    assert error.code == "LLE355"  # 15.3 GiB of weights, 16 GiB of memory
    assert "ml.g6e." in error.allowed


def test_a_lock_file_that_is_missing_or_edited_is_said(tmp_path: Path) -> None:
    lines = ("hugging_face: {model: Qwen/Qwen3-8B}", "instance_type: ml.g6.2xlarge")

    def found() -> list[tuple[int, str]]:
        return problems(lines, lambda lines: load(tmp_path, *lines))

    assert [code for _, code in found()] == ["LLE343"]
    lock = written_lock(tmp_path, QWEN)
    lock.write_text(lock.read_text().replace("apache-2.0", "mit"))
    assert found() == [(5, "LLE345")]
    lock.write_text("models: [")
    assert found() == [(5, "LLE343")]
    assert lock.name == LOCK_NAME
