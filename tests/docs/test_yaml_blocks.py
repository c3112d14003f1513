"""Every YAML block of the pages: settings are planned, other documents are checked as what they are.

A block of settings is part of a file. It is merged into files that ship, and one of them must plan with
it; ``...`` stands for what the file has there. A block that is no settings is known by its top-level keys.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from low_latency_endpoint.cli import main
from low_latency_endpoint.options.option import options_of
from low_latency_endpoint.plan.price_file import ListedPrice, price_file_text
from low_latency_endpoint.settings import Settings
from low_latency_endpoint.settings.endpoint import EndpointSettings
from tests.pinned_models import EMBEDDER, LLAMA, QWEN, written_lock

from .blocks import Block, blocks, parameters
from .console_blocks import ROOT
from .test_commands_parse import GROUP

TEMPLATES = ROOT / "constructs" / "low_latency_endpoint" / "cli" / "init_templates"
MODELS = {"hugging-face": QWEN.model, "language-model": "s3://my-bucket/model/"}
TOP_KEYS = {option.key for option in options_of(Settings)}
ENDPOINT_KEYS = {option.key for option in options_of(EndpointSettings)}
CLASSIFIER = replace(
    EMBEDDER,
    model="distilbert/distilbert-base-uncased",
    task="fill-mask",
    license="apache-2.0",
    config={"architectures": ["DistilBertForMaskedLM"], "model_type": "distilbert"},
)


# ------------------------------------------------------------------------------------------ kinds


def kind_of(document: Any) -> str:
    """What a block is, by its top-level keys; empty if nothing here knows it."""
    keys = set(document) if isinstance(document, dict) else set()
    if keys and (keys <= TOP_KEYS or keys <= ENDPOINT_KEYS):
        return "settings"
    if "jobs" in keys:
        return "workflow"
    if {"apiVersion", "kind"} <= keys or keys == {"env"}:
        return "Kubernetes"
    return "CloudFormation" if "Resources" in keys else ""


KINDS = {str(block): kind_of(yaml.safe_load(block.text)) for block in blocks("yaml", "yml")}
SETTINGS = [each for each in parameters("yaml", "yml") if KINDS[each.id] == "settings"]  # type: ignore[attr-defined]
OTHERS = [each for each in parameters("yaml", "yml") if KINDS[each.id] != "settings"]  # type: ignore[attr-defined]


def test_each_block_is_of_a_known_kind() -> None:
    assert len(KINDS) > 25
    assert [name for name, kind in KINDS.items() if not kind] == []


# --------------------------------------------------------------------------------------- settings


def bases() -> list[dict[str, Any]]:
    """Files that ship, to which a block may belong; the first is of nothing else than the block."""
    shipped = [
        yaml.safe_load(path.read_text("utf-8"))
        for path in (ROOT / "endpoint.yaml", ROOT / "examples" / "regulated.yaml")
    ]
    for template in ("language-model", "hugging-face", "inferentia2"):
        text = Template((TEMPLATES / f"{template}.yaml").read_text("utf-8"))
        data = MODELS.get(template, "s3://my-bucket/model.tar.gz")
        endpoint = yaml.safe_load(text.safe_substitute(name="chat", model_data=data))
        shipped.append({**shipped[0], **endpoint})
    return [{}, *shipped]


#: Of a group with alternatives: what the block states replaces all of the base's.
ALTERNATIVES = {"payload"}


def is_elided(value: Any) -> bool:
    return value in ("...", ["..."])


def merged(base: Any, block: Any) -> Any:
    """The base with the values of the block over its own."""
    if not isinstance(base, dict) or not isinstance(block, dict):
        return block
    values = dict(base)
    for key, value in block.items():
        if not is_elided(value):
            replaced = {} if key in ALTERNATIVES else base.get(key, {})
            values[key] = merged(replaced, value)
    return values


def with_block(base: dict[str, Any], block: dict[str, Any]) -> dict[str, Any]:
    """The base with a block, whose endpoints take the place of the base's one."""
    if not set(block) <= TOP_KEYS:
        block = {"endpoints": {next(iter(base.get("endpoints", {"endpoint": {}}))): block}}
    names = list(block.get("endpoints", base.get("endpoints", {})))
    endpoints: dict[str, Any] = {}
    for name in names:
        endpoint = deepcopy(next(iter(base.get("endpoints", {"": {}}).values())))
        if endpoint:
            endpoint["endpoint_name"] = name
        block_of_one = block.get("endpoints", {}).get(name, {})
        # What the block states instead of something is in its place.
        if "containers" in block_of_one:
            endpoint.pop("hugging_face", None)
        if "hugging_face" in block_of_one:
            endpoint.pop("containers", None)
        endpoints[name] = merged(endpoint, block_of_one)
    return {**merged(base, block), "endpoints": endpoints}


def write_named_files(folder: Path, value: Any) -> None:
    """The files that a block names: payloads and prices."""
    if isinstance(value, dict):
        for item in value.values():
            write_named_files(folder, item)
    elif isinstance(value, list):
        for item in value:
            write_named_files(folder, item)
    elif isinstance(value, str) and re.fullmatch(r"[\w-]+\.(json|jsonl)", value):
        (folder / value).write_text('{"inputs": "I like you."}\n', "utf-8")
    elif isinstance(value, str) and re.fullmatch(r"[\w-]+\.csv", value):
        price = ListedPrice(
            item="ml.m5.12xlarge", region="us-east-1", usd=2.0, unit="instance-hour",
            published="2026-09-20", version="1", read="2026-11-23", source="https://example.com/",
        )  # fmt: skip
        (folder / value).write_text(price_file_text([price]), "utf-8")


def refusal(values: dict[str, Any], folder: Path, patch: pytest.MonkeyPatch, capsys: Any) -> str:
    """What `low-latency plan` has against a file; empty where it plans."""
    (folder / "endpoint.yaml").write_text(yaml.safe_dump(values, sort_keys=False), "utf-8")
    patch.chdir(folder)
    patch.setattr(sys, "argv", ["low-latency", "plan"])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return str(err + out) if ended.value.code else ""


@pytest.mark.parametrize("block", SETTINGS)
def test_settings_are_planned(
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stated = yaml.safe_load(block.text)
    write_named_files(tmp_path, stated)
    written_lock(tmp_path, QWEN, LLAMA, EMBEDDER, CLASSIFIER)
    refusals = []
    for base in bases():
        said = refusal(with_block(base, stated), tmp_path, monkeypatch, capsys)
        if not said:
            return
        refusals.append(said)
    pytest.fail(min(refusals, key=len))


def test_a_payload_without_its_content_type_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it stood on the page of compare-routing."""
    block = {"warm_up": {"payload": {"file": "body.json"}}}
    write_named_files(tmp_path, block)
    for base in bases()[1:]:
        assert "LLE928" in refusal(with_block(base, block), tmp_path, monkeypatch, capsys)


# ------------------------------------------------------------------------------------------ others


def commands_of(script: str) -> list[list[str]]:
    """The commands of ours in a script of a workflow."""
    lines = re.sub(r"\\\n\s*", " ", script).splitlines()
    words = [shlex.split(line.partition(">>")[0]) for line in lines if "low-latency" in line]
    return [line[1:] for line in words if line[0] == "low-latency"]


def check_workflow(document: dict[str, Any]) -> None:
    """Its actions are pinned, ours has the inputs, and commands have the options."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    for job in document["jobs"].values():
        assert job["runs-on"]
        assert job["steps"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            if "run" in step:
                for name, *arguments in commands_of(step["run"]):
                    with GROUP.commands[name].make_context(name, arguments):
                        pass
                continue
            name, _, revision = step["uses"].partition("@")
            if name == "OWNER/low-latency-endpoint":  # this repository, wherever it is
                assert set(step.get("with", {})) <= set(action["inputs"]), step
            else:
                assert re.fullmatch(r"[0-9a-f]{40}", revision), step


def check_kubernetes(document: dict[str, Any]) -> None:
    """The clients read each variable, from what the kubelet gives to a container."""
    sources = (ROOT / "client" / "src").rglob("*.py")
    code = "".join(path.read_text("utf-8") for path in sources)
    for variable in document.get("env", []):
        assert variable["name"] in code
        path = variable["valueFrom"]["fieldRef"]["fieldPath"]
        # https://kubernetes.io/docs/concepts/workloads/pods/downward-api
        assert re.fullmatch(r"metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])", path)


def check_template(document: dict[str, Any]) -> None:
    for resource in document["Resources"].values():
        assert re.fullmatch(r"\w+::\w+::\w+", resource["Type"])


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "workflow": check_workflow,
    "Kubernetes": check_kubernetes,
    "CloudFormation": check_template,
}


@pytest.mark.parametrize("block", OTHERS)
def test_other_documents_are_checked_as_what_they_are(block: Block) -> None:
    document = yaml.safe_load(block.text)
    CHECKS[kind_of(document)](document)
