"""A pinned model on instance types: its licence, its container, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from ..errors import AWS_DOCS
from ..errors.frozen import dataclass
from ..facts.limit_kinds import Range
from .decisions import Decision
from .pinned_model import CONTEXT_LENGTH, LICENSE, TYPES_DIFFER, PinnedModel
from .serving_containers import ServingContainer, serving_container

CONTEXT_TOKENS = Range(CONTEXT_LENGTH, "the context length", 1, None, "tokens")
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
    """A pinned model, and what is asked of the way it is served."""

    pinned: PinnedModel
    # the licence by its name; needed where the model is gated or its licence asks something of who
    # runs it. By default only permissive licences are taken, and models without one
    accept_license: str | None = None
    server: str | None = None  # by default the one for its task and the accelerator
    # tokens of the longest request with its answer; by default the model's own, or as many as one
    # request has room for
    context_length: int | None = None
    # whether the model's own code runs; has to be said where it brings some
    trust_remote_code: bool | None = None
    # whether the server is told to load smaller weights, or to write several tokens at once
    pace_unknown: bool = False

    def __post_init__(self) -> None:
        stated, name = self.accept_license, self.pinned.license
        if stated is not None and stated != name:
            raise LICENSE.error(
                got=f"accept_license {stated}", allowed=name or "none: the model states no licence"
            )
        asks = self.pinned.gated or (name is not None and name not in PERMISSIVE)
        if stated is None and asks:
            raise LICENSE.error(
                got=f"{self.pinned.model} under {name or 'a licence without a name'}"
                + (", gated" if self.pinned.gated else ""),
                allowed=f"accept_license {name}" if name else "a model that states its licence",
            )


@dataclass(frozen=True, kw_only=True)
class HubServing:
    """How a model is served on its instance types."""

    model: HubModel
    instance_types: tuple[str, ...]
    # one for each type: the same image and environment, each with how the model lies in memory
    containers: tuple[ServingContainer, ...] = field(hash=False)

    @property
    def container(self) -> ServingContainer:
        """That of the first type; image and environment are those of all."""
        return self.containers[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful on any of the types, and about the licence."""
        found = [text for container in self.containers for text in container.warnings]
        pinned = self.model.pinned
        if pinned.license is None:
            found.append(f"{pinned.model} states no licence: nothing says that you may use it")
        return tuple(dict.fromkeys(found))


def hub_serving(
    model: HubModel,
    instance_types: Sequence[str],
    *,
    volume_gib: int | None = None,
    where: str = "",
) -> HubServing:
    """Hold a model against the types that it is to run on."""

    def on_all(context: int | None) -> list[ServingContainer]:
        return [
            serving_container(
                model.pinned,
                instance_type,
                server=model.server,
                context_length=context,
                volume_gb=volume_gib,
                trust_remote_code=model.trust_remote_code,
                where=where,
            )
            for instance_type in instance_types
        ]

    containers = on_all(model.context_length)
    contexts = [container.fit.context_length for container in containers]
    told = [context for context in contexts if context is not None]
    if told and len(set(contexts)) > 1:  # one model has one environment: what all have room for
        containers = on_all(min(told))
    first = containers[0]
    for name, other in zip(instance_types, containers, strict=True):
        differs = sorted(
            key
            for key in {*first.environment, *other.environment}
            if first.environment.get(key) != other.environment.get(key)
        )
        if differs or (first.repository, first.tag) != (other.repository, other.tag):
            raise TYPES_DIFFER.error(
                got=f"{instance_types[0]} and {name}, which differ in "
                + (", ".join(differs) or "the image"),
                allowed="types that one container serves in the same way",
                where=where,
            )
    return HubServing(
        model=model, instance_types=tuple(instance_types), containers=tuple(containers)
    )


def also_on(
    serving: HubServing, instance_types: Sequence[str], *, volume_gib: int | None, where: str
) -> HubServing:
    """The same model on further types, which its container serves as it is."""
    further = [
        instance_type
        for instance_type in instance_types
        if instance_type not in serving.instance_types
    ]
    if not further:
        return serving
    alike = hub_serving(
        serving.model, [*serving.instance_types, *further], volume_gib=volume_gib, where=where
    )
    if alike.container.environment != serving.container.environment:
        raise TYPES_DIFFER.error(
            got=f"{', '.join(further)}, with room for a shorter context than "
            f"{', '.join(serving.instance_types)}",
            allowed=f"a context of {min(container.fit.context or 0 for container in alike.containers):,} "
            "tokens for all of them",
            where=where,
            fix="Set context_length to the allowed number.",
        )
    found = dict(zip(alike.instance_types, alike.containers, strict=True))
    return HubServing(
        model=serving.model,
        instance_types=tuple(instance_types),
        containers=tuple(found[instance_type] for instance_type in instance_types),
    )


_LARGE_MODELS = AWS_DOCS + "/sagemaker/latest/dg/large-model-inference-uncompressed.html"


def explain_hub_model(serving: HubServing | None) -> Iterator[Decision[Any]]:
    """The model of the Hub: its commit, its container, and what there is room for."""
    if serving is None:
        return
    pinned, container = serving.model.pinned, serving.container
    fit = container.fit
    yield Decision(
        name="hugging_face_model",
        value=f"{pinned.model} at {pinned.commit[:12]}",
        rule="as the lock file pins it, every file by its SHA-256; staged into S3 by the "
        "deployment, so that no start of an instance asks the Hub",
        inputs={
            "revision": pinned.revision,
            "licence": pinned.license or "not stated",
            "task": pinned.task or "not stated",
            "files": len(pinned.files),
            "bytes": pinned.total_bytes,
        },
        source=_LARGE_MODELS,
        overridden=True,
    )
    yield Decision(
        name="serving_container",
        value=f"{container.repository}:{container.tag}",
        rule="by the model's task and the instance type's accelerator",
        inputs={"server": container.server, "tensor parallel": fit.tensor_parallel},
        note=container.source,
    )
    yield Decision(
        name="concurrent_requests",
        value=fit.concurrent_requests,
        unit="requests",
        rule="the accelerators' memory that the server takes, less weights and overhead, by what "
        "the cache keeps of each token of one request of full length; a server answers more "
        "shorter ones at a time",
        inputs={
            "weights in bytes": fit.weight_bytes,
            "cache per token in bytes": fit.kv_bytes_per_token
            if fit.kv_bytes_per_token is not None
            else "not known",
            "tokens there is room for": fit.kv_tokens if fit.kv_tokens is not None else "not known",
            "context": fit.context if fit.context is not None else "not known",
        },
        note="; ".join(fit.lines()),
    )
