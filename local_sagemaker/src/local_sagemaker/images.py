"""Container images as if they had been pushed: there is no Docker here."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

_REPOSITORY = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com/"
    r"(?P<repository>[^:@]+)"
)
_URI = re.compile(rf"{_REPOSITORY.pattern}:(?P<tag>[^:@]+)")
_INDEX = "application/vnd.oci.image.index.v1+json"


def add_image(client: Callable[[str, str], Any], uri: str, architecture: str) -> None:
    """Put an image's index, without layers, into the registry that its URI names."""
    image = check_image(uri)
    ecr = client("ecr", image["region"])
    where = {"registryId": image["account"], "repositoryName": image["repository"]}
    with contextlib.suppress(ecr.exceptions.RepositoryAlreadyExistsException):
        ecr.create_repository(**where)
    platform = {"os": "linux", "architecture": architecture}
    index = {
        "schemaVersion": 2,
        "mediaType": _INDEX,
        "manifests": [{"platform": platform}],
        "annotations": {"uri": uri},
    }  # so that two tags are two images
    with contextlib.suppress(ecr.exceptions.ImageAlreadyExistsException):
        ecr.put_image(**where, imageTag=image["tag"], imageManifest=json.dumps(index))


def check_image(uri: str) -> re.Match[str]:
    named = _URI.fullmatch(uri)
    if named is None:
        raise ValueError(
            f"{uri} is no image of ECR, as 123456789012.dkr.ecr.us-east-1.amazonaws.com/team/it:1"
        )
    return named


def repository_arn(uri: str) -> str | None:
    """Give the ARN of the repository that an image is in; None when that is none of ECR's."""
    named = _REPOSITORY.match(uri)
    if named is None:
        return None
    return f"arn:aws:ecr:{named['region']}:{named['account']}:repository/{named['repository']}"
