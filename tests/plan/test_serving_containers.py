"""Which container serves what: the table against AWS's naming rules, and the choice against it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from low_latency_endpoint.facts.images import (
    check_image_runs_on,
    image_needs,
    inference_amis,
    needed_inference_ami,
)
from low_latency_endpoint.facts.instance_types import InstanceFacts, instance_types
from low_latency_endpoint.facts.limits import (
    CONTAINER_STARTUP_SECONDS,
    ENVIRONMENT_ENTRIES,
    ENVIRONMENT_KEY,
    ENVIRONMENT_VALUE_BYTES,
    MODEL_DOWNLOAD_SECONDS,
)
from low_latency_endpoint.plan.pinned_model import PinnedFile, PinnedModel
from low_latency_endpoint.plan.serving_containers import (
    ServingImage,
    serving_container,
    serving_images,
)
from tests.refusals import refused

from . import pinned_models as published
from .pinned_models import GIB, pinned

CLASSIFIER = pinned(
    "a/sentiment", GIB, task="text-classification", files=("tokenizer.json",),
    model_type="distilbert", architectures=["DistilBertForSequenceClassification"],
)  # fmt: skip
RERANKER = pinned(
    "BAAI/bge-reranker-base", GIB, task="text-ranking", files=("tokenizer.json",),
    model_type="xlm-roberta", architectures=["XLMRobertaForSequenceClassification"],
)  # fmt: skip
OWN_CODE = pinned(
    "a/own", GIB, files=("modeling_own.py",), model_type="own", architectures=["OwnForCausalLM"],
    auto_map={"AutoModelForCausalLM": "modeling_own.OwnForCausalLM"},
)  # fmt: skip


def of_kind(image: ServingImage) -> list[InstanceFacts]:
    return [
        facts
        for facts in instance_types().values()
        if facts.accelerator == image.accelerator
        and facts.architecture == image.architecture
        and facts.family not in image.without
    ]


@pytest.mark.parametrize(
    "image", serving_images(), ids=lambda image: f"{image.repository}:{image.tag}"
)
def test_a_row_says_of_its_image_what_its_name_says(image: ServingImage) -> None:
    name = f"{image.repository}:{image.tag}"
    needs = image_needs(name)
    assert needs.accelerator == image.accelerator
    assert needs.cpu_only == (image.accelerator is None)
    assert needs.certain
    if needs.architecture:
        assert needs.architecture == image.architecture
    assert ".".join(map(str, needs.cuda or ())) == image.cuda
    assert image.registry in ("dlc", "tei")
    assert image.tasks
    assert image.source
    assert image.inference_ami is None or image.inference_ami in inference_amis()


@pytest.mark.parametrize(
    "image", serving_images(), ids=lambda image: f"{image.repository}:{image.tag}"
)
def test_an_image_runs_on_every_type_that_its_row_allows(image: ServingImage) -> None:
    types = of_kind(image)
    assert types
    families = {facts.family for facts in instance_types().values()}
    assert image.without <= families
    name = f"{image.repository}:{image.tag}"
    for facts in types:
        ami = image.inference_ami or needed_inference_ami([([name], facts.name)])
        check_image_runs_on(name, facts.name, ami)


@pytest.mark.parametrize(
    ("model", "instance_type", "server", "repository"),
    [
        (published.QWEN3_8B, "ml.g6.2xlarge", "vllm", "vllm"),
        (published.GGUF, "ml.g6.2xlarge", "llama-cpp", "llama-cpp"),
        (published.GGUF, "ml.c7i.4xlarge", "llama-cpp", "llama-cpp"),
        (published.GGUF, "ml.c7g.4xlarge", "llama-cpp", "llama-cpp-arm64"),
        (published.BGE_SMALL, "ml.g6.xlarge", "tei", "tei"),
        (published.BGE_SMALL, "ml.c7i.xlarge", "tei", "tei-cpu"),
        (RERANKER, "ml.c7i.xlarge", "tei", "tei-cpu"),
        # TEI has no classifier of DistilBERT on GPUs, and no code for Blackwell before 1.9.
        (CLASSIFIER, "ml.g6.xlarge", "huggingface", "huggingface-pytorch-inference"),
        (
            published.LLAMA_8B,
            "ml.inf2.24xlarge",
            "vllm-neuronx",
            "huggingface-vllm-inference-neuronx",
        ),
        (
            published.BGE_SMALL,
            "ml.inf2.xlarge",
            "huggingface-neuronx",
            "huggingface-pytorch-inference-neuronx",
        ),
    ],
)
def test_task_and_accelerator_decide(
    model: PinnedModel, instance_type: str, server: str, repository: str
) -> None:
    container = serving_container(model, instance_type)
    assert (container.server, container.repository) == (server, repository)
    check_image_runs_on(f"{container.repository}:{container.tag}", instance_type)


def test_a_stated_server_is_taken() -> None:
    container = serving_container(published.QWEN3_8B, "ml.g6.2xlarge", server="sglang")
    assert container.environment["SM_SGLANG_CONTEXT_LENGTH"] == "27648"
    assert container.environment["SM_SGLANG_TP"] == "1"
    assert container.environment["SM_SGLANG_ENABLE_METRICS"] == "true"
    slow = serving_container(published.QWEN3_8B, "ml.m7i.4xlarge", server="huggingface")
    assert any("slow" in warning for warning in slow.warnings)


def test_an_old_pipeline_is_served_by_the_image_that_still_has_it() -> None:
    asked = pinned("a/qa", GIB, task="question-answering", model_type="roberta")
    assert "transformers4.51.3" in serving_container(asked, "ml.g6.xlarge").tag
    filled = pinned("a/fill", GIB, task="fill-mask", model_type="roberta")
    assert "transformers5.5.3" in serving_container(filled, "ml.g6.xlarge").tag


ALL = [
    (published.QWEN3_8B, "ml.g6.2xlarge", None),
    (published.QWEN3_8B, "ml.g6.2xlarge", "sglang"),
    (published.GGUF, "ml.c7i.4xlarge", None),
    (published.BGE_SMALL, "ml.c7i.xlarge", None),
    (CLASSIFIER, "ml.g6.xlarge", None),
    (published.LLAMA_8B, "ml.inf2.24xlarge", None),
    (published.BGE_SMALL, "ml.inf2.xlarge", None),
]


@pytest.mark.parametrize(("model", "instance_type", "server"), ALL)
def test_every_container_is_offline_and_within_sagemakers_limits(
    model: PinnedModel, instance_type: str, server: str | None
) -> None:
    container = serving_container(model, instance_type, server=server)
    environment = container.environment
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "DO_NOT_TRACK"):
        assert environment[name] == "1"
    assert environment["OPT_OUT_TRACKING"] == "true"
    assert model.model not in (environment.get("HF_MODEL_ID"), environment.get("SM_VLLM_MODEL"))
    ENVIRONMENT_ENTRIES.check(len(environment))
    for key, value in environment.items():
        ENVIRONMENT_KEY.check(key)
        assert value
        ENVIRONMENT_VALUE_BYTES.check(len(value.encode()))
    for timeout, limit in (
        (container.start_timeout, CONTAINER_STARTUP_SECONDS),
        (container.download_timeout, MODEL_DOWNLOAD_SECONDS),
    ):
        limit.check(timeout.total_seconds())


def test_vllm_serves_the_folder_under_the_models_name() -> None:
    environment = serving_container(published.QWEN3_8B, "ml.g6.2xlarge").environment
    told = {key: value for key, value in environment.items() if key.startswith("SM_VLLM_")}
    assert told == {
        "SM_VLLM_MAX_MODEL_LEN": "27648",
        "SM_VLLM_SERVED_MODEL_NAME": "Qwen/Qwen3-8B",
        "SM_VLLM_TENSOR_PARALLEL_SIZE": "1",
    }
    assert environment["VLLM_NO_USAGE_STATS"] == "1"
    assert environment["STANDARD_AUTO_INSTALL_REQ"] == "false"
    own = serving_container(published.QWEN3_8B, "ml.g6e.12xlarge").environment
    assert "SM_VLLM_MAX_MODEL_LEN" not in own
    assert own["SM_VLLM_TENSOR_PARALLEL_SIZE"] == "4"
    # Of an unknown cache vLLM finds out itself what fits.
    unknown = serving_container(published.DEEPSEEK_V3, "ml.p5en.48xlarge").environment
    assert unknown["SM_VLLM_MAX_MODEL_LEN"] == "auto"


def test_other_servers_are_told_where_the_model_is() -> None:
    tei = serving_container(published.BGE_SMALL, "ml.c7i.xlarge").environment
    assert tei["HF_MODEL_ID"] == "/opt/ml/model"
    huggingface = serving_container(CLASSIFIER, "ml.g6.xlarge").environment
    assert huggingface["HF_TASK"] == "text-classification"
    assert "HF_MODEL_ID" not in huggingface
    llama = serving_container(published.GGUF, "ml.c7i.4xlarge").environment
    assert llama["SM_LLAMA_CPP_MODEL"] == "/opt/ml/model/Qwen3-8B-Q4_K_M.gguf"
    assert "SM_LLAMA_CPP_MMPROJ" not in llama
    neuron = serving_container(published.LLAMA_8B, "ml.inf2.24xlarge", context_length=4096)
    assert neuron.environment["SM_ON_MODEL"] == "/opt/ml/model"
    assert neuron.environment["SM_ON_SEQUENCE_LENGTH"] == "4096"


def test_what_is_not_compiled_for_inferentia_warns() -> None:
    plain = serving_container(published.LLAMA_8B, "ml.inf2.24xlarge")
    assert any("optimum-neuron" in warning for warning in plain.warnings)
    assert plain.inference_ami == "al2-ami-sagemaker-inference-neuron-2"
    files = (*published.LLAMA_8B.files, PinnedFile("neuron_config.json", 1000, "0" * 64))
    compiled = serving_container(replace(published.LLAMA_8B, files=files), "ml.inf2.24xlarge")
    assert not any("optimum-neuron" in warning for warning in compiled.warnings)


def test_code_beside_the_weights_runs_only_where_somebody_says_so() -> None:
    with refused("LLE390") as caught:
        serving_container(OWN_CODE, "ml.g6.xlarge")
    assert "modeling_own.py" in caught.value.got
    trusted = serving_container(OWN_CODE, "ml.g6.xlarge", trust_remote_code=True)
    assert trusted.environment["SM_VLLM_TRUST_REMOTE_CODE"] == "true"
    without = serving_container(OWN_CODE, "ml.g6.xlarge", trust_remote_code=False)
    assert "SM_VLLM_TRUST_REMOTE_CODE" not in without.environment
    task = replace(OWN_CODE, task="fill-mask")
    with refused("LLE390"):
        serving_container(task, "ml.g6.xlarge")
    told = serving_container(task, "ml.g6.xlarge", trust_remote_code=True).environment
    assert told["HF_TRUST_REMOTE_CODE"] == "True"


def test_what_a_server_is_sure_not_to_serve_is_refused() -> None:
    t5 = pinned("a/b", GIB, architectures=["T5ForConditionalGeneration"], is_encoder_decoder=True)
    with refused("LLE354"):
        serving_container(t5, "ml.g6.xlarge")
    with refused("LLE354"):
        serving_container(CLASSIFIER, "ml.g6.xlarge", server="tei")


def test_where_no_image_runs_the_refusal_says_where_one_does() -> None:
    with refused("LLE353") as caught:
        serving_container(published.QWEN3_8B, "ml.m7i.4xlarge")
    assert "NVIDIA GPUs" in caught.value.allowed
    assert "GGUF" in caught.value.fix
    for model, name in (
        (published.QWEN3_8B, "ml.p3.8xlarge"),  # Volta, and CUDA 13
        (published.QWEN3_8B, "ml.m99.large"),
        (published.LLAMA_8B, "ml.trn2.48xlarge"),
        (CLASSIFIER, "ml.c7g.xlarge"),
        (pinned("a/b", GIB, task="text-to-image"), "ml.g6.xlarge"),
        (pinned("a/b", GIB, task=None), "ml.g6.xlarge"),
    ):
        with refused("LLE353"):
            serving_container(model, name)
    with refused("LLE392"):
        serving_container(published.QWEN3_8B, "ml.g6.xlarge", server="tgi")


def test_what_tei_serves_on_gpus_alone_is_served_by_transformers_on_a_cpu() -> None:
    embedder = replace(published.BGE_SMALL, config={"model_type": "qwen2"})
    assert serving_container(embedder, "ml.g6.xlarge").server == "tei"
    assert serving_container(embedder, "ml.c7i.xlarge").server == "huggingface"


def test_tei_without_a_fast_tokenizer_is_not_chosen() -> None:
    files = tuple(each for each in published.BGE_SMALL.files if each.path != "tokenizer.json")
    container = serving_container(replace(published.BGE_SMALL, files=files), "ml.c7i.xlarge")
    assert container.server == "huggingface"


def test_time_outs_grow_with_the_files_up_to_sagemakers_limit() -> None:
    small = serving_container(published.BGE_SMALL, "ml.c7i.xlarge")
    assert small.start_timeout == timedelta(minutes=10)
    assert small.download_timeout == timedelta(minutes=10)
    # 141.1 GB at 100 MB/s are 1,411 s; twice that in whole minutes are 48.
    large = serving_container(published.LLAMA_70B, "ml.p4de.24xlarge")
    assert large.download_timeout == timedelta(minutes=48)
    assert large.start_timeout == timedelta(minutes=48)
    assert not any("SageMaker waits" in warning for warning in large.warnings)
    # 688.6 GB are 6,886 s: more than the hour that SageMaker waits.
    huge = serving_container(published.DEEPSEEK_V3, "ml.p5en.48xlarge")
    assert huge.download_timeout == timedelta(hours=1)
    assert any("SageMaker waits 60 at most" in warning for warning in huge.warnings)


def test_tei_lies_in_other_accounts_than_the_rest() -> None:
    tei = serving_container(published.BGE_SMALL, "ml.c7i.xlarge")
    vllm = serving_container(published.QWEN3_8B, "ml.g6.2xlarge")
    assert tei.account("us-east-1") == "683313688378"
    assert vllm.account("us-east-1") == "763104351884"
    with refused("LLE328"):
        tei.account("eu-nowhere-1")


@pytest.mark.parametrize(
    ("image", "cuda"),
    [
        ("vllm:server-sagemaker-cuda-v1", (12, 9)),
        ("vllm:server-sagemaker-cuda-v1.8", (12, 9)),
        ("vllm:server-sagemaker-cuda-v2", (13, 0)),
        ("vllm:server-sagemaker-cuda-v2.6", (13, 0)),
        ("sglang:server-sagemaker-cuda-v1.4", (13, 0)),
        ("vllm:server-sagemaker-cuda-v3", None),
        ("vllm:server-sagemaker-cuda-v21", None),
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com/own:server-sagemaker-cuda-v1", None),
    ],
)
def test_floating_tags_have_the_cuda_of_their_release(
    image: str, cuda: tuple[int, int] | None
) -> None:
    assert image_needs(image).cuda == cuda
    needed = "al2023-ami-sagemaker-inference-gpu-4-1" if cuda == (13, 0) else None
    assert needed_inference_ami([([image], "ml.g6.xlarge")]) == needed


def test_text_generation_inference_warns_that_it_is_archived() -> None:
    tgi = "huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311-cu124-ubuntu22.04"
    for name in ("ml.g5.xlarge", "ml.unknown.xlarge"):
        assert any("archived" in warning for warning in check_image_runs_on(tgi, name))
    assert not check_image_runs_on(
        "huggingface-pytorch-inference:2.6.0-transformers5.5.3-gpu-py312-cu124-ubuntu22.04",
        "ml.g5.xlarge",
    )
