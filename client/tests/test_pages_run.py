"""The Python of the docs that calls endpoints with this client, run against the local AWS.

The blocks of a page run in their order, in one namespace. This project's README has `test_readme.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import LanguageModelServer, SimulatedModelServer
from low_latency_client.zone import ZONE_VARIABLE

from .local_endpoints import create_endpoint

DOCS = Path(__file__).parents[2] / "docs"
OURS = re.compile(r"low_latency_client|RuntimeClient\(|endpoint_url=zonal_url")
CHAT = LanguageModelServer(gap_seconds=0.002, stateful_sessions=True)
#: What another server than the one here takes, and what this one takes.
OTHER_FORMAT = (
    """b'{"inputs": "Tell me"}'""",
    """b'{"messages": [{"role": "user", "content": "Tell me"}], "stream": true}'""",
)
_PYTHON = re.compile(r"^```python[^\n]*\n(.*?)^```", re.M | re.S)
_ZONAL_URL = re.compile(r'("use1-az\d"): "https://vpce-[^"]+"')


def blocks_of(page: Path) -> list[str]:
    """The page's blocks with this client; those with OpenAI's SDK run in test_bearer_tokens.py."""
    blocks = _PYTHON.findall(page.read_text("utf-8"))
    return [block for block in blocks if OURS.search(block) and "OpenAI(" not in block]


PAGES = [
    page
    for page in sorted((DOCS / "how-to").glob("*.md"))
    if blocks_of(page)
]  # fmt: skip


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS with an endpoint that answers, and one that streams and keeps sessions."""
    with LocalAws.in_process(
        model_servers={"model": SimulatedModelServer()}, runtime=RuntimeOptions(seed=1)
    ) as started:
        create_endpoint(started, "sentiment")
        started.set_model_servers({"model": CHAT})
        create_endpoint(started, "chat")
        yield started


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(
    page: Path, aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in {**aws.exports(), ZONE_VARIABLE: "use1-az2"}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("ENDPOINT_NAME", "sentiment")
    body = {"messages": [{"role": "user", "content": "Tell me a story"}], "max_tokens": 20}
    names: dict[str, Any] = {
        "boto3": boto3, "body": body, "zonal_url": aws.runtime_url("use1-az1"),
        "__name__": "page",
    }  # fmt: skip
    for number, block in enumerate(blocks_of(page), 1):
        local = _ZONAL_URL.sub(lambda url: f'{url[1]}: "{aws.runtime_url(url[1][1:-1])}"', block)
        local = local.replace(*OTHER_FORMAT)
        exec(compile(local, f"{page.name}, block {number}", "exec"), names)
        client = names.get("client")
        if hasattr(client, "close"):
            client.close()


def test_pages_have_blocks() -> None:
    assert {"call-a-language-model.md", "clients.md"} <= {page.name for page in PAGES}
