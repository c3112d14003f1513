"""What templates may not share and may not take away: properties of all of them, and of updates."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from low_latency_endpoint.change.resource_changes import ResourceEffect
from low_latency_endpoint.change.resource_changes import changes_of as resource_changes

from .iam_decisions import PSEUDO

Name = tuple[str, str, str]
"""What kind of name it is (a type, or a role whose policy it is), the property, the name."""

FORMER = "Custom::FormerNames"


# ----------------------------------------------------------------------------------------- names


@cache
def _naming(kind: str) -> tuple[str, ...]:
    """The properties that name a resource for good: ``Name``, or its type with ``Name`` behind."""
    if kind.startswith(("Custom::", "AWS::CloudFormation::CustomResource", "AWS::CDK::")):
        return ()
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    readable = {path.removeprefix("/properties/") for path in schema.get("readOnlyProperties", [])}
    own = kind.rpartition("::")[2].lower()
    return tuple(
        name
        for name in schema["properties"]
        if name not in readable
        and name.endswith("Name")
        and own.endswith(name.removesuffix("Name").lower())
    )


def names_of(template: dict[str, Any]) -> dict[str, set[Name]]:
    """Logical ID -> the physical names that the template gives, with what each is unique in."""
    found: dict[str, set[Name]] = {}
    for logical_id, resource in template["Resources"].items():
        kind, properties = resource["Type"], resource.get("Properties", {})
        names: set[Name] = set()
        if kind == "AWS::IAM::Policy":
            names = {
                (_text(role), "policy", _text(properties["PolicyName"]))
                for role in properties["Roles"]
            }
        elif kind == "AWS::ApplicationAutoScaling::ScalingPolicy":
            of = properties.get("ScalingTargetId") or properties.get("ResourceId")
            names = {(_text(of), "scaling policy", _text(properties["PolicyName"]))}
        else:
            names = {
                (kind, name, _text(properties[name]))
                for name in _naming(kind)
                if name in properties
            }
        for policy in properties.get("Policies", []) if kind == "AWS::IAM::Role" else []:
            names.add((_text({"Ref": logical_id}), "policy", policy["PolicyName"]))
        found[logical_id] = names
    return found


def shared_in(template: dict[str, Any]) -> list[Name]:
    """Names that two resources of a template have."""
    counts = Counter(name for names in names_of(template).values() for name in names)
    return [name for name, count in counts.items() if count > 1]


def shared_between(first: dict[str, Any], second: dict[str, Any]) -> set[Name]:
    """Names that two stacks of an account give, without those on what each makes itself."""
    return set.intersection(
        *(
            {
                name
                for names in names_of(template).values()
                for name in names
                if '"Ref"' not in name[0] and not name[2].startswith("{")
            }
            for template in (first, second)
        )
    )


def shared_by_an_update(before: dict[str, Any], after: dict[str, Any]) -> set[tuple[str, Name]]:
    """Names that something new has while what it replaces, or what goes, still has them."""
    old, new = names_of(before), names_of(after)
    changes = resource_changes(before, after)
    going = {
        n
        for n, c in changes.items()
        if c.effect in (ResourceEffect.DELETED, ResourceEffect.REPLACED)
    }
    coming = {
        n for n, c in changes.items() if c.effect in (ResourceEffect.ADDED, ResourceEffect.REPLACED)
    }
    taken = {name for each in going for name in old[each]}
    return {(each, name) for each in coming for name in new[each] if name in taken}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


# ---------------------------------------------------------------------------------------- rights


def narrowed(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Rights that a policy loses while it stays: before CloudFormation's clean-up.

    Each with the policy's place, principal and condition, action and resource.
    """
    changes, documents = resource_changes(before, after), _documents(after)
    former = _former(before, after)
    lost = []
    for place, old in _documents(before).items():
        new = documents.get(place)
        if new is None or changes[place[0]].effect in (
            ResourceEffect.REPLACED,
            ResourceEffect.DELETED,
        ):
            continue
        have = list(_rights(new, "Allow", former))
        gone = [
            right
            for right in _rights(old, "Allow", {})
            if not any(_covers(other, right) for other in have)
        ]
        # What a function's own code is denied beside its network interfaces, Lambda itself may do.
        denied = {
            right
            for right in set(_rights(new, "Deny", {})) - set(_rights(old, "Deny", {}))
            if "lambda:SourceFunctionArn" not in right[0]
        }
        lost += [("/".join(place), *right) for right in [*gone, *sorted(denied)]]
    return lost


def _documents(template: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for logical_id, resource in template["Resources"].items():
        for path, document in _below(resource.get("Properties", {}), ""):
            found[logical_id, path] = document
    return found


def _below(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict) and isinstance(value.get("Statement"), list):
        yield path, value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _below(each, f"{path}.{name}")
    elif isinstance(value, list):
        for each in value:
            # Policies of a role are told apart by their names, not by their places.
            name = each.get("PolicyName", "") if isinstance(each, dict) else ""
            yield from _below(each, f"{path}[{name}]")


def _former(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[Any]]:
    """What the custom resources of the new template answer with, by their attributes."""
    answers: dict[str, list[Any]] = {}
    for logical_id, resource in after["Resources"].items():
        if resource["Type"] != FORMER:
            continue
        was = before["Resources"].get(logical_id, {}).get("Properties", {})
        for kind, now in resource["Properties"].items():
            if isinstance(now, list):
                gone = [each for each in was.get(kind, []) if each not in now]
                answers[_text({"Fn::GetAtt": [logical_id, kind]})] = gone or now[:1]
    return answers


def _rights(
    document: dict[str, Any], effect: str, former: dict[str, list[Any]]
) -> Iterator[tuple[str, str, str]]:
    for statement in document["Statement"]:
        if statement["Effect"] != effect:
            continue
        for_whom = _text([statement.get("Principal"), statement.get("Condition")])
        resources = statement.get("Resource", statement.get("NotResource", "*"))
        if isinstance(resources, dict) and "Fn::Split" in resources:
            # Without an answer: what an earlier update kept, which this one may let go.
            resources = former.get(_text(resources["Fn::Split"][1]), [])
        for action in _list(statement.get("Action", statement.get("NotAction"))):
            for resource in _list(resources):
                yield for_whom, _text(action), _text(resource)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _covers(one: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    return one[0] == other[0] and all(
        re.fullmatch(re.escape(ours).replace(r"\*", ".*"), theirs) is not None
        for ours, theirs in zip(one[1:], other[1:], strict=True)
    )


# ------------------------------------------------------------------------------------------ sums


class Launched(NamedTuple):
    """A template, with what else the length of a name or an ARN follows from."""

    template: dict[str, Any]
    stack_name: str = "Serving"
    region: str = "us-east-1"

    def inline_policies(self) -> dict[str, int]:
        """Characters of all inline policies of each role, without white space, as IAM counts them."""
        lengths: Counter[str] = Counter()
        for logical_id, resource in self.template["Resources"].items():
            properties = resource.get("Properties", {})
            if resource["Type"] == "AWS::IAM::Policy":
                for role in properties["Roles"]:
                    lengths[_text(role)] += self._length(properties["PolicyDocument"])
            for policy in (
                properties.get("Policies", []) if resource["Type"] == "AWS::IAM::Role" else []
            ):
                lengths[_text({"Ref": logical_id})] += self._length(policy["PolicyDocument"])
        return dict(lengths)

    def alarm_rules(self) -> dict[str, int]:
        """Characters of each composite alarm's rule."""
        rules = self._all("AWS::CloudWatch::CompositeAlarm", "AlarmRule")
        return {logical_id: len(self._sent(rule)) for logical_id, rule in rules.items()}

    def endpoint_policies(self) -> dict[str, int]:
        """Characters of each VPC endpoint's policy; 0 without one."""
        policies = self._all("AWS::EC2::VPCEndpoint", "PolicyDocument")
        return {name: self._length(policy) if policy else 0 for name, policy in policies.items()}

    def _all(self, kind: str, name: str) -> dict[str, Any]:
        return {
            logical_id: resource["Properties"].get(name)
            for logical_id, resource in self.template["Resources"].items()
            if resource["Type"] == kind
        }

    def _length(self, document: dict[str, Any]) -> int:
        answered = {
            logical_id
            for logical_id, resource in self.template["Resources"].items()
            if resource["Type"] == FORMER and f'"{logical_id}"' in json.dumps(document)
        }
        sent = json.dumps(self._sent(document), separators=(",", ":"))
        return len(sent) + ANSWER * len(answered)

    def _sent(self, value: Any) -> Any:
        """A value as it is sent, with IDs, names and ARNs of the length that AWS gives them."""
        if isinstance(value, list):
            return [self._sent(each) for each in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Fn::Join"}:
            return value["Fn::Join"][0].join(self._sent(each) for each in value["Fn::Join"][1])
        if set(value) == {"Fn::Split"}:  # an answer of former names, counted for itself
            return []
        if set(value) == {"Ref"}:
            return self._reference(value["Ref"])
        if set(value) == {"Fn::GetAtt"}:
            return self._attribute(*value["Fn::GetAtt"])
        return {key: self._sent(each) for key, each in value.items()}

    def _reference(self, name: str) -> str:
        if name in self.template["Resources"]:
            kind = self.template["Resources"][name]["Type"]
            if kind == "AWS::SageMaker::Endpoint":  # CloudFormation returns its ARN
                return self._attribute(name, "Arn")
            return self._name(name, kind) if kind not in IDS else "x" * len(IDS[kind])
        if name == "AWS::StackId":
            named = f"arn:aws:cloudformation:{self.region}:{PSEUDO['AWS::AccountId']}:stack/"
            return f"{named}{self.stack_name}/{UUID}"
        return self.region if name == "AWS::Region" else PSEUDO[name]

    def _attribute(self, logical_id: str, attribute: str) -> str:
        kind = self.template["Resources"][logical_id]["Type"]
        if attribute != "Arn":
            return IDS["AWS::EC2::SecurityGroup"]
        account = PSEUDO["AWS::AccountId"]
        before, after = ARNS[kind]
        name = UUID if kind == "AWS::KMS::Key" else self._name(logical_id, kind)
        return f"{before.format(region=self.region, account=account)}{name}{after}"

    def _name(self, logical_id: str, kind: str) -> str:
        """Stack, logical ID and 13 characters at random, cut to what the type takes."""
        return f"{self.stack_name}-{logical_id}-{'R' * 13}"[: LONGEST[kind]]


ANSWER = 3_500  # characters that the function for former names answers with at most
UUID = "12345678-1234-1234-1234-123456789012"
IDS = {
    "AWS::EC2::VPC": "vpc-0123456789abcdef0",
    "AWS::EC2::Subnet": "subnet-0123456789abcdef0",
    "AWS::EC2::SecurityGroup": "sg-0123456789abcdef0",
}
ARNS = {
    "AWS::KMS::Key": ("arn:aws:kms:{region}:{account}:key/", ""),
    "AWS::Lambda::Function": ("arn:aws:lambda:{region}:{account}:function:", ""),
    "AWS::Logs::LogGroup": ("arn:aws:logs:{region}:{account}:log-group:", ":*"),
    "AWS::S3::Bucket": ("arn:aws:s3:::", ""),
    "AWS::SQS::Queue": ("arn:aws:sqs:{region}:{account}:", ""),
    "AWS::SageMaker::Endpoint": ("arn:aws:sagemaker:{region}:{account}:endpoint/", ""),
}
LONGEST = {
    "AWS::CloudWatch::Alarm": 255,
    "AWS::Lambda::Function": 64,
    "AWS::Logs::LogGroup": 512,
    "AWS::S3::Bucket": 63,
    "AWS::SQS::Queue": 80,
    "AWS::SageMaker::Endpoint": 63,
}
