"""Why requests failed, by the kind of error: who or what failed, and what to do about it.

A kind is what :class:`.invoking.Invocation` has as its error: ``400 ThrottlingException``,
``connection refused``. Start with :func:`cause_of`.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from low_latency_client.timing import THROTTLES

from .measurement import Measurement

#: As botocore's retries know them, and quotas.
_THROTTLES = THROTTLES.union(
    [
        "ThrottledException",
        "RequestThrottledException",
        "RequestThrottled",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "ServiceQuotaExceededException",
        "SlowDown",
    ]
)
_SAGEMAKERS = frozenset(
    {"InternalFailure", "InternalServerException", "InternalDependencyException"}
)
_BUSY = frozenset({"429", "503", "507"})
CONNECTIONS, SENDER = "connections", "sender"
#: Causes that say nothing about an instance, in words.
NOT_THE_INSTANCES = {
    "throttled": "AWS throttled the requests",
    "loading": "the model was still loading",
    "refused": "SageMaker refused the requests",
    "sagemaker": "SageMaker itself failed",
    CONNECTIONS: "connections to SageMaker failed",
    SENDER: "the machine that sent failed",
}
#: Causes that are a container's: the request reached it.
CONTAINERS = ("busy", "gave-up", "model")
#: Of these causes a test of more load shows nothing new.
LASTING = frozenset({"refused", CONNECTIONS, SENDER})
#: From this share on the requests that reach an instance are not the load that a step is of.
_MOST = 0.5


class FailureMeaning(NamedTuple):
    """What a kind of error means."""

    said: str
    fix: str


_CONNECTIONS = {
    "name unknown": FailureMeaning(
        "the host name is not resolved",
        "Check the Region, the URL and this machine's DNS. The name of an interface endpoint is "
        "resolved only where its private DNS reaches: in its VPC, and in networks that forward to it.",
    ),
    "timeout": FailureMeaning(
        "no connection is made in time",
        "Look for what drops packets: a security group or a network ACL that does not allow port "
        "443 from this machine, a missing route, a firewall. If only bursts time out, send from more "
        "machines, or at a steadier rate.",
    ),
    "refused": FailureMeaning(
        "nothing listens at the address",
        "Check the URL and its port, and that what listens there still runs: a local AWS, a tunnel, "
        "a proxy.",
    ),
    "not trusted": FailureMeaning(
        "the TLS certificate is not trusted",
        "Name the authority that signed it in AWS_CA_BUNDLE, such as that of a proxy which inspects "
        "TLS. Check the host name of the URL and this machine's clock.",
    ),
    "closed": FailureMeaning(
        "connections break off before the answer",
        "Look at what is between this machine and SageMaker: a proxy, a firewall, a NAT gateway, a "
        "load balancer, or TLS on a port that speaks plain HTTP.",
    ),
    "malformed answer": FailureMeaning(
        "what answers speaks no HTTP",
        "Check the URL, and whether a proxy answers in place of SageMaker.",
    ),
    **dict.fromkeys(
        map(os.strerror, (errno.ENETUNREACH, errno.EHOSTUNREACH)),
        FailureMeaning(
            "there is no route to the address",
            "Check the routes of this machine's subnet, and its network interface.",
        ),
    ),
}
_OTHER_CONNECTION = FailureMeaning(
    "connections fail", "Look at the network between this machine and SageMaker."
)
_SENDERS = {
    **dict.fromkeys(
        map(os.strerror, (errno.EMFILE, errno.ENFILE)),
        FailureMeaning(
            "too many files are open",
            "Raise the limit of open files (ulimit -n), or send from more processes or machines.",
        ),
    ),
    os.strerror(errno.EADDRNOTAVAIL): FailureMeaning(
        "no local port is free",
        "Send from more machines: each new connection takes a port for a minute.",
    ),
    **dict.fromkeys(
        map(os.strerror, (errno.ENOBUFS, errno.ENOMEM)),
        FailureMeaning(
            "it has no memory left", "Send from more machines, or fewer requests at once."
        ),
    ),
}
_CREDENTIALS = FailureMeaning(
    "its credentials cannot be refreshed",
    "Sign in again. Use credentials that last for the whole test.",
)
_CLIENT = FailureMeaning(
    "the request could not be made",
    "See the message: the function that makes payloads failed, or the load generator itself.",
)
_EXPIRED = FailureMeaning(
    "the credentials are expired or not valid",
    "Sign in again. Use credentials that last for the whole test, and check this machine's clock.",
)
_NOT_FOUND = FailureMeaning(
    "the endpoint does not exist",
    "Check its name, the Region and the account, and whether it was deleted meanwhile.",
)
_REFUSED = {
    **dict.fromkeys(
        (
            "ExpiredToken",
            "ExpiredTokenException",
            "IncompleteSignature",
            "IncompleteSignatureException",
            "InvalidClientTokenId",
            "InvalidSignatureException",
            "MissingAuthenticationToken",
            "MissingAuthenticationTokenException",
            "RequestExpired",
            "SignatureDoesNotMatch",
            "UnrecognizedClientException",
        ),
        _EXPIRED,
    ),
    **dict.fromkeys(
        ("AccessDenied", "AccessDeniedException"),
        FailureMeaning(
            "the caller may not invoke the endpoint",
            "Allow sagemaker:InvokeEndpoint to the caller, and in the interface endpoint's policy.",
        ),
    ),
}

#: What boto3 calls the same, where it opens the sessions of conversations.
_OF_BOTO3 = {
    "ConnectTimeoutError": "connection timeout",
    "ConnectionClosedError": "connection closed",
    "EndpointConnectionError": "connection error",
    "ProxyConnectionError": "connection error",
    "SSLError": "connection not trusted",
    "CredentialRetrievalError": "credentials",
    "NoCredentialsError": "credentials",
    "PartialCredentialsError": "credentials",
    "TokenRetrievalError": "credentials",
    "UnauthorizedSSOTokenError": "credentials",
}


def cause_of(kind: str) -> str:
    """One of :data:`NOT_THE_INSTANCES` or of :data:`CONTAINERS`; or empty.

    By the code first: SageMaker throttles with 400, and its 429 is a model that loads.
    """
    status, code = _status_and_code(kind)
    if status == "connection":
        return SENDER if code in _SENDERS else CONNECTIONS
    if status in ("credentials", "client"):
        return SENDER
    if code in _THROTTLES:
        return "throttled"
    if code == "ModelNotReadyException":
        return "loading"
    if code.startswith("ModelError"):
        original = code.removeprefix("ModelError").strip()
        return "busy" if original in _BUSY else "gave-up" if original == "0" else "model"
    if code in _SAGEMAKERS:
        return "sagemaker"
    if status == "429":
        return "throttled"
    if status.startswith("4") and status != "408":
        return "refused"
    return ""


def _status_and_code(kind: str) -> tuple[str, str]:
    kind = kind.removeprefix("session ")
    status, _, code = _OF_BOTO3.get(kind, kind).partition(" ")
    return status, code


def explanation(kind: str, message: str = "") -> FailureMeaning | None:
    """What a kind of error means; ``None`` where its cause says all that is known."""
    status, code = _status_and_code(kind)
    if status == "connection":
        return _SENDERS.get(code) or _CONNECTIONS.get(code, _OTHER_CONNECTION)
    if status == "credentials":
        return _CREDENTIALS
    if status == "client":
        return _CLIENT
    if cause_of(kind) == "refused" and "endpoint" in message.lower() and "not found" in message:
        return _NOT_FOUND
    return _REFUSED.get(code)


def causes(errors: Mapping[str, int]) -> Counter[str]:
    """How many requests failed by each cause."""
    counts = Counter[str]()
    for kind, count in errors.items():
        counts[cause_of(kind)] += count
    return counts


def not_the_instances(errors: Mapping[str, int], sent: int, allowed: float) -> str:
    """Why a step of which more requests failed than may says nothing of an instance; or nothing."""
    found = causes(errors)
    others = {cause: found[cause] for cause in NOT_THE_INSTANCES if found[cause]}
    if sum(others.values()) <= allowed * sent:
        return ""
    cause, count = max(others.items(), key=lambda each: each[1])
    return f"{NOT_THE_INSTANCES[cause]} ({count:,} of {sent:,}), which is no limit of an instance"


def cause_of_most(measured: Measurement) -> str:
    """The commonest of :data:`NOT_THE_INSTANCES`, where they failed half of all requests or more.

    Empty where instances answered enough for the step to say something about them.
    """
    counts = causes(measured.errors)
    others = Counter({cause: counts[cause] for cause in NOT_THE_INSTANCES})
    if not measured.sent or others.total() < _MOST * measured.sent:
        return ""
    return others.most_common(1)[0][0]


def commonest_kind(measured: Measurement, cause: str) -> str:
    """The kind of error that failed most requests, of those with this cause."""
    kinds = {kind: count for kind, count in measured.errors.items() if cause_of(kind) == cause}
    return max(kinds, key=lambda kind: kinds[kind], default="")


def explained(measured: Measurement, cause: str) -> FailureMeaning | None:
    """What the commonest kind of error with this cause means."""
    kind = commonest_kind(measured, cause)
    return explanation(kind, measured.messages.get(kind, ""))
