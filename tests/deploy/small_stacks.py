"""What stacks of these tests have in common: an app, a network, a model, an endpoint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from constructs import Construct

from local_sagemaker import DeployedStack, LocalAws, deploy_template
from low_latency_endpoint import (
    ClientZones,
    Container,
    Endpoint,
    EndpointConfiguration,
    Model,
    ModelData,
    ProductionVariant,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.plan.pinned_model import PinnedFile, PinnedModel
from tests.hub_of_files import FakeHub

ACCOUNT, REGION = "123456789012", "us-east-1"
ENV = cdk.Environment(account=ACCOUNT, region=REGION)
REGISTRY = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"
CONTEXT = json.loads((Path(__file__).parents[2] / "cdk.json").read_text("utf-8"))["context"]
_PATIENCE = "= 57 * 60, 20 * 60"


def app_in(folder: Path, *, flags: bool = False) -> cdk.App:
    """An app whose assembly goes into a folder, with the feature flags of cdk.json or without."""
    context = CONTEXT if flags else None
    return cdk.App(outdir=str(folder), analytics_reporting=False, context=context)


def stack_in(folder: Path, name: str, *, flags: bool = False, **more: Any) -> cdk.Stack:
    """A stack in an app of its own."""
    return cdk.Stack(app_in(folder, flags=flags), name, env=ENV, **more)


def synthesised(stack: cdk.Stack) -> Path:
    """The folder of a stack's assembly."""
    app = stack.node.root
    assert isinstance(app, cdk.App)
    return Path(app.synth().directory)


def network_in(stack: Construct, **more: Any) -> ZoneAlignedNetwork:
    given = {"client_zones": ClientZones.of_ids("use1-az1", "use1-az2"), **more}
    return ZoneAlignedNetwork(stack, "Network", **given)


def container(image: str = "model:1", data: ModelData | str | None = None) -> Container:
    return Container.from_uri(f"{REGISTRY}/{image}", data=data)


def model_in(
    scope: Construct,
    network: ZoneAlignedNetwork,
    image: str = "model:1",
    data: ModelData | str | None = None,
    id: str = "Model",
    **more: Any,
) -> Model:
    return Model(scope, id, network=network, containers=[container(image, data)], **more)


def variant_of(model: Any, instances: int | None = 1, **more: Any) -> ProductionVariant:
    given = {"name": "primary", "instance_type": "ml.m5.xlarge", **more}
    if instances is not None:
        given["initial_instance_count"] = instances
    return ProductionVariant(model=model, **given)


def endpoint_in(
    scope: Construct,
    *variants: ProductionVariant,
    shadow: ProductionVariant | None = None,
    **more: Any,
) -> Endpoint:
    configuration = EndpointConfiguration(
        scope, "Configuration", variants=list(variants), shadow=shadow
    )
    return Endpoint(scope, "Endpoint", configuration=configuration, **more)


class Assemblies:
    """Every kind of a stack, synthesised once for all tests of a module."""

    def __init__(self, folder: Path, synthesise: Callable[..., None]) -> None:
        self.folder, self.synthesise = folder, synthesise
        self.made: dict[str, Path] = {}

    def of(self, *which: str, **kind: Any) -> Path:
        key = repr((which, kind))
        if key not in self.made:
            self.made[key] = self.folder / f"cdk.out.{len(self.made)}"
            self.synthesise(self.made[key], *which, **kind)
        return self.made[key]


def deploy_at_once(aws: LocalAws, folder: Path, name: str, template: str) -> DeployedStack:
    """Deploy without the twenty minutes for what others may have in the same security group."""
    file = folder / template
    text = file.read_text("utf-8")
    assert _PATIENCE in text
    file.write_text(text.replace(_PATIENCE, "= 57 * 60, 1"), "utf-8")
    return deploy_template(aws, folder, name, timeout=100)


def newest(hub: FakeHub, model: str, files: dict[str, bytes]) -> PinnedModel:
    """Pin the newest commit of a model, which has these files."""
    pinned = (
        PinnedFile(path, len(body), hashlib.sha256(body).hexdigest())
        for path, body in files.items()
    )
    commit = hub.repositories[model].branches["main"]
    return PinnedModel(model=model, revision="main", commit=commit, files=tuple(pinned))
