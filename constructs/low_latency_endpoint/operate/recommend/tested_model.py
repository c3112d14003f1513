"""The model that Inference Recommender tests: name and network as deployed, container as stated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...account.calls import Account
from ...account.endpoints import find_model, read_endpoint
from ...account.stacks import ENDPOINT_TYPE, made_at, stack_ids
from ...errors import rule
from ...facts.limits import API
from ...settings import ContainerSettings, EndpointSettings, Settings, served_containers
from ...settings.variant_plans import images_of

MODEL_TO_TEST = rule(
    "LLR103",
    "a recommendation job needs one existing model",
    fix="Deploy the stack first (make deploy), or pass --model-name or --model-package-arn.",
    source=API + "RecommendationJobInputConfig.html",
)

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


def find_deployed_model(account: Account, settings: Settings, key: str) -> dict[str, Any]:
    """The model that an endpoint of the settings runs; LLR103 without one."""
    name = settings.endpoints[key].endpoint_name
    if name is None:  # which the stack alone knows, by the endpoint's ARN
        made = stack_ids(account, settings.stack_name, ENDPOINT_TYPE)
        arn = _found(made_at(f"{key}/Endpoint", made), f"endpoint {key} in {settings.stack_name}")
        name = str(arn.rpartition("/")[2])
    variants = _found(read_endpoint(account, name), f"endpoint {name}").variants
    variant = variants.get(settings.endpoints[key].variant_name, next(iter(variants.values())))
    if not variant.model_name:
        raise MODEL_TO_TEST.error(
            got=f"variant {variant.name} without a model of its own (inference components)",
            allowed="a variant with one",
        )
    return read_model(account, variant.model_name)


def read_model(account: Account, name: str) -> dict[str, Any]:
    """A model and its network, as a job's request has them; LLR103 when there is none."""
    network = _found(find_model(account, name), f"model {name}").get("VpcConfig")
    return {"ModelName": name, **({"VpcConfig": network} if network else {})}


def _found(found: Any, what: str) -> Any:
    if found is None:
        raise MODEL_TO_TEST.error(got=f"no {what}", allowed="what is deployed")
    return found


def describe_container(
    endpoint: EndpointSettings, given: Mapping[str, str | None]
) -> tuple[dict[str, str], list[str]]:
    """``ContainerConfig`` of the first container, and which of its values nothing says."""
    said: dict[str, str] = {}
    first = served_containers(endpoint)[0]
    task = str(first.environment.get("HF_TASK", ""))
    if task in _HUGGING_FACE:
        said["Domain"], said["Task"] = _HUGGING_FACE[task]
    repository, tag = image_name(first)
    framework = next((name for part, name in _IN_REPOSITORY if part in repository), None)
    if framework:
        said["Framework"] = framework
        if version := _VERSION.match(tag):
            said["FrameworkVersion"] = version[1]
    said |= {name: value for name, value in given.items() if value}
    return {**_GENERAL, **said}, [name for name in _GENERAL if name not in said]


def image_name(container: ContainerSettings) -> tuple[str, str]:
    """Last part of the repository's name and tag of an image, as far as the settings say them."""
    name = images_of([container]).get(0, "").partition("@")[0]
    repository, _, tag = name.rpartition("/")[2].partition(":")
    return repository, tag
