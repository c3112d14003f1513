"""``docs/reference/rights-in-your-account.md``: functions and roles of the default stack, from its template.

``python -m docs.make_rights_page docs/reference/rights-in-your-account.md`` rewrites what stands
between the two marks.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from docs.make_settings_tables import rewrite

from low_latency_endpoint import LowLatencyEndpointStack
from low_latency_endpoint.settings import load_settings

ROOT = Path(__file__).parents[1]
_PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "REGION", "AWS::AccountId": "ACCOUNT"}
_PLACEHOLDERS = {"AWS::StackId": "this stack"}


def rights_tables(template: Mapping[str, Any], assembly: Path) -> str:
    """Tables of a template's functions and of each role's statements, in Markdown."""
    account = Account(template, assembly)
    parts = ["## Functions\n", *account.functions(), "", "## Roles\n"]
    for role in account.of_type("AWS::IAM::Role"):
        parts += [f"### `{account.path(role)}`\n", *account.role(role), ""]
    return "\n".join(parts)


def default_rights_tables() -> str:
    """The same of the default settings file's stack."""
    context = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]
    context["aws:cdk:enable-path-metadata"] = True
    settings = load_settings(ROOT / "endpoint.yaml")
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(context=context, analytics_reporting=False, outdir=folder)
        LowLatencyEndpointStack(app, settings.stack_name, settings=settings)
        template = app.synth().get_stack_by_name(settings.stack_name).template
        return rights_tables(template, Path(folder))


class Account:
    """What a template puts into an account, in a reader's words."""

    def __init__(self, template: Mapping[str, Any], assembly: Path) -> None:
        self.resources: Mapping[str, Any] = template["Resources"]
        self.assembly = assembly

    def of_type(self, kind: str) -> list[str]:
        """Logical IDs of the resources of a type."""
        return [name for name, resource in self.resources.items() if resource["Type"] == kind]

    def path(self, logical_id: str) -> str:
        """A resource's construct path below the stack."""
        path: str = self.resources[logical_id]["Metadata"]["aws:cdk:path"]
        return path.partition("/")[2].removesuffix("/Default").removesuffix("/Resource")

    def functions(self) -> Iterator[str]:
        """A row for each function: its purpose, code, invokers, network and role."""
        yield "| Function | What it does | Code | Who invokes it | In your VPC | Role |"
        yield "|---|---|---|---|---|---|"
        for name in self.of_type("AWS::Lambda::Function"):
            properties = self.resources[name]["Properties"]
            role = self.path(properties["Role"]["Fn::GetAtt"][0])
            code = f"{self._code(properties)}, {properties['Runtime']}"
            network = "yes" if properties.get("VpcConfig") else "no"
            yield (
                f"| `{self.path(name)}` | {properties['Description']} | {code} "
                f"| {'; '.join(self._invokers(name))} | {network} | [`{role}`](#{_anchor(role)}) |"
            )

    def role(self, logical_id: str) -> Iterator[str]:
        """Who may assume a role, and a row for each of its statements."""
        properties = self.resources[logical_id]["Properties"]
        for trust in properties["AssumeRolePolicyDocument"]["Statement"]:
            principals = ", ".join(f"`{self.text(one)}`" for one in trust["Principal"].values())
            condition = self._condition(trust)
            yield f"Assumed by {principals}{', if ' + condition if condition else ''}.\n"
        managed = properties.get("ManagedPolicyArns", [])
        if managed:
            yield f"AWS's policies: {self._listed(managed)}.\n"
        yield "| Effect | Actions | Resources | If |\n|---|---|---|---|"
        for statement in self.statements(logical_id):
            yield (
                f"| {statement['Effect']} | {self._listed(statement['Action'])} "
                f"| {self._listed(statement['Resource'])} | {self._condition(statement)} |"
            )

    def statements(self, role: str) -> Iterator[Mapping[str, Any]]:
        """Those in the role, and those of the policies that name it."""
        policies = list(self.resources[role]["Properties"].get("Policies", []))
        for name in self.of_type("AWS::IAM::Policy"):
            properties = self.resources[name]["Properties"]
            if {"Ref": role} in properties["Roles"]:
                policies.append(properties)
        for policy in policies:
            yield from policy["PolicyDocument"]["Statement"]

    def _invokers(self, function: str) -> Iterator[str]:
        """Custom resources, services with a permission, and roles with the right."""
        for name, resource in self.resources.items():
            properties = resource["Properties"]
            if function in json.dumps(properties.get("ServiceToken")):
                yield f"CloudFormation, for `{self.path(name)}`"
            if resource["Type"] == "AWS::Lambda::Permission" and function in json.dumps(properties):
                yield f"`{properties['Principal']}`, for {self._listed(properties['SourceArn'])}"
        for role in self.of_type("AWS::IAM::Role"):
            rights = [each for each in self.statements(role) if self._invokes(each, function)]
            if rights:
                yield f"role `{self.path(role)}`"

    @staticmethod
    def _invokes(statement: Mapping[str, Any], function: str) -> bool:
        actions = _as_list(statement["Action"])
        return "lambda:InvokeFunction" in actions and function in json.dumps(statement["Resource"])

    def _code(self, properties: Mapping[str, Any]) -> str:
        """Its lines: of the text in the template, or of the package's files."""
        code = properties["Code"]
        if "ZipFile" in code:
            return f"{len(code['ZipFile'].splitlines())} lines in the template"
        package = self.assembly / f"asset.{code['S3Key'].removesuffix('.zip')}"
        files = sorted(package.rglob("*.py"))
        lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
        return f"{lines} lines in {len(files)} files of `{files[0].parent.name}`"

    def _condition(self, statement: Mapping[str, Any]) -> str:
        return "; ".join(
            f"`{key}` {operator} {self._listed(value)}"
            for operator, keys in statement.get("Condition", {}).items()
            for key, value in keys.items()
        )

    def _listed(self, values: Any) -> str:
        return "<br>".join(f"`{self.text(value)}`" for value in _as_list(values))

    def text(self, value: Any) -> str:
        """A value as a reader takes it: accounts and Regions by a word, resources by their path."""
        if isinstance(value, str):
            return value
        ((function, argument),) = value.items()
        if function == "Ref":
            return (
                _PSEUDO.get(argument) or f"<{_PLACEHOLDERS.get(argument) or self.path(argument)}>"
            )
        if function == "Fn::Join":
            return str(argument[0].join(map(self.text, argument[1])))
        if function == "Fn::GetAtt":
            return f"<{self.path(argument[0])}>"
        if function == "Fn::FindInMap":
            return f"<{argument[0]}>"
        raise ValueError(f"no words for {function}")


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _anchor(title: str) -> str:
    """The anchor that GitHub and MkDocs give to a heading."""
    return "".join(character for character in title.lower() if character.isalnum())


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), default_rights_tables())
