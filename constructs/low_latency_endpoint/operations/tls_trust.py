"""Which certificate authorities the clients for callers trust, read once per client."""

from __future__ import annotations

import os
import ssl

import boto3
from botocore.httpsession import get_cert_path

__all__ = ["tls_context", "trusted_authorities"]


def tls_context(ca_file: str) -> ssl.SSLContext:
    """A verifying client context with this bundle read once."""
    return ssl.create_default_context(cafile=ca_file)


def trusted_authorities(session: boto3.Session) -> str:
    """The file that boto3 would use: AWS_CA_BUNDLE, the profile, REQUESTS_CA_BUNDLE, its own."""
    core = getattr(session, "_session", None)
    configured = core.get_config_variable("ca_bundle") if core is not None else None
    configured = configured or os.environ.get("AWS_CA_BUNDLE")
    return str(get_cert_path(configured or os.environ.get("REQUESTS_CA_BUNDLE") or True))
