"""What a load test calls, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from low_latency_client.timing import CLIENT_DURATION, CLIENT_REGION
from low_latency_client.zone import checked_origin

from ...errors import rule
from ...facts.limit_kinds import Pattern
from .client_errors import translated_client_errors

_INVOKE_PAGE = "/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"
TARGET_ENDPOINT = Pattern(
    rule(
        "LLT105",
        "the load test's endpoint is not named",
        fix="Give the endpoint's name: `low-latency list` shows the endpoints.",
        source=_INVOKE_PAGE,
    ),
    "the endpoint's name",
    r"[a-zA-Z0-9](-*[a-zA-Z0-9])*",
    "letters, digits and hyphens",
    63,
)
HEADER_TEXT = Pattern(
    rule(
        "LLT106",
        "a request header is not one line of printable ASCII",
        fix="Use printable ASCII characters on one line.",
        source=_INVOKE_PAGE,
    ),
    "the value",
    r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?",
    "printable ASCII, not empty",
    1024,
)
RESPONSE_CHECK = rule(
    "LLT107",
    "the response check is not a regular expression",
    fix="Give a Python regular expression that occurs in every good answer, such as '\"label\"'.",
)


#: How a request reaches the model: SageMaker's own operations, or its path for OpenAI's clients.
INVOKE, OPENAI = "invoke", "openai"
TARGET_API = rule(
    "LLT164",
    "SageMaker's OpenAI-compatible path does not accept this request",
    fix="Remove the option, or call the endpoint by InvokeEndpointWithResponseStream.",
    source="/sagemaker/latest/dg/realtime-endpoints-openai-compatible.html",
)


@dataclass(frozen=True)
class TokenLimits:
    """That an answer is read token by token, and what makes it a good one; seconds, ``None`` for any."""

    first_token: float | None = None  # longest time to it, from the intended start
    per_token: float | None = None  # longest time per output token after the first


@dataclass(frozen=True)
class Target:
    """What is called, and how.

    Attributes
    ----------
    endpoint_name : str
        The endpoint.
    region : str
        Its Region.
    endpoint_urls : tuple of str
        Base URLs, such as a PrivateLink endpoint's zonal ones, taken in turn; empty for the one
        that boto3 would use.
    content_type : str
        The form of the request.
    accept : str or None
        The form of the answer; by default the model's own.
    target_variant : str or None
        The variant that answers all requests.
    target_model : str or None
        The model of a multi-model endpoint.
    inference_component : str or None
        The inference component.
    streaming : bool
        Whether answers are streamed (``InvokeEndpointWithResponseStream``).
    timeout_seconds : float
        For a whole request, with its connection and the last byte of its answer.
    expected : str or None
        Regular expression that must occur in the body of a good answer.
    allow_plain_http : bool
        Whether ``http://`` may lead to another machine; by default only to this one, as requests
        and signatures go in clear.
    api : str
        ``invoke``: SageMaker's own operations. ``openai``: ``/openai/v1/chat/completions`` of the
        endpoint, with a bearer token that is made here and renewed each minute.
    tokens : TokenLimits or None
        Read response streams token by token; by default they are bytes.

    Raises
    ------
    ConfigurationError
        ``LLT105`` to ``LLT107`` for values of another form, ``LLT164`` for what the OpenAI-compatible
        path cannot carry.

    Examples
    --------
    >>> target = Target("sentiment", "us-east-1", target_variant="primary")
    >>> Target.of_dict(target.to_dict()) == target
    True
    """

    endpoint_name: str
    region: str
    endpoint_urls: tuple[str, ...] = ()
    content_type: str = "application/json"
    accept: str | None = None
    target_variant: str | None = None
    target_model: str | None = None
    inference_component: str | None = None
    streaming: bool = False
    timeout_seconds: float = 60.0
    expected: str | None = None
    allow_plain_http: bool = False
    api: str = INVOKE
    tokens: TokenLimits | None = None

    @translated_client_errors()
    def __post_init__(self) -> None:
        TARGET_ENDPOINT.check(self.endpoint_name, "endpoint_name")
        if not self.region:
            raise CLIENT_REGION.error(got="none", allowed="the name of a Region")
        milliseconds = self.timeout_seconds
        if isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool):
            milliseconds *= 1000
        CLIENT_DURATION.check(milliseconds, "timeout_seconds")
        for name in (
            "content_type",
            "accept",
            "target_variant",
            "target_model",
            "inference_component",
        ):
            value = getattr(self, name)
            if value is not None:
                HEADER_TEXT.check(value, name)
        urls = tuple(
            checked_origin(url, "endpoint_urls", allow_plain_http=self.allow_plain_http)
            for url in self.endpoint_urls
        )
        object.__setattr__(self, "endpoint_urls", urls)
        if self.api == OPENAI:
            refused = {
                "answers that are no streams": not self.streaming,
                "target_variant": self.target_variant,
                "target_model": self.target_model,
            }
            if got := [name for name, value in refused.items() if value]:
                raise TARGET_API.error(got=", ".join(got), allowed="streams of the whole endpoint")
        if self.expected is not None:
            try:
                re.compile(self.expected)
            except re.error as error:
                raise RESPONSE_CHECK.error(
                    got=f"{self.expected!r}: {error}",
                    allowed="a Python regular expression",
                    where="expected",
                ) from error

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; :meth:`of_dict` reads it."""
        return {**asdict(self), "endpoint_urls": list(self.endpoint_urls)}

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> Target:
        """What :meth:`to_dict` wrote; keys of later versions are left alone."""
        known = {field.name for field in fields(cls)}
        given = {key: value for key, value in data.items() if key in known}
        limits = given.get("tokens")
        return cls(
            **{
                **given,
                "endpoint_urls": tuple(given.get("endpoint_urls", ())),
                "tokens": None if limits is None else TokenLimits(**limits),
            }
        )
