"""Which container serves a pinned model on an instance type, and what its environment tells the server.

The images are data (``data/serving_containers.csv``). All of them serve ``/opt/ml/model`` without the
network.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from ..errors.frozen import dataclass
from ..facts.images import known_dlc_account, tei_accounts
from ..facts.instance_types import InstanceFacts, instance_facts
from ..facts.limits import CONTAINER_STARTUP_SECONDS, MODEL_DOWNLOAD_SECONDS
from ..facts.rules import IMAGE_REGION
from ..facts.tables import rows
from .model_memory import ModelFit, model_fit
from .pinned_model import NO_CONTAINER, SERVER, PinnedModel
from .served_model import (
    check_served,
    generates,
    is_gguf,
    is_projector,
    served_task,
    served_weights,
    tei_serves,
    trusts_own_code,
)

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
    projectors = [file.path for file in pinned.files if is_projector(file.path)]
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
    compiled = any(file.path.endswith((".neuron", "neuron_config.json")) for file in pinned.files)
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


DOWNLOAD_BYTES_PER_SECOND = 100_000_000
"""From S3 onto the instance. Assumed, on the safe side: what is left is waited for, not more."""
LOAD_BYTES_PER_SECOND = 100_000_000
"""From the disk into memory. Assumed; gp2 volumes without a burst give 128 to 250 MB/s."""
LEAST_TIMEOUT_SECONDS = 600
"""For both. Source: the tests of vLLM's, SGLang's and llama.cpp's images (test/*/sagemaker of
aws/deep-learning-containers) wait 600 s for small models."""


class ServingImage(NamedTuple):
    """One row of ``data/serving_containers.csv``, whose head says what the columns mean."""

    server: str
    accelerator: str | None
    architecture: str
    repository: str
    tag: str
    registry: str
    cuda: str
    tasks: frozenset[str]
    without: frozenset[str]
    inference_ami: str | None
    sdk: str
    source: str
    read: str


@dataclass(frozen=True, kw_only=True)
class ServingContainer:
    """The container that serves a model, and what its variant needs."""

    server: str  # vllm, sglang, tei, huggingface, llama-cpp, vllm-neuronx or huggingface-neuronx
    repository: str  # of the image
    tag: str
    # whose accounts have the repository: dlc (the Deep Learning Containers'), or tei (those of Text
    # Embeddings Inference); account knows both
    registry: str
    # what the container needs to serve /opt/ml/model without network
    environment: Mapping[str, str]
    start_timeout: timedelta  # from the sizes of the files
    download_timeout: timedelta
    # the inference AMI version that the image needs; None where its name tells
    inference_ami: str | None
    fit: ModelFit  # how the model lies in memory
    warnings: tuple[str, ...]  # what is doubtful, those of fit included
    source: str  # where the tag was read, and when

    def account(self, region: str, where: str = "") -> str:
        """The account of the image's registry in a Region."""
        if self.registry != "tei":
            return known_dlc_account(region, where)
        if region not in tei_accounts():
            raise IMAGE_REGION.error(got=region, allowed=", ".join(tei_accounts()), where=where)
        return tei_accounts()[region]


@cache
def serving_images() -> tuple[ServingImage, ...]:
    """All images that serve models, in the table's order."""
    return tuple(
        ServingImage(
            server=row["server"],
            accelerator=None if row["accelerator"] == "cpu" else row["accelerator"],
            architecture=row["architecture"],
            repository=row["repository"],
            tag=row["tag"],
            registry=row["registry"],
            cuda=row["cuda"],
            tasks=frozenset(row["tasks"].split()),
            without=frozenset(row["without"].split()),
            inference_ami=row["inference_ami"] or None,
            sdk=row["sdk"],
            source=row["source"],
            read=row["read"],
        )
        for row in rows("serving_containers")
    )


def serving_container(
    pinned: PinnedModel,
    instance_type: str,
    *,
    server: str | None = None,
    context_length: int | None = None,
    volume_gb: int | None = None,
    trust_remote_code: bool | None = None,
    where: str = "",
) -> ServingContainer:
    """The container that serves a pinned model on an instance type."""
    facts = instance_facts(instance_type)
    if server is not None and server not in {image.server for image in serving_images()}:
        names = dict.fromkeys(image.server for image in serving_images())
        raise SERVER.error(got=server, allowed=", ".join(names), where=where)
    chosen = server or _server(pinned, facts)
    image = _image(pinned, facts, chosen, instance_type, where, stated=server is not None)
    doubts = check_served(pinned, chosen, gpu=image.accelerator == "nvidia", where=where)
    trusted = trusts_own_code(pinned, chosen, trust_remote_code, where)
    fit = model_fit(
        pinned, instance_type, context_length=context_length, volume_gb=volume_gb, where=where
    )
    environment, said = server_environment(pinned, chosen, fit, trusted)
    download, slow_download = _timeout(
        "download", pinned.total_bytes / DOWNLOAD_BYTES_PER_SECOND, MODEL_DOWNLOAD_SECONDS.maximum
    )
    startup, slow_start = _timeout(
        "start", fit.weight_bytes / LOAD_BYTES_PER_SECOND, CONTAINER_STARTUP_SECONDS.maximum
    )
    return ServingContainer(
        server=chosen,
        repository=image.repository,
        tag=image.tag,
        registry=image.registry,
        environment=environment,
        start_timeout=startup,
        download_timeout=download,
        inference_ami=image.inference_ami,
        fit=fit,
        warnings=(*doubts, *said, *fit.warnings, *slow_download, *slow_start),
        source=f"{image.source}, read {image.read}",
    )


def _server(pinned: PinnedModel, facts: InstanceFacts | None) -> str:
    """The server that the task and the accelerator ask for."""
    if facts is not None and facts.accelerator == "neuron":
        return "vllm-neuronx" if generates(pinned) else "huggingface-neuronx"
    if is_gguf(pinned):
        return "llama-cpp"
    if generates(pinned):
        return "vllm"
    gpu = facts is not None and facts.accelerator == "nvidia"
    runs = any(image.server == "tei" and _runs_on(image, facts) for image in serving_images())
    return "tei" if runs and tei_serves(pinned, gpu=gpu) else "huggingface"


def _runs_on(image: ServingImage, facts: InstanceFacts | None) -> bool:
    return (
        facts is not None
        and image.accelerator == facts.accelerator
        and image.architecture == (facts.architecture or image.architecture)
        and facts.family not in image.without
    )


def _image(
    pinned: PinnedModel,
    facts: InstanceFacts | None,
    server: str,
    instance_type: str,
    where: str,
    *,
    stated: bool,
) -> ServingImage:
    task = served_task(pinned)
    of_server = [image for image in serving_images() if image.server == server]
    for_task = [image for image in of_server if {task, PIPELINES.get(task or "")} & image.tasks]
    for image in for_task:
        if _runs_on(image, facts):
            return image
    if facts is None:
        got, allowed = f"{instance_type}, a type that this version does not know", "types it knows"
    elif not for_task:
        tasks = sorted(set().union(*(image.tasks for image in of_server)))
        got, allowed = f"{task or 'a model without a task'} with {server}", ", ".join(tasks)
    else:
        got = f"{task} with {server} on {instance_type}"
        allowed = "; ".join(dict.fromkeys(map(_where_it_runs, for_task)))
    raise NO_CONTAINER.error(
        got=got, allowed=allowed, where=where, fix=_WAY_OUT if not stated else ""
    )


_WAY_OUT = (
    "Choose another instance type; for text generation on a CPU a model with GGUF files, or, slow, "
    "server='huggingface'; or name an image yourself with Container(image=...)."
)


def _where_it_runs(image: ServingImage) -> str:
    kind = {"nvidia": "NVIDIA GPUs", "neuron": "Inferentia2 and Trainium"}.get(
        image.accelerator or "", f"CPUs ({image.architecture})"
    )
    without = ", ".join(f"ml.{family}" for family in sorted(image.without))
    return f"{kind}{f' but {without}' if without else ''}"


def _timeout(what: str, seconds: float, most: float | None) -> tuple[timedelta, tuple[str, ...]]:
    """A limit in whole minutes with as much again to spare, within SageMaker's."""
    wanted = max(LEAST_TIMEOUT_SECONDS, -(-2 * seconds // 60) * 60)
    most = most or wanted
    if seconds <= most:
        return timedelta(seconds=min(wanted, most)), ()
    return timedelta(seconds=most), (
        f"{what} may take {seconds / 60:.0f} minutes at 100 MB/s, and SageMaker waits "
        f"{most / 60:.0f} at most",
    )
