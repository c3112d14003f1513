"""README.md: its Python runs against the local AWS, and its tables say what the source says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import low_latency_client
from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import LanguageModelServer, SimulatedModelServer
from low_latency_client.errors import rules
from low_latency_client.zone import ZONE_VARIABLE

from .local_endpoints import create_endpoint

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
#: What each block prints, in their order; nothing where it only creates a client.
PRINTED = [
    r"b'\{.*fine.*\}'",
    r"b'\{.*fine.*\}'",
    r"use1-az2 .*ClientCounts",
    "",
    "",
    "ValidationError",
    *[""] * 3,  # metrics: test_metrics_examples.py
]
_ZONAL_URL = re.compile(r'("use1-az\d"): "https://vpce-[^"]+"')


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS with the endpoints that the README calls."""
    with LocalAws.in_process(
        model_servers={"model": SimulatedModelServer()}, runtime=RuntimeOptions(seed=1)
    ) as started:
        create_endpoint(started, "sentiment")
        started.set_model_servers({"model": LanguageModelServer(gap_seconds=0.002)})
        create_endpoint(started, "chat")
        yield started


@pytest.fixture
def service(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> LocalAws:
    """The local AWS, with the environment of a service in its zone use1-az2."""
    for variable, value in {**aws.exports(), ZONE_VARIABLE: "use1-az2"}.items():
        monkeypatch.setenv(variable, value)
    return aws


def local(block: str, aws: LocalAws) -> str:
    """Replace the addresses of interface endpoints in a block by those of the local AWS."""
    return _ZONAL_URL.sub(lambda url: f'{url[1]}: "{aws.runtime_url(url[1][1:-1])}"', block)


@pytest.mark.parametrize("place", range(len(PRINTED)))
def test_a_block_runs(service: LocalAws, capsys: pytest.CaptureFixture[str], place: int) -> None:
    names: dict[str, Any] = {}
    exec(compile(local(BLOCKS[place], service), f"README.md, block {place + 1}", "exec"), names)
    printed = capsys.readouterr().out
    assert re.search(PRINTED[place], printed), printed
    if not PRINTED[place]:  # a line that replaces boto3's: the calls stay as they are
        client = names["client"]
        answer = client.invoke_endpoint(EndpointName="sentiment", Body=b'{"inputs": "fine"}')
        assert b"fine" in answer["Body"].read()
        client.close()


def test_every_block_is_run() -> None:
    assert len(BLOCKS) == len(PRINTED)


def test_the_table_of_codes_has_all_of_them() -> None:
    rows = re.findall(r"^\| (LLC\d{3}) \| (.*) \|$", README, re.M)
    assert rows == [(rule.code, rule.title) for rule in rules()]


def logged() -> set[tuple[str, str]]:
    """Return logger and level of each statement of the source that logs."""
    package = Path(str(low_latency_client.__file__)).parent
    pairs = set()
    for path in package.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "_log":
                level = {"exception": "error"}.get(node.attr, node.attr)
                pairs.add((f"{package.name}.{path.stem}", level.upper()))
    return pairs


def test_the_table_of_loggers_has_all_of_them() -> None:
    rows = re.findall(r"^\| `(low_latency_client\.\w+)` \| `(\w+)` \|", README, re.M)
    assert len(rows) == len(set(rows))
    assert set(rows) == logged()
