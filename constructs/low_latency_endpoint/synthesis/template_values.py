"""Values that may be CDK tokens: limits on the known ones, and text read around the tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from aws_cdk import Aws, CfnTag

from ..facts.durations import DURATION, is_unresolved, milliseconds_of, seconds_of
from ..facts.limit_kinds import Limit
from ..facts.limits import TAG_COUNT, TAG_KEY, TAG_VALUE
from ..facts.token_values import is_token as is_token
from .construct_tree import kept

_TOKEN = re.compile(r"[$#]\{Token\[[^\]]*\]\}")
_FIRST = 0xE000  # Unicode's private use area: in no URI, no ARN, and of no case


def check(limit: Limit, value: Any, where: str = "") -> Any:
    """Return the value; raise the limit's error when it is known and outside the limit."""
    return value if value is None or is_token(value) else limit.check(value, where)


def check_seconds(limit: Limit, duration: Any, where: str = "") -> int | None:
    """Whole seconds of a ``Duration`` within a limit; None and ``Duration.seconds(token)`` pass."""
    return None if duration is None else int(check(limit, in_seconds(duration, where), where))


def in_seconds(duration: Any, where: str = "") -> float:
    """Seconds of a duration; of a token a token."""
    if not is_unresolved(duration):
        seconds = seconds_of(duration, where)
        return int(seconds) if seconds == int(seconds) else seconds
    try:
        return int(duration.to_seconds())
    except RuntimeError as problem:  # what jsii makes of CDK's refusal to convert
        raise DURATION.error(
            got="a token in another unit", allowed="Duration.seconds(token)", where=where
        ) from problem


def check_milliseconds(limit: Limit, duration: Any, where: str = "") -> float:
    """Milliseconds of a duration that must be known at synth, within a limit."""
    if not hasattr(duration, "to_milliseconds"):
        return float(limit.check(milliseconds_of(duration, where), where))
    # The same duration is the limit of several alarms, and lines of a dashboard.
    milliseconds = kept(
        duration,
        "milliseconds",
        lambda: None if duration.is_unresolved() else duration.to_milliseconds(integral=False),
    )
    if milliseconds is None:
        raise DURATION.error(
            got="a token",
            allowed="a duration known at synth: AWS wants it in microseconds, and "
            "CloudFormation cannot convert",
            where=where,
        )
    return float(limit.check(milliseconds, where))


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


def known_at_synth(texts: Sequence[str]) -> bool:
    """Whether these texts have no tokens but partition, region and account of a stack."""
    return not any(set(tokens(text)).difference(pseudo_parameters()) for text in texts)


@cache
def pseudo_parameters() -> tuple[str, str, str]:
    """Partition, region and account: the same tokens in every stack, each a call to Node.js."""
    return Aws.PARTITION, Aws.REGION, Aws.ACCOUNT_ID


def cfn_tags(tags: Mapping[str, str] | None, where: str) -> list[CfnTag] | None:
    """The tags as CloudFormation takes them; None without any. Errors: LLE509 to LLE511."""
    if not tags:
        return None
    TAG_COUNT.check(len(tags), where)
    for key, value in tags.items():
        check(TAG_KEY, key, where)
        check(TAG_VALUE, value, f"{where}, tag {key}")
    return [CfnTag(key=key, value=value) for key, value in tags.items()]
