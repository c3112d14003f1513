"""The headers of an invocation: which there are, how long they may be, which go on to the model."""

from __future__ import annotations

from .refusals import Refusal

__all__ = ["PREFIX", "check_lengths", "forwarded", "region_of"]

PREFIX = "x-amzn-sagemaker-"
_LENGTHS = {
    "custom-attributes": 1024, "target-model": 1024, "target-variant": 63,
    "target-container-hostname": 63, "inference-id": 64, "inference-component": 63,
    "session-id": 256, "prefix-aware-id": 64,
}


def check_lengths(headers: dict[str, str]) -> None:
    """Refuse headers that are longer than they may be.

    Raises
    ------
    Refusal
        400 ValidationError.
    """
    for name, longest in _LENGTHS.items():
        value = headers.get(PREFIX + name, "")
        if len(value) > longest:
            words = name.split("-")
            member = words[0] + "".join(word.capitalize() for word in words[1:])
            raise Refusal(
                400, "ValidationError",
                f"1 validation error detected: Value '{value}' at '{member}' failed to satisfy "
                f"constraint: Member must have length less than or equal to {longest}",
            )


def region_of(authorization: str) -> str | None:
    """Read the Region from a signature's credential scope."""
    scope = authorization.partition("Credential=")[2].split("/", 4)
    return scope[2] if len(scope) > 3 else None


def forwarded(headers: dict[str, str], streaming: bool) -> list[tuple[str, str]]:
    """Give the headers that reach the container: all others are stripped, as at AWS."""
    accept = headers.get(f"{PREFIX}accept") if streaming else headers.get("accept")
    found = [(name, headers[name]) for name in ("content-type",) if name in headers]
    if accept:
        found.append(("accept", accept))
    found += [
        (name, value) for name, value in headers.items()
        if name.startswith(PREFIX) and name != f"{PREFIX}accept"
    ]
    return found
