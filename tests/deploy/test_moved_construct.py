"""An endpoint in another scope, as the CDK CLI compares it with what is deployed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from constructs import Construct

from local_sagemaker import LocalAws, deploy_template
from low_latency_endpoint import EndpointOptions, LowLatencyEndpoint, RuntimePrivateLink
from tests.deploy.small_stacks import container, network_in, stack_in, synthesised

NAME = "Moved"
CLI = Path(__file__).parents[2] / "node_modules/.bin/cdk"


def assembly(folder: Path, scope_name: str = "") -> Path:
    """Synthesize an endpoint below the stack, or below a scope of a name."""
    stack = stack_in(folder, NAME, flags=True)
    network = network_in(stack)
    link = RuntimePrivateLink(stack, "Link", network=network)
    LowLatencyEndpoint(
        Construct(stack, scope_name) if scope_name else stack,
        "Ranking",
        network=network,
        private_link=link,
        instance_type="ml.m5.xlarge",
        containers=[container("server:1")],
        endpoint=EndpointOptions(endpoint_name="moved"),
    )
    return synthesised(stack)


def test_cdk_refactor_renames_an_endpoint_and_nothing_else(clean_aws, tmp_path):
    """docs/how-to/import-and-move.md, with the scope that the page names."""
    before = assembly(tmp_path / "before")
    deploy_template(clean_aws, before, NAME)
    answer = refactor(clean_aws, assembly(tmp_path / "after", "Services"))
    assert "Refactor failed" not in answer, answer
    renamed = set(re.findall(rf"{NAME}\.(Ranking\w+)", answer))
    template = json.loads((before / f"{NAME}.template.json").read_text("utf-8"))
    assert renamed == {name for name in template["Resources"] if name.startswith("Ranking")}


def refactor(aws: LocalAws, folder: Path) -> str:
    """What `cdk refactor --dry-run` says of an assembly."""
    words = ["refactor", "--app", str(folder), "--unstable=refactor", "--dry-run", "--no-color"]
    run = subprocess.run(
        [str(CLI), *words],
        env=aws.environment(),
        cwd=folder.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr
