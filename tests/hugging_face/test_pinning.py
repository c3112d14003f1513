"""``low-latency pin`` against a Hub on loopback: what it writes, refuses, compares, and never says."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.hugging_face.hub_reading import HubReader
from low_latency_endpoint.hugging_face.lock_file import pinned_model, read_lock
from low_latency_endpoint.hugging_face.pinning import choose_files, pin
from tests.hub_of_files import FakeHub, FakeModel

pytest.importorskip("huggingface_hub")
TOKEN, STRANGER = "hf_SECRETtoken", "hf_SECRETstranger"
TINY = "acme/tiny"
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-05,
}
SHARDS = [f"model-{number:05}-of-00002.safetensors" for number in (1, 2)]
#: A model of two shards, as transformers writes it.
FILES = {
    ".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
    "README.md": b"# A tiny llama\n",
    "config.json": json.dumps(CONFIG).encode(),
    "generation_config.json": b'{"bos_token_id": 1}',
    "tokenizer_config.json": b'{"tokenizer_class": "PreTrainedTokenizerFast"}',
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {"model.embed_tokens.weight": SHARDS[0], "lm_head.weight": SHARDS[1]}}
    ).encode(),
    **{shard: b"weights of " + shard.encode() for shard in SHARDS},
}


def with_auto_map(reference: Any) -> dict[str, bytes]:
    return FILES | {"config.json": json.dumps(CONFIG | {"auto_map": reference}).encode()}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A Hub that the environment names, a folder to be in, and nobody's token."""
    tiny: dict[str, Any] = {
        "card": {"license": "apache-2.0"},
        "pipeline_tag": "text-generation",
        "parameters": {"BF16": 107_000},
    }
    models = {
        TINY: FakeModel(files=FILES, branches={"v1": FILES | {"a.txt": b"1"}}, **tiny),
        "acme/gated": FakeModel(
            files=FILES,
            gated="manual",
            tokens=(TOKEN,),
            card={"license": "other", "license_name": "acme-license"},
        ),
        "acme/private": FakeModel(files=FILES, private=True, tokens=(TOKEN,)),
        "acme/pickle": FakeModel(files={"config.json": b"{}", "pytorch_model.bin": b"\x80"}),
        "acme/foreign": FakeModel(files=with_auto_map({"AutoModel": "other/code--modeling.Model"})),
        "acme/own": FakeModel(
            files=with_auto_map({"AutoModel": "modeling.Model"}) | {"modeling.py": b"pass\n"}
        ),
        "acme/cut": FakeModel(
            files={path: content for path, content in FILES.items() if "00002-of" not in path}
        ),
        "acme/page": FakeModel(files=FILES | {"config.json": b"<html>"}),
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    # Where hf auth login would have left one, read when the library was imported.
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    with FakeHub(models, tokens=[STRANGER], renamed={"old/tiny": TINY}) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        yield running


class Ran:
    def __init__(self, *arguments: str) -> None:
        result = CliRunner().invoke(app, ["pin", *arguments], env={"COLUMNS": "80"})
        self.code, self.text, self.error = result.exit_code, result.output, result.exception
        # As main() prints it.
        self.said = self.text + (str(self.error) if self.error else "")
        self.trace = "".join(traceback.format_exception(self.error)) if self.error else ""


def refused(*arguments: str) -> ConfigurationError:
    ran = Ran(*arguments)
    assert isinstance(ran.error, ConfigurationError), ran.said + ran.trace
    return ran.error


LOCK = Path("models.lock.yaml")


# ------------------------------------------------------------------------------------ what it pins


def test_each_served_file_is_pinned_by_its_size_and_sha256(hub: FakeHub) -> None:
    ran = Ran(TINY)
    assert ran.code == 0, ran.said + ran.trace
    pinned = pinned_model(LOCK, TINY)
    assert pinned.commit == hub.repositories[TINY].branches["main"]
    served = {path for path in FILES if path not in ("README.md", ".gitattributes")}
    assert {each.path: (each.size, each.sha256) for each in pinned.files} == {
        path: (len(FILES[path]), hashlib.sha256(FILES[path]).hexdigest()) for path in served
    }
    assert pinned.left_out == (".gitattributes", "README.md")
    assert (pinned.task, pinned.license, pinned.gated) == ("text-generation", "apache-2.0", False)
    assert pinned.parameters == {"BF16": 107_000}
    assert pinned.config["num_key_value_heads"] == 2
    assert "rms_norm_eps" not in pinned.config


def test_no_weights_are_downloaded(hub: FakeHub) -> None:
    assert Ran(TINY).code == 0
    assert hub.seen("cdn") == []
    assert hub.seen("hub", "/resolve/") != []


def test_pinning_again_writes_the_same_bytes_and_says_so(hub: FakeHub) -> None:
    Ran(TINY)
    before, written = LOCK.read_bytes(), LOCK.stat().st_mtime_ns
    ran = Ran(TINY)
    assert (LOCK.read_bytes(), LOCK.stat().st_mtime_ns) == (before, written)
    assert "nothing changed" in ran.text


def test_other_models_and_the_revision_stay(hub: FakeHub) -> None:
    Ran(TINY, "--revision", "v1")
    Ran("acme/own")
    Ran(TINY)
    there = read_lock(LOCK)
    assert list(there) == ["acme/own", TINY]
    assert (there[TINY].revision, there[TINY].commit) == (
        "v1",
        hub.repositories[TINY].branches["v1"],
    )
    Ran(TINY, "--revision", "main")
    assert pinned_model(LOCK, TINY).revision == "main"


def test_code_of_its_own_is_pinned_and_said(hub: FakeHub) -> None:
    ran = Ran("acme/own")
    assert "modeling.py" in [each.path for each in pinned_model(LOCK, "acme/own").files]
    assert "Its own code is served with it: modeling.py" in ran.text


def test_the_licence_is_said_with_what_settings_must_do(hub: FakeHub, token: None) -> None:
    assert "apache-2.0. Settings need not accept it" in Ran(TINY).text
    ran = " ".join(Ran("acme/gated").text.split())
    assert "acme-license. The model is gated. Settings have to accept it" in ran
    assert pinned_model(LOCK, "acme/gated").license == "acme-license"


def test_a_table_has_eighty_columns(hub: FakeHub) -> None:
    text = Ran(TINY).text
    assert "weights" in text
    assert "README.md" in text
    assert max(len(line) for line in text.splitlines() if "Next:" not in line) <= 80


def test_a_renamed_model_keeps_the_name_it_was_asked_by(hub: FakeHub) -> None:
    ran = Ran("old/tiny")
    assert "acme/tiny now" in " ".join(ran.text.split())
    assert list(read_lock(LOCK)) == ["old/tiny"]


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)


# ------------------------------------------------------------------------------------ file choice

ROOT = ("config.json", "model.safetensors")


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "requirements.txt",
        "sub/requirements.txt",
        ".gitattributes",
        "original/consolidated.00.pth",
        "original/params.json",
        "onnx/model.onnx",
        "openvino/openvino_model.xml",
        "tf_model.h5",
        "flax_model.msgpack",
        "consolidated.safetensors",
        "pytorch_model.bin",
        "model-Q4_K_M.gguf",
        "picture.png",
        "training_args.bin",
        "checkpoint-500/model.safetensors",
    ],
)
def test_what_serving_does_not_need_is_left_out(path: str) -> None:
    choice = choose_files([*ROOT, path])
    assert choice.kept == ROOT
    assert list(choice.left_out) == [path]


@pytest.mark.parametrize(
    "path",
    [
        "tokenizer.model",
        "merges.txt",
        "vocab.json",
        "chat_template.jinja",
        "qwen.tiktoken",
        "modeling.py",
        "1_Pooling/config.json",
        "2_Dense/model.safetensors",
    ],
)
def test_what_serving_needs_is_kept(path: str) -> None:
    assert path in choose_files([*ROOT, path]).kept


def test_weights_that_the_index_does_not_name_are_the_same_once_more() -> None:
    paths = ["model-1.safetensors", "model.fp16.safetensors", "model.safetensors.index.json"]
    assert list(choose_files(paths, shards=["model-1.safetensors"]).left_out) == [
        "model.fp16.safetensors"
    ]


def test_of_several_gguf_files_one_is_chosen() -> None:
    paths = ["config.json", "m-Q4-00001-of-00002.gguf", "m-Q4-00002-of-00002.gguf", "m-Q8.gguf"]
    with pytest.raises(ConfigurationError, match="LLE319"):
        choose_files(paths)
    assert choose_files(paths, include=["*Q4*"]).kept == tuple(paths[:3])
    assert choose_files(paths, exclude=["*Q4*"]).kept == ("config.json", "m-Q8.gguf")


def test_pickle_that_nothing_replaces_is_refused_or_allowed_in_its_folder() -> None:
    paths = [*ROOT, "2_Dense/pytorch_model.bin", "pytorch_model.bin"]
    with pytest.raises(ConfigurationError, match=r"(?s)LLE350.*2_Dense"):
        choose_files(paths)
    kept = choose_files(paths, allow_pickle=True).kept
    assert "2_Dense/pytorch_model.bin" in kept
    assert "pytorch_model.bin" not in kept


# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("acme/none",), "LLE347", "acme/none"),
        (("acme/private",), "LLE347", "acme/private"),
        (("no such name",), "LLE347", "no such name"),
        ((TINY, "--revision", "none"), "LLE348", "none"),
        (("acme/gated",), "LLE349", "no token"),
        (("acme/pickle",), "LLE350", "pytorch_model.bin"),
        (("acme/foreign",), "LLE351", "other/code"),
        (("acme/cut",), "LLE320", "model-00002-of-00002.safetensors"),
        (("acme/page",), "LLE320", "config.json"),
    ],
)
def test_what_cannot_be_pinned_is_refused_and_nothing_is_written(
    hub: FakeHub, arguments: tuple[str, ...], code: str, said: str
) -> None:
    error = refused(*arguments)
    assert error.code == code
    assert said in str(error)
    assert not LOCK.exists()


def test_one_of_two_that_cannot_be_pinned_writes_nothing(hub: FakeHub) -> None:
    assert refused(TINY, "acme/none").code == "LLE347"
    assert not LOCK.exists()


def test_pickle_can_be_allowed_and_is_said(hub: FakeHub) -> None:
    ran = Ran("acme/pickle", "--allow-pickle")
    assert ran.code == 0
    assert "run code when they are loaded" in " ".join(ran.text.split())
    assert [each.is_pickle for each in pinned_model(LOCK, "acme/pickle").files] == [False, True]


@pytest.mark.parametrize("token", [STRANGER, "hf_SECRETnobody"])
def test_a_token_without_access_is_said_and_not_shown(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    ran = Ran("acme/gated")
    assert isinstance(ran.error, ConfigurationError)
    assert ran.error.code == ("LLE349" if token == STRANGER else "LLE347")
    assert "SECRET" not in ran.said + ran.trace
    # Not even behind it, where a debugger or a log of exceptions would look.
    assert ran.error.__cause__ is None
    assert ran.error.__context__ is None


def test_a_token_is_sent_to_the_hub_alone(hub: FakeHub, token: None) -> None:
    # A configuration large enough to be in Git LFS comes from the CDN.
    large = json.dumps(CONFIG | {"note": "x" * 10_000_001}).encode()
    hub.commit("acme/gated", FILES | {"config.json": large})
    ran = Ran("acme/gated")
    assert ran.code == 0, ran.trace
    assert all(each.with_token for each in hub.seen("hub"))
    assert [each.with_token for each in hub.seen("cdn")] == [False]
    assert "SECRET" not in ran.said
    assert "SECRET" not in LOCK.read_text()


@pytest.mark.parametrize(
    "endpoint", ["http://hub.example.com", "ftp://x", "https://me:SECRET@hub.example.com", "hub"]
)
def test_the_hub_is_asked_over_tls(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    error = refused(TINY)
    assert error.code == "LLE359"
    assert "SECRET" not in str(error)


# ------------------------------------------------------------------------- a Hub that does not answer


def waiting() -> tuple[list[float], Callable[[], HubReader]]:
    slept: list[float] = []
    return slept, lambda: HubReader(sleep=slept.append)


def test_over_the_rate_limit_it_waits_as_long_as_the_hub_says(hub: FakeHub) -> None:
    slept, reading = waiting()
    hub.rate_limit(1, seconds=55)
    assert pin(reading(), TINY).pinned.model == TINY
    assert slept == [56]


def test_it_waits_for_no_more_than_a_window(hub: FakeHub) -> None:
    slept, reading = waiting()
    hub.rate_limit(10, seconds=200)
    with pytest.raises(ConfigurationError, match=r"(?s)LLE358.*429"):
        pin(reading(), TINY)
    assert slept == [201]


@pytest.mark.parametrize(("status", "said"), [(503, "HTTP 503"), (0, "RemoteProtocolError")])
def test_a_hub_that_is_down_is_asked_again_and_then_said(
    hub: FakeHub, status: int, said: str
) -> None:
    slept, reading = waiting()
    hub.down(status)
    with pytest.raises(ConfigurationError, match=rf"(?s)LLE358.*{said}"):
        pin(reading(), TINY)
    assert slept == [1, 2, 4]


def test_a_cut_connection_is_asked_again(hub: FakeHub) -> None:
    _, reading = waiting()
    hub.cut("config.json", 10)
    assert pin(reading(), TINY).pinned.config["model_type"] == "llama"
    hub.cut("config.json", 10, times=99)
    with pytest.raises(ConfigurationError, match="LLE358"):
        pin(reading(), TINY)


def test_small_files_are_held_against_the_hubs_own_hash(hub: FakeHub) -> None:
    hub.tamper("config.json")
    with pytest.raises(ConfigurationError, match=r"(?s)LLE358.*config\.json"):
        pin(HubReader(), TINY)


# ------------------------------------------------------------------------------------ the lock file


def edit(name: str) -> None:
    """Another commit in one model's part."""
    head, found, rest = LOCK.read_text().partition(f"  {name}:\n")
    assert found
    commit = rest.partition("commit: ")[2].partition("\n")[0].strip("'\"")
    LOCK.write_text(head + found + rest.replace(commit, "0" * 40, 1))


def test_an_edited_model_is_refused_unless_it_is_pinned_again(hub: FakeHub) -> None:
    Ran(TINY, "acme/own")
    good = LOCK.read_bytes()
    edit(TINY)
    edited = LOCK.read_bytes()
    assert refused("acme/own").code == "LLE345"
    assert LOCK.read_bytes() == edited
    assert Ran(TINY).code == 0
    assert LOCK.read_bytes() == good


def test_a_lock_file_that_is_none_is_not_overwritten(hub: FakeHub) -> None:
    LOCK.write_text("<<<<<<< ours\n")
    assert refused(TINY).code == "LLE343"
    assert LOCK.read_text() == "<<<<<<< ours\n"


def test_a_write_that_fails_leaves_what_was_there_and_nothing_beside(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ran(TINY)
    before = LOCK.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert isinstance(Ran("acme/own").error, OSError)
    assert LOCK.read_bytes() == before
    assert [each.name for each in Path().iterdir() if each.is_file()] == [LOCK.name]


def test_a_lock_files_rights_and_links_stay(hub: FakeHub) -> None:
    Path("real.yaml").write_text("version: 1\nmodels: {}\n")
    Path("real.yaml").chmod(0o640)
    LOCK.symlink_to("real.yaml")
    assert Ran(TINY).code == 0
    assert LOCK.is_symlink()
    assert stat.S_IMODE(Path("real.yaml").stat().st_mode) == 0o640
    assert list(read_lock("real.yaml")) == [TINY]


# -------------------------------------------------------------------------------------------- check


def checked(*arguments: str) -> Ran:
    before = LOCK.read_bytes()
    ran = Ran("--check", *arguments)
    assert LOCK.read_bytes() == before
    return ran


def test_a_lock_file_that_is_the_same_as_the_hub(hub: FakeHub) -> None:
    Ran(TINY, "acme/own")
    ran = checked()
    assert (ran.code, ran.text) == (0, f"acme/own: as pinned\n{TINY}: as pinned\n")
    assert checked(TINY).text == f"{TINY}: as pinned\n"


def test_a_revision_that_moved_is_said(hub: FakeHub) -> None:
    Ran(TINY)
    old = hub.repositories[TINY].branches["main"]
    new = hub.commit(TINY, FILES)
    ran = checked()
    assert (ran.code, ran.text) == (1, f"{TINY}: main moved from {old[:12]} to {new[:12]}\n")


def test_files_that_are_gone_or_have_other_bytes_are_said(hub: FakeHub) -> None:
    Ran(TINY)
    repository = hub.repositories[TINY]
    files = repository.commits[repository.branches["main"]]
    del files["generation_config.json"]
    files["tokenizer_config.json"] = files["tokenizer_config.json"].replace(b"Fast", b"Slow")
    shard = "model-00001-of-00002.safetensors"
    files[shard] = files[shard][:-1] + b"\0"
    ran = checked()
    assert ran.code == 1
    assert [
        line.split(": ")[1].split(" at ")[0].split(" from ")[0] for line in ran.text.splitlines()
    ] == [
        "generation_config.json is gone",
        f"{shard} has other bytes",
        "tokenizer_config.json has other bytes",
    ]


def test_a_commit_that_is_gone_is_said(hub: FakeHub) -> None:
    Ran(TINY)
    repository = hub.repositories[TINY]
    old = repository.branches["main"]
    hub.commit(TINY, FILES)
    del repository.commits[old]
    ran = checked()
    assert ran.code == 1
    assert f"the commit {old[:12]} is gone" in ran.text


def test_a_model_that_is_not_in_the_lock_cannot_be_compared(hub: FakeHub) -> None:
    Ran(TINY)
    assert refused("--check", "acme/own").code == "LLE344"


@pytest.mark.parametrize(
    "arguments", [(), ("--check", TINY, "--revision", "v1"), (TINY, "acme/own", "--revision", "v1")]
)
def test_what_makes_no_sense_is_a_usage_error(hub: FakeHub, arguments: tuple[str, ...]) -> None:
    assert Ran(*arguments).code == 2
    assert hub.requests == []
