"""What a variant asks of a model, and models that are made elsewhere: by other code of the app, a
pipeline, a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from aws_cdk import Resource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from ..facts.limits import IMAGE_URI, MODEL_NAME
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..plan.hub_serving import HubServing
from ..plan.published_metrics import endpoint_shape
from ..synthesis.annotations import warn
from ..synthesis.arns import written_objects
from ..synthesis.construct_tree import path_below
from ..synthesis.rights import allow, encrypting_volumes, writing_with
from ..synthesis.role_rights import RoleRights
from ..synthesis.template_values import check, is_token
from .images import ContainerImage

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

_IMPORTED = "@FromCfnModel"


class IModel(Resource):
    """A model: a :class:`Model` of the app, or one imported with ``Model.from_*``.

    Attributes
    ----------
    model_name : str or None
        None for a :class:`ComponentHost`, which stands in a model's place.
    role : aws_iam.IRole or None
        None where an imported model's is not known.
    images : sequence of ContainerImage
        The containers' images, those that are known.
    shape : {"single-model", "multi-model", "pipeline", "inference-component"}
        What it serves, which decides which metrics there are.
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


class ImportedModel(IModel):
    """What ``Model.from_*`` return; it makes nothing but rights, for a role that is known."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model_name: str,
        role: iam.IRole | None = None,
        images: Sequence[ContainerImage] = (),
        shape: str = "single-model",
        network: ZoneAlignedNetwork | None = None,
    ) -> None:
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        self.model_name = check(MODEL_NAME, model_name, path)
        self.role = role
        self.images = tuple(images)
        self.shape = shape
        self.network = network

    def grant_write(self, s3_uri: str, key: kms.IKey | None = None) -> list[IDependable]:
        resource = written_objects(s3_uri)
        statements = [] if resource is None else [allow(["s3:PutObject"], resource)]
        if key is not None:
            statements.append(writing_with(key.key_arn))
        return self._allow(statements, f"to write to {s3_uri}", complete=resource is not None)

    def grant_volume_key(self, key: kms.IKey) -> list[IDependable]:
        return self._allow(
            encrypting_volumes(key.key_arn), "to use the volumes' key", complete=True
        )

    def _allow(
        self, statements: Sequence[Mapping[str, Any]], what: str, *, complete: bool
    ) -> list[IDependable]:
        if self.role is None or not complete:
            warn(
                self,
                "importedModelRights",
                f"The role of this model needs to be allowed {what}: state role= (and a bucket "
                "that is known) when it is imported, or allow it where the role is made.",
            )
        if self.role is None or not statements:
            return []
        return [RoleRights.given(self, self.role).allow("Granted", *statements, owner=self)]


def model_of_cfn(
    cfn_model: sagemaker.CfnModel, *, role: iam.IRole | None, network: ZoneAlignedNetwork | None
) -> IModel:
    """The model of an L1 construct, once however often it is asked for."""
    imported = cfn_model.node.try_find_child(_IMPORTED)
    if imported is not None:
        return cast(IModel, imported)
    containers = _containers(cfn_model)
    uris = [uri for uri in (_part(container, "image") for container in containers) if uri]
    return ImportedModel(
        cfn_model,
        _IMPORTED,
        model_name=cfn_model.attr_model_name,
        role=role,
        images=[ContainerImage.from_uri(uri) for uri in uris if _is_known(uri)],
        shape=endpoint_shape(
            len(containers),
            multi_model=any(_part(container, "mode") == "MultiModel" for container in containers),
        ),
        network=network,
    )


def _containers(cfn_model: sagemaker.CfnModel) -> list[Any]:
    if isinstance(cfn_model.containers, Sequence):
        return list(cfn_model.containers)
    return [cfn_model.primary_container]


def _part(container: Any, name: str) -> Any:
    return container.get(name) if isinstance(container, Mapping) else getattr(container, name, None)


def _is_known(uri: Any) -> bool:
    return isinstance(uri, str) and not is_token(uri) and bool(IMAGE_URI.holds(uri))
