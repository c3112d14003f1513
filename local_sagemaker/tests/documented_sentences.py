"""The sentences of AWS's API references that say what may be in a request, read from botocore.

    python local_sagemaker/tests/documented_sentences.py     # those that no row has yet

Of the operations that the local AWS answers itself, and of those of moto that stacks and functions
call. `documented_limits.yaml` has a row for each.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from botocore.model import OperationModel, Shape, StructureShape

from local_sagemaker.application import OwnService
from local_sagemaker.protocols import service_model
from local_sagemaker.sagemaker_api import SAGEMAKER
from local_sagemaker.scaling_api import APPLICATION_AUTO_SCALING
from local_sagemaker.service_level_objectives import APPLICATION_SIGNALS

FILE = Path(__file__).with_name("documented_limits.yaml")
_OWN = (SAGEMAKER, APPLICATION_AUTO_SCALING, APPLICATION_SIGNALS)
_OTHERS = {
    "cloudwatch": (
        "PutMetricAlarm PutCompositeAlarm GetMetricData GetMetricStatistics PutMetricData ListMetrics "
        "DescribeAlarms DescribeAlarmHistory SetAlarmState DeleteAlarms PutDashboard"
    ),
    "sagemaker-runtime": "InvokeEndpoint InvokeEndpointWithResponseStream InvokeEndpointAsync",
    "events": "PutRule PutTargets PutEvents",
    "logs": "CreateLogGroup PutRetentionPolicy PutLogEvents PutMetricFilter",
    "ssm": "PutParameter",
    "ec2": (
        "CreateVpc CreateSubnet CreateVpcEndpoint CreateSecurityGroup AuthorizeSecurityGroupIngress "
        "CreateRoute CreateNatGateway CreateFlowLogs AllocateAddress"
    ),
    "s3": (
        "CreateBucket PutBucketPolicy PutBucketEncryption PutBucketLifecycleConfiguration "
        "PutPublicAccessBlock"
    ),
    "iam": "CreateRole PutRolePolicy CreatePolicy",
    "sts": "AssumeRole",
    "ecr": "CreateRepository PutLifecyclePolicy",
    "secretsmanager": "CreateSecret",
    "route53": "CreateHostedZone ChangeResourceRecordSets",
}
_SAYS = re.compile(
    r"valid values|\bmust\b|can't|cannot|can not|at most|up to|\bbetween\b"
    r"|\bnot (?:supported|support|allowed|both|permitted)\b|should not|do not use"
    r"|mutually exclusive|limited to|\brequire[sd]\b|maximum (?:length|of)\b|no more than"
    r"|(?:validation|exception) error|an error occurs|returns an error"
    r"|\bonly (?:one|valid|operation|if|when|for|used)\b|\bcan only\b",
    re.I,
)


class Sentence(NamedTuple):
    """What a page says, and where it says it first."""

    service: str
    operation: str
    member: str
    says: str


def sentences() -> list[Sentence]:
    """Give the sentences that exclude something, each once in a service."""
    excluding: dict[tuple[str, str], Sentence] = {}
    for sentence in all_sentences():
        if _SAYS.search(sentence.says):
            excluding.setdefault((sentence.service, sentence.says), sentence)
    return list(excluding.values())


def all_sentences() -> Iterator[Sentence]:
    """Give all sentences of the operations, those that exclude nothing among them."""
    wanted = {service.name: list(_operations(service)) for service in _OWN}
    wanted |= {service: names.split() for service, names in _OTHERS.items()}
    for service, names in wanted.items():
        for name in names:
            yield from _of_operation(service, service_model(service).operation_model(name))


def _operations(service: OwnService) -> Iterator[str]:
    yield from service.operations


def _of_operation(service: str, operation: OperationModel) -> Iterator[Sentence]:
    for says in _said(operation.documentation):
        yield Sentence(service, operation.name, "", says)
    if operation.input_shape is not None:
        for member, says in _of_shape(operation.input_shape, "", frozenset()):
            yield Sentence(service, operation.name, member, says)


def _of_shape(shape: Any, path: str, above: frozenset[str]) -> Iterator[tuple[str, str]]:
    if shape.name in above:
        return
    above |= {shape.name}
    own = service_documentation(shape)
    yield from ((path, says) for says in _said(own))
    if isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            inner = f"{path}.{name}" if path else name
            yield from ((inner, says) for says in _said(member.documentation))
            yield from _of_shape(member, inner, above)
    elif shape.type_name in ("list", "map"):
        yield from _of_shape(
            shape.member if shape.type_name == "list" else shape.value, path, above
        )


def service_documentation(shape: Shape) -> str:
    """Give the text of a shape itself; a member's own text hides it."""
    shapes: Any = shape._shape_resolver._shape_map  # type: ignore[attr-defined]
    return str(shapes[shape.name].get("documentation", ""))


def _said(documentation: str) -> list[str]:
    text = re.sub(r"</(?:p|li|dd|dt|note|important)>", ". ", documentation or "")
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    text = re.sub(r"\s+([.,;:)])", r"\1", re.sub(r"\s+", " ", text).strip())
    text = re.sub(r"([.:])(?:\s*\.)+", r"\1", text)
    return [part.strip() for part in re.split(r"(?<=[.!?]) (?=[A-Z])", text)]


if __name__ == "__main__":
    kept = {(row["service"], row["says"]) for row in yaml.safe_load(FILE.read_text())["sentences"]}
    new = [one._asdict() for one in sentences() if (one.service, one.says) not in kept]
    print(yaml.safe_dump(new, sort_keys=False, width=100, allow_unicode=True))
