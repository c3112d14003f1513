"""What a resource policy lets through: enough of IAM's language for endpoint and trust policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

_EQUALS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringEqualsIgnoreCase": lambda value, wanted: value.lower() == wanted.lower(),
    "StringLike": lambda value, wanted: _like(value, wanted),
}
#: The same with "Not": none of the values may be equal.
_DIFFERS = {
    name.replace("Equals", "NotEquals").replace("Like", "NotLike"): equal
    for name, equal in _EQUALS.items()
}
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_WILD_TYPE = re.compile(r"[^/:]*[*?][^/:]*[/:]")

#: What it depends on whether something matches: nothing if it does; None if it does not.
_Match: TypeAlias = "list[str] | None"


@dataclass(frozen=True)
class PolicyVerdict:
    allowed: bool | None  # ``None`` when it depends on what is not known here
    # what that is: ``operator key`` of conditions, or principals and resources by their ARN
    depends_on: tuple[str, ...] = ()


def verdict(
    policy: Mapping[str, Any],
    action: str,
    resource: str,
    context: Mapping[str, str],
    service: str | None = None,
) -> PolicyVerdict:
    """Whether the policy allows an action on a resource: a match to allow, and none to deny.

    The account of ``context`` asks, or a ``service``. What AWS's pages leave open, and variables
    whose value is not in ``context``, make it depend on them.

    >>> policy = {"Statement": [{"Effect": "Allow", "Action": "sagemaker:Invoke*",
    ...           "Resource": "arn:aws:sagemaker:*:*:endpoint/mine"}]}
    >>> arn = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/"
    >>> verdict(policy, "sagemaker:InvokeEndpoint", arn + "mine", {})
    PolicyVerdict(allowed=True, depends_on=())
    >>> verdict(policy, "sagemaker:InvokeEndpoint", arn + "other", {}).allowed
    False
    >>> policy["Statement"][0]["Condition"] = {"StringEquals": {"aws:SourceVpc": "vpc-1"}}
    >>> verdict(policy, "sagemaker:InvokeEndpoint", arn + "mine", {})
    PolicyVerdict(allowed=None, depends_on=('StringEquals aws:SourceVpc',))
    """
    known = {key.lower(): value for key, value in context.items()}
    # Without a version it is an older one, which has no variables.
    texts = _Texts(known if policy.get("Version") == "2012-10-17" else None)
    doubts: dict[str, list[str]] = {"Allow": [], "Deny": []}
    effects = set()
    for statement in items(policy.get("Statement")):
        effect = str(statement.get("Effect"))
        if effect not in doubts:
            continue
        match = _all(
            [
                _among(statement, "Action", lambda text: _certain(_like(action, text, lower=True))),
                _among(statement, "Resource", lambda text: texts.names(text, resource)),
                _principals(statement, known.get("aws:principalaccount", ""), service),
                *_conditions(statement, known, texts),
            ]
        )
        if match:
            doubts[effect] += match
        elif match is not None:
            effects.add(effect)
    if "Deny" in effects:
        return PolicyVerdict(False)
    unknown = doubts["Deny"] if "Allow" in effects else doubts["Deny"] + doubts["Allow"]
    if unknown and ("Allow" in effects or doubts["Allow"]):
        return PolicyVerdict(None, tuple(sorted(set(unknown))))
    return PolicyVerdict("Allow" in effects)


def caller_through(link: Mapping[str, Any], account: str) -> dict[str, str]:
    """The condition keys of an account's own call through a VPC endpoint, as far as they are known."""
    return {
        "aws:PrincipalAccount": account,
        "aws:ResourceAccount": account,
        "aws:SourceVpc": str(link["VpcId"]),
        "aws:SourceVpce": str(link["VpcEndpointId"]),
    }


def items(value: Any) -> list[Any]:
    """A value that may stand alone or in a list, as a list.

    >>> items("a"), items(["a", "b"]), items(None)
    (['a'], ['a', 'b'], [])
    """
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


class _Texts:
    """Texts of a policy, whose variables are filled in as far as their values are known."""

    def __init__(self, known: Mapping[str, str] | None) -> None:
        self._known = known  # None where there are no variables

    def equals(self, equal: Callable[[str, str], bool], value: str, text: str) -> _Match:
        filled = self._filled(text)
        return [text] if filled is None else _certain(equal(value, filled))

    def names(self, text: str, arn: str) -> _Match:
        """Whether a text names a resource; in doubt where AWS's pages leave a wildcard's reach open."""
        filled = self._filled(text)
        # IAM's page has variables after the fifth colon only, AWS's own policies before it, too.
        before = "".join(_VARIABLE.sub("$", text).split(":")[:5])
        if filled is None or (filled != text and "$" in before):
            return [text]
        fields, values = filled.split(":", 5), arn.split(":", 5)
        completed = filled + ":*" * (6 - len(fields))
        if filled in ("*", arn):
            return []
        if not _like(arn, filled) and not _like(arn, completed):
            return None
        fits = len(fields) == len(values) and all(map(_like, values, fields))
        return [] if fits and ":" not in values[-1] and not _WILD_TYPE.match(fields[-1]) else [text]

    def _filled(self, text: str) -> str | None:
        """A text with its variables filled in; None when one is not known."""
        if self._known is None:
            return text
        keys = [key.partition(",")[0].strip().lower() for key in _VARIABLE.findall(text)]
        if not self._known.keys() >= set(keys):
            return None
        values = iter(keys)
        return _VARIABLE.sub(lambda _: (self._known or {})[next(values)], text)


def _certain(match: bool) -> _Match:
    return [] if match else None


def _all(matches: Iterable[_Match]) -> _Match:
    parts = list(matches)
    if None in parts:
        return None
    return [doubt for part in parts for doubt in part or ()]


def _any(matches: Iterable[_Match]) -> _Match:
    parts = [part for part in matches if part is not None]
    if [] in parts:
        return []
    return [doubt for part in parts for doubt in part] or None


def _none(matches: Iterable[_Match]) -> _Match:
    match = _any(matches)
    return match or (None if match is not None else [])


def _among(statement: Mapping[str, Any], name: str, test: Callable[[str], _Match]) -> _Match:
    """Whether a statement is about an action or resource: one of these, or none of the others."""
    if name in statement:
        return _any(test(str(text)) for text in items(statement[name]))
    return _none(test(str(text)) for text in items(statement.get(f"Not{name}")))


def _principals(statement: Mapping[str, Any], account: str, service: str | None) -> _Match:
    """Whether a statement is about the account's principals, or about a service."""
    if "NotPrincipal" in statement:
        return ["NotPrincipal"]
    principal = statement.get("Principal", "*")
    kinds = principal if isinstance(principal, Mapping) else {"AWS": principal}
    names = [str(name) for name in items(kinds.get("Service" if service else "AWS"))]
    if service is not None:
        return _certain(service in names) if principal != "*" else ["Principal *"]
    return _any(_principal(name, account) for name in names)


def _principal(name: str, account: str) -> _Match:
    if name in ("*", account) or name.endswith(f":{account}:root"):
        return []
    return [name] if f":{account}:" in name or re.search(r"[*?$]", name) else None


def _conditions(
    statement: Mapping[str, Any], known: Mapping[str, str], texts: _Texts
) -> Iterable[_Match]:
    for operator, lines in (statement.get("Condition") or {}).items():
        # A key that is known has one value, which each quantifier takes alike.
        plain = operator.removeprefix("ForAllValues:").removeprefix("ForAnyValue:")
        for key, wanted in lines.items():
            value = known.get(key.lower())
            match = _condition(plain.removesuffix("IfExists"), value, items(wanted), texts)
            yield [f"{operator} {key}"] if match else match


def _condition(operator: str, value: str | None, wanted: list[Any], texts: _Texts) -> _Match:
    asked = {str(text).lower() for text in wanted}
    if operator == "Null" and value is not None and asked <= {"true", "false"}:
        return _certain("false" in asked)
    equal = (_EQUALS | _DIFFERS).get(operator)
    if value is None or equal is None:
        return [operator]
    matches = [texts.equals(equal, value, str(text)) for text in wanted]
    return _any(matches) if operator in _EQUALS else _none(matches)


def _like(value: str, pattern: str, *, lower: bool = False) -> bool:
    if lower:
        value, pattern = value.lower(), pattern.lower()
    return fnmatchcase(value, pattern.replace("[", "[[]"))
