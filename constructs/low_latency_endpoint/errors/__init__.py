"""Every error that the library raises, under one hierarchy and with stable codes.

An error says what is wrong, the value got, the values allowed, how to fix it, and where AWS
says so. The *rule* behind it (code, title, fix, source) is data, registered once with
:func:`rule`; ``docs/reference/errors.md`` is generated from that registry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..report.visible import visible, visible_lines
from .codes import RETIRED, next_free, places_of

__all__ = [
    "BrokenRule",
    "ConfigurationError",
    "ErrorRule",
    "LowLatencyEndpointError",
    "SettingsError",
    "rule",
    "rules",
]

AWS_DOCS = "https://docs.aws.amazon.com"
MOST_SHOWN = 100  # problems of one file; whoever has more has made one mistake many times
LONGEST_GOT = 1_000  # characters: reasons and lists of names are shorter, files longer
LONGEST_BEFORE_FIX = 160  # characters: two lines of a terminal


class ErrorRule(NamedTuple):
    """One rule that a configuration can break.

    Parameters
    ----------
    code : str
        Stable code, ``LLE`` and three digits. The first digit names the area: 1 network,
        2 PrivateLink, 3 model and arguments of all constructs, 4 variants and endpoint
        configuration, 5 endpoint and deployments, 6 scaling, 7 metrics and alarms, 8 plan,
        9 settings file, load tests and recommendations.
    title : str
        What must hold, in one sentence.
    fix : str
        What the reader should do when it does not hold.
    source : str
        URL of the page on which AWS states it; empty when the rule is the library's own.
    """

    code: str
    title: str
    fix: str
    source: str = ""

    def error(
        self, *, got: object, allowed: object, what: str = "", where: str = "", fix: str = ""
    ) -> ConfigurationError:
        """Build (not raise) the error for one breach of this rule, with words for CDK's tokens."""
        return ConfigurationError(
            code=self.code,
            what=without_tokens(what or self.title),
            got=without_tokens(_text_of(got)),
            allowed=without_tokens(_text_of(allowed)),
            fix=without_tokens(fix or self.fix),
            source=self.source,
            where=without_tokens(where),
        )

    def error_as_written(self, *, got: str, allowed: str, where: str) -> ConfigurationError:
        """Build the error for a text of a file, which readers must find there as it stands."""
        return ConfigurationError(
            code=self.code,
            what=self.title,
            got=got,
            allowed=allowed,
            fix=self.fix,
            source=self.source,
            where=where,
        )


_RULES: dict[str, ErrorRule] = {}


def rule(code: str, title: str, *, fix: str, source: str = "") -> ErrorRule:
    """Register a rule; a code can be registered once, and is never another rule's later."""
    if code in _RULES or code in RETIRED:
        other = f"already {_RULES[code].title!r}" if code in _RULES else "of a rule that is gone"
        raise ValueError(
            f"{code} cannot be {title!r}, it is {other} ({', '.join(places_of(code))}): "
            f"take {next_free(code) or 'another hundred'} for the new one"
        )
    if source.startswith("/"):
        source = AWS_DOCS + source
    _RULES[code] = registered = ErrorRule(code, title, fix, source)
    return registered


def rules() -> Iterator[ErrorRule]:
    """All rules registered so far, by code."""
    return iter(sorted(_RULES.values(), key=lambda registered: registered.code))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question about the known name that is nearest, but for the name itself; else empty.

    >>> did_you_mean("troughput", ["throughput"]), did_you_mean("name", ["endpoint_name", "tags"])
    ('Did you mean throughput?', 'Did you mean endpoint_name?')
    """
    from difflib import get_close_matches

    near = {re.sub(r"[-_]", "", each).lower(): each for each in known if each != name}
    close = get_close_matches(re.sub(r"[-_]", "", name).lower(), near, n=1)
    longer = [each for each in near.values() if each.endswith(f"_{name}")]
    meant = [near[close[0]]] if close else longer if len(longer) <= 2 else []
    return f"Did you mean {' or '.join(map(visible, meant))}?" if meant else ""


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


_TOKEN = re.compile(r"[$#]\{Token\[([^\]]*)\]\}")


def without_tokens(text: str) -> str:
    """A text for people, with words in place of CDK's tokens, whose numbers say nothing to them.

    >>> without_tokens("s3.${Token[AWS.URLSuffix.1]}, ${Token[TOKEN.24]}")
    's3.<AWS::URLSuffix>, <known at deployment>'
    """

    def words(token: re.Match[str]) -> str:
        kind, _, name = token[1].partition(".")
        return f"<AWS::{name.partition('.')[0]}>" if kind == "AWS" else "<known at deployment>"

    return _TOKEN.sub(words, text)


def shortened(text: str, longest: int = LONGEST_GOT) -> str:
    """The text, or its begin and its length where it has more characters than a message shows.

    >>> shortened("p99"), shortened("0.1 " * 1000)[-22:]
    ('p99', '... (4,000 characters)')
    """
    if len(text) <= longest:
        return text
    length = f"... ({len(text):,} characters)"
    return text[: longest - len(length)] + length


class LowLatencyEndpointError(Exception):
    """Base of every error of this library."""


class ConfigurationError(LowLatencyEndpointError):
    """What was asked for cannot work, or is not what AWS allows.

    Attributes
    ----------
    code, what, got, allowed, fix, source, where : str
        See :class:`ErrorRule`; ``where`` is the construct's path or the setting's path. Control
        characters are spelt out; each but ``fix`` is one line.

    Examples
    --------
    >>> from low_latency_endpoint.facts.limits import VARIANT_WEIGHT
    >>> try:
    ...     VARIANT_WEIGHT.check(-1)
    ... except ConfigurationError as error:
    ...     print(error.code, error.got, "|", error.allowed)
    LLE404 -1 | at least 0
    """

    def __init__(
        self,
        *,
        code: str,
        what: str,
        got: object,
        allowed: object,
        fix: str,
        source: str = "",
        where: str = "",
    ) -> None:
        self.code = code
        self.what = visible(what)
        self.got = visible(shortened(_text_of(got)))
        self.allowed = visible(_text_of(allowed))
        self.fix = visible_lines(fix)
        self.source = source
        self.where = visible(where)
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), vars(self))

    def __str__(self) -> str:
        allowed, fix = ("allowed", self.allowed), ("fix", self.fix)
        # What is meant is not looked for behind a long list of what could be.
        advice = [fix, allowed] if len(self.allowed) > LONGEST_BEFORE_FIX else [allowed, fix]
        parts = [("where", self.where), ("got", self.got), *advice, ("source", self.source)]
        lines = [f"  {label + ':':9}{text}" for label, text in parts if text]
        return "\n".join([f"{self.code}: {self.what}", *lines])


def _rebuilt(kind: type[ConfigurationError], parts: dict[str, str]) -> ConfigurationError:
    """Return an error again after it was copied or pickled."""
    return kind(**parts)


class BrokenRule(LowLatencyEndpointError):
    """A rule of this library failed at what it had to judge: a bug of ours, not a mistake in what it judged.

    Attributes
    ----------
    rule : str
        Its group and method.
    """

    def __init__(self, rule: str, problem: Exception) -> None:
        self.rule = rule
        super().__init__(
            f"This is a bug of low-latency-endpoint, not a mistake of yours: its rule {rule} ended "
            f"with {type(problem).__name__}: {problem}. Please report it, with what you stated."
        )


class SettingsError(LowLatencyEndpointError):
    """A settings file has mistakes; all of them, each with its line.

    Attributes
    ----------
    problems : list of (int, ConfigurationError)
        Line (from 1) and error, in the order of the lines.
    """

    def __init__(self, path: str, problems: list[tuple[int, ConfigurationError]]) -> None:
        self.path = visible(path)
        self.problems = sorted(problems, key=lambda problem: problem[0])
        super().__init__("\n".join(self.parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.problems)

    @property
    def parts(self) -> list[str]:
        """What people read: how many problems there are, and the first hundred of them."""
        count = len(self.problems)
        further = [f"and {count - MOST_SHOWN:,} more"] if count > MOST_SHOWN else []
        return [
            f"{self.path}: {count:,} problem{'s' if count != 1 else ''}",
            *(f"{self.path}:{line}: {error}" for line, error in self.problems[:MOST_SHOWN]),
            *further,
        ]
