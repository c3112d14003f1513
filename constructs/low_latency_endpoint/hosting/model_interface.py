"""What a variant asks of a model, whether made here or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aws_cdk import Resource
from aws_cdk import aws_iam as iam

from ..network.zone_aligned_network import ZoneAlignedNetwork
from .images import ContainerImage

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms


class IModel(Resource):
    """A model: a :class:`Model` of the app, or one imported with ``Model.from_*``.

    Attributes
    ----------
    model_name : str
    role : aws_iam.IRole or None
        None where an imported model's is not known.
    images : sequence of ContainerImage
        As far as they are known.
    shape : {"single-model", "multi-model", "pipeline"}
    network : ZoneAlignedNetwork or None
        Where its instances run; None where that is not known.
    """

    model_name: str
    role: iam.IRole | None
    images: Sequence[ContainerImage]
    shape: str
    network: ZoneAlignedNetwork | None

    def grant_write(self, s3_uri: str, key: kms.IKey | None = None) -> None:
        """Let the role write objects under an S3 URI: captured data, core dumps."""
        raise NotImplementedError

    def grant_volume_key(self, key: kms.IKey) -> None:
        """Let the role hand a key on to the storage volumes of its instances."""
        raise NotImplementedError
