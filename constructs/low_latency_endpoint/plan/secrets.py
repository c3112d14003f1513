"""Environment variables that look like secrets, by their names or their values."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

_SHAPES = {
    "an AWS access key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})",
    "a GitLab token": r"\bglpat-[\w-]{20,}",
    "a Slack token": r"\bxox[abprs]-[\w-]{10,}",
    "an API key": r"\bsk-[\w-]{20,}",
    "a JSON Web Token": r"\beyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*",
    "a password in a URL": r"://[^/\s:@]*:[^/\s@]+@",
}
"""What issuers document or scanners look for, such as
https://docs.github.com/code-security/secret-scanning."""

_NAMED = {
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "TOKEN",
}
_NAMED_PAIRS = {
    ("API", "KEY"),
    ("ACCESS", "KEY"),
    ("PRIVATE", "KEY"),
    ("AUTH", "KEY"),
    ("SIGNING", "KEY"),
    ("ENCRYPTION", "KEY"),
    ("LICENSE", "KEY"),
}
_VAGUE = {"KEY", "AUTH", "AUTHORIZATION", "BEARER", "SALT", "PAT", "CERT", "CERTIFICATE"}
_POINTS_TO_ONE = {
    "ARN",
    "NAME",
    "PATH",
    "FILE",
    "DIR",
    "ID",
    "IDS",
    "URI",
    "URL",
    "LENGTH",
    "TYPE",
    "ENABLED",
    "PARAMETER",
}
_OF_LANGUAGE = {
    "EOS",
    "BOS",
    "PAD",
    "UNK",
    "STOP",
    "MASK",
    "SEP",
    "CLS",
    "MAX",
    "MIN",
    "NUM",
    "NEW",
    "END",
    "START",
    "PER",
    "SPECIAL",
}
"""Beside TOKEN: the tokens of language models."""

_REFERENCE = re.compile(r"\{\{resolve:|^arn:|^s3://|^/[\w./-]*$")
_PLAIN = re.compile(r"(?i:true|false|yes|no|on|off|none|null)|[\d.,+-]*")

SECRET_WAY_OUT = (
    "it would stand in plain text in the template, and for everybody who may call "
    "sagemaker:DescribeModel. Put it into Secrets Manager or Parameter Store, pass its name, and "
    'let the container read it when it starts, with the model\'s role: docs/explanation/networks.md, "Secrets"'
)


def looks_secret(name: str, value: str) -> str | None:
    """What of a variable looks like a secret, in words without the value: no pointers to it."""
    for what, shape in _SHAPES.items():
        if re.search(shape, value):
            return f"its value has the form of {what}"
    if not value or _REFERENCE.search(value) or _PLAIN.fullmatch(value):
        return None
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    parts = [word.upper() for word in words]
    if not parts or parts[-1] in _POINTS_TO_ONE:
        return None
    found = _NAMED.intersection(parts)
    if found == {"TOKEN"} and (_OF_LANGUAGE.intersection(parts) or value.startswith("<")):
        return None
    if found or _NAMED_PAIRS.intersection(pairwise(parts)):
        return "its name says so"
    if _VAGUE.intersection(parts) and _random(value):
        return "its name and a value that looks random say so"
    return None


def secret_warning(name: str, value: str) -> str | None:
    """The warning for a variable, without its value; None where it does not look like a secret."""
    reason = looks_secret(name, value)
    if reason is None:
        return None
    return f"{name} looks like a secret, as {reason}: {SECRET_WAY_OUT}"


def _random(value: str) -> bool:
    """Whether a value is long, of letters and digits, and of no language: 3.5 bits a character."""
    if len(value) < 20 or " " in value or not re.search(r"\d", value):
        return False
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return bits >= 3.5
