"""Lock files of somebody whom nobody knows: bounded, and never a traceback."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from low_latency_endpoint.errors import ConfigurationError, LowLatencyEndpointError
from low_latency_endpoint.hugging_face.lock_file import lock_text, read_lock, write_lock
from low_latency_endpoint.options.yaml_source import MOST_BYTES
from low_latency_endpoint.plan.pinned_model import PinnedFile, digest_of
from low_latency_endpoint.settings import load_settings, plan_endpoint
from tests.pinned_models import QWEN

GOOD = lock_text([QWEN])
BOMB = "x0: &x0 [a,a,a,a,a,a,a,a,a,a]\n" + "".join(
    f"x{level}: &x{level} [{','.join([f'*x{level - 1}'] * 10)}]\n" for level in range(1, 9)
)
NO_LOCK_FILES = {
    "aliases of aliases": BOMB + GOOD.replace("head_dim: 128", "head_dim: *x8"),
    "large": "#" * (MOST_BYTES + 1),
    "many values": f"[{'a,' * 60_000}]",
    "deep": "[" * 60_000,
    "deep blocks": "- " * 60_000,
    "a date that is none": "a: 2026-13-45",
    "an offset that is none": "a: 2001-01-01T00:00:00+99:99",
    "a number of many digits": f"a: {'9' * 5000}",
    "a number without digits": "a: 0b_",
    "a tag": "a: !!timestamp x",
    "Python": "a: !!python/object/apply:os.system [id]",
    "a list as a key": "? [a]\n: b",
    "no value": "a: =",
    "no text": "\0",
    "a list": "[]",
    "empty": "",
}


@pytest.mark.parametrize("name", NO_LOCK_FILES)
def test_what_is_no_lock_file_is_said_at_once(name: str, tmp_path: Path) -> None:
    path = tmp_path / "models.lock.yaml"
    path.write_text(NO_LOCK_FILES[name], encoding="utf-8")
    began = time.process_time()
    with pytest.raises(ConfigurationError, match="LLE343"):
        read_lock(path)
    took = time.process_time() - began
    assert took < 6 * seconds_of_many_values()  # aliases of aliases took ten times as long


@cache
def seconds_of_many_values() -> float:
    """Processor seconds to read a third of the values that are read at most, on this machine."""
    began = time.process_time()
    YAML(typ="safe", pure=True).compose(f"[{'a,' * 20_000}]")
    return time.process_time() - began


def test_no_file_is_written_that_is_too_large_to_be_read(tmp_path: Path) -> None:
    files = tuple(PinnedFile(f"{number:064}", 1, "0" * 64) for number in range(6000))
    models = [QWEN.__class__(model="a/b", revision="main", commit="7" * 40, files=files)]
    with pytest.raises(ConfigurationError, match="LLE343"):
        write_lock(tmp_path / "models.lock.yaml", models)
    assert not list(tmp_path.iterdir())


SETTINGS = """\
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  q:
    hugging_face: {model: Qwen/Qwen3-8B}
    instance_type: ml.g6.2xlarge
    latency: {ttft_p95: 1s}
    tokens: {input: 512, output: 128}
"""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.data())
def test_a_value_of_any_kind_with_a_right_digest_is_no_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A digest is plain SHA-256, which whoever changes the file can calculate."""
    folder = tmp_path_factory.mktemp("lock")
    contents: dict[str, Any] = yaml.safe_load(GOOD)["models"][QWEN.model]
    del contents["digest"]
    group = data.draw(
        st.sampled_from([contents, contents["config"], contents["files"]["config.json"]])
    )
    group[data.draw(st.sampled_from(sorted(group)))] = data.draw(VALUES)
    contents["digest"] = digest_of(QWEN.model, contents)
    document = {"version": 1, "models": {QWEN.model: contents}}
    (folder / "models.lock.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    (folder / "endpoint.yaml").write_text(SETTINGS, encoding="utf-8")
    try:
        settings = load_settings(folder / "endpoint.yaml")
        plan_endpoint(settings, "q")
    except LowLatencyEndpointError:
        pass
