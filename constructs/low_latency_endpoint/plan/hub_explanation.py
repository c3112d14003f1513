"""Why a model of the Hugging Face Hub is served as it is: decisions for the plan."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import AWS_DOCS
from .decisions import Decision
from .decode_pace import ITL_BELOW_FLOOR, decode_paces
from .hub_serving import HubServing

_LARGE_MODELS = AWS_DOCS + "/sagemaker/latest/dg/large-model-inference-uncompressed.html"


def explain_hub_model(serving: HubServing | None) -> Iterator[Decision]:
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
        source=container.source if container.source.startswith("http") else "",
        note="" if container.source.startswith("http") else container.source,
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
        note="; ".join(fit.lines()[:2]),
    )
    for pace in sorted(decode_paces(serving), key=lambda each: -each.milliseconds)[:1]:
        yield Decision(
            name="inter_token_floor",
            value=round(pace.milliseconds, 2),
            unit="ms",
            rule="bytes of the weights that a token reads / bandwidth of the accelerators' memory: no "
            "gap between tokens is shorter, and real ones are longer",
            inputs={
                "instance type": pace.instance_type,
                "bytes read": pace.token_bytes,
                "GB per second of an accelerator": pace.gb_per_second,
                "accelerators": pace.accelerators,
            },
            source=ITL_BELOW_FLOOR.source,
        )
