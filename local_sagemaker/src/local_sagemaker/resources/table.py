"""Reads the table of the emulated types, and translates properties that differ from their operations'."""

from __future__ import annotations

import importlib
import io
import re
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from .calls import By, OperationCall, PropertyNotEmulated, without
from .resource_type import Members, ResourceType, Setting, Tags


def archive(code: str, runtime: str | None) -> bytes:
    """Pack a function's inline code: an archive with one file."""
    extension = "js" if str(runtime).startswith("nodejs") else "py"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr(f"index.{extension}", code)
    return buffer.getvalue()


def latest(qualifier: str) -> str:
    """Refuse other versions: moto keeps one configuration per function, whatever the qualifier."""
    if qualifier != "$LATEST":
        raise PropertyNotEmulated("Qualifier (other than $LATEST)")
    return qualifier


def own_metrics(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Refuse other accounts' metrics."""
    if any("AccountId" in query for query in queries):
        raise PropertyNotEmulated("Metrics.AccountId")
    return queries


def encryption_rules(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spell rules as S3 does."""
    default = "ServerSideEncryptionByDefault"
    return [{**without(rule, default), f"Apply{default}": rule.get(default)} for rule in rules]


def _lifecycle_rule(left: dict[str, Any]) -> dict[str, Any]:
    """Spell a rule as S3 does; CloudFormation has other names."""
    days = left.pop("NoncurrentVersionExpirationInDays", None)
    expiration = left.pop("ExpirationInDays", None)
    result = {
        "ID": left.pop("Id", None),
        "Status": left.pop("Status"),
        "Filter": {"Prefix": left.pop("Prefix", "")},
        "Expiration": expiration and {"Days": expiration},
        "NoncurrentVersionExpiration": days and {"NoncurrentDays": days},
    }
    for same in ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"):
        if same in left:
            result[same] = left.pop(same)
    if left:
        raise PropertyNotEmulated(f"LifecycleConfiguration.Rules.{', '.join(sorted(left))}")
    return result


def association(acls: list[dict[str, Any]], subnet: str) -> str:
    """Find a subnet's association with a network ACL."""
    found = [
        association["NetworkAclAssociationId"]
        for acl in acls
        for association in acl["Associations"]
        if association["SubnetId"] == subnet
    ]
    return str(found[0]) if found else ""


def owners_policy(topic: str, account: str) -> dict[str, Any]:
    """Give AWS's default policy of a topic: its owner may do everything."""
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["SNS:Publish", "SNS:Subscribe", "SNS:GetTopicAttributes"],
        "Resource": topic,
        "Condition": {"StringEquals": {"AWS:SourceOwner": account}},
    }
    return {"Version": "2008-10-17", "Statement": [statement]}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "alias_target": lambda target: {"EvaluateTargetHealth": False, **target},
    "archive": archive,
    "association": association,
    "canned_acl": lambda name: re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower(),
    "dimension_of": lambda target: target.split("|")[1],
    "dns_entries": lambda entries: [
        f"{entry['HostedZoneId']}:{entry['DnsName']}" for entry in entries
    ],
    "either": lambda otherwise, value: value or otherwise,
    "encryption_rules": encryption_rules,
    "key_id": lambda key: key.rpartition("key/")[2],  # CDK passes the ARN
    "keys": lambda names: [{"Key": name} for name in names],
    "last_part": lambda path: path.rpartition("/")[2],
    "latest": latest,
    "lifecycle_rules": lambda rules: [_lifecycle_rule(dict(rule)) for rule in rules],
    # Must be left out in one Region.
    "location": lambda region: None if region == "us-east-1" else {"LocationConstraint": region},
    "namespace_of": lambda target: target.split("|")[2],
    "objective_metric": lambda sli: {
        **without(sli, "SliMetric"),
        "SliMetricConfig": sli.get("SliMetric"),
    },
    "or_empty": lambda _, items: items or [],
    "own_metrics": own_metrics,
    "owners_policy": owners_policy,
    "pair": lambda name, value: {name: value},
    "random": lambda _: str(uuid.uuid4()),
    "resource_of": lambda target: target.split("|")[0],
    "there": bool,
    "time": str,
    "values": lambda texts: [{"Value": text} for text in texts],
}
"""What the table calls `!name`."""


class _TableLoader(yaml.SafeLoader):
    """YAML with `!same name name` for `{name: "{name}"}`, and `!function field field`."""


def _tagged(loader: _TableLoader, name: str, node: yaml.ScalarNode) -> Any:
    fields = node.value.split()
    if name == "same":
        return {field: f"{{{field}}}" for field in fields}
    return By(FUNCTIONS[name], *fields)


_TableLoader.add_multi_constructor("!", _tagged)
_CALLS = (
    "add",
    "creates",
    "deletes",
    "drift",
    "listed",
    "put",
    "remove",
    "reset",
    "tag",
    "taken",
    "untag",
    "updates",
)
_SETS = ("also_replaces", "in_place", "named_within")


def _call(written: str | dict[str, dict[str, Any]]) -> OperationCall:
    if isinstance(written, str):
        return OperationCall(written)
    ((operation, arguments),) = written.items()
    return OperationCall(operation, **arguments)


def _read(row: dict[str, Any]) -> dict[str, Any]:
    read = {name: _call(value) if name in _CALLS else value for name, value in row.items()}
    read |= {name: frozenset(row[name]) for name in _SETS if name in row}
    if "parts" in row:
        read["parts"] = tuple(
            (Members if "add" in part else Setting)(of=of, **_read(part))
            for names, part in row["parts"].items()
            for of in names.split(", ")
        )
    if "tags" in row:
        read["tags"] = _tags(row["tags"])
    if "reads" in row:
        read["reads"] = tuple(_call(operation) for operation in row["reads"])
    return read


def _tags(row: dict[str, Any]) -> Tags:
    if "tag" in row:
        return Tags(**_read(row))
    ((operation, resource),) = row.items()
    tag, untag = OperationCall(operation, **resource), OperationCall(f"un{operation}", **resource)
    return Tags(tag, untag)


def _type(type_name: str, row: dict[str, Any]) -> ResourceType:
    module, _, name = row.pop("class", "resource_type.ResourceType").partition(".")
    kind = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    resource_type: ResourceType = kind(type_name, **_read(row))
    return resource_type


_TABLE = yaml.load(Path(__file__).with_name("table.yaml").read_text(), Loader=_TableLoader)
TYPES = {name: _type(name, row) for name, row in _TABLE.items() if name.startswith("AWS::")}
"""Every emulated type by name."""


_CUSTOM = "AWS::CloudFormation::CustomResource"


def is_custom(type_name: str) -> bool:
    return type_name.startswith("Custom::") or type_name == _CUSTOM


def find_type(type_name: str) -> ResourceType | None:
    """Give the type's handler, or None when the type is not emulated."""
    return TYPES.get(_CUSTOM if is_custom(type_name) else type_name)
