"""AWS::Lambda::*."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from .properties import (
    PropertyNotEmulated,
    Tagging,
    call,
    only,
    refuse_others,
    tag_list,
    tag_map,
    without,
)
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

_CONFIGURATION = (
    "DeadLetterConfig",
    "Description",
    "Environment",
    "EphemeralStorage",
    "Handler",
    "KmsKeyArn",
    "Layers",
    "LoggingConfig",
    "MemorySize",
    "Role",
    "Runtime",
    "Timeout",
    "TracingConfig",
    "VpcConfig",
)
_DEFAULTS: dict[str, Any] = {
    "Description": "",
    "Environment": {"Variables": {}},
    "MemorySize": 128,
    "Timeout": 3,
}


@emulated
class Function(ResourceType):
    """A function from an archive in S3 or from inline code."""

    type_name = "AWS::Lambda::Function"
    deletes_by = ("lambda", "delete_function", "FunctionName")
    name_property = "FunctionName"
    tags_by = Tagging("lambda", "tag_resource", "untag_resource", "Resource", "Arn", spelt=tag_map)

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=64)
        arguments = only(properties, *_CONFIGURATION, "Architectures", "PackageType")
        arguments["FunctionName"] = name
        arguments["Code"] = _code(properties)
        arguments["Tags"] = tag_list(properties.get("Tags"))
        answer = call(at.client("lambda"), "create_function", arguments)
        at.begin(name)
        self._reserve(at, name, {}, properties)
        return Created(name, {"Arn": answer["FunctionArn"]})

    @staticmethod
    def _reserve(at: Place, name: str, old: Properties, new: Properties) -> None:
        key = "ReservedConcurrentExecutions"
        if new.get(key) is not None:
            at.client("lambda").put_function_concurrency(
                FunctionName=name, ReservedConcurrentExecutions=int(new[key])
            )
        elif old.get(key) is not None:
            at.client("lambda").delete_function_concurrency(FunctionName=name)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        lambda_, name, old = at.client("lambda"), existing.physical_id, existing.properties
        if properties["Code"] != old["Code"]:
            architectures = only(properties, "Architectures")
            call(
                lambda_,
                "update_function_code",
                {"FunctionName": name, **_code(properties), **architectures},
            )
        configuration = {**_DEFAULTS, **only(properties, *_CONFIGURATION)}
        call(lambda_, "update_function_configuration", {"FunctionName": name, **configuration})
        self._reserve(at, name, old, properties)


def _code(properties: Properties) -> dict[str, Any]:
    """Give the code as the API wants it; inline code becomes an archive with one file."""
    code = properties["Code"]
    refuse_others(code, "Code", "ZipFile", "S3Bucket", "S3Key", "S3ObjectVersion")
    if "ZipFile" not in code:
        return dict(code)
    extension = "js" if str(properties.get("Runtime", "")).startswith("nodejs") else "py"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"index.{extension}", code["ZipFile"])
    return {"ZipFile": buffer.getvalue()}


@emulated
class Permission(ResourceType):
    """Who may invoke a function."""

    type_name = "AWS::Lambda::Permission"
    deletes_by = (
        "lambda",
        "remove_permission",
        {"FunctionName": "FunctionName", "StatementId": ""},
    )

    def create(self, at: Place, properties: Properties) -> Created:
        name = at.generated_name(100)
        call(at.client("lambda"), "add_permission", {**properties, "StatementId": name})
        return Created(name, {"Id": name})


@emulated
class EventInvokeConfig(ResourceType):
    """How asynchronous invocations are retried."""

    type_name = "AWS::Lambda::EventInvokeConfig"
    deletes_by = ("lambda", "delete_function_event_invoke_config", {"FunctionName": "FunctionName"})

    def create(self, at: Place, properties: Properties) -> Created:
        # moto keeps one configuration per function, whatever the qualifier.
        if properties.get("Qualifier", "$LATEST") != "$LATEST":
            raise PropertyNotEmulated("Qualifier (other than $LATEST)")
        arguments = without(properties, "Qualifier")
        call(at.client("lambda"), "put_function_event_invoke_config", arguments)
        return Created(f"{properties['FunctionName']}|$LATEST", {})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        # moto's Put does not replace what is there.
        self.delete(at, existing)
        self.create(at, properties)


@emulated
class Version(ResourceType):
    """A published version."""

    type_name = "AWS::Lambda::Version"
    deletes_by = (
        "lambda",
        "delete_function",
        {"FunctionName": "FunctionName", "Qualifier": "Version"},
    )

    def create(self, at: Place, properties: Properties) -> Created:
        answer = call(at.client("lambda"), "publish_version", properties)
        arn = answer["FunctionArn"]
        if not arn.endswith(f":{answer['Version']}"):
            arn = f"{arn}:{answer['Version']}"
        return Created(arn, {"FunctionArn": arn, "Version": answer["Version"]})


@emulated
class FunctionAlias(ResourceType):
    """An alias of a version."""

    type_name = "AWS::Lambda::Alias"
    deletes_by = ("lambda", "delete_alias", {"FunctionName": "FunctionName", "Name": "Name"})
    name_property = "Name"

    def create(self, at: Place, properties: Properties) -> Created:
        arn = call(at.client("lambda"), "create_alias", properties)["AliasArn"]
        return Created(arn, {"AliasArn": arn})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        call(at.client("lambda"), "update_alias", {"Description": "", **properties})
