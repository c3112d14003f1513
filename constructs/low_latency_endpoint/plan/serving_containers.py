"""Which container serves a pinned model of the Hugging Face Hub on an instance type, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from .model_memory import ModelFit
from .pinned_model import PinnedModel


@dataclass(frozen=True, kw_only=True)
class ServingContainer:
    """The container that serves a model, and what its variant needs.

    Attributes
    ----------
    server : str
        ``vllm``, ``sglang``, ``tei``, ``huggingface``, ``llama-cpp``, ``vllm-neuronx`` or
        ``huggingface-neuronx``.
    repository, tag : str
        Of the image.
    registry : str
        Whose accounts have the repository: ``dlc`` (the Deep Learning Containers'), or ``sagemaker``
        (SageMaker's own, where TEI lies); :meth:`account` knows both.
    environment : mapping of str to str
        What the container needs to serve ``/opt/ml/model`` without network.
    startup_health_check_timeout, model_data_download_timeout : timedelta
        From the sizes of the files.
    inference_ami : str or None
        The inference AMI version that the image needs; ``None`` where its name tells.
    fit : ModelFit
        How the model lies in memory.
    warnings : tuple of str
        What is doubtful, those of ``fit`` included.
    source : str
        Where the tag was read, and when.
    """

    server: str
    repository: str
    tag: str
    registry: str
    environment: Mapping[str, str]
    startup_health_check_timeout: timedelta
    model_data_download_timeout: timedelta
    inference_ami: str | None
    fit: ModelFit
    warnings: tuple[str, ...]
    source: str

    def account(self, region: str, where: str = "") -> str:
        """The account of the image's registry in a Region; LLE328 where it is not known."""
        raise NotImplementedError


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
    raise NotImplementedError
