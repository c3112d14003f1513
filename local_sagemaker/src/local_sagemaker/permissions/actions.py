"""Which rights an API operation needs: the table `actions.txt`, and its reading."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .conditions import NotJudged

_SECTION = re.compile(r"\[(\S+) (\S+)\]")
_KEY = re.compile(r"([\w-]+:[\w/-]+)=(.*)")
_PARAMETER = re.compile(r"\{([\w.]+)(?::(\w+))?\}")


@dataclass(frozen=True)
class Right:
    """One action on one resource, with the condition keys of the request."""

    action: str
    resource: str
    keys: Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class _Row:
    action: str
    resources: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    prefix: str  # the service in the ARNs of its resources


@functools.cache
def _table() -> dict[str, dict[str, list[_Row]]]:
    table: dict[str, dict[str, list[_Row]]] = {}
    rows, prefix = {}, ""  # type: dict[str, list[_Row]], str
    for line in Path(__file__).with_name("actions.txt").read_text().splitlines():
        if section := _SECTION.fullmatch(line):
            rows, prefix = table.setdefault(section[1], {}), section[2]
        elif line and not line.startswith("#"):
            operation, action, *rest = line.split()
            keys = [found.groups() for each in rest if (found := _KEY.fullmatch(each))]
            resources = tuple(each for each in rest if not _KEY.fullmatch(each))
            row = _Row(action, resources, tuple((k.lower(), v) for k, v in keys), prefix)
            rows.setdefault(operation, []).append(row)
    return table


@functools.cache
def known_keys() -> frozenset[str]:
    """The condition keys that requests here bring, in lower case."""
    rows = (row for each in _table().values() for rows in each.values() for row in rows)
    return frozenset(key for row in rows for key, _ in row.keys)


def is_known(service: str, operation: str) -> bool:
    """Say whether the table names an operation, and not only how it begins."""
    return operation in _table().get(service, {})


def _rows(service: str, operation: str) -> list[_Row]:
    rows = _table().get(service, {})
    if operation in rows:
        return rows[operation]
    for name, found in rows.items():
        if name.endswith("*") and operation.startswith(name[:-1]):
            return found
    raise NotJudged(f"the action {service}:{operation}")


def rights(
    service: str, operation: str, request: Mapping[str, Any], region: str, account: str
) -> Iterator[Right]:
    """Give the rights that a request needs; NotJudged names an operation without a row."""
    rows = _rows(service, operation)
    place = {"region": region, "account": account}
    for row in rows:
        if row.action == "-":  # "No permissions are required to perform this operation"
            continue
        action = f"{row.prefix}:{operation}" if row.action == "=" else row.action
        keys: dict[str, str | tuple[str, ...]] = {}
        for name, template in row.keys:
            values = _filled(template, request, place)
            if values:
                plain = len(values) == 1 and not _is_list(template, request)
                keys[name] = values[0] if plain else tuple(values)
        for template in row.resources:
            optional, plain_template = template.startswith("?"), template.removeprefix("?")
            found = _filled(plain_template, request, place)
            if not found and optional and len(row.resources) + (row.action != "=") > 1:
                continue
            where = region if row.prefix != "iam" else ""
            for text in found or ["*"]:
                yield Right(action, _arn(text.partition("#")[0], row.prefix, where, account), keys)


def _arn(text: str, prefix: str, region: str, account: str) -> str:
    # A name may have been given as the whole ARN, which then stands within the template.
    if "arn:aws:" in text:
        text = text[text.rindex("arn:aws:") :]
        return text[: -len("/*")] if ":stack/" in text and text.endswith("/*") else text
    return text if text == "*" else f"arn:aws:{prefix}:{region}:{account}:{text}"


def _at(value: Any, path: list[str]) -> list[str]:
    """Give the values at a path, those of lists one by one."""
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in _at(each, path)]
    if path:
        return _at(value.get(path[0]), path[1:]) if isinstance(value, Mapping) else []
    return (
        []
        if value in (None, "")
        else [str(value).lower() if isinstance(value, bool) else str(value)]
    )


def _is_list(template: str, request: Mapping[str, Any]) -> bool:
    found = _PARAMETER.fullmatch(template)
    value: Any = request
    for name in found[1].split(".") if found else ():
        value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, list):
            return True
    return False


def _filled(template: str, request: Mapping[str, Any], place: Mapping[str, str]) -> list[str]:
    """Fill a template in, once for each value of a list; nothing when a parameter is missing."""
    filled = [""]
    end = 0
    for found in _PARAMETER.finditer(template):
        values = [place[found[1]]] if found[1] in place else _at(request, found[1].split("."))
        if found[2]:
            read = _READINGS[found[2]]
            values = [read(value, place) for value in values or _DEFAULTS.get(found[2], [])]
        literal = template[end : found.start()]
        filled = [f"{before}{literal}{value}" for before in filled for value in values]
        end = found.end()
    return [f"{before}{template[end:]}" for before in filled]


_Reading = Callable[[str, Mapping[str, str]], str]
_DEFAULTS = {"cluster": ["default"], "name": ["default"]}
"""What a missing cluster means. Source: ECS API reference."""


def _key_arn(value: str, place: Mapping[str, str]) -> str:
    """Give a key's ARN, whatever of KMS's four ways it is named by."""
    from moto.kms.models import kms_backends

    if value.startswith("arn:aws:kms:") and ":alias/" not in value:
        return value
    name = value.rpartition(":")[2]
    backend = kms_backends[place["account"]][place["region"]]
    if name.startswith("alias/"):
        name = backend.get_key_id_from_alias(name) or name
    return f"arn:aws:kms:{place['region']}:{place['account']}:key/{name}"


def _secret_arn(value: str, place: Mapping[str, str]) -> str:
    from moto.secretsmanager.models import secretsmanager_backends

    if value.startswith("arn:"):
        return value
    found = secretsmanager_backends[place["account"]][place["region"]].secrets
    arn = found[value].arn if value in found else ""
    return str(arn) or f"arn:aws:secretsmanager:{place['region']}:{place['account']}:secret:{value}"


_READINGS: dict[str, _Reading] = {
    "lower": lambda value, _: value.lower(),
    "name": lambda value, _: value.rpartition("/")[2],
    "path": lambda value, _: value if value.startswith(("/", "arn:")) else f"/{value}",
    "queue": lambda value, _: value.rpartition("/")[2],
    "source": lambda value, _: value.lstrip("/").partition("?")[0],
    "cluster": lambda value, place: (
        value
        if value.startswith("arn:")
        else f"arn:aws:ecs:{place['region']}:{place['account']}:cluster/{value}"
    ),
    "key": _key_arn,
    "secret": _secret_arn,
}
