"""Images against instance types: what cannot run is an error, what is odd a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.images import (
    check_ami_runs_on,
    check_built_image_runs_on,
    check_image_folder,
    check_image_runs_on,
    dlc_account,
    dlc_accounts,
    driver_doubts,
    image_needs,
    inference_amis,
    known_dlc_account,
    needed_inference_ami,
)
from low_latency_endpoint.facts.instance_types import instance_types
from low_latency_endpoint.facts.limits import INFERENCE_AMI
from low_latency_endpoint.options.container import ImageSettings
from low_latency_endpoint.report.visible import visible
from tests.refusals import refused

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com/"
GPU = REGISTRY + (
    "huggingface-pytorch-inference:2.6.0-transformers4.49.0-gpu-py312-cu124-ubuntu22.04"
)
CPU = REGISTRY + "huggingface-pytorch-inference:2.6.0-transformers4.49.0-cpu-py312-ubuntu22.04"
NEURONX = REGISTRY + (
    "huggingface-pytorch-inference-neuronx:2.1.2-transformers4.43.2-neuronx-"
    "py310-sdk2.20.0-ubuntu20.04"
)
NEURON = REGISTRY + (
    "huggingface-pytorch-inference-neuron:1.13.1-transformers4.34.1-neuron-py310-"
    "sdk2.15.0-ubuntu20.04"
)
ARM = REGISTRY + "pytorch-inference-arm64:2.6.0-cpu-py312-ubuntu22.04"
VLLM = REGISTRY + "vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"
RAY = REGISTRY + "ray:2.0-gpu-py312-cu129-ubuntu24.04"
CUDA_13_AMI = "al2023-ami-sagemaker-inference-gpu-4-1"
OWN_GPU = "123456789012.dkr.ecr.us-east-1.amazonaws.com/ranker:gpu-7"


@pytest.mark.parametrize(
    ("image", "expected"),  # accelerator, its generation, architecture, CUDA, for CPUs only
    [
        (GPU, ("nvidia", None, "x86_64", (12, 4), False)),
        (CPU, (None, None, "x86_64", None, True)),
        (NEURONX, ("neuron", "neuronx", "x86_64", None, False)),
        (NEURON, ("neuron", "neuron", "x86_64", None, False)),
        (ARM, (None, None, "arm64", None, True)),
        (VLLM, ("nvidia", None, None, (13, 0), False)),
        ("vllm:omni-sagemaker-cuda-v1.8", ("nvidia", None, None, None, False)),
        ("djl-inference:0.29.0-neuronx-sdk2.19.1", ("neuron", "neuronx", "x86_64", None, False)),
        ("djl-inference:0.38.0-lmi28.0.0-cu129", ("nvidia", None, "x86_64", (12, 9), False)),
        (
            "tensorflow-inference:1.14.0-gpu-py36-cu92-ubuntu16.04",
            ("nvidia", None, "x86_64", (9, 2), False),
        ),
        ("sagemaker-tritonserver:26.05-py3", (None, None, "x86_64", None, None)),
        ("sagemaker-tritonserver:26.05-py3-cpu", (None, None, "x86_64", None, True)),
        ("sagemaker-neo-pytorch:1.12-inf-py3", ("neuron", "neuron", "x86_64", None, False)),
        (
            "pytorch-inference-graviton:2.0.1-cpu-py310-ubuntu20.04",
            (None, None, "arm64", None, True),
        ),
        ("tei-cpu:2.0.1-tei1.8.2", (None, None, None, None, True)),
        ("registry.example.com:5000/team/scorer:7", (None, None, None, None, None)),
        ("team/document-cruncher:9", (None, None, None, None, None)),
        ("${Token[TOKEN.12]}", (None, None, None, None, None)),
        (GPU + "@sha256:" + "0" * 64, ("nvidia", None, "x86_64", (12, 4), False)),
    ],
)
def test_needs(image: str, expected: tuple[object, ...]) -> None:
    needs = image_needs(image)
    found = (needs.accelerator, needs.neuron_generation, needs.architecture, needs.cuda)
    assert (*found, needs.cpu_only) == expected


@pytest.mark.parametrize(
    ("image", "instance_type", "ami"),
    [
        (GPU, "ml.g5.xlarge", None),
        (GPU, "ml.p5.48xlarge", None),
        (CPU, "ml.m5.12xlarge", None),
        (NEURONX, "ml.inf2.xlarge", None),
        (NEURONX, "ml.trn1.2xlarge", None),
        (NEURON, "ml.inf1.xlarge", None),
        (ARM, "ml.c7g.xlarge", None),
        ("any/thing:1", "ml.inf1.xlarge", None),
        (GPU, "ml.g99.xlarge", None),  # a type that the table does not know yet
        ("${Token[TOKEN.12]}", "ml.inf2.xlarge", None),
        (VLLM, "ml.g6.xlarge", CUDA_13_AMI),
        (GPU, "ml.g6.xlarge", "al2-ami-sagemaker-inference-gpu-3-1"),
        (NEURONX, "ml.trn1.2xlarge", "al2-ami-sagemaker-inference-neuron-2"),
        (VLLM, "ml.g6.xlarge", "an-ami-of-next-year"),
    ],
)
def test_runs(image: str, instance_type: str, ami: str | None) -> None:
    assert check_image_runs_on(image, instance_type, ami) == []


@pytest.mark.parametrize(
    ("image", "instance_type", "code"),
    [
        (GPU, "ml.inf2.xlarge", "LLE330"),
        (GPU, "ml.trn1.2xlarge", "LLE330"),
        (GPU, "ml.dl1.24xlarge", "LLE330"),
        (VLLM, "ml.inf1.xlarge", "LLE330"),
        (NEURONX, "ml.g5.xlarge", "LLE331"),
        (NEURON, "ml.m5.xlarge", "LLE331"),
        (NEURONX, "ml.inf1.xlarge", "LLE332"),
        (NEURON, "ml.inf2.xlarge", "LLE333"),
        (NEURON, "ml.trn1.2xlarge", "LLE333"),
        (CPU, "ml.m6g.xlarge", "LLE334"),
        (CPU, "ml.c8g.large", "LLE334"),
        (ARM, "ml.m5.xlarge", "LLE335"),
        (ARM, "ml.g5.xlarge", "LLE335"),
        (GPU, "ml.m5.xlarge", "LLE336"),
        (VLLM, "ml.c7g.xlarge", "LLE336"),
        # A mirrored container is taken at its word.
        (GPU.replace("763104351884", "123456789012"), "ml.m5.xlarge", "LLE336"),
    ],
)
def test_cannot_run(image: str, instance_type: str, code: str) -> None:
    with refused(code, where="Stack/Model") as caught:
        check_image_runs_on(image, instance_type, where="Stack/Model")
    assert image in caught.value.got


@pytest.mark.parametrize(
    ("image", "instance_type", "ami", "code", "allowed"),
    [
        (VLLM, "ml.g6.xlarge", "al2-ami-sagemaker-inference-gpu-2", "LLE337", CUDA_13_AMI),
        (VLLM, "ml.g6.xlarge", "al2-ami-sagemaker-inference-gpu-3-1", "LLE337", "up to 12.4"),
        (NEURONX, "ml.inf2.xlarge", "al2-ami-sagemaker-inference-gpu-2", "LLE338", "NVIDIA GPU"),
        (GPU, "ml.g5.xlarge", "al2-ami-sagemaker-inference-neuron-2", "LLE338", "ml.inf2, ml.trn"),
        (NEURON, "ml.inf1.xlarge", "al2-ami-sagemaker-inference-neuron-2", "LLE338", "ml.inf2"),
        (CPU, "ml.m5.xlarge", "al2023-ami-sagemaker-inference-gpu-4-1", "LLE338", "NVIDIA GPU"),
        (OWN_GPU, "ml.m5.xlarge", "al2023-ami-sagemaker-inference-gpu-4-1", "LLE338", "NVIDIA"),
    ],
)
def test_ami_that_cannot_be(
    image: str, instance_type: str, ami: str, code: str, allowed: str
) -> None:
    with refused(code) as caught:
        check_image_runs_on(image, instance_type, ami)
    assert allowed in caught.value.allowed


@pytest.mark.parametrize(
    ("image", "instance_type", "ami", "says"),
    [
        (CPU, "ml.g5.xlarge", None, "idle"),
        (CPU, "ml.inf2.xlarge", None, "idle"),
        # CUDA's minor versions are compatible within a major one, so 12.4 on a 12.2 driver may run
        (GPU, "ml.g5.xlarge", "al2-ami-sagemaker-inference-gpu-2-1", "minor version"),
        # SageMaker's own choice of AMI is documented nowhere
        (VLLM, "ml.g7.2xlarge", None, "stays Creating"),
        (VLLM, "ml.g6.2xlarge", None, f"set the inference AMI to {CUDA_13_AMI} ("),
        # a CUDA 12 image was seen to hang on the AMI for CUDA 13
        (RAY, "ml.g5.2xlarge", CUDA_13_AMI, "deep-learning-containers/pull/6187"),
        # somebody's own name is no promise
        (OWN_GPU, "ml.m5.xlarge", None, "by its name"),
        (
            "123456789012.dkr.ecr.us-east-1.amazonaws.com/vllm:mine",
            "ml.m5.xlarge",
            None,
            "by its name",
        ),
    ],
)
def test_suspicious(image: str, instance_type: str, ami: str | None, says: str) -> None:
    (warning,) = check_image_runs_on(image, instance_type, ami)
    assert says in warning


@pytest.mark.parametrize(
    ("architecture", "instance_type", "code"),
    [("arm64", "ml.m5.xlarge", "LLE335"), ("x86_64", "ml.c7g.xlarge", "LLE334")],
)
def test_a_built_image_for_another_architecture(
    architecture: str, instance_type: str, code: str
) -> None:
    with refused(
        code, got=f"an image built for {architecture} on {instance_type}", where="Stack/Model"
    ):
        check_built_image_runs_on(architecture, instance_type, "Stack/Model")


def test_a_built_image_that_runs_or_may() -> None:
    assert check_built_image_runs_on("x86_64", "ml.m5.xlarge") == ""
    assert check_built_image_runs_on("arm64", "ml.c7g.xlarge") == ""
    assert check_built_image_runs_on("riscv64", "ml.m5.xlarge") == ""  # nothing is known of it
    assert check_built_image_runs_on("", "ml.g99.xlarge") == ""
    doubt = check_built_image_runs_on("", "ml.c7g.xlarge")
    assert "of the machine that builds it, and ml.c7g.xlarge is arm64" in doubt


def test_an_ami_without_an_image() -> None:
    check_ami_runs_on("al2-ami-sagemaker-inference-gpu-2", "ml.g5.xlarge")
    check_ami_runs_on("an-ami-of-next-year", "ml.m5.xlarge")
    check_ami_runs_on("al2-ami-sagemaker-inference-gpu-2", "ml.g99.xlarge")
    with refused("LLE338", got="ml.m5.xlarge with al2-ami-sagemaker-inference-gpu-2"):
        check_ami_runs_on("al2-ami-sagemaker-inference-gpu-2", "ml.m5.xlarge", "Stack/Variant")


def test_drivers_of_types_that_nobody_knows_are_not_doubted() -> None:
    assert driver_doubts(VLLM, "ml.g99.xlarge", "al2-ami-sagemaker-inference-gpu-2") == []


def test_folders_to_build_from(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").touch()
    (tmp_path / "Dockerfile.gpu").touch()
    (tmp_path / "folder").mkdir()
    check_image_folder(str(tmp_path), "")
    check_image_folder(str(tmp_path), "Dockerfile.gpu")
    for file in ("Dockerfile.cpu", "folder", "Docker\0file"):
        with refused("LLE380", got=visible(f"no file {file} in {tmp_path}")):
            check_image_folder(str(tmp_path), file)


@pytest.mark.parametrize("file", ["/etc/passwd", "../Dockerfile", "a/../../x", "C:\\x", "..\\x"])
def test_a_dockerfile_outside_of_its_folder(tmp_path: Path, file: str) -> None:
    with refused("LLE983", got=file):
        check_image_folder(str(tmp_path), file)
    with refused("LLE983", got=file):
        ImageSettings(asset=tmp_path, file=file)


def test_regions_whose_registry_is_not_known() -> None:
    assert known_dlc_account("us-east-1") == "763104351884"
    with refused("LLE328", got="xx-north-9") as caught:
        known_dlc_account("xx-north-9", "Stack/Model")
    assert "us-east-1" in caught.value.allowed.split(", ")


@pytest.mark.parametrize("family", ["g4dn", "g5", "g6", "g6e", "p4d", "p4de", "p5", "p5e", "p5en"])
def test_cuda_13_needs_its_ami_where_sagemakers_sdk_sets_it(family: str) -> None:
    types = [name for name in instance_types() if name.split(".")[1] == family]
    assert types
    for instance_type in types:
        assert needed_inference_ami([([CPU, VLLM], instance_type)]) == CUDA_13_AMI
        assert check_image_runs_on(VLLM, instance_type, CUDA_13_AMI) == []


@pytest.mark.parametrize(
    "placements",
    [
        [([GPU], "ml.g5.xlarge")],  # CUDA 12
        [([RAY], "ml.g5.xlarge")],
        [([VLLM], "ml.g7.2xlarge")],  # not in the SDK's table
        [([VLLM], "ml.p6-b200.48xlarge")],
        [([VLLM], "ml.m5.xlarge")],  # cannot run at all
        [([VLLM], "ml.g99.xlarge")],
        [([NEURONX], "ml.inf2.xlarge")],
        [(["any/thing:1", "${Token[TOKEN.12]}"], "ml.g6.xlarge")],
        # One AMI for all types of a variant: none fits a GPU and Inferentia
        [([VLLM], "ml.g6e.xlarge"), ([NEURONX], "ml.inf2.xlarge")],
        [],
    ],
)
def test_no_ami_is_chosen_elsewhere(placements: list[tuple[list[str], str]]) -> None:
    assert needed_inference_ami(placements) is None


def test_one_type_of_several_that_needs_the_ami_is_enough() -> None:
    types = ("ml.g7e.2xlarge", "ml.g6e.2xlarge", "ml.g99.xlarge")
    assert needed_inference_ami([([VLLM], each) for each in types]) == CUDA_13_AMI


def test_every_ami_of_the_limits_has_facts() -> None:
    assert set(inference_amis()) == set(INFERENCE_AMI.values)


def test_accounts_of_the_deep_learning_containers() -> None:
    assert dlc_account("us-east-1") == "763104351884"
    assert dlc_account("us-gov-west-1") == "442386744353"
    assert dlc_account("xx-nowhere-1") is None
    assert len(dlc_accounts()) == 32 + 13  # CDK's table, and the Regions that it lacks
    assert all(len(account) == 12 and account.isdigit() for account in dlc_accounts().values())


@given(
    st.text(max_size=60),
    st.sampled_from(sorted(instance_types())),
    st.sampled_from([None, *INFERENCE_AMI.values]),
)
def test_any_name_gives_warnings_or_a_coded_error(image, instance_type, ami):
    code = ""
    try:
        check_image_runs_on(image, instance_type, ami)
    except ConfigurationError as error:
        code = error.code
    assert code in {"", *(f"LLE{number}" for number in range(330, 339))}
    if ami is None:  # text at random follows none of AWS's rules, so it cannot be an error
        assert code == ""
