"""A model of SageMaker JumpStart: pinned, and read from AWS's own bucket in the stack's Region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from constructs import Construct

from ..hugging_face.lock_file import LOCK_NAME, pinned_jumpstart_model
from ..plan.argument_kinds import checked_arguments
from ..plan.jumpstart_rules import JUMPSTART_TYPE
from ..plan.model_rights import reading
from ..plan.pinned_jumpstart import (
    JumpStartServing,
    PinnedJumpStartModel,
    check_jumpstart_region,
    jumpstart_bucket,
)
from ..synthesis.asked_once import path_of, region_of
from ..synthesis.findings import warn
from ..synthesis.s3_locations import bucket_arn
from ..synthesis.validation import is_token
from .images import ContainerImage
from .model_data import ModelData


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class JumpStartModel:
    """A model of JumpStart that ``low-latency pin --jumpstart`` has pinned.

    :meth:`Container.from_jumpstart` makes one of its arguments.

    Parameters
    ----------
    model : str
        Its ID: ``meta-textgeneration-llama-3-1-8b-instruct``.
    lock : str
        The lock file; by default ``models.lock.yaml`` in the working directory.
    accept_eula : bool
        Whether you accept the model's end-user license agreement, which you have read. By default
        not: models that ask for it are refused then, and the error says where it can be read.

    Raises
    ------
    ConfigurationError
        Where it is used: LLE343 to LLE345 for the lock file, LLE396 for the agreement, LLE315 for
        a type that JumpStart does not serve it on, LLE397 for a Region without JumpStart.

    Examples
    --------
    >>> from low_latency_endpoint import JumpStartModel
    >>> model = JumpStartModel(model="meta-textgeneration-llama-guard-3-8b", accept_eula=True)
    >>> model.pinned.version  # doctest: +SKIP
    '1.0.0'
    """

    model: str
    lock: str = LOCK_NAME
    accept_eula: bool = False
    serving: JumpStartServing | None = field(default=None, init=False, repr=False)

    @cached_property
    def pinned(self) -> PinnedJumpStartModel:
        """What the lock file says of it."""
        return pinned_jumpstart_model(self.lock, self.model)

    @property
    def data(self) -> ModelData | None:
        """Its files in JumpStart's bucket, once it is known what it runs on."""
        if self.serving is None:
            return None
        agreed = self.accept_eula and self.pinned.requires_eula
        return _JumpStartData(self.pinned, self.serving.artifact, agreed)


def jumpstart_on(
    model: JumpStartModel, instance_types: Sequence[str], where: str
) -> JumpStartModel:
    """The model, as it is served on the types that it runs on.

    Raises
    ------
    ConfigurationError
        LLE343 to LLE345, LLE396, LLE315, LLE314.
    """
    made = replace(model)
    serving = model.pinned.served_on(instance_types, accept_eula=model.accept_eula, where=where)
    object.__setattr__(made, "serving", serving)
    return made


def check_jumpstart_on(model: JumpStartModel, instance_type: str, where: str) -> None:
    """Raise for a type on which a model is served otherwise than on those it was placed on.

    Raises
    ------
    ConfigurationError
        LLE315.
    """
    if model.serving is not None and instance_type not in model.serving.instance_types:
        raise JUMPSTART_TYPE.error(
            got=f"{model.model} on {instance_type}",
            allowed=", ".join(model.serving.instance_types),
            where=where,
        )


def jumpstart_image(serving: JumpStartServing) -> ContainerImage:
    """The image, in the stack's Region where it is known there."""
    known = serving.deep_learning_container
    return ContainerImage.from_dlc(*known) if known else ContainerImage.from_uri(serving.image)


@dataclass(frozen=True)
class _JumpStartData(ModelData):
    pinned: PinnedJumpStartModel
    key: str
    agreed: bool

    @property
    def uri(self) -> str:
        # The stack's Region is known once a model uses it.
        bucket = jumpstart_bucket(self.pinned.region, gated=self.pinned.gated)
        return f"s3://{bucket}/{self.key}"

    @property
    def accept_eula(self) -> bool:
        return self.agreed

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        region = region_of(scope)
        if not is_token(region):
            check_jumpstart_region(region, path_of(scope))
        if region != self.pinned.region:
            warn(
                scope,
                "jumpStartRegion",
                f"{self.pinned.model} was pinned in {self.pinned.region}: whether JumpStart has "
                "it with the same files in the stack's Region is not known at synth. Pin it there: "
                f"low-latency pin --jumpstart {self.pinned.model} --region REGION.",
            )
        # SageMaker reads a model's data in its own Region alone:
        # https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ContainerDefinition.html
        bucket = jumpstart_bucket(region, gated=self.pinned.gated)
        return f"s3://{bucket}/{self.key}", reading(bucket_arn(bucket), self.key)
