"""What a container image needs, read from its name, and whether it can run on an instance type.

AWS's Deep Learning Containers say in repository and tag which accelerator and architecture they
are built for. :func:`image_needs` reads that; nothing is pulled. Names that follow no such rule
give no needs, and needs read from somebody's own naming only ever lead to warnings (see
:mod:`.images`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..errors import ErrorRule, rule
from .instance_types import InstanceFacts, instance_facts
from .paths import check_below
from .rules import IMAGE_REGION
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


AMI_SOURCE = "https://github.com/aws/sagemaker-python-sdk/pull/6281"
"""SageMaker's own SDK: without the AMI, CUDA 13 containers crash before they log anything."""
_HANGS = "https://github.com/aws/deep-learning-containers/pull/6187"
_SINCE_CUDA = 13  # older majors of CUDA run on newer drivers, as NVIDIA says
_IMAGES = "https://github.com/aws/deep-learning-containers/blob/master/available_images.md"
_AMI = "/sagemaker/latest/APIReference/API_ProductionVariant.html"
_IMAGE_FOR = {
    "nvidia": "take its gpu tag",
    "neuron": "take one for Neuron, such as huggingface-pytorch-inference-neuronx",
}
_TGI = "huggingface-pytorch-tgi-inference"
_TGI_ARCHIVED = (
    "Text Generation Inference is in maintenance since 2025-12-11 and archived since 2026-03-21, and "
    "its makers recommend vLLM or SGLang: choose an image of these "
    "(https://huggingface.co/docs/text-generation-inference)"
)
_GPU_TYPES = "ml.g4dn, ml.g5, ml.g6, ml.g6e, ml.g7, ml.p4 and ml.p5 types"

CUDA_ON_ACCELERATOR = rule(
    "LLE330",
    "the image needs an NVIDIA GPU, but the instance type has another accelerator",
    fix="Choose an image for this accelerator (neuronx in its tag), or a GPU type.",
    source=_IMAGES,
)
NEURON_ELSEWHERE = rule(
    "LLE331",
    "the image needs Inferentia or Trainium, but the instance type has neither",
    fix="Choose an ml.inf2 or ml.trn1 type (ml.inf1 for neuron images), or another image.",
    source=_IMAGES,
)
NEURONX_ON_INF1 = rule(
    "LLE332",
    "the image is for Inferentia2 and Trainium (neuronx), but the instance type is Inferentia 1",
    fix="Choose an ml.inf2 or ml.trn1 type, or a neuron (not neuronx) image.",
    source=_IMAGES,
)
NEURON_ON_INF2 = rule(
    "LLE333",
    "the image is for Inferentia 1 (neuron), but the instance type is Inferentia2 or Trainium",
    fix="Choose a neuronx image, or an ml.inf1 type.",
    source=_IMAGES,
)
X86_ON_ARM = rule(
    "LLE334",
    "the image is for x86_64, but the instance type is Graviton (arm64)",
    fix="Choose the arm64 image (repository name ends in -arm64 or -graviton), or an x86_64 type.",
    source=_IMAGES,
)
ARM_ON_X86 = rule(
    "LLE335",
    "the image is for arm64, but the instance type is x86_64",
    fix="Choose the x86_64 image, or a Graviton type such as ml.c7g.xlarge.",
    source=_IMAGES,
)
GPU_ON_CPU = rule(
    "LLE336",
    "the image needs a GPU, but the instance type has none",
    fix="Choose a GPU type such as ml.g5.xlarge, or an image with cpu in its tag.",
    source=_IMAGES,
)
CUDA_ON_AMI = rule(
    "LLE337",
    "the inference AMI's driver is too old for the image's CUDA",
    fix="Choose a newer AMI or an image with an older CUDA, or leave the AMI out.",
    source=_AMI,
)
AMI_ON_TYPE = rule(
    "LLE338",
    "the inference AMI is for another accelerator",
    fix="Choose an AMI for the instance type's accelerator, or leave the AMI out.",
    source=_AMI,
)
IMAGE_FOLDER = rule(
    "LLE380",
    "there is no Dockerfile to build the image from",
    fix="Name the folder of the Dockerfile, and the file if it has another name.",
    source="/cdk/api/v2/python/aws_cdk.aws_ecr_assets/DockerImageAsset.html",
)
ARCHITECTURE_OF_PLATFORM = {"linux/amd64": "x86_64", "linux/arm64": "arm64"}


def check_image_folder(directory: str | Path, file: str | None = None, where: str = "") -> None:
    """Raise unless an image can be built from a folder, and its Dockerfile lies in it."""
    check_below(file or "", where)
    dockerfile = Path(directory, file or "Dockerfile")
    if "\0" in str(dockerfile) or not dockerfile.is_file():
        raise IMAGE_FOLDER.error(
            got=f"no file {file or 'Dockerfile'} in {directory}",
            allowed="a folder with a Dockerfile",
            where=where,
        )


def known_dlc_account(region: str, where: str = "") -> str:
    """Account of the Deep Learning Containers' registry in a Region."""
    account = dlc_account(region)
    if account is None:
        raise IMAGE_REGION.error(got=region, allowed=", ".join(sorted(dlc_accounts())), where=where)
    return account


def check_image_runs_on(
    image: str, instance_type: str, ami: str | None = None, where: str = ""
) -> list[str]:
    """Raise when an image cannot run on an instance type; return what is only suspicious."""
    facts = instance_facts(instance_type)
    warnings = [_TGI_ARCHIVED] if _TGI in image else []
    if facts is None:
        return warnings
    needs = image_needs(image)
    for broken, allowed in (*_mismatches(needs, facts), *_ami_mismatches(needs, facts, ami)):
        if needs.certain or broken is AMI_ON_TYPE:
            raise broken.error(
                got=f"{image} on {instance_type}{f' with {ami}' if ami else ''}",
                allowed=allowed,
                where=where,
            )
        warnings.append(f"by its name, {broken.title}: {image} on {instance_type}")
    if needs.cpu_only and facts.accelerator:
        warnings.append(
            f"the image is built for CPUs; {instance_type} has {facts.accelerator_name} "
            f"that would stand idle: {_IMAGE_FOR.get(facts.accelerator, 'take a type without it')}"
        )
    return warnings + _ami_doubts(needs, facts, ami)


def needed_inference_ami(placements: Sequence[tuple[Sequence[str], str]]) -> str | None:
    """The inference AMI that images need where none is chosen; ``None`` for SageMaker's own.

    SageMaker's SDK sets it for CUDA 13 images on some families, because with the default one "some
    instances crash at startup". Which families have which default, AWS documents nowhere, and its
    own pages deploy such an image on ``ml.g6.2xlarge`` without an AMI.
    """
    known = [(images, facts) for images, name in placements if (facts := instance_facts(name))]
    for ami in inference_amis().values():
        if any(
            facts.family in ami.needed_on and cuda[0] == (ami.cuda or (0,))[0]
            for images, facts in known
            for cuda in _cudas(images)
        ):
            fits = not any(_ami_elsewhere(facts, ami) for _, facts in known)
            return ami.name if fits else None
    return None


def _cudas(images: Sequence[str]) -> list[tuple[int, int]]:
    return [cuda for image in images if (cuda := image_needs(image).cuda)]


def driver_doubts(image: str, instance_type: str, ami: str | None) -> list[str]:
    """What may keep an image's CUDA from running on the driver; never an error."""
    facts = instance_facts(instance_type)
    if facts is None:
        return []
    needs = image_needs(image)
    newer = [broken.title for broken, _ in _ami_mismatches(needs, facts, ami)]
    return newer + _ami_doubts(needs, facts, ami)


def cuda_words(images: Sequence[str]) -> str:
    """The CUDA versions that the images' names say, for people."""
    return ", ".join(sorted({_dotted(cuda) for cuda in _cudas(images)}))


def check_ami_runs_on(ami: str, instance_type: str, where: str = "") -> None:
    """Raise when an inference AMI is for another accelerator, whatever the image."""
    facts, chosen = instance_facts(instance_type), inference_amis().get(ami)
    for broken, allowed in _ami_elsewhere(facts, chosen) if facts and chosen else ():
        raise broken.error(got=f"{instance_type} with {ami}", allowed=allowed, where=where)


def check_built_image_runs_on(architecture: str, instance_type: str, where: str = "") -> str:
    """Raise when an image is built for another architecture than the instance type has."""
    facts = instance_facts(instance_type)
    if facts is None or facts.architecture is None:
        return ""
    if not architecture:
        return (
            "an image that is built from a Dockerfile without a platform takes the architecture "
            f"of the machine that builds it, and {instance_type} is {facts.architecture}: name the "
            "image's platform, or the model's architecture"
        )
    if architecture != facts.architecture and architecture in ("x86_64", "arm64"):
        raise (ARM_ON_X86 if architecture == "arm64" else X86_ON_ARM).error(
            got=f"an image built for {architecture} on {instance_type}",
            allowed=f"{architecture} types",
            where=where,
            fix=f"Build the image for {facts.architecture}, or choose another instance type.",
        )
    return ""


def _mismatches(needs: ImageNeeds, facts: InstanceFacts) -> list[tuple[ErrorRule, str]]:
    mismatches = []
    if needs.accelerator == "nvidia" and facts.accelerator != "nvidia":
        mismatches.append((CUDA_ON_ACCELERATOR if facts.accelerator else GPU_ON_CPU, _GPU_TYPES))
    elif needs.accelerator == "neuron" and facts.accelerator != "neuron":
        mismatches.append((NEURON_ELSEWHERE, "ml.inf1, ml.inf2, ml.trn1 and ml.trn2 types"))
    elif needs.neuron_generation == "neuronx" and facts.family == "inf1":
        mismatches.append((NEURONX_ON_INF1, "ml.inf2, ml.trn1 and ml.trn2 types"))
    elif needs.neuron_generation == "neuron" and facts.family != "inf1":
        mismatches.append((NEURON_ON_INF2, "ml.inf1 types"))
    if needs.architecture and facts.architecture and needs.architecture != facts.architecture:
        arm = needs.architecture == "arm64"
        mismatches.append((ARM_ON_X86 if arm else X86_ON_ARM, f"{needs.architecture} types"))
    return mismatches


def _ami_mismatches(
    needs: ImageNeeds, facts: InstanceFacts, ami: str | None
) -> list[tuple[ErrorRule, str]]:
    chosen = inference_amis().get(ami or "")
    if chosen is None:
        return []
    elsewhere = _ami_elsewhere(facts, chosen)
    if elsewhere:
        return elsewhere
    # Only a newer major version is sure to fail: drivers run newer minor versions of their major.
    if needs.cuda and chosen.cuda and needs.cuda[0] > chosen.cuda[0]:
        newest = max(
            (other for other in inference_amis().values() if other.cuda),
            key=lambda other: other.cuda or (0, 0),
        )
        return [
            (
                CUDA_ON_AMI,
                f"CUDA up to {_dotted(chosen.cuda)} with {ami}; "
                f"{newest.name} has {_dotted(newest.cuda)}",
            )
        ]
    return []


def _ami_elsewhere(facts: InstanceFacts, chosen: InferenceAmiFacts) -> list[tuple[ErrorRule, str]]:
    if facts.accelerator == chosen.accelerator and (
        not chosen.families or facts.family in chosen.families
    ):
        return []
    families = ", ".join(f"ml.{family}" for family in chosen.families)
    return [(AMI_ON_TYPE, f"{families or 'NVIDIA GPU'} types with {chosen.name}")]


def _ami_doubts(needs: ImageNeeds, facts: InstanceFacts, ami: str | None) -> list[str]:
    if not needs.cuda:
        return []
    if ami is None and facts.accelerator == "nvidia" and needs.cuda[0] >= _SINCE_CUDA:
        fitting = [
            inference_ami_facts.name
            for inference_ami_facts in inference_amis().values()
            if inference_ami_facts.cuda and inference_ami_facts.cuda[0] >= needs.cuda[0]
        ]
        return [
            f"the image has CUDA {_dotted(needs.cuda)} and no inference AMI is chosen: where "
            "SageMaker's own has an older driver, the endpoint stays Creating and no log group "
            f"appears; then set the inference AMI to {' or '.join(fitting)} ({AMI_SOURCE})"
        ]
    chosen = inference_amis().get(ami or "")
    if chosen is None or not chosen.cuda:
        return []
    if needs.cuda[0] < chosen.cuda[0] and chosen.cuda[0] >= _SINCE_CUDA:
        return [
            f"the image has CUDA {_dotted(needs.cuda)}, {ami} is for {_dotted(chosen.cuda)}: an "
            "endpoint with such an image was seen to stay Creating without any log; choose an AMI "
            f"for the image's CUDA, or leave the AMI out ({_HANGS})"
        ]
    if needs.cuda <= chosen.cuda:
        return []
    if needs.cuda[0] > chosen.cuda[0]:
        return []
    return [
        f"the image has CUDA {_dotted(needs.cuda)}, driver {chosen.driver} of {ami} is for "
        f"{_dotted(chosen.cuda)}: it runs by CUDA's minor version compatibility, except code that "
        "compiles its kernels at start; try it, or choose a newer AMI"
    ]


def _dotted(version: tuple[int, int] | None) -> str:
    return ".".join(map(str, version or ()))
