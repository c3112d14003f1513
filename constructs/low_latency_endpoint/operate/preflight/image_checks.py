"""Does each image exist, and does its architecture fit the instance type?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...account.calls import Account, json_object
from ...account.sessions import Unreadable
from ...facts.images import dlc_account
from ...facts.instance_types import instance_facts
from ...settings import ImageSettings
from ..checking.checks import Outcome, endpoint_check, failed, guarded, passed, unknown
from .context import Fetch, PlannedEndpoint

_MEDIA_TYPES = [
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
]
_NOT_THERE = ("ImageNotFound", "ImageTagDoesNotMatchDigest")
_ARCHITECTURES = {"amd64": "x86_64"}  # Docker's word: ours; arm64 is the same in both
_BATCH_GET_IMAGE = "/AmazonECR/latest/APIReference/API_BatchGetImage.html"

_ECR = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.[a-z0-9.]+/"
    r"(?P<repository>[^:@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>sha256:[0-9a-f]+))?"
)


@dataclass(frozen=True, slots=True)
class EcrImage:
    """An image in an ECR registry; ``account`` is empty where only the caller's is meant."""

    account: str
    region: str
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.account or 'own registry'}/{self.name}"

    @property
    def name(self) -> str:
        """Its name within the registry."""
        version = f"@{self.digest}" if self.digest else f":{self.tag}"
        return f"{self.repository}{version}"

    @property
    def image_id(self) -> dict[str, str]:
        """As ECR takes it."""
        return {"imageDigest": self.digest} if self.digest else {"imageTag": self.tag}


def ecr_image(image: ImageSettings, region: str) -> EcrImage | None:
    """Where the image lies; ``None`` when that is no ECR registry, or not known.

    >>> uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/model:1.4"
    >>> ecr_image(ImageSettings(uri=uri), "us-east-1")
    EcrImage(account='123456789012', region='us-east-1', repository='team/model', tag='1.4',
             digest='')
    """
    if image.dlc:
        account = image.dlc.account or dlc_account(region)
        if account is None:
            return None
        return EcrImage(account, region, image.dlc.repository, image.dlc.tag)
    if image.ecr:
        return EcrImage("", region, image.ecr.repository, image.ecr.tag)
    match = _ECR.fullmatch(image.uri or "")
    if match is None:
        return None
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return EcrImage(
        match["account"], match["region"], match["repository"], tag, match["digest"] or ""
    )


def _images(context: PlannedEndpoint) -> Iterator[tuple[str, ImageSettings]]:
    for about, container in context.containers:
        if not container.image.asset:  # which the deploy itself builds
            yield about, container.image


def _in_registry(context: PlannedEndpoint, given: ImageSettings) -> EcrImage:
    image = ecr_image(given, context.account.region)
    if image is None:
        where = given.uri or f"{given.dlc} in {context.account.region}"
        raise Unreadable(f"{where}: no ECR registry that can be asked from here")
    return image


def _manifest(account: Account, image: EcrImage) -> Mapping[str, Any] | None:
    """ECR's entry for the image; ``None`` when the registry says that it is not there."""
    # Registries of AWS's own let everybody pull, and few describe: hence this operation.
    answer = account.read(
        "ecr",
        "batch_get_image",
        ("RepositoryNotFoundException",),
        **({"registryId": image.account} if image.account else {}),
        repositoryName=image.repository,
        imageIds=[image.image_id],
        acceptedMediaTypes=_MEDIA_TYPES,
    )
    if answer is None:
        return None
    for image_entry in answer.get("images") or ():
        return dict(image_entry)
    for failure in answer.get("failures") or ():
        if failure.get("failureCode") not in _NOT_THERE:
            raise Unreadable(
                f"ecr:BatchGetImage could not read {image}: "
                f"{failure.get('failureCode')}: {failure.get('failureReason')}"
            )
    return None


@endpoint_check(
    "LLP401",
    "The image exists in the stack's region",
    how=("Skips images that the deployment builds."),
    source=_BATCH_GET_IMAGE,
    each=_images,
)
def image_exists(context: PlannedEndpoint, given: ImageSettings) -> Outcome:
    image = _in_registry(context, given)
    if image.region != context.account.region:
        return failed(
            f"{image} is in {image.region}: SageMaker pulls from its own region "
            f"{context.account.region} only",
            f"Copy the image to a repository in {context.account.region}.",
        )
    registry = f"{image.account or context.account.account_id()}.dkr.ecr.{image.region}"
    if _manifest(context.account, image) is None:
        return failed(
            f"the registry {registry} has no {image.name}",
            "Correct the repository and tag, or push the image first.",
        )
    return passed(str(image))


@endpoint_check(
    "LLP402",
    "The image and the instance type have the same architecture",
    how="Reads the image's index or configuration.",
    source="https://github.com/opencontainers/image-spec/blob/main/config.md",
)
def architecture(context: PlannedEndpoint) -> Iterator[Outcome]:
    unknown_types = [name for name in context.types if _architecture(name) is None]
    if unknown_types:
        yield unknown(
            f"the architecture of {', '.join(unknown_types)} is not in the library's table"
        )
    if len(unknown_types) < len(context.types):
        for about, image in _images(context):
            yield from guarded(_fits, context, image, about=about)


def _architecture(instance_type: str) -> str | None:
    facts = instance_facts(instance_type)
    return facts.architecture if facts else None


def _types_of(context: PlannedEndpoint, image: EcrImage) -> list[str]:
    """The instance types that run the image, except types without facts."""
    found = [
        name
        for model in context.models
        for container in model.containers
        if not container.image.asset and ecr_image(container.image, context.account.region) == image
        for name in model.types
    ]
    return [name for name in dict.fromkeys(found) if _architecture(name)]


def _fits(context: PlannedEndpoint, given: ImageSettings) -> Iterator[Outcome]:
    image = _in_registry(context, given)
    if image.region != context.account.region:
        yield unknown("not read: see LLP401")
        return
    entry = _manifest(context.account, image)
    if entry is None:
        yield unknown("there is no such image: see LLP401")
        return
    architectures = _architectures(context.account, image, entry, context.stack.fetch)
    if not architectures:
        yield unknown(f"the registry does not report the architecture of {image}")
        return
    for name in _types_of(context, image):
        architecture = _architecture(name)
        evidence = f"{', '.join(architectures)} on {name}, which is {architecture}"
        if architecture in architectures:
            yield passed(evidence)
        else:
            yield failed(
                evidence,
                f"Build the image for {architecture} (docker build --platform "
                f"linux/{'arm64' if architecture == 'arm64' else 'amd64'}), or choose an instance "
                f"type that is {architectures[0]}.",
            )


def _architectures(
    account: Account, image: EcrImage, entry: Mapping[str, Any], fetch: Fetch
) -> list[str]:
    manifest = json_object(entry.get("imageManifest", ""))
    if "manifests" in manifest:
        # Attestations beside the images have the platform unknown/unknown.
        names = [(each.get("platform") or {}).get("architecture") for each in manifest["manifests"]]
    else:
        digest = (manifest.get("config") or {}).get("digest")
        if not digest:
            return []
        answer = account.read(
            "ecr",
            "get_download_url_for_layer",
            **({"registryId": image.account} if image.account else {}),
            repositoryName=image.repository,
            layerDigest=digest,
        )
        try:
            names = [json_object(fetch(answer["downloadUrl"])).get("architecture")]
        except (OSError, ValueError):
            return []
    known = [_ARCHITECTURES.get(name, name) for name in names if name and name != "unknown"]
    return list(dict.fromkeys(known))
