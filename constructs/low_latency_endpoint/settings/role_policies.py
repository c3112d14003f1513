"""The inline policies that a settings file's stack puts on roles.

On a role that is stated, what several models or functions need stands once; see
:class:`~low_latency_endpoint.synthesis.role_rights.RoleRights`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from ..errors import ConfigurationError
from ..errors.findings import Place
from ..facts.instance_types import instance_facts
from ..hugging_face.hub_options import HuggingFaceSettings
from ..options.container import ImageSettings, ModelDataSettings
from ..plan.rights import (
    IDS,
    MADE_BUCKET,
    ROLE_POLICIES_LENGTH,
    Own,
    Statement,
    allow,
    by_service,
    decrypting,
    document,
    encrypting_volumes,
    hosting,
    making_interfaces,
    pulling,
    reading,
    too_long,
    writing_with,
)
from .endpoint import EndpointSettings
from .function_rights import Rights, function_rights
from .planned import planned_variants
from .served import has_own_model, hub_serving_of
from .stack import Settings, region_of
from .variants import FurtherSettings, further_variants

Statements = Sequence[Statement]

_DOCUMENT = json.dumps(document(), separators=(",", ":")).removesuffix("[]}") + "}"
_IDS = {kind: "x" * length for kind, length in IDS.items()}
_ACCOUNT = "123456789012"
_BUCKET = "arn:aws:s3:::{}"
_OF_ECR = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.[a-z.]+/(?P<repository>[^:@]+)[:@]?.*"
)


class RolePolicy(NamedTuple):
    """:class:`Rights` as they are sent: two policies that are equal are one."""

    role: str
    statements: str
    in_role: bool = False

    @property
    def length(self) -> int:
        """Characters that IAM counts, with IDs as long as AWS makes them."""
        return len(_DOCUMENT) + len(self.statements)


def role_policies(settings: Settings) -> dict[RolePolicy, str | None]:
    """The policies on the models' and functions' roles, each with the first endpoint that needs it.

    Those of a function that the stack's endpoints share are no endpoint's. Roles of other accounts
    take none.
    """
    found: dict[RolePolicy, str | None] = {}
    for role, statements, key, in_role in (
        *_models_rights(settings),
        *function_rights(settings, _own(settings)),
    ):
        if not _is_foreign(role, settings):
            text = json.dumps(statements, separators=(",", ":"))
            found.setdefault(RolePolicy(role, text, in_role), key)
    return found


def resources_for(policies: Mapping[RolePolicy, str | None], key: str | None) -> int:
    """How many of the policies are resources of an endpoint's; of none: of the whole stack's."""
    return sum(of == key and not policy.in_role for policy, of in policies.items())


def _models_rights(settings: Settings) -> Iterator[Rights]:
    for key, endpoint in settings.endpoints.items():
        for number, model in enumerate(_models(endpoint)):
            role = endpoint.role_arn or f"{key}/{number}"
            for statements in (
                *_hosted(settings, endpoint, model),
                *_granted(settings, key, dumps=number == 0),
            ):
                yield Rights(role, statements, key)


def too_long_policies(
    settings: Settings, policies: Mapping[RolePolicy, str | None]
) -> Iterator[tuple[Place, ConfigurationError]]:
    """The setting that puts too much on a role, for each role; LLE378."""
    lengths: dict[str, int] = {}
    served: dict[str, list[str]] = {}
    refused: set[str] = set()
    for policy, key in policies.items():
        role = policy.role
        lengths[role] = lengths.get(role, 0) + policy.length
        if key is not None and key not in served.setdefault(role, []):
            served[role].append(key)
        if role not in refused and not ROLE_POLICIES_LENGTH.holds(lengths[role]):
            refused.add(role)
            place: Place = ("safeguards", "function_role_arn")
            if role != settings.safeguards.function_role_arn and key is not None:
                place = ("endpoints", key, "role_arn")
            fits = max(len(served.get(role, ())) - 1, 0)
            yield place, too_long(lengths[role], fits=fits, where=role)


def _is_foreign(role: str, settings: Settings) -> bool:
    """Whether a role is another account's; one that the stack makes is not."""
    stated = role.startswith("arn:") and settings.account is not None
    return stated and role.split(":")[4] != settings.account


def _models(endpoint: EndpointSettings) -> list[FurtherSettings | None]:
    """The variants that have a model of their own; None is the first."""
    return [
        None,
        *(each.settings for each in further_variants(endpoint) if has_own_model(each.settings)),
    ]


def _hosted(
    settings: Settings, endpoint: EndpointSettings, further: FurtherSettings | None
) -> Iterator[Statements]:
    """What SageMaker needs to host one model."""
    own = _own(settings)
    zones, stated = settings.client_zones.zones, settings.network.subnets or {}
    interfaces = making_interfaces(
        own,
        settings.network.vpc_id or _IDS["vpc"],
        [stated.get(zone, _IDS["subnet"]) for zone in zones],
        [_IDS["security-group"]],
    )
    needed: list[Statement] = []
    for statement in _of_model(settings, endpoint, further):
        if statement not in needed:
            needed.append(statement)
    yield hosting(own)
    if endpoint.role_arn is None:
        yield [*interfaces, *needed]
    else:
        yield interfaces
        yield from by_service(needed)


def _of_model(
    settings: Settings, endpoint: EndpointSettings, further: FurtherSettings | None
) -> Iterator[Statement]:
    stated = further or endpoint
    if stated.hugging_face:
        serving = hub_serving_of(endpoint, further)
        assert serving is not None
        yield from pulling(_repository(settings, serving.container.repository, _ACCOUNT))
        yield from _staged(settings, stated.hugging_face)
    else:
        for container in stated.containers:
            yield from _image(settings, container.image)
            if container.data:
                yield from _data(container.data)


def _staged(settings: Settings, stated: HuggingFaceSettings) -> Iterator[Statement]:
    bucket = _BUCKET.format(stated.bucket) if stated.bucket else MADE_BUCKET
    yield from reading(bucket, stated.hub_model.pinned.prefix)
    if stated.bucket is None and settings.safeguards.kms_key_arn:
        yield decrypting(settings.safeguards.kms_key_arn)


def _image(settings: Settings, image: ImageSettings) -> Iterator[Statement]:
    own = _own(settings)
    if image.dlc:
        account = image.dlc.account or _ACCOUNT
        yield from pulling(_repository(settings, image.dlc.repository, account))
    elif image.ecr:
        yield from pulling(_repository(settings, image.ecr.repository, own.account))
    elif image.asset:  # all in the repository that the account was bootstrapped with
        name = f"cdk-hnb659fds-container-assets-{own.account}-{own.region}"
        yield from pulling(_repository(settings, name, own.account))
    elif image.private_registry:
        if image.credentials_function_arn:
            yield allow(["lambda:InvokeFunction"], image.credentials_function_arn)
    elif found := _OF_ECR.fullmatch(str(image.uri)):
        arn = f"arn:{own.partition}:ecr:{found['region']}:{found['account']}:repository/"
        yield from pulling(arn + found["repository"])


def _data(data: ModelDataSettings) -> Iterator[Statement]:
    if data.asset:  # its object is named by a digest of the file
        name = sha256(str(data.asset).encode()).hexdigest()
        yield from reading(_BUCKET.format("assets"), f"{name}.gz")
    else:
        bucket, _, key = str(data.s3 or data.s3_prefix).removeprefix("s3://").partition("/")
        yield from reading(_BUCKET.format(bucket), key)
    if data.kms_key_arn:
        yield decrypting(data.kms_key_arn)


def _repository(settings: Settings, name: str, account: str) -> str:
    own = _own(settings)
    return f"arn:{own.partition}:ecr:{own.region}:{account}:repository/{name}"


def _own(settings: Settings) -> Own:
    return Own("aws", region_of(settings) or "us-east-1", settings.account or _ACCOUNT)


def _granted(settings: Settings, key: str, *, dumps: bool) -> Iterator[Statements]:
    """What the endpoint's configuration asks of the role of one of its models."""
    endpoint, guarding = settings.endpoints[key], settings.safeguards.kms_key_arn
    volumes = endpoint.kms_key_arn or (guarding if _takes_key(settings, key) else None)
    if volumes:
        yield encrypting_volumes(volumes)
    for stated in (endpoint.data_capture, endpoint.core_dump if dumps else None):
        if stated:
            objects = f"{_BUCKET.format(stated.s3.removeprefix('s3://').rstrip('/'))}/*"
            encrypts = stated.kms_key_arn or guarding
            yield [
                allow(["s3:PutObject"], objects),
                *([writing_with(encrypts)] if encrypts else []),
            ]


def _takes_key(settings: Settings, key: str) -> bool:
    """Whether the volumes take the safeguards' key: no instance has storage of its own."""
    if settings.endpoints[key].kms_key_with_local_storage:
        return True
    types = {
        name for each in planned_variants(settings, key) for name in each.plan.request.serving.types
    }
    facts = [instance_facts(name) for name in types]
    return not any(each and each.local_storage_gb for each in facts)
