"""The Locust user in Locust itself, in processes of its own: Locust patches the one it is in."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client.tests.loopback_runtime import LoopbackRuntime

from .locust_runs import exit_code_said, run_locust, two_processes
from .servers import ENVIRONMENT, said_by

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "locustfile.py"
LOCUST = "--headless --only-summary --stop-timeout 5"

OWN_USER = """\
from locust import events, task

from low_latency_endpoint.load_test import Payloads, SageMakerUser

SEEN = []


class Caller(SageMakerUser):
    endpoint_name = "{endpoint}"
    payloads = Payloads.of_bytes(b"first", b"second")
    {attributes}

    def check(self, body):
        return "no label" if b"label" not in body else None

    @task
    def ask(self):
        {ask}


@events.request.add_listener
def note(name, request_type, exception, response, response_length, **_):
    SEEN.append((name, request_type, repr(exception), response.status, response_length))


@events.quitting.add_listener
def tell(**_):
    print("SEEN", sorted(set(SEEN)))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackRuntime]:
    with LoopbackRuntime() as made:
        yield made


def locust(
    server: LoopbackRuntime | None,
    file: Path,
    options: str = "",
    *,
    code: int | None = 0,
    requests: tuple[str, int] | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run a locustfile until the server has seen so many requests to an endpoint."""
    url = {"AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": server.url} if server else {}
    enough = None
    if server is not None and requests is not None:
        seen, (name, number) = server.runtime.requests, requests
        wanted = seen[name] + number
        enough = lambda: seen[name] >= wanted  # noqa: E731
    done = run_locust(
        ["-f", str(file), *LOCUST.split(), *options.split()],
        ROOT,
        {**ENVIRONMENT, "AWS_DEFAULT_REGION": "us-east-1", **url, **environment},
        enough,
    )
    if code is not None:  # and a busy machine's generator is no measure
        wanted = code or exit_code_said(done.stderr)
        assert done.returncode == wanted, done.stdout + done.stderr
    return done


def own(folder: Path, endpoint: str, attributes: str = "", ask: str = "self.invoke()") -> Path:
    """A locustfile with a class of its own."""
    path = folder / "locustfile.py"
    path.write_text(OWN_USER.format(endpoint=endpoint, attributes=attributes, ask=ask))
    return path


def seen(done: subprocess.CompletedProcess[str]) -> Any:
    """What the locustfile's listener noted."""
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    return eval(line.removeprefix("SEEN "))


def forked(processes: int) -> str:
    return " ".join(two_processes()) if processes == 2 else ""


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Locust's statistics by the rows' names."""
    entries = json.loads((folder / "run.json").read_text())
    return {f"{entry['method']} {entry['name']}": entry for entry in entries}


def average(row: dict[str, Any]) -> float:
    """Milliseconds of a row's requests."""
    return float(row["total_response_time"] / row["num_requests"])


def test_the_example_runs_as_it_is(server: LoopbackRuntime, tmp_path: Path) -> None:
    begun = time.monotonic()
    options = f"--endpoint-name slow-20 -u 4 -r 4 --json-file {tmp_path}/run"
    locust(server, EXAMPLE, options, requests=("slow-20", 100))
    milliseconds = 1000 * (time.monotonic() - begun)
    row = rows(tmp_path)["InvokeEndpoint slow-20"]
    assert row["num_failures"] == 0
    # Four callers who wait: none gets more answers than fit into the time, however busy the
    # machine is, and the sum of their waits is no longer than theirs together.
    count = row["num_requests"]
    assert 90 <= count <= 4 * milliseconds / 20  # those under way at the end are not counted
    assert 20 <= average(row) <= 4 * milliseconds / count


def test_processes_and_environment(server: LoopbackRuntime, tmp_path: Path) -> None:
    """A master and two workers, which Locust forks; options by environment variables."""
    (tmp_path / "bodies.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    locust(
        server,
        EXAMPLE,
        f"{forked(2)} -u 4 -r 4 --json-file {tmp_path}/run",
        requests=("slow-20", 300),
        LOCUST_ENDPOINT_NAME="slow-20",
        LOCUST_PAYLOAD=str(tmp_path / "bodies.jsonl"),
    )
    row = rows(tmp_path)["InvokeEndpoint slow-20"]
    assert row["num_failures"] == 0
    assert row["num_requests"] > 0


def test_a_class_of_ones_own(server: LoopbackRuntime, tmp_path: Path) -> None:
    file = own(
        tmp_path,
        "slow-5",
        "request_name = 'ours'",
        "self.invoke(b'{}', name='mine', SessionId='s'); self.invoke('text')",
    )
    found = seen(locust(server, file, "-u 1", requests=("slow-5", 3)))
    assert found == [
        ("mine", "InvokeEndpoint", "None", 200, 101),
        ("ours", "InvokeEndpoint", "None", 200, 101),
    ]


def test_a_class_without_tasks_has_one_and_others_only_theirs(tmp_path: Path) -> None:
    file = own(tmp_path, "plain")
    file.write_text(file.read_text() + "\n\nclass Heir(Caller):\n    pass\n")
    told = locust(None, file, "--show-task-ratio-json").stdout
    ratios = json.loads(told[told.index("{") : told.rindex("}") + 1])["per_class"]
    assert {name: list(of["tasks"]) for name, of in ratios.items()} == {
        "Caller": ["ask"],
        "Heir": ["ask"],
    }
    told = locust(None, EXAMPLE, "--show-task-ratio-json").stdout
    ratios = json.loads(told[told.index("{") : told.rindex("}") + 1])["per_class"]
    assert list(ratios["Sentiment"]["tasks"]) == ["invoke_next"]


def test_an_option_wins_over_the_attribute(server: LoopbackRuntime, tmp_path: Path) -> None:
    file = own(tmp_path, "not-this")
    options = "-u 1 --endpoint-name slow-10"
    found = seen(locust(server, file, options, requests=("slow-10", 2)))
    assert [name for name, *_ in found] == ["slow-10"]


def test_failures_have_their_kind(server: LoopbackRuntime, tmp_path: Path) -> None:
    file = own(tmp_path, "status-429")
    done = locust(server, file, "-u 1", code=1, requests=("status-429", 2))
    kind = "429 ModelNotReadyException: asked for 429"
    assert seen(done) == [("status-429", "InvokeEndpoint", kind, 429, 28)]
    assert f"InvokeEndpoint status-429: {kind}" in done.stderr
    file = own(tmp_path, "status-424")
    done = locust(server, file, "-u 1", code=1, requests=("status-424", 2))
    assert seen(done)[0][2] == "424 ModelError 500: out of memory"


def test_the_users_own_check(server: LoopbackRuntime, tmp_path: Path) -> None:
    file = own(tmp_path, "stream-2", "streaming = True")  # its answer has no label
    found = seen(locust(server, file, "-u 1", code=1, requests=("stream-2", 2)))
    assert found == [("stream-2", "InvokeEndpoint", "check failed", 200, 14)]


PROMPTS = """\
from low_latency_endpoint.load_test import Payloads, SageMakerUser
from low_latency_endpoint.load_test.engine.prompts import Prompts


class Chat(SageMakerUser):
    endpoint_name = "stream-1"
    payloads = Payloads.of_prompts(Prompts.of("input=40,output=8", tell_prefix=True))
    streaming = True
"""


def test_prompts_name_their_prefix_to_the_router(server: LoopbackRuntime, tmp_path: Path) -> None:
    file = tmp_path / "locustfile.py"
    file.write_text(PROMPTS)
    locust(server, file, "-u 1", requests=("stream-1", 2))
    headers = server.runtime.last_headers
    assert headers["X-Amzn-SageMaker-Prefix-Aware-Id"] == "prefix-0"


def test_the_first_byte_of_streams_is_listed_beside_the_total(
    server: LoopbackRuntime, tmp_path: Path
) -> None:
    options = f"--endpoint-name slow-stream-3 --stream -u 2 --json-file {tmp_path}/run"
    locust(server, EXAMPLE, options, requests=("slow-stream-3", 20))
    found = rows(tmp_path)
    whole, first = found["InvokeEndpoint slow-stream-3"], found["first byte slow-stream-3"]
    # The first part is sent 20 ms before the last.
    assert average(whole) - average(first) > 15
    assert first["num_requests"] == whole["num_requests"] > 0


def test_streams_that_stop_halfway_keep_their_first_byte(
    server: LoopbackRuntime, tmp_path: Path
) -> None:
    options = (
        f"--endpoint-name half-stream-1 --stream --timeout 1 -u 10 -r 10 --json-file {tmp_path}/run"
    )
    locust(server, EXAMPLE, options, code=1, requests=("half-stream-1", 30))
    found = rows(tmp_path)
    whole, first = found["InvokeEndpoint half-stream-1"], found["first byte half-stream-1"]
    assert first["num_requests"] == whole["num_requests"] == whole["num_failures"] > 0
    # A whole answer is given up a second after it was asked for.
    assert average(whole) >= 1000
    assert average(first) < average(whole) - 500


BUSY_PROCESS = """\

import gevent
import psutil
from locust import runners

runners.CPU_MONITOR_INTERVAL = 0.1


@events.init.add_listener
def use_a_whole_core(runner, **_):
    if isinstance(runner, runners.{runner}):
        psutil.Process.cpu_percent = lambda process: 95.0


@events.init.add_listener
def end_when_that_is_noticed(runner, **_):
    def watch():
        while not (runner.cpu_warning_emitted or runner.worker_cpu_warning_emitted):
            gevent.sleep(0.1)
        runner.quit()

    if not isinstance(runner, runners.WorkerRunner):
        gevent.spawn(watch)
"""


@pytest.mark.parametrize(("processes", "runner"), [(1, "LocalRunner"), (2, "WorkerRunner")])
def test_a_client_bound_run_fails(
    server: LoopbackRuntime, tmp_path: Path, processes: int, runner: str
) -> None:
    """No process gets nine tenths of a core beside the other tests, so that Locust is told so."""
    file = own(tmp_path, "slow-20")
    file.write_text(file.read_text() + BUSY_PROCESS.format(runner=runner))
    done = locust(server, file, f"-u {processes} {forked(processes)}", code=1)
    assert "the result is invalid: client-bound" in done.stderr


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("LLT105:", ""),
        ("LLT101:", "--endpoint-name plain --payload no-such-file.json"),
        ("LLT107:", "--endpoint-name plain --expect ("),
        ("LLC101:", "--endpoint-name plain --timeout soon"),
        ("LLC107:", "--endpoint-name plain --zonal no-url"),
        ("aws configure list-profiles", "--endpoint-name plain --aws-profile nobody"),
    ],
)
def test_mistakes_end_locust_with_their_code(
    server: LoopbackRuntime, said: str, arguments: str
) -> None:
    done = locust(server, EXAMPLE, f"-u 2 -r 2 -t 20s {arguments}", code=2)
    assert done.stderr.count(said) == 1
    assert "Traceback" not in done.stderr


def test_without_a_region(server: LoopbackRuntime) -> None:
    options = "-t 20s --endpoint-name plain"
    assert "LLC108:" in locust(server, EXAMPLE, options, code=2, AWS_DEFAULT_REGION="").stderr


def test_locusts_page_has_a_field_for_each_option() -> None:
    program = (
        "import locust; from locust.argument_parser import LocustArgumentParser as Parser; "
        "from low_latency_endpoint.load_test.engine.locust_options import OPTIONS, "
        "add_options; "
        "parser = Parser(); add_options(parser); "
        "shown = set(parser.args_included_in_web_ui); "
        "print({f'sagemaker_{name}' for name, *_ in OPTIONS} - shown)"
    )
    assert said_by(program) == "set()"


def test_importing_the_package_loads_neither_locust_nor_gevent() -> None:
    program = (
        "import sys; from low_latency_endpoint import load_test; "
        "[getattr(load_test, name) for names in load_test._NAMES_OF.values() "
        "for name in names.split() if not name.endswith(('User', 'InvocationFailed'))]; "
        "print(sorted({'locust', 'gevent', 'geventhttpclient'} & set(sys.modules)))"
    )
    assert said_by(program) == "[]"
