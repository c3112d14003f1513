"""A stack with one resource under test, and whatever that needs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roles_under_test import trust

from local_sagemaker import DeployedStack, LocalAws, delete_stack, deploy_template

TRUST = trust("sagemaker", "lambda")


def resource_of(kind: str, /, **properties: Any) -> dict[str, Any]:
    """A resource of a template."""
    return {"Type": kind, "Properties": properties}


FUNCTION = "AWS::Lambda::Function"


def function(code: str = "", **more: Any) -> dict[str, Any]:
    """The properties of a function with this `index.py`, and the rights of `Role`."""
    return {
        "Code": {"ZipFile": code},
        "Handler": "index.handler",
        "Runtime": "python3.12",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        **more,
    }


MODEL = "AWS::SageMaker::Model"
CONFIG = "AWS::SageMaker::EndpointConfig"
ENDPOINT = "AWS::SageMaker::Endpoint"
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"


def model(role: dict[str, Any], **more: Any) -> dict[str, dict[str, Any]]:
    properties = {
        "ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
        "PrimaryContainer": {"Image": IMAGE},
        **more,
    }
    return {"Role": role, "Model": resource_of(MODEL, **properties)}


def variant(count: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "VariantName": "primary",
        "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
        "InstanceType": "ml.c7i.xlarge",
        "InitialInstanceCount": count,
        **more,
    }


def hosting(role: dict[str, Any], variants: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {**model(role), "Config": resource_of(CONFIG, ProductionVariants=variants)}


def endpoint(**more: Any) -> dict[str, Any]:
    return {"EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}, **more}


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

    def of(self, *, expect_failure: bool = False, **resources: Any) -> DeployedStack:
        """Deploy these resources, and nothing else."""
        return self.template({"Resources": resources}, expect_failure=expect_failure)

    def refusal(self, type_name: str, properties: Mapping[str, Any], **others: Any) -> str:
        """Deploy what must fail; gives the reason."""
        it = {"Type": type_name, "Properties": properties}
        stack = self.of(It=it, **others, expect_failure=True)
        assert "ROLLBACK_COMPLETE" in stack.status, stack.status
        assert stack.failure_reason
        return stack.failure_reason

    def delete(self) -> None:
        """Delete the stack."""
        delete_stack(self.aws, self.name)


_LISTS = {"DnsEntries", "NetworkInterfaceIds", "NameServers", "CidrBlockAssociations"}


def zip_of(index: str = "", **files: str) -> bytes:
    """A function's archive: `index.py`, and other modules by their names."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in {"index": index, **files}.items():
            archive.writestr(f"{name}.py", text)
    return buffer.getvalue()
