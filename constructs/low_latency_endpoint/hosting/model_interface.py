"""What a variant asks of a model, whether made here or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aws_cdk import Resource
from aws_cdk import aws_iam as iam
from constructs import IDependable

from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..plan.hub_serving import HubServing
from .images import ContainerImage

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms


class IModel(Resource):
    """A model: a :class:`Model` of the app, or one imported with ``Model.from_*``.

    Attributes
    ----------
    model_name : str or None
        None for a :class:`ComponentHost`, which stands in a model's place.
    role : aws_iam.IRole or None
        None where an imported model's is not known.
    images : sequence of ContainerImage
        As far as they are known.
    shape : {"single-model", "multi-model", "pipeline", "inference-component"}
    network : ZoneAlignedNetwork or None
        Where its instances run; None where that is not known.
    max_instances : int or None
        The most instances of a :class:`ComponentHost`.
    configuration_properties, variant_properties : mapping of str to object
        What endpoint configuration and variant have for it, by CloudFormation's names.
    hub_servings : sequence of HubServing
        How its models of the Hugging Face Hub are served, which the variant's time-outs follow.
    needed : sequence of IDependable
        What the endpoint configuration waits for.
    """

    model_name: str | None
    role: iam.IRole | None
    images: Sequence[ContainerImage]
    shape: str
    network: ZoneAlignedNetwork | None
    max_instances: int | None = None
    configuration_properties: Mapping[str, Any] = MappingProxyType({})
    variant_properties: Mapping[str, Any] = MappingProxyType({})
    hub_servings: Sequence[HubServing] = ()
    needed: Sequence[IDependable] = ()

    def grant_write(self, s3_uri: str, key: kms.IKey | None = None) -> list[IDependable]:
        """Let the role write objects under an S3 URI; what the writer has to depend on."""
        raise NotImplementedError

    def grant_volume_key(self, key: kms.IKey) -> list[IDependable]:
        """Let the role hand a key on to the instances' volumes; what they have to depend on."""
        raise NotImplementedError
