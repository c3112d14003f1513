"""A stack with one resource under test, and whatever that needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roles_under_test import trust

from local_sagemaker import DeployedStack, LocalAws, delete_stack, deploy_template

TRUST = trust("sagemaker", "lambda")


def resource_of(kind: str, /, **properties: Any) -> dict[str, Any]:
    """A resource of a template."""
    return {"Type": kind, "Properties": properties}


@dataclass(frozen=True)
class Deployed:
    """The resource under test after a deployment."""

    ref: str
    attributes: dict[str, str]
    stack: DeployedStack


class TestStack:
    """A stack with one resource under test, called `It`, and whatever it needs."""

    __test__ = False

    def __init__(self, aws: LocalAws, name: str) -> None:
        self.aws = aws
        self.name = name

    def deploy(
        self,
        type_name: str,
        properties: Mapping[str, Any],
        attributes: tuple[str, ...] = (),
        **others: Mapping[str, Any],
    ) -> Deployed:
        """Create or update the stack; `others` are further resources by logical id."""
        resources = {"It": {"Type": type_name, "Properties": properties}, **others}
        outputs = {"Ref": {"Value": {"Ref": "It"}}}
        for number, attribute in enumerate(attributes):
            value: Any = {"Fn::GetAtt": ["It", attribute]}
            if attribute in _LISTS:
                value = {"Fn::Join": [",", value]}
            outputs[f"Attribute{number}"] = {"Value": value}
        stack = self.template({"Resources": resources, "Outputs": outputs})
        found = {a: stack.outputs[f"Attribute{n}"] for n, a in enumerate(attributes)}
        return Deployed(stack.outputs["Ref"], found, stack)

    def template(self, template: Mapping[str, Any], **options: Any) -> DeployedStack:
        """Deploy a whole template."""
        return deploy_template(self.aws, template, self.name, **options)

    def refusal(self, type_name: str, properties: Mapping[str, Any], **others: Any) -> str:
        """Deploy what must fail; gives the reason."""
        resources = {"It": {"Type": type_name, "Properties": properties}, **others}
        stack = self.template({"Resources": resources}, expect_failure=True)
        assert "ROLLBACK_COMPLETE" in stack.status, stack.status
        assert stack.failure_reason
        return stack.failure_reason

    def delete(self) -> None:
        """Delete the stack."""
        delete_stack(self.aws, self.name)


_LISTS = {"DnsEntries", "NetworkInterfaceIds", "NameServers", "CidrBlockAssociations"}
