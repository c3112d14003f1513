"""Text with CDK tokens in it, such as an S3 URI of a bucket of the app: read around the tokens."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"[$#]\{Token\[[^\]]*\]\}")
_FIRST = 0xE000  # Unicode's private use area: in no URI, no ARN, and of no case


def masked(text: str) -> tuple[str, Callable[[str], str]]:
    """One character for each token, whose own spelling has dots and colons, and the way back."""
    tokens: list[str] = []

    def hide(found: re.Match[str]) -> str:
        tokens.append(found[0])
        return chr(_FIRST + len(tokens) - 1)

    def restored(part: str) -> str:
        for index, token in enumerate(tokens):
            part = part.replace(chr(_FIRST + index), token)
        return part

    return _TOKEN.sub(hide, text), restored


def tokens(text: str) -> list[str]:
    """The tokens in a text, as they are spelled there."""
    return _TOKEN.findall(text)
