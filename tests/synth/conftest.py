"""Apps and stacks for the tests of templates: what a user of this repository's cdk.json sees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from low_latency_endpoint import (
    ClientZones,
    Container,
    ContainerImage,
    Endpoint,
    EndpointConfiguration,
    InstanceType,
    Model,
    ModelData,
    ProductionVariant,
    ZoneAlignedNetwork,
)

ROOT = Path(__file__).parents[2]
FLAGS: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]


class Synthesised(dict[str, Any]):
    """A template, with the questions that tests ask of it."""

    def of_type(self, type: str) -> dict[str, dict[str, Any]]:
        """Logical ID -> properties of the resources of a type."""
        return {
            logical_id: resource.get("Properties", {})
            for logical_id, resource in self.get("Resources", {}).items()
            if resource["Type"] == type
        }

    def only(self, type: str) -> dict[str, Any]:
        """The properties of the one resource of a type."""
        return self.of_type(type)[self.only_id(type)]

    def only_id(self, type: str) -> str:
        """The logical ID of the one resource of a type."""
        (logical_id,) = self.of_type(type)
        return logical_id

    def depends_on(self, logical_id: str) -> list[str]:
        """What a resource states in DependsOn."""
        return self["Resources"][logical_id].get("DependsOn", [])

    @property
    def types(self) -> set[str]:
        """The resource types in the template."""
        return {resource["Type"] for resource in self.get("Resources", {}).values()}


def make_stack(
    *,
    app: cdk.App | None = None,
    name: str = "Serving",
    region: str | None = "us-east-1",
    account: str | None = "123456789012",
    context: dict[str, Any] | None = None,
) -> cdk.Stack:
    """A stack in an app of its own; ``region=None`` for one without an environment."""
    if app is None:
        app = cdk.App(analytics_reporting=False, context={**FLAGS, **(context or {})})
    env = cdk.Environment(account=account, region=region) if region else None
    return cdk.Stack(app, name, env=env)


def make_template(stack: cdk.Stack) -> Synthesised:
    """The stack's template; the app is synthesised, so nothing can be added afterwards."""
    return Synthesised(Template.from_stack(stack).to_json())


class Parts:
    """The smallest valid part of each kind; keyword arguments replace what it is made of."""

    image = ("huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04")

    def network(self, stack: cdk.Stack, id: str = "Network", **given: Any) -> ZoneAlignedNetwork:
        given.setdefault("client_zones", ClientZones.of_ids("use1-az1", "use1-az2"))
        return ZoneAlignedNetwork(stack, id, **given)

    def container(self, **given: Any) -> Container:
        given.setdefault("image", ContainerImage.from_dlc(*self.image))
        given.setdefault("data", ModelData.from_uri("s3://models/distilbert/model.tar.gz"))
        return Container(**given)

    def model(self, stack: cdk.Stack, id: str = "Model", **given: Any) -> Model:
        given.setdefault("network", None)
        given["network"] = given["network"] or self._shared_network(stack)
        given.setdefault("containers", [self.container()])
        return Model(stack, id, **given)

    def variant(self, stack: cdk.Stack, **given: Any) -> ProductionVariant:
        given.setdefault("name", "primary")
        if "model" not in given:
            given["model"] = self.model(stack, f"Model-{given['name']}")
        if "instance_type" not in given and "instance_pools" not in given:
            given["instance_type"] = InstanceType("ml.m5.xlarge")
        return ProductionVariant(**given)

    def configuration(
        self, stack: cdk.Stack, id: str = "Configuration", **given: Any
    ) -> EndpointConfiguration:
        given["variants"] = given.get("variants") or [self.variant(stack)]
        return EndpointConfiguration(stack, id, **given)

    def endpoint(self, stack: cdk.Stack, id: str = "Endpoint", **given: Any) -> Endpoint:
        given["configuration"] = given.get("configuration") or self.configuration(stack)
        return Endpoint(stack, id, **given)

    def _shared_network(self, stack: cdk.Stack) -> ZoneAlignedNetwork:
        found = stack.node.try_find_child("Network")
        if isinstance(found, ZoneAlignedNetwork):
            return found
        region = None if cdk.Token.is_unresolved(stack.region) else stack.region
        zones = ClientZones.of_ids("use1-az1", "use1-az2")
        if region not in (None, "us-east-1"):
            zones = ClientZones.of_names(f"{region}a", f"{region}b")
        return self.network(stack, client_zones=zones)


@pytest.fixture(scope="session")
def new_stack() -> Callable[..., cdk.Stack]:
    return make_stack


@pytest.fixture(scope="session")
def template_of() -> Callable[[cdk.Stack], Synthesised]:
    return make_template


@pytest.fixture(scope="session")
def parts() -> Parts:
    return Parts()


@pytest.fixture
def stack() -> cdk.Stack:
    return make_stack()
