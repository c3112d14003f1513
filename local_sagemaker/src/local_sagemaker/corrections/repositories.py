"""ECR: moto takes a key of any Region, and says of an immutable tag that the image is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.core.exceptions import ServiceException
from moto.ecr.exceptions import ImageAlreadyExistsException, InvalidParameterException
from moto.ecr.models import ECRBackend

from .replacing import around


@around(ECRBackend)
def create_repository(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse a key of another Region: API reference, EncryptionConfiguration."""
    key = str((named.get("encryption_config") or {}).get("kmsKey", ""))
    if key.startswith("arn:") and f":{self.region_name}:" not in key:
        raise InvalidParameterException(f"The key must exist in the same Region: {key}")
    return original(self, *given, **named)


class _TagTaken(ServiceException):
    code = "ImageTagAlreadyExistsException"


@around(ECRBackend)
def put_image(
    original: Callable[..., Any],
    self: Any,
    repository_name: str,
    image_manifest: str,
    image_tag: str,
    *given: Any,
    **named: Any,
) -> Any:
    """Say of another image's immutable tag what ECR does: API reference, PutImage."""
    try:
        return original(self, repository_name, image_manifest, image_tag, *given, **named)
    except ImageAlreadyExistsException:
        images = self.repositories[repository_name].images
        tagged = [image for image in images if image_tag in image.image_tags]
        if any(image.image_manifest == image_manifest for image in tagged):
            raise
        raise _TagTaken(
            f"The image tag '{image_tag}' already exists in the '{repository_name}' repository and "
            "cannot be overwritten because the tag is immutable."
        ) from None
