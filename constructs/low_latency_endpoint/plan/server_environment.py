"""What each server is told by its environment, so that it serves ``/opt/ml/model`` offline."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .model_memory import ModelFit
from .pinned_model import PinnedModel
from .served_model import is_projector, served_task, served_weights

MODEL_FOLDER = "/opt/ml/model"
OFFLINE: Mapping[str, str] = {
    # huggingface_hub 2.4.0, constants.py: without it a library asks the Hub for newer files first.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",  # usage reports: https://consoledonottrack.com
}
"""What keeps any server from calling out at its start."""
# Usage reports of AWS's images: aws/deep-learning-containers, scripts/telemetry.
_OF_AWS = {"OPT_OUT_TRACKING": "true"}
# aws/model-hosting-container-standards, dependency_manager.py: by default a requirements.txt beside
# the weights starts a pip install, which ends the container where there is no network.
_SUPERVISED = {"STANDARD_AUTO_INSTALL_REQ": "false"}


def server_environment(
    pinned: PinnedModel, server: str, fit: ModelFit, trusts_code: bool
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The environment of a container that serves a model, and what is doubtful of it."""
    own, doubts = _OF_SERVER[server](pinned, fit, trusts_code)
    return MappingProxyType({**OFFLINE, **_OF_AWS, **own}), doubts


_Told = tuple[dict[str, str], tuple[str, ...]]


def _vllm(pinned: PinnedModel, fit: ModelFit, trusts_code: bool) -> _Told:
    # SM_VLLM_X becomes --x: aws/deep-learning-containers, scripts/docker/vllm/sagemaker_args.py
    told = {
        **_SUPERVISED,
        "VLLM_NO_USAGE_STATS": "1",
        # Else callers of the OpenAI API would have to call the model /opt/ml/model.
        "SM_VLLM_SERVED_MODEL_NAME": pinned.model,
        "SM_VLLM_TENSOR_PARALLEL_SIZE": str(fit.tensor_parallel),
    }
    doubts: tuple[str, ...] = ()
    if fit.context_length:
        told["SM_VLLM_MAX_MODEL_LEN"] = str(fit.context_length)
    elif fit.kv_bytes_per_token is None:
        # https://github.com/vllm-project/vllm/issues/41364: "--max-model-len auto"
        told["SM_VLLM_MAX_MODEL_LEN"] = "auto"
        doubts = ("vLLM itself decides for how long a context there is room",)
    if trusts_code:
        told["SM_VLLM_TRUST_REMOTE_CODE"] = "true"
    return told, doubts


def _sglang(pinned: PinnedModel, fit: ModelFit, trusts_code: bool) -> _Told:
    # aws/deep-learning-containers, scripts/docker/sglang/sagemaker_entrypoint.sh
    told = {
        **_SUPERVISED,
        "SM_SGLANG_SERVED_MODEL_NAME": pinned.model,
        "SM_SGLANG_TP": str(fit.tensor_parallel),
        "SM_SGLANG_ENABLE_METRICS": "true",
    }
    if fit.context_length:
        told["SM_SGLANG_CONTEXT_LENGTH"] = str(fit.context_length)
    if trusts_code:
        told["SM_SGLANG_TRUST_REMOTE_CODE"] = "true"
    return told, ()


def _tei(pinned: PinnedModel, fit: ModelFit, trusts_code: bool) -> _Told:
    # aws/deep-learning-containers, docs/tei/deployment/sagemaker.md: "To serve model artifacts from S3"
    return {"HF_MODEL_ID": MODEL_FOLDER}, ()


def _huggingface(pinned: PinnedModel, fit: ModelFit, trusts_code: bool) -> _Told:
    # sagemaker-huggingface-inference-toolkit 2.6.0: HF_TASK; HF_MODEL_ID would ask the Hub.
    task = served_task(pinned) or ""
    told = {"HF_TASK": PIPELINES.get(task, task)}
    if trusts_code:
        told["HF_TRUST_REMOTE_CODE"] = "True"
    if task == "sentence-similarity":
        return told, (
            "the container answers with an embedding of every token, not of the sentence",
        )
    return told, ()


def _llama_cpp(pinned: PinnedModel, fit: ModelFit, trusts_code: bool) -> _Told:
    # aws/deep-learning-containers, scripts/docker/llama_cpp/sagemaker_entrypoint.sh
    told = {
        "SM_LLAMA_CPP_MODEL": f"{MODEL_FOLDER}/{served_weights(pinned)[0].path}",
        "SM_LLAMA_CPP_ALIAS": pinned.model,
    }
    projectors = [each.path for each in pinned.files if is_projector(each.path)]
    if projectors:
        told["SM_LLAMA_CPP_MMPROJ"] = f"{MODEL_FOLDER}/{projectors[0]}"
    if fit.context_length:
        told["SM_LLAMA_CPP_CTX_SIZE"] = str(fit.context_length)
    return told, ()


_COMPILED = (
    "it runs what optimum-neuron has compiled, and no compiled model is among the pinned files: the "
    "container would look for it on the Hub, which network isolation does not let it "
    "(https://huggingface.co/docs/optimum-neuron/guides/export_model)"
)


def _vllm_neuronx(pinned: PinnedModel, fit: ModelFit, trusts_code: bool) -> _Told:
    # optimum-neuron's guide "Deploy Llama 3.3 70B on AWS Inferentia2"
    told = {"SM_ON_MODEL": MODEL_FOLDER, "VLLM_NO_USAGE_STATS": "1"}
    if fit.context_length:
        told["SM_ON_SEQUENCE_LENGTH"] = str(fit.context_length)
    return told, _neuron_doubts(pinned)


def _huggingface_neuronx(pinned: PinnedModel, fit: ModelFit, trusts_code: bool) -> _Told:
    return _huggingface(pinned, fit, trusts_code)[0], _neuron_doubts(pinned)


def _neuron_doubts(pinned: PinnedModel) -> tuple[str, ...]:
    compiled = any(each.path.endswith((".neuron", "neuron_config.json")) for each in pinned.files)
    return () if compiled else (_COMPILED,)


PIPELINES = {"sentence-similarity": "feature-extraction", "text-to-speech": "text-to-audio"}
"""What transformers calls a task of the Hub, where it has another name for it."""
_OF_SERVER = {
    "huggingface": _huggingface,
    "huggingface-neuronx": _huggingface_neuronx,
    "llama-cpp": _llama_cpp,
    "sglang": _sglang,
    "tei": _tei,
    "vllm": _vllm,
    "vllm-neuronx": _vllm_neuronx,
}
