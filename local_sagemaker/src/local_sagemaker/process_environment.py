"""The environment of functions and tasks that the local AWS runs as processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .admission import Credentials, Session, credentials_at

# Variables by which a process could be turned towards a real account.
_REDIRECTING = (
    "AWS_ACCESS_KEY",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_",
    "AWS_DEFAULT_PROFILE",
    "AWS_ENDPOINT_URL",
    "AWS_IGNORE_CONFIGURED",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_SECRET",
    "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS",
    "AWS_WEB_IDENTITY",
)


def process_environment(
    own: Mapping[str, str], scratch: str, *, region: str, url: str, session: Session | None = None
) -> dict[str, str]:
    """What the user has set, in a world that holds the local AWS and nothing else."""
    return {
        **{name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ},
        "HOME": scratch,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        **{name: value for name, value in own.items() if not name.startswith(_REDIRECTING)},
        **aws_variables(region, url, session or credentials_at(url)),
    }


def aws_variables(region: str, url: str, credentials: Credentials | Session) -> dict[str, str]:
    """The variables by which a process finds the local AWS at a URL, and no account."""
    keys = {
        "AWS_ACCESS_KEY_ID": credentials.access_key,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
        "AWS_SESSION_TOKEN": getattr(credentials, "session_token", ""),
    }
    return {
        **{name: value for name, value in keys.items() if value},
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL": url,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
