"""Where the settings' images lie: registry account, region, repository, tag or digest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...plan.image_names import dlc_account
from ...settings import ImageSettings

__all__ = ["EcrImage", "ecr_image"]

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
        version = f"@{self.digest}" if self.digest else f":{self.tag}"
        return f"{self.account or 'own registry'}/{self.repository}{version}"

    @property
    def image_id(self) -> dict[str, str]:
        """As ECR takes it."""
        return {"imageDigest": self.digest} if self.digest else {"imageTag": self.tag}


def ecr_image(image: ImageSettings, region: str) -> EcrImage | None:
    """Where the image lies; ``None`` when that is no ECR registry, or not known.

    Examples
    --------
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
