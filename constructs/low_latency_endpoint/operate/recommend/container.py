"""What Inference Recommender wants to know of a container: domain, task, framework, version.

The settings say it: the image's repository and tag name framework and version, ``HF_TASK`` the
task. What they leave open is a general value that AWS takes; the command shows all of it before
it starts, and options override it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...settings import EndpointSettings

# API_RecommendationJobContainerConfig: "Valid Values". The service's model takes any text, so
# these are for help and guesses, and no error.
DOMAINS = ("COMPUTER_VISION", "NATURAL_LANGUAGE_PROCESSING", "MACHINE_LEARNING")
TASKS = (
    "IMAGE_CLASSIFICATION",
    "OBJECT_DETECTION",
    "TEXT_GENERATION",
    "IMAGE_SEGMENTATION",
    "FILL_MASK",
    "CLASSIFICATION",
    "REGRESSION",
    "OTHER",
)
FRAMEWORKS = ("TENSORFLOW", "PYTORCH", "XGBOOST", "SAGEMAKER-SCIKIT-LEARN")

_LANGUAGE, _VISION, _GENERAL = DOMAINS[1], DOMAINS[0], DOMAINS[2]
#: Tasks of the Hugging Face Hub, as HF_TASK names them.
_HUGGING_FACE = {
    "text-classification": (_LANGUAGE, "CLASSIFICATION"),
    "sentiment-analysis": (_LANGUAGE, "CLASSIFICATION"),
    "zero-shot-classification": (_LANGUAGE, "CLASSIFICATION"),
    "token-classification": (_LANGUAGE, "CLASSIFICATION"),
    "fill-mask": (_LANGUAGE, "FILL_MASK"),
    "text-generation": (_LANGUAGE, "TEXT_GENERATION"),
    "text2text-generation": (_LANGUAGE, "TEXT_GENERATION"),
    "summarization": (_LANGUAGE, "TEXT_GENERATION"),
    "translation": (_LANGUAGE, "TEXT_GENERATION"),
    "feature-extraction": (_LANGUAGE, "OTHER"),
    "sentence-similarity": (_LANGUAGE, "OTHER"),
    "question-answering": (_LANGUAGE, "OTHER"),
    "image-classification": (_VISION, "IMAGE_CLASSIFICATION"),
    "object-detection": (_VISION, "OBJECT_DETECTION"),
    "image-segmentation": (_VISION, "IMAGE_SEGMENTATION"),
}
_IN_REPOSITORY = (
    ("pytorch", "PYTORCH"),
    ("tensorflow", "TENSORFLOW"),
    ("xgboost", "XGBOOST"),
    ("scikit-learn", "SAGEMAKER-SCIKIT-LEARN"),
)
_VERSION = re.compile(r"([0-9]\.[A-Za-z0-9.]{1,8})(?:-|$)")


@dataclass(frozen=True, slots=True)
class ContainerDescription:
    """The fields of ``ContainerConfig``; ``None`` leaves one out.

    ``assumed`` names the fields that the settings do not say and that hold a general value.
    """

    domain: str
    task: str
    framework: str
    framework_version: str | None
    assumed: tuple[str, ...] = ()

    def request(self) -> dict[str, Any]:
        """The fields as the API names them."""
        given = {
            "Domain": self.domain,
            "Task": self.task,
            "Framework": self.framework,
            "FrameworkVersion": self.framework_version,
        }
        return {name: value for name, value in given.items() if value is not None}


def describe_container(
    endpoint: EndpointSettings,
    *,
    domain: str | None = None,
    task: str | None = None,
    framework: str | None = None,
    framework_version: str | None = None,
) -> ContainerDescription:
    """What the settings say of the first container, below what is given.

    Examples
    --------
    >>> from low_latency_endpoint.settings import parse_settings
    >>> settings = parse_settings('''
    ... client_zones: {ids: [use1-az1, use1-az2]}
    ... endpoints:
    ...   sentiment:
    ...     containers:
    ...       - image: {dlc: {repository: huggingface-pytorch-inference, tag: 2.6.0-cpu-py312}}
    ...         environment: {HF_TASK: text-classification}
    ...     instance_type: ml.m5.large
    ...     latency: {p99: 200ms}
    ... ''')
    >>> found = describe_container(settings.endpoints["sentiment"])
    >>> found.domain, found.task, found.framework, found.framework_version, found.assumed
    ('NATURAL_LANGUAGE_PROCESSING', 'CLASSIFICATION', 'PYTORCH', '2.6.0', ())
    """
    container = endpoint.containers[0]
    hub = _HUGGING_FACE.get(str(container.environment.get("HF_TASK", "")))
    repository, tag = _image_name(endpoint)
    named = next((name for part, name in _IN_REPOSITORY if part in repository), None)
    version = _VERSION.match(tag) if named else None
    assumed = []
    if not (domain or hub):
        assumed.append("domain")
    if not (task or hub):
        assumed.append("task")
    if not (framework or named):
        assumed.append("framework")
    return ContainerDescription(
        domain=domain or (hub[0] if hub else _GENERAL),
        task=task or (hub[1] if hub else "OTHER"),
        framework=framework or named or "PYTORCH",
        framework_version=framework_version or (version[1] if version else None),
        assumed=tuple(assumed),
    )


def _image_name(endpoint: EndpointSettings) -> tuple[str, str]:
    """Repository and tag of the first container's image, as far as the settings say them."""
    image = endpoint.containers[0].image
    if image.dlc is not None:
        return image.dlc.repository, image.dlc.tag
    if image.ecr is not None:
        return image.ecr.repository, image.ecr.tag
    name = (image.uri or "").rpartition("@")[0] or image.uri or ""
    repository, _, tag = name.rpartition("/")[2].partition(":")
    return repository, tag
