"""Model servers as people have them, behind endpoints of the local AWS, each as its user starts it.

What is asked of each: it becomes healthy, answers, its error is a ModelError, and when its endpoint
goes no process of it is left.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import tarfile
import textwrap
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from commands import Served
from commands import command as local_command
from hosting_site import Site
from waiting import processes_of, wait_for

from local_sagemaker import LocalAws
from local_sagemaker.archives import SMALL_DATA
from local_sagemaker.model_servers import CommandModelServer, parse_model_server

pytestmark = pytest.mark.realtime

# Longer than it takes anywhere: one that does not come up ends its process, and is told at once.
LONG = 240.0

PLAIN = """
import http.server, json, os, sys
from pathlib import Path
print("serving from", os.environ["SM_MODEL_DIR"], "and to standard output")
print("a word to standard error", file=sys.stderr)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, status, body=None):
        self.send_response(status)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body or b"")
    def do_GET(self):
        self.answer(200 if self.path == "/ping" else 404, b"")
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print("asked for", body.decode(), flush=True)
        if body == b"poison":
            self.close_connection = True
        elif body == b"nothing":
            self.answer(204)
        elif body == b"error":
            self.answer(500, b"it broke")
        elif body == b"see":
            folder = Path(os.environ["SM_MODEL_DIR"])
            files = {str(f.relative_to(folder)): f.read_text()
                     for f in sorted(folder.rglob("*")) if f.is_file()}
            self.answer(200, json.dumps([files, dict(os.environ), os.getcwd()]).encode())
        else:
            self.answer(200, body)
port = int(os.environ["SAGEMAKER_BIND_TO_PORT"])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
HANDLERS = """
import json
from pathlib import Path
from beside import WORD  # what lies beside the script is found, as in code/ of a model's archive

class Refused(Exception):
    status_code = 422

def model_fn(model_dir):
    return float(Path(model_dir, "factor.txt").read_text())

def predict_fn(data, model):
    if data == "error":
        raise Refused(f"no number {WORD}")
    return [model * value for value in data]
"""


def archive(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as written:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            written.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Servers:
    """A local AWS, and endpoints with a model server of their own each."""

    def __init__(self, aws: LocalAws, folder: Path) -> None:
        self.aws, self.folder = aws, folder
        self.site = Site(aws)
        aws.client("s3").create_bucket(Bucket="models")

    def script(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def put(self, key: str, body: bytes) -> str:
        self.aws.client("s3").put_object(Bucket="models", Key=key, Body=body)
        return f"s3://models/{key}"

    def create(self, server: CommandModelServer | str, **container: Any) -> str:
        """Create an endpoint; gives its name before it is in service."""
        image = f"own{uuid.uuid4().hex[:8]}"
        one = parse_model_server(f"{image}={server}")[1] if isinstance(server, str) else server
        self.aws.add_model_servers({image: one})
        model = self.site.model(image, **container)
        return self.site.endpoint({"ModelName": model}, wait=False)

    @contextlib.contextmanager
    def serving(self, server: CommandModelServer | str, **container: Any) -> Iterator[str]:
        """An endpoint in service; at the end it is deleted, and nothing of it must be left."""
        name = self.create(server, **container)
        found = self.site.settled(name, LONG)
        assert found["EndpointStatus"] == "InService", found.get("FailureReason")
        assert processes_of(name)
        yield name
        self.aws.client("sagemaker").delete_endpoint(EndpointName=name)
        wait_for(lambda: not processes_of(name))

    def failure(self, server: CommandModelServer | str, **container: Any) -> str:
        """Give the reason for which an endpoint failed."""
        name = self.create(server, **container)
        found = self.site.settled(name, LONG)
        assert found["EndpointStatus"] == "Failed"
        assert len(found["FailureReason"]) <= 1024  # as in the API reference
        wait_for(lambda: not processes_of(name))
        return str(found["FailureReason"])

    def json(self, name: str, document: Any) -> Any:
        body = json.dumps(document).encode()
        return json.loads(self.site.invoke(name, body, ContentType="application/json")["Body"])

    def log(self, name: str) -> str:
        (path,) = self.aws.model_server_folder.glob(f"{name}-*.log")
        return path.read_text()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("servers")
    former = Path.cwd()
    os.chdir(folder)  # commands run where they were given
    try:
        with LocalAws.in_process() as aws:
            made = Servers(aws, folder)
            yield made
            made.site.delete()
    finally:
        os.chdir(former)


@pytest.fixture(scope="module")
def plain(servers: Servers) -> Iterator[str]:
    """An endpoint with the plain server, its data an archive."""
    servers.script("plain.py", PLAIN)
    data = servers.put("plain.tar.gz", archive({"a.txt": b"first", "code/b.txt": b"second"}))
    environment = {"HF_MODEL_ID": "/opt/ml/model/code", "AWS_PROFILE": "", "PLAIN": "given"}
    with servers.serving(
        f"{sys.executable} plain.py", ModelDataUrl=data, Environment=environment
    ) as name:
        yield name


def asked(servers: Servers, name: str, body: str) -> int:
    return servers.log(name).count(f"asked for {body}\n")


# ----------------------------------------------------------------------------- through the runtime


def test_a_request_that_kills_its_connection_is_executed_once(servers, plain):
    """By the runtime it was executed once for each idle connection, eleven times here."""
    servers.site.invoke_many(plain, 30, at_once=10, body=b"x")
    with pytest.raises(ClientError, match="closed before it answered"):
        servers.site.invoke(plain, b"poison")
    # It hung up on one request and is healthy: the next are not refused.
    servers.site.invoke_many(plain, 5, body=b"after")
    wait_for(lambda: asked(servers, plain, "after") == 5)
    assert asked(servers, plain, "poison") == 1


def test_an_answer_without_a_body_is_there_at_once(servers, plain):
    """It was waited for until the invocation's 60 seconds were over, and was an error."""
    assert servers.site.invoke(plain, b"nothing")["Body"] == b""


def test_an_error_is_the_model_s(servers, plain):
    with pytest.raises(ClientError) as raised:
        servers.site.invoke(plain, b"error")
    assert raised.value.response["Error"]["Code"] == "ModelError"
    assert raised.value.response["OriginalStatusCode"] == 500
    assert raised.value.response["OriginalMessage"] == "it broke"


def test_a_server_without_utilization_is_asked_for_it_once(servers, plain):
    for _ in range(3):
        servers.aws.advance(60)
    assert servers.log(plain).count("GET /utilization") == 1


def test_model_data_and_variables_are_where_a_container_looks(servers, plain):
    files, variables, folder = json.loads(servers.site.invoke(plain, b"see")["Body"])
    assert files == {"a.txt": "first", "code/b.txt": "second"}
    assert variables["HF_MODEL_ID"] == f"{variables['SM_MODEL_DIR']}/code"
    assert variables["PLAIN"] == "given"
    assert variables["AWS_ENDPOINT_URL"] == servers.aws.url  # and never an account
    assert variables["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull
    assert Path(folder) == servers.folder


def test_what_a_server_writes_is_kept_and_is_in_cloudwatch_logs(servers, plain):
    log = servers.log(plain)
    assert "and to standard output\n" in log
    assert "a word to standard error\n" in log
    logs = servers.aws.client("logs")
    group = f"/aws/sagemaker/Endpoints/{plain}"
    (stream,) = logs.describe_log_streams(logGroupName=group)["logStreams"]
    assert stream["logStreamName"].startswith("primary/i-")
    events = logs.get_log_events(
        logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
    )["events"]
    assert events[0]["message"].endswith("and to standard output")


def test_uncompressed_model_data_is_taken_as_it_is(servers, plain):
    servers.put("open/weights.txt", b"weights")
    servers.put("open/code/inference.txt", b"code")
    servers.put("open-other/no.txt", b"not this")
    place = {"S3Uri": "s3://models/open/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    source = {"ModelDataSource": {"S3DataSource": place}}
    with servers.serving(f"{sys.executable} plain.py", **source) as name:
        files = json.loads(servers.site.invoke(name, b"see")["Body"])[0]
        assert files == {"weights.txt": "weights", "code/inference.txt": "code"}
        folder = servers.aws.model_server_folder
        assert [each.name for each in folder.iterdir() if each.is_dir() and name in each.name]
    wait_for(lambda: not [each for each in folder.iterdir() if each.is_dir() and name in each.name])


def too_large() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as written:
        entry = tarfile.TarInfo("zeros")
        entry.size = SMALL_DATA + 2**20

        class Zeros(io.RawIOBase):
            def read(self, size: int = -1) -> bytes:
                return bytes(size)

        written.addfile(entry, Zeros())
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "Could not find model data at s3://models/"),
        (lambda: b"no archive", "no tar archive"),
        (lambda: archive({"../outside.txt": b"x"}), "outside"),
        (too_large, f"unpacks to more than {SMALL_DATA} bytes"),
    ],
    ids=["missing", "no archive", "outside", "too large"],
)
def test_model_data_that_cannot_be_unpacked_fails_the_endpoint(servers, data, words):
    uri = f"s3://models/{uuid.uuid4().hex}"
    if data is not None:
        servers.put(uri.rpartition("/")[2], data())
    assert words in servers.failure(f"{sys.executable} plain.py", ModelDataUrl=uri)
    # Not rglob, which breaks on a folder that is removed meanwhile.
    files = [name for *_, names in os.walk(servers.aws.model_server_folder) for name in names]
    assert "outside.txt" not in files


# ------------------------------------------------------------------------------- that do not start


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('cannot load model'); raise SystemExit(2)", ("exit code 2", "cannot load model")),
        ("import nowhere", ("exit code 1", "No module named 'nowhere'")),
        ("print('x' * 9_000_000); print('the end'); raise SystemExit(3)", ("code 3", "the end")),
        ("raise SystemExit(4)", ("exit code 4", "It wrote nothing")),
    ],
    ids=["standard output", "standard error", "very much", "nothing"],
)
def test_what_a_server_said_before_it_died_is_in_the_error(servers, code, words):
    """Its standard output was thrown away."""
    reason = servers.failure(CommandModelServer((sys.executable, "-c", code)))
    assert "did not pass the ping health check" in reason
    assert all(word in reason for word in words), reason
    name = servers.site.made[-1]
    kept = list(servers.aws.model_server_folder.glob(f"{name}-*.log*"))
    assert all(str(path).removesuffix(".1") in reason for path in kept if path.stat().st_size)
    assert sum(path.stat().st_size for path in kept) < 10_000_000


def test_a_program_that_is_not_there_fails_the_endpoint(servers):
    """It stayed Creating for ever."""
    assert "No such file" in servers.failure(CommandModelServer(("/no/such/program",)))
    assert "No such file" in servers.failure(
        CommandModelServer((sys.executable,), directory="/no/such/folder")
    )


# --------------------------------------------------------------------------------- people's servers


def test_an_inference_script_of_sagemaker_s_toolkits(servers):
    servers.script("beside.py", "WORD = 'at all'")
    servers.script("inference.py", HANDLERS)
    data = servers.put("factor.tar.gz", archive({"factor.txt": b"2.5"}))
    with servers.serving("inference.py", ModelDataUrl=data) as name:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: servers.json(name, [2, 4]), range(16)))
        assert answers == [[5.0, 10.0]] * 16
        with pytest.raises(ClientError) as raised:
            servers.json(name, "error")
        assert raised.value.response["Error"]["Code"] == "ModelError"
        assert raised.value.response["OriginalStatusCode"] == 422
        assert "no number at all" in raised.value.response["OriginalMessage"]
        servers.aws.advance(60)
        own = {"namespace": "/aws/sagemaker/Endpoints"}
        assert servers.site.statistics(name, "CPUUtilization", "Maximum", **own)["Maximum"] > 0


# ----------------------------------------------------------------------------- nothing stays behind

STUBBORN = """
import http.server, os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) == 1:  # the server; its workers are programs of their own, one in its own session
    for own in (False, True):
        subprocess.Popen([sys.executable, __file__, "worker"], start_new_session=own)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
port = int(os.environ["SAGEMAKER_BIND_TO_PORT"]) if len(sys.argv) == 1 else 0
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_no_process_of_a_server_outlives_the_local_aws(number, tmp_path):
    """Not the workers, not one in a session of its own, and however the local AWS ends."""
    name = f"stubborn-{uuid.uuid4().hex}"
    (tmp_path / "serve.py").write_text(STUBBORN)
    server = f"*={sys.executable} serve.py"
    with local_command("--model-server", server, cwd=tmp_path) as (process, exported):
        here = Site(Served(exported))
        here.endpoint({"ModelName": here.model()}, wait=False, name=name)
        assert here.settled(name, LONG)["EndpointStatus"] == "InService"
        assert len(processes_of(name)) >= 4
        process.send_signal(number)
        process.wait(60)
    wait_for(lambda: not processes_of(name))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_ends_it_while_model_data_unpacks_waits_for_no_entry_more(number, tmp_path):
    """By 100,000 entries it was held up for half a minute, and whoever killed it found its folder."""
    (tmp_path / "serve.py").write_text(STUBBORN)
    many = archive({f"{at % 99}/{at}": b"" for at in range(60_000)})
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    server = f"*={sys.executable} serve.py"
    with local_command("--model-server", server, cwd=tmp_path, env=environment) as started:
        process, exported = started
        here = Site(Served(exported))
        s3 = here.aws.client("s3")
        s3.create_bucket(Bucket="models")
        s3.put_object(Bucket="models", Key="many", Body=many)
        here.endpoint({"ModelName": here.model(ModelDataUrl="s3://models/many")}, wait=False)
        wait_for(lambda: len(list(tmp_path.glob("local-aws-*/**/model/*"))) > 9)
        process.send_signal(number)
        process.wait(10)
    assert [each.name for each in tmp_path.iterdir()] == ["serve.py"]
