"""Who makes a request, by its access key: the administrator, a user, or a role's session."""

from __future__ import annotations

import functools
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.iam import models
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.sts.models import sts_backends

from ..admission import Session
from ..connections import ACCOUNT
from .evaluator import Asked, NotJudged, Policies, Policy, Principal, decide, read_policy

_EVERYTHING = read_policy(
    json.dumps(
        {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    )
)
_OF_AWS = ":iam::aws:policy/"
_OF_ORGANIZATION = "OrganizationAccountAccessRole"
"""What Organizations makes in each member account for the management account, which is `ACCOUNT`.

https://docs.aws.amazon.com/organizations/latest/userguide/orgs_manage_accounts_access.html
"""
_OF_IAM = re.compile(r"arn:[\w-]+:iam::(\d{12}):((?:role|user|group)/.*)")
_RENEWED = timedelta(minutes=15)  # how long before its end a service's session is replaced


@dataclass(frozen=True)
class Origin:
    """Where the requests of a service's session come from."""

    subnets: tuple[str, ...] = ()  # those of its network interfaces; none outside of a VPC
    function: str = ""  # the ARN of the function that makes them


@dataclass(frozen=True)
class Identity:
    """Somebody who makes requests, with what policies say about them at this moment."""

    principal: Principal
    policies: Policies
    keys: Mapping[str, str]
    origin: Origin = Origin()
    administrator: bool = False  # whether it has the keys that the local AWS gave out at its start


class NotAssumable(Exception):
    """A service may not assume a role; the text is what IAM says."""


ADMINISTRATOR = Identity(
    # So moto's GetCallerIdentity calls whoever has a key that it did not issue.
    Principal(f"arn:aws:sts::{ACCOUNT}:user/moto", ACCOUNT),
    Policies((_EVERYTHING,)),
    {"aws:principaltype": "User", "aws:username": "moto"},
    administrator=True,
)

_lock = threading.Lock()
_sessions: dict[tuple[str, str, Origin], tuple[Session, datetime]] = {}
_origins: dict[str, Origin] = {}


def forget() -> None:
    """Forget the sessions that were given to services."""
    with _lock:
        _sessions.clear()
        _origins.clear()


# ------------------------------------------------------------------------------- policies


def _documents(holder: Any) -> Iterable[Policy]:
    """Read the inline and managed policies of a user, group or role."""
    for text in list(holder.policies.values()):
        yield read_policy(text if isinstance(text, str) else json.dumps(text))
    for managed in list(holder.managed_policies.values()):
        yield _default_version(managed)


def _default_version(managed: Any) -> Policy:
    document = next(version.document for version in managed.versions if version.is_default)
    return read_policy(document if isinstance(document, str) else json.dumps(document))


def _boundary(backend: Any, arn: str | None) -> Policy | None:
    if not arn:
        return None
    managed = backend.managed_policies.get(arn) or aws_managed_policy(arn, backend)
    if managed is None:
        raise NotJudged(f"the permissions boundary {arn}, which does not exist")
    return _default_version(managed)


def role_of(arn: str) -> tuple[Any, Any]:
    """Give a role, or None when there is none, and the backend it belongs to."""
    backend = models.iam_backends[arn.split(":")[4]]["aws"]
    name = arn.rpartition("/")[2]
    return next((r for r in list(backend.roles.values()) if r.name == name), None), backend


def role_exists(arn: str) -> bool:
    return role_of(arn)[0] is not None


def principal_exists(name: str) -> bool:
    """Whether there is what an ARN names, if it names a user or role of an account that is used here.

    Source: IAM user guide, "AWS JSON policy elements: Principal". Of other accounts nobody can tell.
    """
    match = _OF_IAM.fullmatch(name)
    if match is None or match[1] not in {ACCOUNT, *models.iam_backends}:
        return True
    backend = models.iam_backends[match[1]]["aws"]
    principals = [*backend.roles.values(), *backend.users.values()]
    is_organizations = match[2] == f"role/{_OF_ORGANIZATION}" and match[1] != ACCOUNT
    return is_organizations or name in {principal.arn for principal in principals}


def longest_session(arn: str) -> int:
    """Give a role's MaxSessionDuration in seconds, an hour unless it has its own."""
    role, _ = role_of(arn)
    return int(getattr(role, "max_session_duration", None) or 3600)


def role_identity(
    arn: str, session_name: str, *, origin: Origin = Origin(), policy: str | None = None
) -> Identity:
    """Give a session of a role, by what the role's policies say now."""
    role, backend = role_of(arn)
    account, name = arn.split(":")[4], arn.rpartition("/")[2]
    session = f"arn:aws:sts::{account}:assumed-role/{name}/{session_name}"
    limits = read_policy(policy) if policy else None
    if name == _OF_ORGANIZATION and account != ACCOUNT:
        return Identity(
            Principal(session, account, arn), Policies((_EVERYTHING,), None, limits), {}
        )
    if role is None:  # a session of a role that is gone has no rights
        return Identity(Principal(session, account, arn), Policies(session=limits), {}, origin)
    policies = Policies(
        tuple(_documents(role)), _boundary(backend, role.permissions_boundary_arn), limits
    )
    keys = {
        "aws:principaltype": "AssumedRole",
        "aws:userid": f"{role.id}:{session_name}",
        **_tags(role.tags),
    }
    return Identity(Principal(session, account, role.arn), policies, keys, origin)


def named_identity(arn: str) -> Identity | None:
    """Give the role or user that an ARN names, by what its policies say now; None when there is none."""
    if arn == ADMINISTRATOR.principal.arn:
        return ADMINISTRATOR
    match = _OF_IAM.fullmatch(arn)
    if match is None or not principal_exists(arn):
        return None
    if match[2].startswith("role/"):
        return role_identity(arn, "simulated")
    backend = models.iam_backends[match[1]]["aws"]
    user = next((user for user in backend.users.values() if user.arn == arn), None)
    return None if user is None else _user_identity(backend, user)


def _user_identity(backend: Any, user: Any) -> Identity:
    groups = [group for group in backend.groups.values() if user in group.users]
    documents = [found for holder in (user, *groups) for found in _documents(holder)]
    boundary = _boundary(backend, getattr(user, "permissions_boundary_arn", None))
    keys = {
        "aws:principaltype": "User",
        "aws:username": user.name,
        "aws:userid": user.id,
        **_tags(user.tags),
    }
    principal = Principal(user.arn, backend.account_id)
    return Identity(principal, Policies(tuple(documents), boundary), keys)


def _tags(tags: Any) -> dict[str, str]:
    pairs = tags.values() if isinstance(tags, Mapping) else tags or []
    found = (pair for pair in pairs if isinstance(pair, Mapping))
    return {f"aws:principaltag/{each['Key'].lower()}": each["Value"] for each in found}


# ------------------------------------------------------------------------------- sessions


def each_backend(backends: Any) -> Iterator[Any]:
    """Give moto's backends of a service, of all accounts and Regions; others may come meanwhile."""
    for account in list(backends.values()):
        yield from list(account.values())


def session_of(key: str) -> Any:
    """Give moto's record of the session that an access key is of; None when it is none."""
    for backend in each_backend(sts_backends):
        for assumed in reversed(backend.assumed_roles):
            if assumed.access_key_id == key:
                return assumed
    return None


def identify(key: str) -> Identity:
    """Give who has an access key; a key that nobody here issued is the administrator's."""
    for backend in each_backend(models.iam_backends):
        access_key = backend.access_keys.get(key)
        if access_key is None:
            continue
        if access_key.user_name:
            return _user_identity(backend, backend.get_user(access_key.user_name))
        session = session_of(key)
        if session is not None:
            return role_identity(
                session.role_arn,
                session.session_name,
                origin=_origins.get(key, Origin()),
                policy=session.policy,
            )
    return ADMINISTRATOR


def credentials_of(key: str) -> Session | None:
    """Give the credentials that an access key is part of, for what goes on with its owner's rights."""
    if session := session_of(key):
        return Session(key, session.secret_access_key, session.session_token)
    for backend in each_backend(models.iam_backends):
        if key in backend.access_keys:
            return Session(key, backend.access_keys[key].secret_access_key, "")
    return None


def check_trust(role_arn: str, service: str, source: Mapping[str, str] | None = None) -> None:
    """Ask a role's trust policy whether a service may assume it."""
    role, _ = role_of(role_arn)
    if role is None:
        raise NotAssumable(f"the role {role_arn} does not exist")
    context = {name.lower(): value for name, value in (source or {}).items()}
    trust = read_policy(role.assume_role_policy_document)
    asked = Asked(Principal(service), "sts:AssumeRole", role.arn, role.account_id, context)
    decision = decide(asked, Policies(resource=trust, resource_decides=True))
    if not decision.allowed:
        raise NotAssumable(
            f"{service} is not authorized to perform: sts:AssumeRole on resource: {role_arn}"
        )


def service_session(role_arn: str, name: str, origin: Origin = Origin()) -> Session:
    """Give the credentials of a session that a service has started for a process."""
    now, wanted = datetime.now(UTC), (role_arn, name, origin)
    with _lock:
        held = _sessions.get(wanted)
        if held is None or held[1] - now < _RENEWED:
            assume_role = sts_backends[ACCOUNT]["aws"].assume_role(
                region_name="us-east-1",
                role_session_name=name,
                role_arn=role_arn,
                policy="",
                duration=3600,
                external_id="",
            )
            session = Session(
                assume_role.access_key_id, assume_role.secret_access_key, assume_role.session_token
            )
            held = _sessions[wanted] = (session, now + timedelta(hours=1))
            _origins[session.access_key] = origin
    return held[0]


@functools.cache
def _aws_policies() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(aws_managed_policies_data)
    return known


def aws_managed_policy(arn: str, backend: Any) -> Any:
    """Load an AWS-managed policy into a backend; None when AWS has none of that name."""
    # moto loads all, which takes a second, or none, not even what the CDK bootstrap needs.
    name = arn.rpartition("/")[2]
    if _OF_AWS in arn and arn not in backend.managed_policies and name in _aws_policies():
        policy = models.AWSManagedPolicy.from_data(
            name, backend.account_id, backend.region_name, _aws_policies()[name]
        )
        backend.managed_policies[policy.arn] = policy
    return backend.managed_policies.get(arn)
