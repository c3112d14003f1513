"""The errors that the clients raise before a call is made, each with a stable code.

An error says what is wrong, the value that was passed, the values that are allowed, how to fix it,
and the AWS page that says so. Errors of calls themselves are botocore's, as boto3 raises them.
:func:`rules` lists all codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

__all__ = ["ConfigurationError", "ErrorRule", "did_you_mean", "located", "rule", "rules"]

_AWS_DOCUMENTATION = "https://docs.aws.amazon.com"
_LONGEST_VALUE = 1_000  # characters
_rules: dict[str, ErrorRule] = {}


class ConfigurationError(Exception):
    """An argument that cannot work, or that AWS does not allow.

    Attributes
    ----------
    code : str
        Such as ``LLC101``.
    what : str
        What is wrong. Here and below control characters are escaped.
    got : str
        The value that was passed.
    allowed : str
        The values that are allowed.
    fix : str
        How to fix it.
    source : str
        The page that states the rule; by default none.
    where : str
        The client and the argument; by default none.

    Examples
    --------
    >>> from low_latency_client import RuntimeClient
    >>> try:
    ...     RuntimeClient("us-east-1", latency_target="200ms", retries=9)
    ... except ConfigurationError as error:
    ...     print(error.code, error.where, "|", error.got, "|", error.allowed)
    LLC104 RuntimeClient, retries | 9 | whole numbers from 0 to 5
    """

    def __init__(
        self,
        *,
        code: str,
        what: str,
        got: str,
        allowed: str,
        fix: str,
        source: str = "",
        where: str = "",
    ) -> None:
        self.code = code
        self.what = _escaped(what)
        self.got = _escaped(_shortened(got))
        self.allowed = _escaped(allowed)
        self.fix = _escaped(fix)
        self.source = source
        self.where = _escaped(where)
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), vars(self))

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.what}"]
        for label in ("where", "got", "allowed", "fix", "source"):
            text = getattr(self, label)
            if text:
                lines.append(f"  {label + ':':9}{text}")
        return "\n".join(lines)


class ErrorRule(NamedTuple):
    """A rule that an argument can break: its code, what it says, how to keep it, who states it."""

    code: str
    title: str
    fix: str
    source: str = ""

    def error(
        self, *, got: str, allowed: str, where: str = "", fix: str = ""
    ) -> ConfigurationError:
        """Return the error for one breach of this rule; the caller raises it."""
        return ConfigurationError(
            code=self.code,
            what=self.title,
            got=got,
            allowed=allowed,
            fix=fix or self.fix,
            source=self.source,
            where=where,
        )


def rule(code: str, title: str, *, fix: str, source: str = "") -> ErrorRule:
    """Register a rule. A source that begins with a slash is a page of AWS's documentation."""
    if code in _rules:
        raise ValueError(f"{code} is already {_rules[code].title!r}")
    if source.startswith("/"):
        source = _AWS_DOCUMENTATION + source
    _rules[code] = ErrorRule(code, title, fix, source)
    return _rules[code]


def rules() -> list[ErrorRule]:
    """Return every rule of the package, by code.

    Examples
    --------
    >>> [known.code for known in rules()][:2]
    ['LLC101', 'LLC102']
    """
    package = import_module(__package__)
    for module in iter_modules(package.__path__):
        import_module(f"{__package__}.{module.name}")
    return [_rules[code] for code in sorted(_rules)]


def located(error: ConfigurationError, where: str) -> ConfigurationError:
    """Return the same error with another place."""
    return type(error)(**{**vars(error), "where": where})


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question about the known name that is nearest; empty if none is near.

    >>> did_you_mean("retrys", ["retries", "region"])
    'Did you mean retries?'
    """
    close = get_close_matches(name, list(known), n=1)
    return f"Did you mean {close[0]}?" if close else ""


def _rebuilt(kind: type[ConfigurationError], parts: dict[str, str]) -> ConfigurationError:
    """Return an error again after it was pickled or copied."""
    return kind(**parts)


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    characters = (
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )
    return "".join(characters)


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]}... ({len(text):,} characters)"
