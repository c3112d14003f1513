"""Every app that a reader starts from synthesises as they would run it, and warns of nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from aws_cdk import App
from jsii._kernel.providers import process

from low_latency_endpoint import LowLatencyEndpoint
from tests.pinned_models import QWEN, written_lock

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("existing_vpc", "new_vpc", "single_constructs", "two_endpoints")
INIT = ("--region", "us-east-1", "--zones", "use1-az1,use1-az2")
#: What `low-latency init` serves, by its template.
MODELS = {
    "text-classification": ("--model-data", "s3://my-bucket/model.tar.gz"),
    "language-model": ("--model-data", "s3://my-bucket/model/"),
    "hugging-face": ("--model", QWEN.model),
    "inferentia2": ("--model-data", "s3://my-bucket/model.tar.gz"),
}
#: What the README's reader has: a stack, a VPC and a service in it.
STACK = """
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
app = App()
self = Stack(app, "Shop", env=Environment(account="123456789012", region="us-east-1"))
vpc = ec2.Vpc(self, "Vpc", availability_zones=["us-east-1a", "us-east-1b"])
task = ecs.FargateTaskDefinition(self, "Task")
task.add_container("Shop", image=ecs.ContainerImage.from_registry("shop"))
cluster = ecs.Cluster(self, "Cluster", vpc=vpc)
service = ecs.FargateService(
    self,
    "Service",
    cluster=cluster,
    task_definition=task,
    min_healthy_percent=100,
    circuit_breaker=ecs.DeploymentCircuitBreaker(),
)
{example}
app.synth()
"""


def test_every_app_among_the_examples_is_tried():
    apps = {
        path.stem
        for path in (ROOT / "examples").glob("*.py")
        if "app.synth()" in path.read_text(encoding="utf-8")
    }
    assert apps == set(EXAMPLES)


RUN = """
import os, runpy, sys
import aws_cdk
made, whole = [], aws_cdk.App
aws_cdk.App = lambda *args, **kwargs: made.append(whole(*args, **kwargs)) or made[-1]
for path in sys.argv[1:]:
    os.chdir(os.path.dirname(path))  # where its settings are
    runpy.run_path(path, run_name="__main__")
    (stack,) = made.pop().synth().stacks
    warned = [each.entry.data for each in stack.messages if str(each.level).endswith("WARNING")]
    assert not warned, (path, warned)
    types = {each["Type"] for each in stack.template["Resources"].values()}
    assert "AWS::SageMaker::Endpoint" in types, path
"""


def synthesise(*paths: Path) -> None:
    """Outside of the tests' process, one after the other: most of each would be Node.js's start."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, paths)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def _written(folder: Path, template: str, *model: str) -> Path:
    """The app that `init` writes, with the lock that `pin` would write."""
    program = "from low_latency_endpoint.cli import main; main()"
    command = [sys.executable, "-c", program, "init", str(folder), *INIT]
    subprocess.run([*command, "--template", template, *model], check=True, capture_output=True)
    written_lock(folder, QWEN)
    return folder / "app.py"


def test_examples_synthesise_without_a_warning(tmp_path: Path):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    # `callers` opens the way; without the right the first call is denied.
    assert "grant_invoke(service.task_definition.task_role)" in block
    readme = tmp_path / "readme.py"
    readme.write_text(STACK.format(example=block), encoding="utf-8")
    synthesise(
        ROOT / "app.py",
        *(ROOT / "examples" / f"{name}.py" for name in EXAMPLES),
        readme,
        *(_written(tmp_path / name, name, *model) for name, model in MODELS.items()),
    )


HOW_TO = ROOT / "docs" / "how-to"
#: Pages whose Python is one app each, from top to bottom.
APPS = ("in-your-app", "what-exists-already", "inference-components")


def _app_of(page: str) -> App:
    text = (HOW_TO / f"{page}.md").read_text(encoding="utf-8")
    space: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.S | re.M):
        exec(compile(block, f"docs/how-to/{page}.md", "exec"), space)
    return space["app"]


@pytest.fixture(scope="module")
def written():
    """The app of each page, from the repository's own endpoint.yaml."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return {page: _app_of(page) for page in APPS}


def test_all_of_the_pages_synthesises(written):
    assemblies = [app.synth() for app in written.values()]
    stacks = {each.stack_name: each.template for made in assemblies for each in made.stacks}
    endpoints = {
        name: sorted(
            str(each["Properties"]["EndpointName"])
            for each in template["Resources"].values()
            if each["Type"] == "AWS::SageMaker::Endpoint"
        )
        for name, template in stacks.items()
    }
    assert endpoints["Shop"] == ["shop-sentiment"]
    assert endpoints["Serving"] == ["fraud", "refunds"]
    assert endpoints["Churn"] == ["churn"]
    assert endpoints["OnCall"] == []
    assert endpoints["Models"] == ["models"]
    assert len(endpoints["FromSettings"]) == 1
    rules = [each for each in stacks["Orders"]["Resources"].values() if "Ingress" in each["Type"]]
    assert len(rules) == 1  # in the caller's stack, as the comment says


def test_what_endpoints_share_belongs_to_none_of_them(written):
    """An endpoint that is retired takes along what it made."""
    app = written["in-your-app"]
    every = [each for each in app.node.find_all() if isinstance(each, LowLatencyEndpoint)]
    for shared in ("network", "private_link"):
        used = Counter(getattr(each, shared) for each in every)
        assert max(used.values()) > 1  # the page has a case
        for part, users in used.items():
            owners = [one for one in part.node.scopes if isinstance(one, LowLatencyEndpoint)]
            assert users == 1 or not owners, part.node.path


def test_the_parameters_are_those_of_the_table(written):
    page = (HOW_TO / "in-your-app.md").read_text(encoding="utf-8")
    made = written["in-your-app"].synth()
    template = made.get_stack_by_name("Shop").template
    names = {
        re.sub(r"us-east-1.", "<zone>", each["Properties"]["Name"])
        for each in template["Resources"].values()
        if each["Type"] == "AWS::SSM::Parameter"
    }
    assert names == set(re.findall(r"^\| `(/shop/[^`]*)`", page, flags=re.M))


@pytest.fixture
def calls(monkeypatch):
    made, send = Counter(), process._NodeProcess.send

    def counted(self, request, response_type):
        made[getattr(request, "method", "") or getattr(request, "fqn", type(request).__name__)] += 1
        return send(self, request, response_type)

    monkeypatch.setattr(process._NodeProcess, "send", counted)
    return made


def test_a_pattern_makes_few(stack, parts, calls):
    """Each call to Node.js takes processor time.

    About forty go into names that another scope, or another stack of the template, keeps apart.
    """
    pattern = parts.pattern(stack)
    assert sum(calls.values()) < 330
    assert not calls["fromVpcAttributes"]  # loads CDK's table of Regions, as long as 150 calls
    assert pattern.network.vpc is pattern.network.vpc
    assert pattern.network.subnets is pattern.network.subnets
    assert calls["fromVpcAttributes"] == 1
