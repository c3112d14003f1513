"""What Inference Recommender wants to know of a container: domain, task, framework, version.

The settings say it: the image's repository and tag name framework and version, ``HF_TASK`` the
task. What they leave open is a general value that AWS takes; the command shows all of it before
it starts, and options override it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...settings import EndpointSettings, ImageSettings, served_containers

# API_RecommendationJobContainerConfig names the values. The service's model takes any text, so they
# are guesses here, and no rule.
_LANGUAGE, _VISION = "NATURAL_LANGUAGE_PROCESSING", "COMPUTER_VISION"
#: Where nothing says more.
_GENERAL = {"Domain": "MACHINE_LEARNING", "Task": "OTHER", "Framework": "PYTORCH"}
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


def describe_container(
    endpoint: EndpointSettings, given: Mapping[str, str | None]
) -> tuple[dict[str, str], list[str]]:
    """``ContainerConfig`` of the first container, and which of its values nothing says.

    What is given, by the API's names, wins over what the settings say.

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
    >>> found, assumed = describe_container(settings.endpoints["sentiment"], {})
    >>> list(found.values()), assumed
    (['NATURAL_LANGUAGE_PROCESSING', 'CLASSIFICATION', 'PYTORCH', '2.6.0'], [])
    """
    said: dict[str, str] = {}
    task = str(served_containers(endpoint)[0].environment.get("HF_TASK", ""))
    if task in _HUGGING_FACE:
        said["Domain"], said["Task"] = _HUGGING_FACE[task]
    repository, tag = image_name(served_containers(endpoint)[0].image)
    framework = next((name for part, name in _IN_REPOSITORY if part in repository), None)
    if framework:
        said["Framework"] = framework
        if version := _VERSION.match(tag):
            said["FrameworkVersion"] = version[1]
    said |= {name: value for name, value in given.items() if value}
    return {**_GENERAL, **said}, [name for name in _GENERAL if name not in said]


def image_name(image: ImageSettings) -> tuple[str, str]:
    """Repository and tag of an image, as far as the settings say them."""
    if image.dlc is not None:
        return image.dlc.repository, image.dlc.tag
    if image.ecr is not None:
        return image.ecr.repository, image.ecr.tag
    name = (image.uri or "").rpartition("@")[0] or image.uri or ""
    repository, _, tag = name.rpartition("/")[2].partition(":")
    return repository, tag
