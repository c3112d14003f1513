"""A pinned model on instance types: its licence, its container, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .hugging_face_rules import INSTANCE_TYPE_NEEDED, LICENSE
from .model_memory import ModelFit, model_fit
from .pinned_model import PinnedModel
from .serving_containers import ServingContainer, serving_container

PERMISSIVE = frozenset(
    {
        "0bsd",
        "apache-2.0",
        "bsd-2-clause",
        "bsd-3-clause",
        "cc0-1.0",
        "isc",
        "mit",
        "ncsa",
        "unlicense",
        "wtfpl",
        "zlib",
    }
)
"""Licences that ask nothing of who runs a model, by the Hub's identifiers
(https://huggingface.co/docs/hub/repositories-licenses); any other is to be accepted by name."""


@dataclass(frozen=True, kw_only=True)
class HubModel:
    """A pinned model, and what is asked of the way it is served.

    Parameters
    ----------
    pinned : PinnedModel
    accept_license : str, optional
        The licence by its name; needed where the model is gated or its licence asks something of
        who runs it. By default only permissive licences are taken.
    server : str, optional
        By default the one for its task and the accelerator.
    context_length : int, optional
        Tokens of the longest request with its answer; by default the model's own, or as many as
        one request has room for.
    trust_remote_code : bool
        Run the model's own code; by default not.

    Raises
    ------
    ConfigurationError
        LLE346 for a licence that is not accepted.
    """

    pinned: PinnedModel
    accept_license: str | None = None
    server: str | None = None
    context_length: int | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        stated, name = self.accept_license, self.pinned.license
        if stated is not None and stated != name:
            raise LICENSE.error(
                got=f"accept_license {stated}", allowed=name or "none: the model states no licence"
            )
        if stated is None and (self.pinned.gated or name not in PERMISSIVE):
            if name is None and not self.pinned.gated:
                return  # nothing is stated that could be accepted; a warning says so
            raise LICENSE.error(
                got=f"{self.pinned.model} under {name or 'a licence without a name'}"
                + (", gated" if self.pinned.gated else ""),
                allowed=f"accept_license: {name}" if name else "a model that states its licence",
            )


@dataclass(frozen=True, kw_only=True)
class HubServing:
    """How a model is served on its instance types.

    Attributes
    ----------
    model : HubModel
    container : ServingContainer
        Image, environment and timeouts, the same on all types.
    fits : tuple of ModelFit
        One for each type.
    """

    model: HubModel
    container: ServingContainer
    fits: tuple[ModelFit, ...]

    @property
    def image(self) -> str:
        """Repository and tag."""
        return f"{self.container.repository}:{self.container.tag}"

    @property
    def environment(self) -> Mapping[str, str]:
        """What the container gets."""
        return self.container.environment


def hub_serving(
    model: HubModel,
    instance_types: Sequence[str],
    *,
    volume_gib: int | None = None,
    where: str = "",
) -> HubServing:
    """Hold a model against the types that it is to run on.

    Raises
    ------
    ConfigurationError
        LLE314 for types that need different containers, LLE353 and LLE354 without a container,
        LLE355 and LLE356 without room.
    """
    fits = [_fit(model, each, model.context_length, volume_gib, where) for each in instance_types]
    # One model has one environment: what all types have room for.
    contexts = [each.context_length for each in fits if each.context_length is not None]
    context = min(contexts, default=model.context_length)
    if len(set(contexts)) > 1 or (contexts and len(contexts) < len(fits)):
        fits = [_fit(model, each, context, volume_gib, where) for each in instance_types]
    containers = [
        serving_container(
            model.pinned,
            each,
            server=model.server,
            context_length=context,
            trust_remote_code=model.trust_remote_code,
            where=where,
        )
        for each in instance_types
    ]
    first, *others = containers
    for name, other in zip(instance_types[1:], others, strict=True):
        differs = sorted(
            {
                key
                for key in {*first.environment, *other.environment}
                if first.environment.get(key) != other.environment.get(key)
            }
        )
        if differs or (first.repository, first.tag) != (other.repository, other.tag):
            raise INSTANCE_TYPE_NEEDED.error(
                got=f"{instance_types[0]} and {name}, which differ in "
                + (", ".join(differs) or "the image"),
                allowed="types that one container serves alike",
                where=where,
                fix="Choose types with as many accelerators of the same kind.",
            )
    return HubServing(model=model, container=first, fits=tuple(fits))


def _fit(
    model: HubModel, instance_type: str, context: int | None, volume_gib: int | None, where: str
) -> ModelFit:
    return model_fit(
        model.pinned, instance_type, context_length=context, volume_gib=volume_gib, where=where
    )
