"""Every Python block of the pages runs: here, page by page, or in the test that is named for it.

The blocks of a page run in their order, in one namespace. `GIVEN` is what a reader has: a stack
(``self``), a VPC, an endpoint. ``...`` stands for arguments that the reader fills in (`FILLED_IN`).
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import botocore.session
import pytest
from botocore import xform_name
from botocore.validate import validate_parameters

from tests.pinned_models import QWEN, written_lock

from .blocks import Block, blocks
from .console_blocks import ROOT

Space = dict[str, Any]


@dataclass(frozen=True)
class Tried:
    """Blocks that run in another test."""

    pages: str
    """A page, or the beginning of several."""
    contains: str
    """What is in the block."""
    test: str
    names: str
    """What the test has of the block: the page that it reads, or the main call."""


CLIENT = "client/tests/test_pages_run.py"
LOCAL = "local_sagemaker/tests/"
ELSEWHERE = [
    Tried("client/README.md", "low_latency_client", "client/tests/test_readme.py", "README.md"),
    Tried("docs/", "OpenAI(", "client/tests/test_bearer_tokens.py", "from openai import OpenAI"),
    Tried("docs/", "low_latency_client", CLIENT, '"docs"'),
    Tried("docs/", "RuntimeClient(", CLIENT, '"docs"'),
    Tried("docs/", "endpoint_url=zonal_url", CLIENT, '"docs"'),
    Tried("docs/", "compare_routing(", "tests/load_test/test_compare_routing.py", "compare_routing("),
    Tried("docs/how-to/in-your-app.md", "", "tests/synth/test_examples.py", "in-your-app"),
    Tried("docs/how-to/what-exists-already.md", "", "tests/synth/test_examples.py", "what-exists-already"),
    Tried("docs/how-to/inference-components.md", "", "tests/synth/test_examples.py", "inference-components"),
    Tried("docs/how-to/shared-vpc.md", "", "tests/docs/test_shared_vpc.py", "shared-vpc.md"),
    Tried("docs/how-to/load-tests.md", "", "tests/load_test/test_documented_lines.py", "load-tests.md"),
    Tried("docs/", "GeneratorProcess(", "tests/load_test/servers.py", "GeneratorProcess("),
    Tried("docs/", "SageMakerUser", "tests/load_test/test_users.py", "SageMakerUser"),
    Tried("docs/", "uvicorn.run(app", "tests/docs/readers.py", '_shown("own-container"'),
    Tried("docs/how-to/terraform", "", "tests/docs/readers.py", '_shown("terraform-and-other'),
    Tried("docs/", "deploy_template(", LOCAL + "test_deployment.py", "deploy_template("),
    Tried("docs/", "aws.set_path(", LOCAL + "test_function_networks.py", "set_path("),
    Tried("local_sagemaker/docs/", "delete_stack(", LOCAL + "test_nothing_is_left.py", "delete_stack("),
    Tried("local_sagemaker/docs/", "aws.environment()", LOCAL + "test_server.py", ".environment()"),
    Tried("local_sagemaker/docs/", "evaluate_alarms(", LOCAL + "test_alarm_evaluation.py", "evaluate_alarms("),
    Tried("local_sagemaker/docs/", "endpoint_handler", LOCAL + "runtime/test_update_handlers.py", "endpoint_handler"),
    Tried("local_sagemaker/README.md", "", LOCAL + "test_documentation.py", "README"),
    Tried("local_sagemaker/docs/language-models.md", "", LOCAL + "runtime/test_openai_path.py", "language-models.md"),
    Tried("local_sagemaker/docs/hosting.md", "serve.py", LOCAL + "test_own_model_server.py", "hosting.md"),
    Tried("local_sagemaker/docs/hosting.md", "inference.py", LOCAL + "test_own_model_server.py", "hosting.md"),
    Tried("local_sagemaker/docs/pytest.md", "test_ranker.py", LOCAL + "test_own_model_server.py", "pytest.md"),
    # Generated from docstrings, whose examples are doctests.
    Tried("docs/reference/constructs/", "", "pyproject.toml", "--doctest-modules"),
    Tried("docs/reference/client.md", "", "pyproject.toml", "--doctest-modules"),
    Tried("docs/reference/python/", "", "pyproject.toml", "--doctest-modules"),
]  # fmt: skip


def tried_elsewhere(block: Block) -> Tried | None:
    """Where a block runs that does not run here."""
    for tried in ELSEWHERE:
        if block.page.startswith(tried.pages) and tried.contains in block.text:
            return tried
    return None


PAGES = {
    page: list(of_page)
    for page, of_page in groupby(
        (block for block in blocks("python") if not tried_elsewhere(block)),
        key=lambda block: block.page,
    )
}


# ------------------------------------------------------------------------------- what a reader has


def _named(space: Space, name: str) -> Any:
    """What a reader has by this name, made when it is first needed."""
    if name not in space:
        space[name] = space["makers"][name](space)
        space["given"].add(name)
    return space[name]


def _endpoint(space: Space, id: str) -> Any:
    from low_latency_endpoint import (
        ConfigurationOptions,
        EndpointOptions,
        LowLatencyEndpoint,
        MetricsPublishing,
    )

    options = FILLED_IN["LowLatencyEndpoint"](space)
    options["endpoint"] = EndpointOptions(endpoint_name=f"{id}-{space['number']}")
    metrics = MetricsPublishing(enhanced=True)
    options["configuration"] = ConfigurationOptions(metrics=metrics)
    return LowLatencyEndpoint(_named(space, "had"), id, **options)


def _model(space: Space, id: str) -> Any:
    from low_latency_endpoint import Model

    containers = FILLED_IN["LowLatencyEndpoint"](space)["containers"]
    network = _named(space, "network")
    return Model(_named(space, "had"), id, containers=containers, network=network)


def _service(space: Space) -> Any:
    from aws_cdk import aws_ecs as ecs

    had = _named(space, "had")
    task = ecs.FargateTaskDefinition(had, "Task")
    task.add_container("Callers", image=ecs.ContainerImage.from_registry("callers"))
    cluster = ecs.Cluster(had, "Cluster", vpc=_named(space, "vpc"))
    return ecs.FargateService(had, "Service", cluster=cluster, task_definition=task)


def _container(space: Space) -> Any:
    return space["Container"].from_dlc(
        "huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
        data="s3://my-bucket/model.tar.gz",
    )  # fmt: skip


def _vpc(space: Space, id: str) -> Any:
    ec2 = space["ec2"]
    groups = {"Public": ec2.SubnetType.PUBLIC, "app": ec2.SubnetType.PRIVATE_WITH_EGRESS}
    subnets = [
        ec2.SubnetConfiguration(name=name, subnet_type=kind) for name, kind in groups.items()
    ]
    zones = ["us-east-1a", "us-east-1b"]
    stack = _named(space, "had")
    return ec2.Vpc(stack, id, availability_zones=zones, subnet_configuration=subnets)


def _network(space: Space) -> Any:
    from low_latency_endpoint import ZoneAlignedNetwork

    zones = space["ClientZones"].of_ids("use1-az1", "use1-az2")
    return ZoneAlignedNetwork(_named(space, "had"), "Network", client_zones=zones)


def _payloads(space: Space) -> Any:
    from low_latency_endpoint.load_test import Payloads

    return Payloads.of_bytes(b"{}")


def _stack(id: str) -> Callable[[Space], Any]:
    return lambda space: space["Stack"](
        space["the_app"], f"{id}{space['number']}", env=space["env"]
    )


GIVEN: dict[str, Callable[[Space], Any]] = {
    # In the block's stack: what a block makes and what it uses may name each other.
    "had": lambda space: space["Construct"](space["self"], "Had"),
    "stack": lambda space: space["self"],
    "testing_stack": lambda space: space["self"],
    "net": _stack("Networks"),
    "ml": _stack("Serving"),
    "vpc": lambda space: _vpc(space, "Vpc"),
    "callers_vpc": lambda space: _vpc(space, "Callers"),
    "service": _service,
    "network": _network,
    "zones": lambda space: space["ClientZones"].of_ids("use1-az1", "use1-az2"),
    "link": lambda space: space["RuntimePrivateLink"](
        _named(space, "had"), "Link", network=_named(space, "network")
    ),
    "sentiment": lambda space: _endpoint(space, "sentiment"),
    "endpoint": lambda space: _named(space, "sentiment").endpoint,
    "model": lambda space: _model(space, "Model"),
    "next_model": lambda space: _model(space, "NextModel"),
    "secret": lambda space: space["secretsmanager"].Secret(_named(space, "had"), "Secret"),
    "key": lambda space: space["kms"].Key(_named(space, "had"), "Key"),
    "repository": lambda space: space["ecr"].Repository(_named(space, "had"), "Repository"),
    "ci_role": lambda space: space["iam"].Role(
        _named(space, "had"), "Ci", assumed_by=space["iam"].AccountRootPrincipal()
    ),
    "role": lambda space: _named(space, "ci_role"),
    "group": lambda space: space["ec2"].SecurityGroup(
        _named(space, "had"), "Group", vpc=_named(space, "vpc")
    ),
    "service_security_group": lambda space: _named(space, "group"),
    "kind": lambda space: space["CfnParameter"](
        _named(space, "had"), "Kind", default="ml.m5.large"
    ),
    "least": lambda space: space["CfnParameter"](
        _named(space, "had"), "Least", type="Number", default=2
    ),
    "most": lambda space: space["CfnParameter"](
        _named(space, "had"), "Most", type="Number", default=4
    ),
    "payloads": _payloads,
}
#: What a name means on a page that means something else by it.
GIVEN_ON: dict[str, dict[str, Callable[[Space], Any]]] = {
    "docs/explanation/networks.md": {"app": _stack("Callers"), "network": _network}
}
#: The arguments for which a page writes `...`.
FILLED_IN: dict[str, Callable[[Space], dict[str, Any]]] = {
    "LowLatencyEndpoint": lambda space: {
        "client_zones": space["ClientZones"].of_ids("use1-az1", "use1-az2"),
        "containers": [_container(space)],
        "instance_type": "ml.m5.12xlarge",
        "latency": space["LatencyTarget"](p99=space["Duration"].millis(200)),
    },
    "Container": lambda space: {"image": _container(space).image},
    "FurtherVariant": lambda space: {"containers": [_container(space)]},
    "Function": lambda space: {
        "runtime": space["lambda_"].Runtime.PYTHON_3_12,
        "handler": "index.handler",
        "code": space["lambda_"].Code.from_inline("def handler(event, context): ..."),
    },
}

# ------------------------------------------------------------------------------- AWS, without calls


class CheckedAws:
    """Stands for boto3: operations and their parameters are checked, and nothing is called."""

    @staticmethod
    def client(service: str, *_: Any, **__: Any) -> Any:
        return CheckedClient(service)


class CheckedClient:
    """A client of a service, whose calls are checked against the service's model."""

    def __init__(self, service: str) -> None:
        self._model = botocore.session.get_session().get_service_model(service)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operations = {xform_name(each): each for each in self._model.operation_names}
        shape = self._model.operation_model(operations[name]).input_shape

        def call(**parameters: Any) -> Any:
            if shape is not None:
                validate_parameters(parameters, shape)
            return MagicMock()

        return call


# -------------------------------------------------------------------------------------- the runner


class FillIn(ast.NodeTransformer):
    """Puts what a reader has in the place of ``...``, and zones where an endpoint states none."""

    def visit_Call(self, call: ast.Call) -> ast.Call:
        self.generic_visit(call)
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if name not in FILLED_IN:
            return call
        given = {keyword.arg for keyword in call.keywords}
        for keyword in call.keywords:
            if keyword.arg is None and getattr(keyword.value, "id", "") == "ELIDED":
                keyword.value = _rest(name, sorted(str(each) for each in given))
            elif _is_elided(keyword.value):
                keyword.value = _filled_in(name, str(keyword.arg))
        if name == "LowLatencyEndpoint" and not given & {"client_zones", "network", None}:
            call.keywords.append(ast.keyword("client_zones", _filled_in(name, "client_zones")))
        return call


def _is_ellipsis(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is ...


def _is_elided(value: ast.expr) -> bool:
    inside = isinstance(value, ast.List) and len(value.elts) == 1 and _is_ellipsis(value.elts[0])
    return inside or _is_ellipsis(value)


def _rest(name: str, stated: list[str]) -> ast.expr:
    return ast.parse(f"rest_of({name!r}, {stated!r})", mode="eval").body


def _filled_in(name: str, argument: str) -> ast.expr:
    return ast.parse(f"rest_of({name!r}, [])[{argument!r}]", mode="eval").body


def runnable(text: str) -> ast.Module:
    """The block with its ``...`` filled in; Python takes no ``...`` after a keyword."""
    code = re.sub(r",\s*\.\.\.(?=\s*[,)])", ", **ELIDED", text)
    return ast.fix_missing_locations(FillIn().visit(ast.parse(code)))


def names_used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


def names_assigned(tree: ast.Module) -> set[str]:
    stored = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in stored if isinstance(node.ctx, ast.Store)}


def namespace(folder: Path) -> Space:
    """What each page may use without an import: the CDK's names and the library's."""
    import aws_cdk
    import jsii
    from aws_cdk import aws_ec2, aws_ecr, aws_iam, aws_kms, aws_lambda, aws_secretsmanager
    from constructs import Construct

    import low_latency_endpoint

    space: Space = {name: getattr(aws_cdk, name) for name in ("Stack", "Duration", "CfnParameter")}
    space |= {name: getattr(aws_cdk, name) for name in ("App", "Aspects", "Environment", "IAspect")}
    public = low_latency_endpoint.__all__
    space |= {name: getattr(low_latency_endpoint, name) for name in public}
    space |= {
        "Construct": Construct,
        "jsii": jsii, "cdk": aws_cdk, "boto3": CheckedAws, "ec2": aws_ec2, "ecr": aws_ecr,
        "iam": aws_iam, "kms": aws_kms, "lambda_": aws_lambda, "secretsmanager": aws_secretsmanager,
    }  # fmt: skip
    space["given"] = set()
    space["env"] = aws_cdk.Environment(account="123456789012", region="us-east-1")
    space["app"] = space["the_app"] = aws_cdk.App(outdir=str(folder / "cdk.out"))

    def rest_of(name: str, stated: list[str]) -> dict[str, Any]:
        values = FILLED_IN[name](space)
        left_out = {*stated, "client_zones"} if "network" in stated else set(stated)
        return {key: value for key, value in values.items() if key not in left_out}

    space["rest_of"] = rest_of
    return space


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "endpoint.yaml", tmp_path)
    (tmp_path / "payloads").mkdir()
    (tmp_path / "payloads" / "typical.json").write_text('{"inputs": "I like you."}', "utf-8")
    written_lock(tmp_path, QWEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUB_SECRET_ID", "hub")
    space = namespace(tmp_path)
    space["os"] = __import__("os")
    of_page = GIVEN_ON.get(page, {})
    space["makers"] = {**GIVEN, **of_page}
    for block in PAGES[page]:
        space["number"] = block.number
        for name in space["given"] | set(
            of_page
        ):  # a VPC of its own for each block: they may be alternatives
            space.pop(name, None)
        space["given"] = set()
        tree = runnable(block.text)
        space["self"] = _stack("Block")(space)
        for name in names_used(tree):
            if name in space["makers"]:
                _named(space, name)
        space["given"] -= names_assigned(tree)
        exec(compile(tree, str(block), "exec"), space)
    space["the_app"].synth()


def test_each_other_test_is_there_and_has_the_block() -> None:
    for tried in ELSEWHERE:
        assert tried.names in (ROOT / tried.test).read_text("utf-8"), tried


def test_no_exception_is_left_over() -> None:
    """Each names a block that stands on a page; of generated pages some may not be there yet."""
    used = {tried_elsewhere(block) for block in blocks("python")}
    left = [each for each in ELSEWHERE if each not in used and "doctest" not in each.names]
    assert left == []
