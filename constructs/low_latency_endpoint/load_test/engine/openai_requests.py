"""Requests on SageMaker's OpenAI-compatible path, as the load generator sends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...client.bearer_tokens import BearerTokens, openai_base_url
from ...client.runtime_wire import check_header_values
from ...client.sigv4 import host_of
from .target import TARGET_API, Target

_HEADERS = {
    "PrefixAwareId": "X-Amzn-SageMaker-Prefix-Aware-Id",
    "SessionId": "X-Amzn-SageMaker-Session-Id",
}


class BearerRequest:
    """One request but for its body, whose token is that of the minute in which it is sent."""

    __slots__ = ("_head", "_tokens")

    def __init__(
        self,
        url: str,
        target: Target,
        overrides: Mapping[str, Any],
        tokens: BearerTokens,
        user_agent: str,
    ) -> None:
        if unknown := sorted(set(overrides) - set(_HEADERS)):
            raise TARGET_API.error(got=", ".join(unknown), allowed=", ".join(_HEADERS))
        base = openai_base_url(
            target.endpoint_name, url=url, inference_component=target.inference_component
        )
        headers = {
            "Host": host_of(url),
            "User-Agent": user_agent,
            "Accept-Encoding": "identity",
            "Content-Type": target.content_type,
            "Accept": target.accept or "text/event-stream",
            **{_HEADERS[name]: str(value) for name, value in overrides.items()},
        }
        check_header_values(headers)
        lines = [f"POST {base.removeprefix(url)}/chat/completions HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._head = "".join(f"{line}\r\n" for line in lines).encode()
        self._tokens = tokens

    def signed(self, body: bytes) -> bytes:
        """The whole request for this body, now."""
        return b"%bContent-Length: %d\r\nAuthorization: Bearer %b\r\n\r\n%b" % (
            self._head,
            len(body),
            self._tokens().encode(),
            body,
        )
