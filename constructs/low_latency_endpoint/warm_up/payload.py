"""What the warm-up sends: request bodies, known at synth and shipped with the function."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..plan.argument_kinds import checked_arguments
from ..plan.warm_up_rules import (
    PAYLOAD_BYTES,
    PAYLOAD_COUNT,
    PAYLOAD_KNOWN,
    PAYLOAD_READABLE,
    PAYLOAD_TEXT,
    check_header,
)
from ..synthesis.validation import is_token

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

_INDEX = "payloads.json"


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class WarmUpPayload:
    """The body of a warm-up request, and the headers that go with it.

    Make one with :meth:`from_json`, :meth:`from_text` or :meth:`from_file`. Send what callers
    send: a body of their size, on the path their requests take. It becomes part of the function's
    archive, so it must not hold secrets.

    Attributes
    ----------
    body : bytes
    content_type : str
    accept : str, optional
        The form of the answer; by default the model's own.
    target_model : str, optional
        For multi-model endpoints the archive to load, relative to the prefix.
    target_container : str, optional
        For containers that are invoked directly the hostname.

    Raises
    ------
    ConfigurationError
        LLE545 when the body is too large, LLE546 when the file cannot be read, LLE547 for a CDK
        token, LLE557 for what JSON or a header cannot carry.

    Examples
    --------
    >>> WarmUpPayload.from_json({"inputs": "I like you."}).body
    b'{"inputs":"I like you."}'
    >>> WarmUpPayload.from_text("5.1,3.5,1.4", content_type="text/csv").content_type
    'text/csv'
    """

    body: bytes = field(repr=False)
    content_type: str
    accept: str | None = None
    target_model: str | None = None
    target_container: str | None = None

    def __post_init__(self) -> None:
        PAYLOAD_BYTES.check(len(self.body), "warm-up payload")
        for name, value in self._headers.items():
            if is_token(value):
                raise PAYLOAD_KNOWN.error(got=f"{name} {value}", allowed="plain text")
            check_header(name, value)

    @classmethod
    def from_json(
        cls,
        data: Any,
        *,
        content_type: str = JSON,
        accept: str | None = None,
        target_model: str | None = None,
        target_container: str | None = None,
    ) -> WarmUpPayload:
        """A body of JSON-safe data."""
        try:
            text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as problem:
            raise PAYLOAD_TEXT.error(got=str(problem), allowed="JSON-safe data") from problem
        return cls.from_text(
            text,
            content_type=content_type,
            accept=accept,
            target_model=target_model,
            target_container=target_container,
        )

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        content_type: str = TEXT,
        accept: str | None = None,
        target_model: str | None = None,
        target_container: str | None = None,
    ) -> WarmUpPayload:
        """A body of text, in UTF-8."""
        if is_token(text):
            raise PAYLOAD_KNOWN.error(got="a CDK token", allowed="text known at synth")
        return cls(
            body=text.encode(),
            content_type=content_type,
            accept=accept,
            target_model=target_model,
            target_container=target_container,
        )

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        content_type: str = JSON,
        accept: str | None = None,
        target_model: str | None = None,
        target_container: str | None = None,
    ) -> WarmUpPayload:
        """The bytes of a file, as they are."""
        try:
            body = Path(path).read_bytes()
        except OSError as problem:
            raise PAYLOAD_READABLE.error(
                got=f"{path} ({problem.strerror})", allowed="a file that can be read"
            ) from problem
        return cls(
            body=body,
            content_type=content_type,
            accept=accept,
            target_model=target_model,
            target_container=target_container,
        )

    @property
    def _headers(self) -> dict[str, str]:
        """Parameters of InvokeEndpoint."""
        given = {
            "ContentType": self.content_type,
            "Accept": self.accept,
            "TargetModel": self.target_model,
            "TargetContainerHostname": self.target_container,
        }
        return {name: value for name, value in given.items() if value is not None}


def as_payloads(
    given: WarmUpPayload | Sequence[WarmUpPayload], where: str
) -> tuple[WarmUpPayload, ...]:
    """One payload or several, as a tuple."""
    payloads = (given,) if isinstance(given, WarmUpPayload) else tuple(given)
    PAYLOAD_COUNT.check(len(payloads), where)
    return payloads


def write_payloads(payloads: Sequence[WarmUpPayload], folder: Path) -> None:
    """Write bodies and their headers where the function finds them."""
    folder.mkdir()
    index = []
    for number, payload in enumerate(payloads):
        (folder / str(number)).write_bytes(payload.body)
        index.append({"File": str(number), **payload._headers})
    (folder / _INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")


def payload_digest(payloads: Sequence[WarmUpPayload]) -> str:
    """Changes with the payloads: a new payload is tried at once."""
    from hashlib import sha256  # OpenSSL: a tenth of what importing the constructs takes

    digest = sha256()
    for payload in payloads:
        digest.update(json.dumps([payload._headers, len(payload.body)]).encode())
        digest.update(payload.body)
    return digest.hexdigest()[:16]
