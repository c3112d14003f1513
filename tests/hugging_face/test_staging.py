"""The staging function's own code against S3 and a Hub that fail as they are known to."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local_sagemaker import LocalAws
from low_latency_endpoint.hugging_face.staging_function import handler as function
from low_latency_endpoint.hugging_face.staging_function import hub as hub_reading
from low_latency_endpoint.hugging_face.staging_function.addresses import (
    StagingFailed,
    hub_endpoint,
    is_local,
)
from low_latency_endpoint.hugging_face.staging_function.bucket import Bucket, Commit, File
from low_latency_endpoint.hugging_face.staging_function.hub import Hub
from tests.hub_of_files import FakeHub, FakeModel

TOKEN = "hf_granted"
PART = 5 * 1024 * 1024  # S3's smallest
LARGE = bytes(range(251)) * 50_000  # three parts
LIST = "0123456789ab"
FILES = {"config.json": b'{"model_type": "llama"}', "model.safetensors": LARGE, "empty.txt": b""}
MODEL = "acme/tiny"


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.in_process(region="us-east-1") as running:
        yield running


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    models = {
        MODEL: FakeModel(files=FILES),
        "acme/gated": FakeModel(files=FILES, gated="manual", tokens=(TOKEN,)),
    }
    with FakeHub(models, tokens=["hf_stranger"]) as running:
        yield running


class Site:
    """A bucket, and what is copied into it."""

    def __init__(self, aws: LocalAws, hub: FakeHub, name: str) -> None:
        self.s3 = aws.client("s3")
        self.hub, self.name = hub, name
        self.s3.create_bucket(Bucket=name)
        self.slept: list[float] = []
        self.bucket = Bucket(self.s3, name, part=PART, sleep=self.slept.append)

    def commit(self, model: str = MODEL) -> Commit:
        return Commit(model, self.hub.repositories[model].branches["main"], LIST)

    def copy(
        self,
        path: str = "model.safetensors",
        *,
        model: str = MODEL,
        token: str = "",
        left: Callable[[], float] = lambda: 600.0,
        endpoint: str = "",
        content: bytes | None = None,
    ) -> bool:
        reading = Hub(endpoint or self.hub.endpoint, token, left=left, sleep=self.slept.append)
        commit, file = self.commit(model), pinned(path, content)
        return self.bucket.put(
            commit, file, lambda: reading.pieces(model, commit.commit, path, file.size)
        )

    def keys(self, prefix: str = "") -> list[str]:
        found = self.s3.list_objects_v2(Bucket=self.name, Prefix=prefix).get("Contents", [])
        return [each["Key"] for each in found]

    def uploads(self) -> list[Any]:
        return list(self.s3.list_multipart_uploads(Bucket=self.name).get("Uploads", []))

    def content(self, path: str, model: str = MODEL) -> bytes:
        key = self.commit(model).prefix + path
        return bytes(self.s3.get_object(Bucket=self.name, Key=key)["Body"].read())


def pinned(path: str, content: bytes | None = None) -> File:
    body = FILES[path] if content is None else content
    return File(path, len(body), hashlib.sha256(body).hexdigest())


@pytest.fixture
def site(aws: LocalAws, hub: FakeHub, request: pytest.FixtureRequest) -> Site:
    return Site(aws, hub, "t-" + hashlib.sha256(request.node.name.encode()).hexdigest()[:20])


# ------------------------------------------------------------------------------------- one file


@pytest.mark.parametrize("path", FILES)
def test_a_file_arrives_whole_with_its_hash_and_its_commit(site, path):
    assert site.copy(path)
    assert site.content(path) == FILES[path]
    found = site.s3.head_object(Bucket=site.name, Key=site.commit().prefix + path)
    assert found["Metadata"] == {
        "sha256": hashlib.sha256(FILES[path]).hexdigest(),
        "commit": site.commit().commit,
    }
    assert site.uploads() == []


def test_a_file_that_is_there_is_not_asked_for_again(site):
    site.copy()
    asked = len(site.hub.requests)
    assert not site.copy()
    assert len(site.hub.requests) == asked


def _put(site, path, content, *, parts, **more):
    """Somebody puts an object there, with the metadata of the pinned file."""
    key = site.commit().prefix + path
    metadata = {"sha256": pinned(path).sha256, "commit": site.commit().commit}
    target = {"Bucket": site.name, "Key": key}
    if not parts:
        site.s3.put_object(**target, Body=content, Metadata=metadata, **more)
        return
    made = site.s3.create_multipart_upload(**target, Metadata=metadata, **more)
    target["UploadId"] = made["UploadId"]
    done = []
    for number, start in enumerate(range(0, len(content), PART), 1):
        part = site.s3.upload_part(
            **target, PartNumber=number, Body=content[start : start + PART], **more
        )
        kept = {name: value for name, value in part.items() if name in ("ETag", "ChecksumSHA256")}
        done.append({"PartNumber": number, **kept})
    site.s3.complete_multipart_upload(**target, MultipartUpload={"Parts": done})


_MORE = [{}, {"ChecksumAlgorithm": "SHA256"}, {"ChecksumAlgorithm": "CRC32"}]


@pytest.mark.parametrize("more", _MORE, ids=str)
@pytest.mark.parametrize("parts", [False, True], ids=["at once", "in parts"])
@pytest.mark.parametrize("path", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("changed", [0, -1])
def test_bytes_of_the_pinned_size_with_forged_metadata_are_not_staged(
    site, path, parts, more, changed
):
    """Whatever S3 was asked to calculate of them."""
    forged = bytearray(FILES[path])
    forged[changed] ^= 1
    _put(site, path, bytes(forged), parts=parts, **more)
    with pytest.raises(StagingFailed, match=r"LLE357.*is not the pinned file"):
        site.copy(path)
    assert site.content(path) == bytes(forged), "what is not ours stays"


@pytest.mark.parametrize("more", _MORE, ids=str)
@pytest.mark.parametrize("parts", [False, True], ids=["at once", "in parts"])
@pytest.mark.parametrize("path", FILES)
def test_the_pinned_bytes_are_staged_whoever_put_them(site, path, parts, more):
    _put(site, path, FILES[path], parts=parts and bool(FILES[path]), **more)
    assert not site.copy(path)
    assert site.hub.requests == []


def test_s3_itself_refuses_other_bytes_than_it_is_told_the_hash_of(site):
    with pytest.raises(ClientError, match="BadDigest"):
        site.s3.put_object(Bucket=site.name, Key="x", Body=b"y", ChecksumSHA256="A" * 43 + "=")


def test_what_came_at_once_is_not_read_back(site):
    """Its hash is S3's own."""
    site.copy("config.json")
    site.bucket._s3 = SimpleNamespace(head_object=site.s3.head_object)
    assert site.bucket.has(site.commit(), pinned("config.json"))


def test_the_command_reads_nothing_back(site):
    site.copy()
    site.bucket = Bucket(
        SimpleNamespace(head_object=site.s3.head_object), site.name, reads_back=False
    )
    assert site.bucket.has(site.commit(), pinned("model.safetensors"))


def test_reading_back_ends_with_the_functions_time(site):
    site.copy()

    def over():
        raise StagingFailed("LLE352", "the function's time is over")

    site.bucket = Bucket(site.s3, site.name, go_on=over)
    with pytest.raises(StagingFailed, match="LLE352"):
        site.copy()


def test_a_cut_connection_goes_on_where_it_broke(site):
    site.hub.cut("model.safetensors", 3_000_000, times=2)
    assert site.copy()
    assert site.content("model.safetensors") == LARGE
    ranges = [each.range for each in site.hub.seen("cdn")]
    assert ranges[0] is None
    assert ranges[1] == "bytes=3000000-"
    assert len(ranges) == 3


def test_a_connection_that_always_breaks_is_given_up_and_leaves_nothing(site):
    site.hub.cut("model.safetensors", 0, times=1000)
    with pytest.raises(StagingFailed, match=r"LLE358.*given up"):
        site.copy()
    assert len(site.slept) < 10
    assert (site.keys(), site.uploads()) == ([], [])


def test_a_tampered_byte_leaves_nothing(site):
    for path in ("model.safetensors", "config.json"):
        site.hub.tamper(path)
        with pytest.raises(StagingFailed, match="LLE313"):
            site.copy(path)
    assert (site.keys(), site.uploads()) == ([], [])


@pytest.mark.parametrize("size", [len(LARGE) - 1, len(LARGE) + 1])
def test_another_size_than_the_pinned_one_leaves_nothing(site, size):
    with pytest.raises(StagingFailed, match="LLE313"):
        site.copy(content=(LARGE + b"x")[:size])
    assert (site.keys(), site.uploads()) == ([], [])


def test_a_rate_limit_is_waited_for_as_long_as_it_says(site):
    site.hub.rate_limit(2, seconds=55)
    assert site.copy("config.json")
    assert len(site.slept) == 2
    assert all(56 <= each <= 56 * 1.2 for each in site.slept)


def test_a_rate_limit_that_lasts_longer_than_the_function_ends_it_at_once(site):
    site.hub.rate_limit(1000, seconds=250)
    with pytest.raises(StagingFailed, match=r"LLE358.*rate limit.*251 s there are 100 s left"):
        site.copy("config.json", left=lambda: 100.0)
    assert site.slept == []


def test_a_hub_that_is_down_for_a_moment_costs_a_moment(site):
    site.hub.down(503)
    site.bucket.has(site.commit(), pinned("config.json"))
    reading = Hub(site.hub.endpoint, left=lambda: 600.0, sleep=lambda seconds: site.hub.up())
    commit = site.commit()
    pieces = reading.pieces(MODEL, commit.commit, "config.json", len(FILES["config.json"]))
    assert b"".join(pieces) == FILES["config.json"]


@pytest.mark.parametrize("status", [0, 503])
def test_a_hub_that_stays_down_is_said(site, status):
    site.hub.down(status)
    with pytest.raises(StagingFailed, match="LLE358"):
        site.copy()


def test_a_signed_address_that_expired_is_asked_for_anew(site):
    site.hub.cut("model.safetensors", 2_000_000)
    original = hub_reading.time.sleep
    reading = Hub(
        site.hub.endpoint, left=lambda: 600.0, sleep=lambda seconds: site.hub.expire_urls()
    )
    assert original is hub_reading.time.sleep
    pieces = reading.pieces(MODEL, site.commit().commit, "model.safetensors", len(LARGE))
    assert b"".join(pieces) == LARGE


# ---------------------------------------------------------------------------------------- tokens


def test_the_token_goes_to_the_hub_and_never_to_its_cdn(site):
    assert site.copy(model="acme/gated", token=TOKEN)
    assert {each.with_token for each in site.hub.seen("hub")} == {True}
    assert {each.with_token for each in site.hub.seen("cdn")} == {False}


@pytest.mark.parametrize(("token", "code"), [("", "LLE349"), ("hf_stranger", "LLE349")])
def test_a_gated_model_without_access_is_refused_and_no_token_is_said(site, token, code):
    with pytest.raises(StagingFailed) as refused:
        site.copy(model="acme/gated", token=token)
    assert refused.value.code == code
    assert not token or token not in str(refused.value)
    assert site.keys() == []


def test_what_cannot_be_a_token_is_refused_without_saying_it(site):
    with pytest.raises(StagingFailed) as refused:
        site.copy(token='{"token": "hf_secret"}\n')
    assert refused.value.code == "LLE349"
    assert "hf_secret" not in str(refused.value)


class _Bounces(BaseHTTPRequestHandler):
    to = ""
    seen: list[Any]

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization"))
        self.send_response(302)
        self.send_header("Location", self.to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def bouncing() -> Iterator[Callable[[str], tuple[str, list[Any]]]]:
    servers = []

    def start(to: str) -> tuple[str, list[Any]]:
        kind = type("Bounces", (_Bounces,), {"to": to, "seen": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", kind.seen  # type: ignore[attr-defined]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_another_port_of_the_same_host_is_another_origin(site, bouncing):
    far, theirs = bouncing("/round/again")
    near, ours = bouncing(far + "/x")
    with pytest.raises(StagingFailed, match="redirects"):
        site.copy(endpoint=near, token=TOKEN)
    assert ours == [f"Bearer {TOKEN}"]
    assert set(theirs) == {None}


def test_no_redirect_leads_out_of_tls(site, bouncing):
    near, _ = bouncing("http://example.com/file?Signature=secret")
    with pytest.raises(StagingFailed, match="without TLS") as refused:
        site.copy(endpoint=near)
    assert "secret" not in str(refused.value)


@pytest.fixture
def answering() -> Iterator[Callable[[Iterable[bytes]], str]]:
    """A Hub that sends these bytes to everybody, piece by piece."""
    servers = []

    def start(pieces: Iterable[bytes]) -> str:
        class Answers(StreamRequestHandler):
            def handle(self) -> None:
                while self.rfile.readline().strip():
                    pass
                with suppress(OSError):
                    for piece in pieces:
                        self.wfile.write(piece)

        servers.append(ThreadingTCPServer(("127.0.0.1", 0), Answers))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("begins", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_bytes_that_trickle_are_read_for_as_long_as_there_is_time(site, answering, begins):
    moments = iter([600.0] * 50)

    def left() -> float:
        if not (seconds := next(moments, 0)):
            raise StagingFailed("LLE352", "time is over")
        return seconds

    def pieces() -> Iterator[bytes]:
        yield begins
        for _ in range(400):
            time.sleep(0.001)
            yield b"x"

    with pytest.raises(StagingFailed, match="LLE352"):
        site.copy(endpoint=answering(pieces()), left=left)


MANY = b"9" * 5000


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"200 OK\r\nContent-Length: " + MANY, "ended early"),
        (b"200 OK\r\nContent-Length: -1", "ended early"),
        (b"200 OK\r\nContent-Length: 1.5", "ended early"),
        (b"200 OK\r\nTransfer-Encoding: chunked", "IncompleteRead"),
        (b"206 Partial\r\nContent-Range: bytes 5-9/10", "another range"),
        (b"206 Partial\r\nContent-Range: none", "another range"),
        (b"429 Slow\r\nRetry-After: " + MANY, "rate limit; given up"),
        (b"429 Slow\r\nRetry-After: soon", "rate limit; given up"),
        (b"429 Slow\r\nRetry-After: 99999999", "to wait 99999999 s"),
        (b'429 Slow\r\nRateLimit: "r";r=0;t=' + MANY, "rate limit; given up"),
        (b"302 There\r\nLocation: http://[::1", "no address"),
        (b"302 There\r\nLocation: http://127.0.0.1:99999/x", "no address"),
        (b"302 There\r\nLocation: http://127.0.0.1:x/", "no address"),
        (b"302 There\r\nLocation: https://127.0.0.1:-1/", "no address"),
        (b"302 There\r\nLocation: https://\xe9" + b"x" * 64, "no address"),
        (b"302 There\r\nLocation: file:///etc/passwd", "without TLS"),
        (b"302 There", "answer 302"),
        (b"999 What", "answer 999"),
        (b"204 Nothing", "answer 204"),
        (b"abc", "BadStatusLine"),
    ],
    ids=lambda value: str(value)[:48],
)
def test_an_odd_answer_of_the_hub_ends_in_its_code(site, answering, head, says):
    site.slept.clear()
    with pytest.raises(StagingFailed, match=f"LLE358.*{says}"):
        site.copy(endpoint=answering([b"HTTP/1.1 " + head + b"\r\n\r\nx"]), left=lambda: math.inf)
    assert site.keys() == []


LOCAL = ["http://127.0.0.1:9001/", "https://127.0.0.1/", "https://127.1/", "https://2130706433/"]
LOCAL += [
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://0.0.0.0/",
    "https://a.localhost",
]
LOCAL += [
    "http://localhost:9001/",
    "https://localhost./",
    "https://169.254.169.254/",
    "https://[fe80::1]",
]


#: Of these urllib asks this machine too, or each reader sees another host.
ODD = [
    *(
        "https://127.0.0.%31:9/",
        "https://localhos%74/",
        "https://%6cocalhost/",
        "https://%5B::1%5D/",
    ),
    *("https://127.0.0.1%2f/", "https://%31%32%37.1/", "https://169.254.169.25%34/"),
    *("https://[fe80::1%25lo]/", "https://127\u30020.0.1/", "https://127.0.0.1\\@hub.example/"),
]


@pytest.mark.parametrize(
    ("to", "words"),
    [
        *((url, "points to this machine itself") for url in LOCAL),
        *((url, "points to no") for url in ODD),
    ],
)
def test_a_hub_elsewhere_points_to_no_address_of_this_machine(monkeypatch, to, words):
    asked = []

    def answer(request: Any, **more: Any) -> Any:
        asked.append(request.full_url)
        return SimpleNamespace(status=302, headers={"Location": to}, close=lambda: None)

    monkeypatch.setattr(hub_reading, "build_opener", lambda *_: SimpleNamespace(open=answer))
    hub = Hub("https://huggingface.co", left=lambda: 600.0)
    with pytest.raises(StagingFailed, match=f"LLE358.*{words}"):
        next(hub.pieces(MODEL, "1" * 40, "config.json", 2))
    assert len(asked) == 1


@pytest.mark.parametrize(
    "url",
    ["https://cdn-lfs.hf.co", "https://127.0.0.1.example.com", "https://8.8.8.8", "https://x"],
)
def test_addresses_of_others_are_not_this_machines(url):
    assert not is_local(url)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://huggingface.co",
        "ftp://huggingface.co",
        "https://user:hunter2@mirror.example",
        "https://mirror.example/?token=hunter2",
        "https://",
        "https://mirror.example:none",
        "huggingface.co",
    ],
)
def test_an_endpoint_that_is_not_plain_tls_is_refused_without_saying_it(endpoint):
    with pytest.raises(StagingFailed) as refused:
        hub_endpoint(endpoint)
    assert refused.value.code == "LLE359"
    assert "hunter2" not in str(refused.value)


# --------------------------------------------------------------------------- others in the bucket


def test_two_at_once_leave_one_file_and_nothing_in_progress(site):
    together = threading.Barrier(2, timeout=60)
    outcomes: list[Any] = []

    def copy() -> None:
        bucket = Bucket(site.s3, site.name, part=PART)
        reading = Hub(site.hub.endpoint, left=lambda: 600.0)
        commit, file = site.commit(), pinned("model.safetensors")

        def read() -> Iterator[bytes]:
            together.wait()
            yield from reading.pieces(MODEL, commit.commit, file.path, file.size)

        try:
            outcomes.append(bucket.put(commit, file, read))
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=copy) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcomes) == [False, True]
    assert site.content("model.safetensors") == LARGE
    assert site.uploads() == []


def test_who_is_outrun_in_the_middle_finds_the_file_and_goes_on(site):
    reads = 0

    def read() -> Iterator[bytes]:
        nonlocal reads
        reads += 1
        yield LARGE[:PART]
        assert site.copy()  # another deploy is done first, and ends this upload
        yield LARGE[PART:]

    assert not site.bucket.put(site.commit(), pinned("model.safetensors"), read)
    assert reads == 1
    assert site.uploads() == []


def test_what_a_killed_function_left_goes_with_the_next_one(site):
    key = site.commit().prefix + "model.safetensors"
    for target in (key, key + ".other"):
        started = site.s3.create_multipart_upload(Bucket=site.name, Key=target)
        site.s3.upload_part(
            Bucket=site.name, Key=target, UploadId=started["UploadId"], PartNumber=1, Body=b"half"
        )
    assert site.copy()
    assert [each["Key"] for each in site.uploads()] == [key + ".other"]
    site.bucket.confirm(site.commit(), ["model.safetensors"])
    assert site.uploads() == []


def test_s3_that_fails_in_the_middle_leaves_nothing(site, monkeypatch):
    original = site.s3.upload_part

    def upload_part(**given: Any) -> Any:
        if given["PartNumber"] == 2:
            raise ClientError({"Error": {"Code": "InternalError"}}, "UploadPart")
        return original(**given)

    monkeypatch.setattr(site.s3, "upload_part", upload_part)
    with pytest.raises(ClientError, match="InternalError"):
        site.copy()
    assert (site.keys(), site.uploads()) == ([], [])


def test_something_else_under_the_files_name_is_not_overwritten(site):
    key = site.commit().prefix + "config.json"
    site.s3.put_object(Bucket=site.name, Key=key, Body=b"theirs")
    with pytest.raises(StagingFailed, match="LLE357"):
        site.copy("config.json")
    assert site.content("config.json") == b"theirs"


def test_foreign_files_are_named_up_to_five(site):
    for number in range(7):
        key = f"{site.commit().prefix}foreign{number}"
        site.s3.put_object(Bucket=site.name, Key=key, Body=b"x")
    with pytest.raises(StagingFailed, match=r"LLE357.*foreign0, .*foreign4, \.\.\."):
        site.bucket.found(site.commit(), FILES)


def test_files_that_are_gone_are_said(site):
    site.copy("config.json")
    with pytest.raises(StagingFailed, match=r"LLE398: model\.safetensors"):
        site.bucket.confirm(site.commit(), ["config.json", "model.safetensors"])


# ---------------------------------------------------------------------- the function's own events


class Context:
    """Of an invocation, with so many seconds left."""

    log_group_name, log_stream_name = "group", "stream"

    def __init__(self, *left: float) -> None:
        self.left = list(left or (900.0,))

    def get_remaining_time_in_millis(self) -> float:
        return 1000 * (self.left.pop(0) if len(self.left) > 1 else self.left[0])


class Stack:
    """CloudFormation's events for one staged model, and the answers to them."""

    def __init__(self, site: Site, stack_id: str, answers: list[dict[str, Any]]) -> None:
        self.site, self.stack_id, self.answers = site, stack_id, answers
        self.ids: dict[str, str] = {}

    def send(self, kind: str, request: str = "Create", **given: Any) -> dict[str, Any]:
        context = given.pop("context", None) or Context()
        model = given.pop("Model", MODEL)
        files = given.pop("files", FILES)
        event = {
            "RequestType": request,
            "ResourceType": kind,
            "StackId": self.stack_id,
            "LogicalResourceId": kind.rpartition(":")[2],
            "RequestId": "r",
            "ResponseURL": "http://127.0.0.1:1/",
            **({"PhysicalResourceId": self.ids[kind]} if request != "Create" else {}),
            "ResourceProperties": {
                "Model": model,
                "Commit": given.pop("Commit", self.site.commit(model).commit),
                "FileList": LIST,
                "Bucket": self.site.name,
                "Paths": list(files),
                "Part": "0",
                "Files": [
                    f"{each.sha256} {each.size} {each.path}"
                    for each in (pinned(path, files[path]) for path in files)
                ],
                "LargestFile": "20000000000",
                "HubEndpoint": self.site.hub.endpoint,
                **given,
            },
        }
        function.handler(event, context)
        answer = self.answers[-1]
        self.ids[kind] = answer["PhysicalResourceId"]
        return answer

    def stage(self, **given: Any) -> list[str]:
        kinds = (function.USE, function.FILES, function.CHECK)
        return [self.send(kind, **given)["Status"] for kind in kinds]

    def end(self, **given: Any) -> dict[str, Any]:
        return self.send(function.USE, "Delete", **given)


@pytest.fixture
def stacks(aws, site, monkeypatch) -> Callable[[str], Stack]:
    answers: list[dict[str, Any]] = []

    class Answered:
        def __enter__(self) -> None: ...
        def __exit__(self, *error: object) -> None: ...

    def urlopen(request: Any, timeout: float) -> Answered:
        assert request.get_method() == "PUT"
        answers.append(json.loads(request.data))
        return Answered()

    monkeypatch.setattr(function.urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(boto3, "client", lambda service, config: aws.client(service))
    return lambda name: Stack(site, f"arn:stack/{name}", answers)


def test_a_stack_stages_and_at_its_end_leaves_nothing(site, stacks):
    stack = stacks("a")
    assert stack.stage() == ["SUCCESS"] * 3
    assert stack.answers[-1]["Data"] == {"Bucket": site.name}
    prefix = site.commit().prefix
    assert set(site.keys("hub/")) == {prefix + path for path in FILES}
    assert stack.end()["Status"] == "SUCCESS"
    assert site.keys() == []


def test_files_stay_as_long_as_another_stack_uses_them(site, stacks):
    first, second = stacks("a"), stacks("b")
    first.stage()
    asked = len(site.hub.requests)
    assert second.stage() == ["SUCCESS"] * 3
    assert len(site.hub.requests) == asked
    first.end()
    assert len(site.keys("hub/")) == len(FILES)
    second.end()
    assert site.keys() == []


def test_what_a_person_staged_or_put_there_stays(site, stacks):
    stack = stacks("a")
    stack.stage()
    site.s3.put_object(Bucket=site.name, Key=site.commit().prefix + "theirs", Body=b"x")
    stack.end()
    assert site.keys() == [site.commit().prefix + "theirs"]
    site.s3.delete_object(Bucket=site.name, Key=site.commit().prefix + "theirs")
    site.bucket.use(site.commit(), "by-hand", "low-latency stage")
    stack.stage()
    stack.end()
    assert len(site.keys("hub/")) == len(FILES)


def test_an_update_to_another_commit_is_another_resource_and_the_old_files_go_at_its_end(
    site, stacks
):
    stack = stacks("a")
    stack.stage()
    old = site.commit()
    former = stack.ids[function.USE]
    newer = {"config.json": b"{}"}
    site.hub.commit(MODEL, newer)
    for kind in (function.USE, function.FILES, function.CHECK):
        assert stack.send(kind, "Update", files=newer)["Status"] == "SUCCESS"
    assert len(site.keys(old.prefix)) == len(FILES)
    assert stack.ids[function.USE] != former
    stack.ids[function.USE] = former
    assert stack.end(Commit=old.commit)["Status"] == "SUCCESS"
    assert site.keys("hub/") == [site.commit().prefix + "config.json"]
    assert len(site.keys("users/")) == 1


def test_foreign_files_are_refused_before_anything_is_copied_and_no_note_stays(site, stacks):
    site.s3.put_object(Bucket=site.name, Key=site.commit().prefix + "theirs", Body=b"x")
    answer = stacks("a").send(function.USE)
    assert answer["Status"] == "FAILED"
    assert "LLE357" in answer["Reason"]
    assert site.keys("users/") == []
    assert site.hub.requests == []


def test_names_of_other_scripts_leave_the_answer_as_short_as_cloudformation_takes_it(site, stacks):
    for number in range(9):
        name = f"{number}" + "\N{GRINNING FACE}" * 200
        site.s3.put_object(Bucket=site.name, Key=site.commit().prefix + name, Body=b"x")
    answer = stacks("a").send(function.USE)
    assert "LLE357" in answer["Reason"]
    assert "(log: " in answer["Reason"]
    assert len(json.dumps(answer)) <= 4096


def test_a_little_before_its_end_the_function_says_so_and_what_is_done_stays(site, stacks):
    stack = stacks("a")
    stack.send(function.USE)
    # Enough for the small file, and for the first mebibytes of the large one.
    answer = stack.send(function.FILES, context=Context(*[900.0] * 6, 10.0))
    assert answer["Status"] == "FAILED"
    assert "LLE352" in answer["Reason"]
    assert "MB/s" in answer["Reason"]
    assert "low-latency stage" in answer["Reason"]
    assert site.keys("hub/") == [site.commit().prefix + "config.json"]
    assert site.uploads() == []
    assert stack.send(function.FILES)["Status"] == "SUCCESS"


def test_a_file_that_is_too_large_is_refused_unless_somebody_staged_it(site, stacks):
    stack = stacks("a")
    answer = stack.send(function.FILES, LargestFile="1000")
    assert "LLE352: model.safetensors" in answer["Reason"]
    site.copy()
    assert stack.send(function.FILES, LargestFile="1000")["Status"] == "SUCCESS"


def test_the_token_is_read_when_it_is_needed_and_stands_nowhere(aws, site, stacks, capsys):
    secrets = aws.client("secretsmanager")
    arn = secrets.create_secret(Name=f"hf-{site.name}", SecretString=TOKEN + "\n")["ARN"]
    stack = stacks("a")
    answer = stack.send(function.FILES, Model="acme/gated", TokenSecretArn=arn)
    assert answer["Status"] == "SUCCESS", answer
    site.hub.tokens.discard(TOKEN)
    secrets.put_secret_value(SecretId=arn, SecretString='{"token": "hf_json"}')
    site.s3.delete_object(Bucket=site.name, Key=site.commit("acme/gated").prefix + "config.json")
    answer = stack.send(function.FILES, Model="acme/gated", TokenSecretArn=arn)
    assert "LLE349" in answer["Reason"]
    said = capsys.readouterr().out + json.dumps(stack.answers)
    assert TOKEN not in said
    assert "hf_json" not in said
    assert "Signature" not in said


def test_a_delete_is_a_success_when_the_bucket_is_gone(site, stacks):
    stack = stacks("a")
    stack.send(function.USE)
    for key in site.keys(""):
        site.s3.delete_object(Bucket=site.name, Key=key)
    site.s3.delete_bucket(Bucket=site.name)
    assert stack.end()["Status"] == "SUCCESS"


def test_rights_that_are_seconds_old_are_waited_for(site, monkeypatch):
    original, refusals = site.s3.get_paginator, [1, 2, 3]

    def get_paginator(name: str) -> Any:
        if refusals:
            refusals.pop()
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "ListObjectsV2")
        return original(name)

    monkeypatch.setattr(site.s3, "get_paginator", get_paginator)
    site.bucket.await_rights(site.commit())
    assert len(site.slept) == 3
