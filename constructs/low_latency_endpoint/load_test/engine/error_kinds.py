"""What failed a request, by its kind: ``400 ThrottlingException``, ``424 ModelError 503``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ...client.client_timing import THROTTLES

#: More kinds than these of one step are counted together: codes and statuses are the server's.
MOST_KINDS, MANY_MORE = 50, "other errors"
_LONGEST = 200
_IDENTIFIER = re.compile(r"\b(?=[\w-]*\d)[\w-]{16,}\b")
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
#: Causes that say nothing about an instance, in words.
NOT_THE_INSTANCES = {
    "throttled": "AWS throttled the requests",
    "loading": "the model was still loading",
    "refused": "SageMaker refused the requests",
    "sagemaker": "SageMaker itself failed",
}


def cause_of(kind: str) -> str:
    """One of :data:`NOT_THE_INSTANCES`; of a container ``busy``, ``gave-up``, ``model``; or empty.

    By the code first: SageMaker throttles with 400, and its 429 is a model that loads.

    Examples
    --------
    >>> [cause_of(kind) for kind in ("400 ThrottlingException", "429 ModelNotReadyException",
    ...                              "424 ModelError 503", "424 ModelError 0", "timeout")]
    ['throttled', 'loading', 'busy', 'gave-up', '']
    """
    status, _, code = kind.removeprefix("session ").partition(" ")
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
    if status == "credentials" or (status.startswith("4") and status != "408"):
        return "refused"
    return ""


def causes(errors: Mapping[str, int]) -> Counter[str]:
    """How many requests failed by each cause."""
    return sum((Counter({cause_of(kind): n}) for kind, n in errors.items()), Counter[str]())


def not_the_instances(errors: Mapping[str, int], sent: int, allowed: float) -> str:
    """Why a step of which more requests failed than may says nothing of an instance; or nothing."""
    found = causes(errors)
    others = {cause: found[cause] for cause in NOT_THE_INSTANCES if found[cause]}
    if sum(others.values()) <= allowed * sent:
        return ""
    cause, count = max(others.items(), key=lambda each: each[1])
    return f"{NOT_THE_INSTANCES[cause]} ({count:,} of {sent:,}), which is no limit of an instance"


def brief(message: str) -> str:
    """A server's message in one short line that no terminal obeys, without a request's number."""
    shown = "".join(one if one.isprintable() else " " for one in message[:5000])
    text = _IDENTIFIER.sub("…", " ".join(shown.split()))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
