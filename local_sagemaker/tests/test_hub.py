"""The fake Hub behaves as huggingface_hub and plain HTTP clients know the Hub."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import signal
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from local_sagemaker.hub import FakeHub, FakeModel, git_blob_id, tiny_gguf, tiny_safetensors

TOKEN, STRANGER = "hf_granted", "hf_of_somebody_else"
WEIGHTS = bytes(range(256)) * 40
CONFIG = json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}).encode()
FILES = {"config.json": CONFIG, "model.safetensors": WEIGHTS, "sub/notes.txt": b"x" * 300}


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """A Hub with a public, a gated and a private model."""
    models = {
        "acme/tiny": FakeModel(
            files=FILES,
            history=({"config.json": b"{}"},),
            branches={"refs/pr/1": {"config.json": b'{"pr": 1}'}},
            card={"license": "mit"},
            pipeline_tag="text-generation",
            library_name="transformers",
        ),
        "acme/gated": FakeModel(files=FILES, gated="manual", tokens=(TOKEN,)),
        "acme/private": FakeModel(files=FILES, private=True, tokens=(TOKEN,)),
    }
    with FakeHub(models, tokens=[STRANGER], renamed={"old/tiny": "acme/tiny"}) as running:
        yield running


class Answer:
    """An answer, not followed anywhere."""

    def __init__(
        self, url: str, method: str = "GET", *, token: str | None = None, **headers: str
    ) -> None:
        to = urlsplit(url)
        connection = http.client.HTTPConnection(to.hostname or "", to.port, timeout=30)
        stated = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            stated["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, f"{to.path}?{to.query}".rstrip("?"), headers=stated)
            answer = connection.getresponse()
            self.status, self.headers = answer.status, answer.headers
            self.body = answer.read()
        finally:
            connection.close()


def commit_of(hub: FakeHub, model: str, branch: str = "main") -> str:
    return hub.repositories[model].branches[branch]


def resolved(hub: FakeHub, path: str, model: str = "acme/tiny") -> str:
    return f"{hub.endpoint}/{model}/resolve/{commit_of(hub, model)}/{path}"


def signed(hub: FakeHub, path: str = "model.safetensors") -> str:
    return cast(str, Answer(resolved(hub, path)).headers["Location"])


# ------------------------------------------------------------------------------------------- API


def test_the_api_says_size_and_hash_of_each_file(hub: FakeHub) -> None:
    said = json.loads(Answer(f"{hub.endpoint}/api/models/acme/tiny?blobs=true").body)
    assert said["sha"] == commit_of(hub, "acme/tiny")
    assert (said["gated"], said["private"], said["cardData"]) == (False, False, {"license": "mit"})
    assert (said["pipeline_tag"], said["library_name"]) == ("text-generation", "transformers")
    assert said["config"] == {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    siblings = {each["rfilename"]: each for each in said["siblings"]}
    # What `git hash-object` prints.
    git = hashlib.sha1(b"blob %d\0" % len(CONFIG) + CONFIG).hexdigest()
    assert siblings["config.json"] == {
        "rfilename": "config.json",
        "size": len(CONFIG),
        "blobId": git,
    }
    lfs = siblings["model.safetensors"]["lfs"]
    assert (lfs["sha256"], lfs["size"]) == (hashlib.sha256(WEIGHTS).hexdigest(), len(WEIGHTS))


def test_without_blobs_there_are_names_only(hub: FakeHub) -> None:
    said = json.loads(Answer(f"{hub.endpoint}/api/models/acme/tiny").body)
    assert {"rfilename": "config.json"} in said["siblings"]


def test_a_revision_is_a_branch_or_a_commit(hub: FakeHub) -> None:
    # huggingface_hub quotes the slashes too.
    said = json.loads(Answer(f"{hub.endpoint}/api/models/acme/tiny/revision/refs%2Fpr%2F1").body)
    assert said["sha"] == commit_of(hub, "acme/tiny", "refs/pr/1")
    by_commit = Answer(f"{hub.endpoint}/api/models/acme/tiny/revision/{said['sha']}")
    assert json.loads(by_commit.body)["sha"] == said["sha"]
    main = hub.commit("acme/tiny", {"config.json": b"[]"})
    assert json.loads(Answer(f"{hub.endpoint}/api/models/acme/tiny").body)["sha"] == main


@pytest.mark.parametrize(
    ("path", "token", "status", "code"),
    [
        ("/api/models/acme/none", None, 401, None),
        ("/api/models/acme/none", TOKEN, 404, "RepoNotFound"),
        ("/api/models/acme/private", None, 401, None),
        ("/api/models/acme/private", STRANGER, 404, "RepoNotFound"),
        ("/api/models/acme/private", TOKEN, 200, None),
        ("/api/models/acme/tiny/revision/none", None, 404, "RevisionNotFound"),
        ("/acme/tiny/resolve/main/none.json", None, 404, "EntryNotFound"),
        ("/api/models/acme/gated?blobs=true", None, 200, None),
        ("/acme/gated/resolve/main/config.json", None, 401, "GatedRepo"),
        ("/acme/gated/resolve/main/config.json", STRANGER, 403, "GatedRepo"),
        ("/acme/gated/resolve/main/config.json", TOKEN, 307, None),
        ("/api/models/acme/gated/auth-check", None, 401, "GatedRepo"),
        ("/api/models/acme/gated/auth-check", TOKEN, 200, None),
        ("/api/models/acme/tiny", "hf_nobodys", 401, None),
        ("/elsewhere", None, 404, None),
    ],
)
def test_what_one_may_not_see_has_the_hubs_status_and_code(
    hub: FakeHub, path: str, token: str | None, status: int, code: str | None
) -> None:
    answer = Answer(hub.endpoint + path, token=token)
    assert (answer.status, answer.headers["X-Error-Code"]) == (status, code)


def test_a_model_that_was_renamed_redirects(hub: FakeHub) -> None:
    answer = Answer(f"{hub.endpoint}/api/models/old/tiny?blobs=true")
    assert (answer.status, answer.headers["Location"]) == (307, "/api/models/acme/tiny?blobs=true")


# ----------------------------------------------------------------------------------------- files


def test_a_large_file_comes_from_another_origin(hub: FakeHub) -> None:
    for method in ("GET", "HEAD"):
        answer = Answer(resolved(hub, "model.safetensors"), method)
        assert answer.status == 302
        assert answer.headers["Location"].startswith(hub.cdn + "/")
        assert answer.headers["X-Repo-Commit"] == commit_of(hub, "acme/tiny")
        assert answer.headers["X-Linked-Size"] == str(len(WEIGHTS))
        assert answer.headers["X-Linked-ETag"] == f'"{hashlib.sha256(WEIGHTS).hexdigest()}"'
    assert hub.cdn != hub.endpoint
    assert Answer(answer.headers["Location"]).body == WEIGHTS


def test_the_cdn_refuses_a_token_and_says_that_one_came(hub: FakeHub) -> None:
    assert Answer(signed(hub), token=TOKEN).status == 400
    assert [each.with_token for each in hub.seen("cdn")] == [True]


def test_the_cdn_refuses_urls_that_are_not_signed_or_expired(hub: FakeHub) -> None:
    url = signed(hub)
    assert Answer(url.replace("Signature=", "Signature=0")).status == 403
    assert Answer(re.sub(r"Expires=\d+", "Expires=99999999999", url)).status == 403
    assert Answer(url, "HEAD").status == 403  # it was signed for GET
    assert Answer(url).status == 200
    hub.expire_urls()
    assert Answer(url).status == 403
    assert Answer(signed(hub)).status == 200
    sha256 = hashlib.sha256(WEIGHTS).hexdigest()
    assert Answer(hub.signed(sha256, "model.safetensors", seconds=-1)).status == 403


@pytest.mark.parametrize(
    ("asked", "status", "body", "said"),
    [
        ("bytes=100-199", 206, WEIGHTS[100:200], f"bytes 100-199/{len(WEIGHTS)}"),
        ("bytes=10000-", 206, WEIGHTS[10000:], f"bytes 10000-10239/{len(WEIGHTS)}"),
        ("bytes=10000-99999", 206, WEIGHTS[10000:], f"bytes 10000-10239/{len(WEIGHTS)}"),
        ("bytes=10240-", 416, b"", "bytes */10240"),
    ],
)
def test_the_cdn_gives_ranges(
    hub: FakeHub, asked: str, status: int, body: bytes, said: str
) -> None:
    answer = Answer(signed(hub), Range=asked)
    assert (answer.status, answer.body, answer.headers["Content-Range"]) == (status, body, said)
    assert hub.seen("cdn")[-1].range == asked


def test_a_small_file_comes_from_the_hub_by_a_relative_redirect(hub: FakeHub) -> None:
    answer = Answer(resolved(hub, "sub/notes.txt"))
    assert (answer.status, answer.headers["X-Repo-Commit"]) == (307, commit_of(hub, "acme/tiny"))
    location = answer.headers["Location"]
    assert location.startswith("/api/resolve-cache/models/acme/tiny/")
    plain = Answer(hub.endpoint + location, Accept_Encoding="identity")
    assert (plain.body, plain.headers["Content-Length"]) == (b"x" * 300, "300")
    assert plain.headers["ETag"] == f'"{git_blob_id(b"x" * 300)}"'
    packed = Answer(hub.endpoint + location, Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Content-Length"] is None
    assert packed.body[:2] == b"\x1f\x8b"
    assert not hub.seen("cdn")


def test_huggingface_hub_downloads_all_of_it(hub: FakeHub, tmp_path: Path) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    api = huggingface_hub.HfApi(endpoint=hub.endpoint, token=TOKEN)
    folder = Path(api.snapshot_download("acme/gated", cache_dir=tmp_path, max_workers=1))
    found = {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }
    assert found == FILES
    assert any(each.with_token for each in hub.seen("hub"))
    assert not any(each.with_token for each in hub.seen("cdn"))


def test_huggingface_hub_raises_the_errors_that_it_has_for_them(hub: FakeHub) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    errors = huggingface_hub.errors
    granted = huggingface_hub.HfApi(endpoint=hub.endpoint, token=TOKEN)
    nobody = huggingface_hub.HfApi(endpoint=hub.endpoint, token=False)
    with pytest.raises(errors.RepositoryNotFoundError):
        granted.model_info("acme/none")
    with pytest.raises(errors.RevisionNotFoundError):
        granted.model_info("acme/tiny", revision="none")
    with pytest.raises(errors.GatedRepoError):
        nobody.auth_check("acme/gated")
    # Without a code the library knows it by a URL of https alone, which this Hub has not.
    with pytest.raises(errors.HfHubHTTPError, match="401"):
        nobody.model_info("acme/none")


# ---------------------------------------------------------------------------------------- faults


def test_over_the_rate_limit_the_next_requests_are_refused(hub: FakeHub) -> None:
    hub.rate_limit(2, seconds=55)
    first, second = Answer(resolved(hub, "config.json")), Answer(hub.endpoint + "/api/models/x")
    assert (first.status, first.headers["RateLimit"]) == (429, '"resolvers";r=0;t=55')
    assert (second.status, second.headers["RateLimit"]) == (429, '"api";r=0;t=55')
    assert second.headers["RateLimit-Policy"] == '"fixed window";"api";q=3000;w=300'
    third = Answer(resolved(hub, "config.json"))
    assert (third.status, third.headers["RateLimit"]) == (307, '"resolvers";r=2999;t=300')


def test_a_connection_is_cut_as_often_as_told(hub: FakeHub) -> None:
    hub.cut("model.safetensors", 1000, times=2)
    for _ in range(2):
        with pytest.raises(http.client.IncompleteRead) as cut:
            Answer(signed(hub))
        assert cut.value.partial == WEIGHTS[:1000]
    assert Answer(signed(hub)).body == WEIGHTS


@pytest.mark.parametrize("path", ["model.safetensors", "config.json"])
def test_tampered_bytes_have_the_same_length_and_the_stated_hash(hub: FakeHub, path: str) -> None:
    hub.tamper(path)
    with urllib.request.urlopen(resolved(hub, path), timeout=30) as answer:
        body = answer.read()
    assert (len(body), body == FILES[path]) == (len(FILES[path]), False)
    hub.tamper(path, False)
    with urllib.request.urlopen(resolved(hub, path), timeout=30) as answer:
        assert answer.read() == FILES[path]


def test_a_slow_file_comes_whole(hub: FakeHub) -> None:
    hub.slow("model.safetensors", 200_000)
    assert Answer(signed(hub)).body == WEIGHTS


def test_a_hub_that_is_down_answers_so_or_not_at_all(hub: FakeHub) -> None:
    url = signed(hub)
    hub.down(503)
    assert [Answer(each).status for each in (hub.endpoint + "/api/models/acme/tiny", url)] == [
        503,
        503,
    ]
    hub.down()
    for each in (hub.endpoint + "/api/models/acme/tiny", url):
        with pytest.raises(http.client.RemoteDisconnected):
            Answer(each)
    assert hub.requests[-1].status == 0
    hub.up()
    assert Answer(url).body == WEIGHTS


def test_what_came_can_be_counted(hub: FakeHub) -> None:
    Answer(resolved(hub, "config.json", "acme/gated"), "HEAD", token=TOKEN)
    Answer(signed(hub))
    assert [each.status for each in hub.seen("hub")] == [307, 302]
    (seen,) = hub.seen("hub", "acme/gated")
    assert (seen.method, seen.with_token, seen.status) == ("HEAD", True, 307)
    assert [each.status for each in hub.seen("cdn")] == [200]


def test_afterwards_nobody_answers_and_nothing_waits(hub: FakeHub) -> None:
    with FakeHub({}) as other:
        endpoint = other.endpoint
        kept = http.client.HTTPConnection("127.0.0.1", urlsplit(endpoint).port, timeout=30)
        kept.request("GET", "/")
        kept.getresponse().read()
    with pytest.raises(ConnectionRefusedError):
        Answer(endpoint)
    assert kept.sock is not None
    assert kept.sock.recv(1) == b""  # closed, though the client kept it open
    kept.close()


# ----------------------------------------------------------------------------------- tiny models


def test_the_tiny_safetensors_model_is_in_the_form_and_the_same_each_time(hub: FakeHub) -> None:
    model = tiny_safetensors()
    assert model == tiny_safetensors()
    index = json.loads(model.files["model.safetensors.index.json"])
    for shard in set(index["weight_map"].values()):
        content = model.files[shard]
        (length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8 : 8 + length])
        header.pop("__metadata__")
        ends = [tensor["data_offsets"][1] for tensor in header.values()]
        assert 8 + length + max(ends) == len(content)
        assert set(header) == {
            name for name, where in index["weight_map"].items() if where == shard
        }
    with FakeHub({"local/tiny": model}) as other:
        said = json.loads(Answer(f"{other.endpoint}/api/models/local/tiny").body)
    # By hand: embeddings and head 2 x 259 x 64; two layers of q and o 2 x 64 x 64, k and v
    # 2 x 32 x 64, feed-forward 3 x 128 x 64, norms 2 x 64; the last norm 64.
    layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64 + 2 * 64
    assert said["safetensors"]["parameters"] == {"BF16": 2 * 259 * 64 + 2 * layer + 64}


def test_llama_cpp_generates_with_the_tiny_gguf_model(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    xllamacpp = pytest.importorskip("xllamacpp")
    files = tiny_gguf().files
    assert files == tiny_gguf().files
    path = tmp_path / "tiny-llama.gguf"
    path.write_bytes(files["tiny-llama.gguf"])
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel, parameters.cpuparams.n_threads = 128, 1, 1
    asked = {"prompt": "hello", "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    server = xllamacpp.Server(parameters)
    usage = server.handle_completions(asked)["usage"]
    # "hello" is a token a byte, after the one that begins each text.
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (6, 4)


# ----------------------------------------------------------------------------------- the command


def test_the_command_serves_the_tiny_models_until_ctrl_c() -> None:
    pytest.importorskip("gguf")
    with subprocess.Popen(
        [sys.executable, "-m", "local_sagemaker", "hub"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip().removeprefix("export HF_ENDPOINT=")
        try:
            said = json.loads(Answer(f"{endpoint}/api/models/local/tiny-llama-GGUF").body)
        finally:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert {"rfilename": "tiny-llama.gguf"} in said["siblings"]
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_the_command_says_that_a_port_is_taken(hub: FakeHub) -> None:
    pytest.importorskip("gguf")
    taken = str(urlsplit(hub.endpoint).port)
    done = subprocess.run(
        [sys.executable, "-m", "local_sagemaker", "hub", "--port", taken],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert f"Port {taken} cannot be had" in done.stderr
