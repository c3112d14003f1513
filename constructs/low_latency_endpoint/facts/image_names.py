"""What a container image needs, read from its name, and where AWS keeps its own images.

AWS's Deep Learning Containers say in repository and tag which accelerator and architecture they
are built for. :func:`image_needs` reads that; nothing is pulled. Names that follow no such rule
give no needs, and needs read from somebody's own naming only ever lead to warnings (see
:mod:`.images`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from .tables import rows

_ACCOUNT = re.compile(r"(\d{12})\.dkr\.ecr\.")
_NEURONX = re.compile(r"(?<![a-z])neuronx(?![a-z])")
_NEURON = re.compile(r"(?<![a-z])neuron(?![a-z])")
_CUDA_TAG = re.compile(r"(?<![a-z0-9])cu(\d{1,2})(\d)(?!\d)")  # cu124 is 12.4, cu92 is 9.2
_CUDA_DOTTED = re.compile(r"(?<![a-z])cuda-?(\d{1,2})\.(\d)")  # not cuda-v1.8: that is a release
_CUDA_WORD = re.compile(r"(?<![a-z0-9])(?:cuda|gpu)(?![a-z])")
_CPU_WORD = re.compile(r"(?<![a-z0-9])cpu(?![a-z])")
_ARM = re.compile(r"(?<![a-z0-9])(?:arm64|aarch64|graviton)(?![a-z])")
_X86 = re.compile(r"(?<![a-z0-9])(?:x86[_-]64|amd64)(?![a-z0-9])")
# The tag that only AWS's build pipeline writes: ...-gpu-py312-cu124-ubuntu22.04
_DLC_TAG = re.compile(r"-(?:cpu|gpu|neuronx?)-(?:py3\d|sdk\d)")
_FLOATING = re.compile(r"server-sagemaker-cuda-v\d+(?![\d])")
_NEO_ACCOUNT = "785573368785"


class ImageNeeds(NamedTuple):
    """What an image's name says it needs; ``None`` where the name does not say."""

    accelerator: str | None = None  # ``nvidia`` or ``neuron``
    # ``neuron`` (Inferentia 1) or ``neuronx`` (Inferentia2, Trainium)
    neuron_generation: str | None = None
    architecture: str | None = None  # ``x86_64`` or ``arm64``
    cuda: tuple[int, int] | None = None  # CUDA version, such as ``(12, 4)``
    # whether the image is built for CPUs alone; ``False`` when it needs an accelerator
    cpu_only: bool | None = None
    certain: bool = False  # whether the name is AWS's own, so that it can be taken at its word


class InferenceAmiFacts(NamedTuple):
    """One inference AMI version."""

    name: str  # ``accelerator`` is ``nvidia`` or ``neuron``; ``driver`` is its version
    accelerator: str
    families: tuple[str, ...]  # instance families it is for; empty for all of the accelerator
    driver: str
    cuda: tuple[int, int] | None  # CUDA version of the driver
    # whether images with a newer CUDA can bring their own driver libraries; ``None`` unstated
    mounts_cuda_compat: bool | None
    # instance families on which images of this CUDA's major version need it
    needed_on: tuple[str, ...]


@cache
def dlc_accounts() -> Mapping[str, str]:
    """Account of the Deep Learning Containers' registry by Region."""
    return MappingProxyType({row["region"]: row["account"] for row in rows("dlc_accounts")})


def dlc_account(region: str) -> str | None:
    """Account of the Deep Learning Containers' registry in a Region; ``None`` when unknown."""
    return dlc_accounts().get(region)


@cache
def inference_amis() -> Mapping[str, InferenceAmiFacts]:
    """The inference AMI versions by name."""
    return MappingProxyType(
        {
            row["name"]: InferenceAmiFacts(
                name=row["name"],
                accelerator=row["accelerator"],
                families=tuple(row["families"].split()),
                driver=row["driver"],
                cuda=_version(row["cuda"]),
                mounts_cuda_compat={"yes": True, "no": False}.get(row["mounts_cuda_compat"]),
                needed_on=tuple(row["needed_on"].split()),
            )
            for row in rows("inference_amis")
        }
    )


def _version(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    major, minor = text.split(".")
    return int(major), int(minor)


@cache
def _repositories() -> Mapping[str, tuple[str, str]]:
    return MappingProxyType(
        {
            row["repository"]: (row["accelerator"], row["architecture"])
            for row in rows("image_repositories")
        }
    )


@cache
def _floating_tags() -> Mapping[tuple[str, str], tuple[int, int] | None]:
    return MappingProxyType(
        {(row["repository"], row["tag"]): _version(row["cuda"]) for row in rows("floating_tags")}
    )


def _floating_cuda(repository: str, tag: str) -> tuple[int, int] | None:
    """The CUDA of a tag that says the image's own release: ``server-sagemaker-cuda-v2.6``."""
    major = _FLOATING.match(tag)
    return _floating_tags().get((repository, major[0])) if major else None


@cache
def tei_accounts() -> Mapping[str, str]:
    """Account of the registry of Text Embeddings Inference by Region: another than the others'."""
    return MappingProxyType({row["region"]: row["account"] for row in rows("tei_accounts")})


def _repository(name: str) -> tuple[str, str] | None:
    exact = _repositories().get(name)
    if exact is not None:
        return exact
    for pattern, facts in _repositories().items():
        if pattern.endswith("*") and name.startswith(pattern[:-1]):
            return facts
    return None


@cache
def image_needs(image: str) -> ImageNeeds:
    """What an image needs, by AWS's naming rules."""
    if "${Token[" in image.rpartition("/")[2]:
        return ImageNeeds()  # CDK fills in the name at synthesis or later
    registry, _, name = image.partition("@")[0].rpartition("/")
    repository, _, tag = name.lower().partition(":")
    text = f"{repository}:{tag}"
    known = _repository(repository)
    accelerator, architecture = known or ("", "")
    if _ARM.search(text):
        architecture = "arm64"
    elif _X86.search(text):
        architecture = "x86_64"
    said = _CUDA_TAG.search(text) or _CUDA_DOTTED.search(text)
    cuda = (int(said[1]), int(said[2])) if said else _floating_cuda(repository, tag)
    if _NEURONX.search(text):
        accelerator = "neuronx"
    elif _NEURON.search(text):
        accelerator = "neuron"
    elif cuda or _CUDA_WORD.search(text):
        accelerator = "nvidia"
    elif _CPU_WORD.search(text):
        accelerator = "cpu"
    return ImageNeeds(
        accelerator={"neuronx": "neuron", "cpu": ""}.get(accelerator, accelerator) or None,
        neuron_generation=accelerator if accelerator in ("neuron", "neuronx") else None,
        architecture=architecture or None,
        cuda=cuda,
        cpu_only=(accelerator == "cpu") if accelerator else None,
        certain=_is_aws_name(registry, known is not None, tag),
    )


def _is_aws_name(registry: str, known_repository: bool, tag: str) -> bool:
    if _DLC_TAG.search(tag):
        return True
    account = _ACCOUNT.match(registry)
    if account and account[1] in {*dlc_accounts().values(), _NEO_ACCOUNT}:
        return True
    return known_repository and not registry
