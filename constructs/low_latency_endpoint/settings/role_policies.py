"""The inline policies that a settings file's stack puts on the models' roles.

On a role that is stated, what several models need stands once; see
:class:`~low_latency_endpoint.synthesis.role_rights.RoleRights`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..plan.instance_types import instance_facts
from .containers import ContainerSettings
from .endpoint import EndpointSettings
from .hugging_face import HuggingFaceSettings
from .planned import planned_variants
from .served import has_own_model, hub_serving_of
from .stack import Settings
from .variants import FurtherSettings, further_variants


class RolePolicy(NamedTuple):
    """A policy on a role; two that are equal are one."""

    role: str
    kind: str
    content: object = ()


def role_policies(settings: Settings) -> dict[RolePolicy, str]:
    """The policies on the models' roles, each with the first endpoint that needs it.

    Roles of other accounts take none.
    """
    found: dict[RolePolicy, str] = {}
    for key, endpoint in settings.endpoints.items():
        if endpoint.role_arn and _is_foreign(endpoint.role_arn, settings):
            continue
        first, *further = _models(endpoint)
        for number, model in enumerate([first, *further]):
            role = endpoint.role_arn or f"{key}/{number}"
            for kind, content in (
                *_hosted(settings, endpoint, model),
                *_granted(settings, key, dumps=number == 0),
            ):
                found.setdefault(RolePolicy(role, kind, content), key)
    return found


def _is_foreign(role_arn: str, settings: Settings) -> bool:
    return settings.account is not None and role_arn.split(":")[4] != settings.account


def _models(endpoint: EndpointSettings) -> list[FurtherSettings | None]:
    """The variants that have a model of their own; None is the first."""
    return [
        None,
        *(each.settings for each in further_variants(endpoint) if has_own_model(each.settings)),
    ]


def _hosted(
    settings: Settings, endpoint: EndpointSettings, further: FurtherSettings | None
) -> Iterator[tuple[str, object]]:
    """What SageMaker needs to host one model."""
    if endpoint.role_arn is None:
        yield from (("Policy", ()), ("Version", ()))
        return
    yield from (("Hosting", ()), ("Interfaces", ()))
    stated = further or endpoint
    if stated.hugging_face:
        serving = hub_serving_of(endpoint, further)
        assert serving is not None
        yield "Images", serving.container.repository
        yield from _staged(settings, stated.hugging_face)
    elif stated.jumpstart:
        yield "Images", (stated.jumpstart.model, "image")
        yield "Data", (stated.jumpstart.model, "data")
    else:
        yield from _of_containers(stated.containers)


def _staged(settings: Settings, stated: HuggingFaceSettings) -> Iterator[tuple[str, object]]:
    yield "Data", (stated.bucket, stated.hub_model.pinned.prefix)
    if stated.bucket is None and settings.safeguards.kms_key_arn:
        yield "Keys", settings.safeguards.kms_key_arn


def _of_containers(containers: Sequence[ContainerSettings]) -> Iterator[tuple[str, object]]:
    """A policy for each service that is needed: ECR, Lambda for a login, S3, KMS."""
    named: dict[str, list[str | None]] = {
        "Images": [_repository(each) for each in containers],
        "Logins": [each.image.credentials_function_arn for each in containers],
        "Data": [
            str(each.data.asset or each.data.s3 or each.data.s3_prefix)
            for each in containers
            if each.data
        ],
        "Keys": [each.data.kms_key_arn for each in containers if each.data],
    }
    for kind, contents in named.items():
        content = tuple(dict.fromkeys(filter(None, contents)))
        if content:
            yield kind, content


def _repository(container: ContainerSettings) -> str | None:
    image = container.image
    if image.dlc:
        return f"{image.dlc.account or 'aws'}/{image.dlc.repository}"
    if image.ecr:
        return image.ecr.repository
    if image.asset:
        return "assets"  # all in the repository that the account was bootstrapped with
    if image.private_registry or ".dkr.ecr." not in str(image.uri):
        return None
    return str(image.uri).partition("@")[0].rpartition(":")[0] or str(image.uri)


def _granted(settings: Settings, key: str, *, dumps: bool) -> Iterator[tuple[str, object]]:
    """What the endpoint's configuration asks of the role of one of its models."""
    endpoint, guarding = settings.endpoints[key], settings.safeguards.kms_key_arn
    volumes = endpoint.kms_key_arn or (guarding if _takes_key(settings, key) else None)
    if volumes:
        yield "Volumes", volumes
    for stated in (endpoint.data_capture, endpoint.core_dump if dumps else None):
        if stated:
            yield "Writing", (stated.s3.rstrip("/"), stated.kms_key_arn or guarding)


def _takes_key(settings: Settings, key: str) -> bool:
    """Whether the volumes take the safeguards' key: no instance has storage of its own."""
    if settings.endpoints[key].kms_key_with_local_storage:
        return True
    types = {name for each in planned_variants(settings, key) for name in each.plan.request.types}
    facts = [instance_facts(name) for name in types]
    return not any(each and each.local_storage_gb for each in facts)
