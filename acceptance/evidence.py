"""Evidence without what belongs to the account: numbers, addresses, identifiers, names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "evidence"

_ID = re.compile(
    r"(?<![\w-])([a-z]{1,8}(?:-(?:assoc|svc|attach|rtb|endpoint))?)-"
    r"(?:[0-9a-f]{17}|[0-9a-f]{8})(?![0-9a-f])(-[0-9a-z]{8}(?![0-9a-z]))?"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_EMAIL = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_KEY = re.compile(r"(?<![A-Z0-9])A(?:KIA|SIA|IDA|ROA)[A-Z0-9]{12,}")
_ACCOUNT = re.compile(r"(?<!\d)\d{4}-?\d{4}-?\d{4}(?!\d)")
_PRINCIPAL = re.compile(r"(?<=:)(user|role|assumed-role|group|instance-profile)/[\w+=,.@/-]+")
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}[.]){3}\d{1,3}(?![\d.]*\d)")
_IPV6 = re.compile(r"(?<![\w:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_NAME = re.compile(r"llee-?accept-?[0-9a-f]{8}[\w-]*")
_REQUEST = re.compile(r"(?i)(request ?id[\"']?: ?[\"']?)[\w-]{16,}")
_ZONE = re.compile(r"(?<![\w])[a-z]{2,4}(?:-[a-z]+)+-\d(?=[a-z](?![\w]))[a-z](?![\w-])")
_HOST = re.compile(
    r"(?<![\w.@<>-])(?:[\w*<>-]*[\w*>]\.)+"
    r"(?:com\.cn|com|net|org|io|aws|cn|eu|internal|local|localdomain)(?![\w-])"
    r"|(?<=//)[\w.<>-]+\.[a-z]{2,}(?![\w-])"
)
_SERVICE = re.compile(
    r"(?:\*\.)?(?:<[a-z]+-\d+>(?:-<zone-name-\d+>)?\.)?(?:(?:api|runtime|runtime-fips)\.)?sagemaker"
    r"(?:\.[a-z0-9-]+)?(?:\.vpce)?\.amazonaws\.(?:com|com\.cn|eu)"
)
"""Hosts that are the same in every account; claims rest on them."""
_EVERYONES = re.compile(r"(?:docs|aws)\.(?:aws\.)?amazon\.com|[a-z]+\.amazonaws\.com")
"""AWS's pages, and principals of its services."""


def redact(document: Any, names: Mapping[str, str] | None = None) -> Any:
    """Replace whatever belongs to an account, names too; the same thing by the same words everywhere."""
    return _Redaction(names or {}).of(document)


class _Redaction:
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        longest_first = sorted(map(re.escape, names), key=len, reverse=True)
        self._known = (
            re.compile(rf"(?<![\w-])(?i:{'|'.join(longest_first)})(?![\w-])") if names else None
        )
        self._lower = {name.lower(): text for name, text in names.items()}
        self._seen: dict[str, dict[str, str]] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._text(str(key)): self.of(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.of(each) for each in value]
        return value

    def _text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(lambda m: self._lower[m[0].lower()], text)
        text = _EMAIL.sub(lambda m: self._word("email", m[0]), text)
        text = _UUID.sub(lambda m: self._word("uuid", m[0].lower()), text)
        text = _REQUEST.sub(lambda m: m[1] + self._word("request", m[0]), text)
        text = _KEY.sub(lambda m: self._word("key", m[0]), text)
        text = _NAME.sub(lambda m: self._word("name", m[0]), text)
        text = _ID.sub(lambda m: self._word(m[1], m[0]), text)
        text = _ZONE.sub(lambda m: self._word("zone-name", m[0]), text)
        text = _IPV4.sub(self._address, text)
        text = _IPV6.sub(self._address, text)
        text = _ACCOUNT.sub(lambda m: self._word("account", m[0].replace("-", "")), text)
        text = _PRINCIPAL.sub(lambda m: self._word("principal", m[0]), text)
        return _HOST.sub(self._host, text)

    def _address(self, found: re.Match[str]) -> str:
        try:
            version = ip_address(found[0]).version
        except ValueError:  # a time of day, a version number
            return found[0]
        return self._word(f"ipv{version}", found[0])

    def _host(self, found: re.Match[str]) -> str:
        host = found[0]
        if _SERVICE.fullmatch(host) or _EVERYONES.fullmatch(host):
            return host
        return self._word("host", host.lower())

    def _word(self, kind: str, what: str) -> str:
        seen = self._seen.setdefault(kind, {})
        return seen.setdefault(what, f"<{kind}-{len(seen) + 1}>")


def evidence_files(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Every evidence file by name."""
    return {
        path.name: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))
    }
