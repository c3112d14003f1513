"""The rights of a settings file's functions, and the inline policies that its stack puts on roles.

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
    being_in_vpc,
    by_service,
    calling_endpoint,
    calling_function,
    closing_group,
    decrypting,
    document,
    encrypting_volumes,
    hosting,
    hosting_on_stated_role,
    keys_apart,
    literal,
    looking_at_endpoint,
    looking_at_interfaces,
    looking_at_stack,
    looking_at_traffic,
    made_arn,
    making_interfaces,
    on_stated_role,
    pulling,
    reading,
    reading_secret,
    sending_dead_letters,
    stack_id,
    staging,
    too_long,
    writing_log,
    writing_with,
)
from .endpoint import EndpointSettings, FurtherSettings, further_variants
from .stack import Settings, region_of
from .variant_plans import (
    has_own_model,
    hub_models,
    hub_serving_of,
    planned_variants,
    warm_up_requests,
)

_LONGEST_ENDPOINT = 63


_NO_LETTER = re.compile("[^A-Za-z0-9]")


class Rights(NamedTuple):
    """One policy on a role."""

    role: str  # the ARN of one that is stated, or any name of one that the stack makes
    statements: Sequence[Statement]
    key: str | None  # the endpoint that needs it; None for what is of the whole stack
    in_role: bool = False  # whether the role is made with it, so that it is no resource of its own


def function_rights(settings: Settings, own: Own) -> Iterator[Rights]:
    """In the order in which the stack makes them."""
    stack = _Stack(settings, own)
    own_vpc = settings.network.vpc_id is None
    if own_vpc:
        group = closing_group(own, "x" * IDS["security-group"])
        yield from stack.function(("Network", "DefaultSecurityGroup"), group)
    if own_vpc or settings.private_link.names_what_it_serves(own_vpc=own_vpc):
        yield from stack.function(("FormerNames",), [])
    for key, endpoint in settings.endpoints.items():
        yield from _staging(stack, key)
        looking = looking_at_stack(stack.id)
        if settings.safeguards.wait_for_interfaces:
            drain = ("LowLatencyEndpointDrain",)
            yield from stack.function(drain, [looking_at_interfaces(), looking])
            yield stack.also(drain, [calling_function(stack.arn(*drain, "Function"))], None)
        if endpoint.confirm_updates:
            check = ("EndpointServingCheck",)
            yield from stack.function(check, [looking])
            yield stack.also(check, [looking_at_endpoint(stack.endpoint(key))], key)
        if endpoint.canary is not None:
            yield from _canary(stack, key)
        if warm_up_requests(settings, key):
            yield from _warm_up(stack, key)


class _Stack:
    """How the functions of a stack, and what they write to, are called."""

    def __init__(self, settings: Settings, own: Own) -> None:
        self.settings, self.own = settings, own
        self._stated = settings.safeguards.function_role_arn
        self.key_arn = settings.safeguards.kms_key_arn
        self.id = stack_id(len(settings.stack_name))

    def arn(self, *ids: str) -> str:
        logical_id = _NO_LETTER.sub("", "".join(ids)) + _digest(*ids)
        return made_arn(self.own, logical_id, stack_name=len(self.settings.stack_name))

    def endpoint(self, key: str) -> str:
        stated = self.settings.endpoints[key].endpoint_name
        made = f"{self.settings.stack_name}-{_NO_LETTER.sub('', key)}-endpoint-{_digest(key)}"
        return self.own.arn("sagemaker", f"endpoint/{stated or made[-_LONGEST_ENDPOINT:]}")

    def function(
        self,
        ids: tuple[str, ...],
        statements: Sequence[Statement],
        key: str | None = None,
        *,
        in_client_zone: bool = False,
    ) -> Iterator[Rights]:
        """What a function may do from the start, and write its log."""
        logs = writing_log(
            self.arn(*ids, "Logs"),
            key_arn=self.key_arn,
            service=f"logs.{self.own.region}.amazonaws.com",
        )
        # Of all that a function is made with, only the length and what is equal matter here.
        both = [*statements, *logs]
        if in_client_zone or self.settings.safeguards.function_subnet_ids:
            both += being_in_vpc(self.own)
        if self._stated is not None:
            of_one, of_all = on_stated_role(both, ("*", self.id, self.key_arn))
            yield Rights(self._stated, of_one, key)
            yield from (Rights(self._stated, [each], None) for each in of_all)
            return
        standing, for_keys = keys_apart(both)
        yield Rights("/".join(ids), standing, key, in_role=True)
        if for_keys:
            yield Rights("/".join(ids), for_keys, key)

    def also(
        self, ids: tuple[str, ...], statements: Sequence[Statement], key: str | None
    ) -> Rights:
        """What a function may do besides."""
        return Rights(self._stated or "/".join(ids), statements, key)


def _digest(*ids: str) -> str:
    """As long as CDK's at the end of names: two names of the same length are not the same."""
    return sha256("/".join(ids).encode()).hexdigest()[:8]


def _staging(stack: _Stack, key: str) -> Iterator[Rights]:
    ids = ("HubModelStaging",)
    for stated in hub_models(stack.settings.endpoints[key]):
        yield from stack.function(ids, [])
        bucket = f"arn:aws:s3:::{stated.bucket}" if stated.bucket else MADE_BUCKET
        rights = staging(bucket, None if stated.bucket else stack.key_arn)
        yield stack.also(ids, rights, None)
        if stated.token_secret_arn:
            yield stack.also(ids, reading_secret(stated.token_secret_arn, None), None)


def _canary(stack: _Stack, key: str) -> Iterator[Rights]:
    queue = stack.arn(key, "Canary", "DeadLetters", "Queue")
    dead_letters = sending_dead_letters(queue, stack.key_arn)
    for zone in stack.settings.client_zones.zones:
        ids = (key, "Canary", f"Zone-{zone}")
        yield from stack.function(ids, dead_letters, key, in_client_zone=True)
        yield stack.also(ids, [calling_endpoint(stack.endpoint(key))], key)


def _warm_up(stack: _Stack, key: str) -> Iterator[Rights]:
    dead_letters = sending_dead_letters(
        stack.arn(key, "WarmUp", "DeadLetters", "Queue"), stack.key_arn
    )
    sender, controller = (key, "WarmUp", "Sender"), (key, "WarmUp", "Controller")
    yield from stack.function(sender, dead_letters, key, in_client_zone=True)
    yield stack.also(sender, [calling_endpoint(stack.endpoint(key))], key)
    calls = calling_function(stack.arn(*sender, "Function"))
    looks = looking_at_stack(stack.id)
    yield from stack.function(controller, [calls, looks, *dead_letters], key)
    warm_up = stack.settings.endpoints[key].warm_up
    if warm_up and warm_up.keep_warm is not None:
        shared = stack.settings.safeguards.function_role_arn is not None
        yield stack.also(controller, [looking_at_traffic()], None if shared else key)


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
    policies: dict[RolePolicy, str | None] = {}
    for role, statements, key, in_role in (
        *_models_rights(settings),
        *function_rights(settings, _own(settings)),
    ):
        if not _is_foreign(role, settings):
            text = json.dumps(statements, separators=(",", ":"))
            policies.setdefault(RolePolicy(role, text, in_role), key)
    return policies


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
        *(
            variant.settings
            for variant in further_variants(endpoint)
            if has_own_model(variant.settings)
        ),
    ]


def _hosted(
    settings: Settings, endpoint: EndpointSettings, further: FurtherSettings | None
) -> Iterator[Statements]:
    """The rights that SageMaker needs to host one model."""
    own = _own(settings)
    zones, stated = settings.client_zones.zones, settings.network.subnets or {}
    interfaces = making_interfaces(
        own,
        settings.network.vpc_id or _IDS["vpc"],
        [stated.get(zone, _IDS["subnet"]) for zone in zones],
        [_IDS["security-group"]],
        settings.other_owner,
    )
    needed: list[Statement] = []
    for statement in _of_model(settings, endpoint, further):
        if statement not in needed:
            needed.append(statement)
    names = [endpoint.endpoint_name] if endpoint.endpoint_name else []
    if endpoint.role_arn is None:
        yield hosting(own, names)
        yield [*interfaces, *needed]
    else:
        yield from hosting_on_stated_role(own, names)
        yield interfaces
        yield from by_service(needed)


def _of_model(
    settings: Settings, endpoint: EndpointSettings, further: FurtherSettings | None
) -> Iterator[Statement]:
    further_settings = further or endpoint
    if further_settings.hugging_face:
        serving = hub_serving_of(endpoint, further)
        assert serving is not None
        yield from pulling(_repository(settings, serving.container.repository, _ACCOUNT))
        yield from _staged(settings, further_settings.hugging_face)
    else:
        for container in further_settings.containers:
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
        yield from pulling(arn + literal(found["repository"]))


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
    """The rights that the endpoint's configuration requires of a model's role."""
    endpoint, guarding = settings.endpoints[key], settings.safeguards.kms_key_arn
    volumes = endpoint.kms_key_arn or (guarding if _takes_key(settings, key) else None)
    if volumes:
        yield encrypting_volumes(volumes)
    for stated in (endpoint.data_capture, endpoint.core_dump if dumps else None):
        if stated:
            objects = f"{_BUCKET.format(literal(stated.s3.removeprefix('s3://').rstrip('/')))}/*"
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
        name
        for variant in planned_variants(settings, key)
        for name in variant.plan.request.serving.types
    }
    facts = [instance_facts(name) for name in types]
    return not any(fact and fact.local_storage_gb for fact in facts)
