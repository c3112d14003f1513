"""The model servers themselves: what they are told to do, in this process and in their own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st
from jumping_loop import JumpingLoop
from waiting import alive, wait_for

from local_sagemaker.model_servers import (
    CommandModelServer,
    LanguageModelServer,
    ServiceTime,
    SimulatedModelServer,
    UrlModelServer,
    parse_model_server,
    sentiment_model_server,
)
from local_sagemaker.model_servers.simulated import Simulation
from local_sagemaker.model_servers.specifications import (
    from_document,
    handlers_model_server,
    model_server_for,
    to_document,
)
from local_sagemaker.model_servers.tasks import serve
from local_sagemaker.runtime.http_client import Connections
from local_sagemaker.runtime.options import RuntimeOptions

ECHO = ServiceTime.constant(0.0)


class TestServiceTime:
    def draws(self, law, count=20_000):
        generator = random.Random(11)
        return sorted(law.draw(generator) for _ in range(count))

    def test_lognormal_has_the_percentiles_it_was_made_from(self):
        found = self.draws(ServiceTime.lognormal(p50=0.020, p99=0.080))
        assert found[10_000] == pytest.approx(0.020, rel=0.03)
        assert found[19_800] == pytest.approx(0.080, rel=0.08)

    def test_gamma_has_mean_and_variation(self):
        found = self.draws(ServiceTime.gamma(mean=0.05, variation=0.5))
        assert statistics.mean(found) == pytest.approx(0.05, rel=0.02)
        assert statistics.stdev(found) / 0.05 == pytest.approx(0.5, rel=0.03)

    def test_empirical_stays_within_and_interpolates(self):
        found = self.draws(ServiceTime.empirical([0.03, 0.01, 0.02]))
        assert 0.01 <= found[0] < 0.0101 < 0.0299 < found[-1] <= 0.03
        assert found[10_000] == pytest.approx(0.02, rel=0.02)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: ServiceTime.constant(-1),
            lambda: ServiceTime.empirical([]),
            lambda: ServiceTime.lognormal(p50=2, p99=1),
            lambda: ServiceTime("weibull", (1.0,)),
            lambda: ServiceTime.gamma(mean=0, variation=1),
        ],
    )
    def test_nonsense_is_refused(self, make):
        with pytest.raises(ValueError, match=r"[a-z]{3}"):
            make()


@given(
    share=st.floats(0, 1),
    concurrency=st.integers(1, 64),
    slow=st.dictionaries(st.integers(0, 9), st.floats(1, 9), max_size=3),
    samples=st.lists(st.floats(0, 5), min_size=1, max_size=5),
)
def test_options_survive_the_way_to_another_process(share, concurrency, slow, samples):
    options = RuntimeOptions(
        model_servers={
            "a": SimulatedModelServer(
                service_time=ServiceTime.empirical(samples),
                failure_share=share,
                concurrency=concurrency,
                slow_instances=slow,
            ),
            "b": CommandModelServer(("serve", "--fast"), {"A": "1"}, "/srv"),
            "c": UrlModelServer("http://127.0.0.1:8080"),
        },
        routers=3,
        clock_speed=60.0,
    )
    assert RuntimeOptions.from_json(options.to_json()) == options


@pytest.mark.parametrize(
    "make",
    [
        lambda: SimulatedModelServer(failure_share=1.5),
        lambda: SimulatedModelServer(concurrency=0),
        lambda: SimulatedModelServer(failure_status=200),
        lambda: CommandModelServer(()),
        lambda: UrlModelServer("http://10.0.0.1:80"),
        lambda: RuntimeOptions(routers=0),
        lambda: RuntimeOptions(clock_speed=-1),
        lambda: RuntimeOptions(invocation_timeout=0),
    ],
)
def test_settings_that_cannot_be_are_refused(make):
    with pytest.raises(ValueError, match=r"[a-z]{3}"):
        make()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_runs_with_its_own_program_where_it_was_given(here):
    (here / "serve").write_text("#!/bin/sh\n")
    (here / "serve").chmod(0o755)
    place = str(here)
    quoted = parse_model_server(
        "team/x='a program' --p $SAGEMAKER_BIND_TO_PORT".replace(
            "'a program'", f"'{sys.executable}'"
        )
    )
    assert quoted == (
        "team/x",
        CommandModelServer((sys.executable, "--p", "$SAGEMAKER_BIND_TO_PORT"), directory=place),
    )
    assert parse_model_server("x=./serve")[1] == CommandModelServer(
        (str(here / "serve"),), directory=place
    )
    assert parse_model_server("x=sh -c 'exec a | b'")[1].command[1:] == ("-c", "exec a | b")


def test_a_known_word_and_a_document_stay_what_they_are(here):
    (here / "simulated").write_text("a file of that name")
    assert parse_model_server("*=simulated") == ("*", SimulatedModelServer())
    assert parse_model_server("x=sentiment")[1] == sentiment_model_server()
    (here / "my server.json").write_text('{"kind": "simulated", "concurrency": 4}')
    assert parse_model_server("team/x=my server.json") == (
        "team/x",
        SimulatedModelServer(concurrency=4),
    )
    (here / "inference.py").write_text("def model_fn(model_dir): ...")
    assert parse_model_server("x=inference.py")[1] == handlers_model_server("inference.py")


@pytest.mark.parametrize(
    ("text", "files", "words"),
    [
        ("x=serve.py", {"serve.py": "import http.server"}, "'python serve.py'"),
        (
            "x=serve.py",
            {"serve.py": "def predict_fn(d, m): ..."},
            "has predict_fn, and no model_fn",
        ),
        ("x=serve.py", {"serve.py": "def"}, "cannot be read as Python"),
        ("x=simulatd", {}, "neither a file nor a program"),
        ("x=server.json", {}, "neither a file nor a program"),
        ("x=server.json", {"server.json": "{"}, "no JSON document"),
        ("x=server.json", {"server.json": "[1]"}, "server.json: a model server is an object"),
        (
            "x=server.json",
            {"server.json": '{"kind": "command", "command": 5}'},
            "command: Input should be a valid",
        ),
        (
            "x=server.json",
            {"server.json": '{"kind": "magic"}'},
            "kind: one of simulated, language-model, command, url",
        ),
        ("x=server.json", {"server.json": '{"kind": "simulated", "workers": 4}'}, "has no workers"),
        (
            "x=server.json",
            {"server.json": '{"kind": "simulated", "concurrency": "4"}'},
            "concurrency: Input should be a valid integer, not 4",
        ),
        (
            "x=server.json",
            {"server.json": '{"kind": "simulated", "memory": NaN}'},
            "JSON compliant",
        ),
        (
            "x=server.json",
            {"server.json": '{"kind": "simulated", "service_time": {"kind": "gamma"}}'},
            "service_time.values",
        ),
        ("x=notes", {"notes": "neither"}, "no JSON document"),
        ("x=nosuchprogram --port 1", {}, "nosuchprogram is neither"),
        ("x='python", {}, "No closing quotation"),
        ("x=http://127.0.0.1:80@evil.example", {}, "on loopback"),
        ("x=http://localhost:99999", {}, "on loopback"),
        ("x=https://localhost:8080", {}, "on loopback"),
        ("x=a\0b", {}, "IMAGE=SERVER"),
        ("simulated", {}, "IMAGE=SERVER"),
        ("=simulated", {}, "IMAGE=SERVER"),
        ("x=", {}, "IMAGE=SERVER"),
        ("x=http://10.0.0.1:80", {}, "on loopback"),
        ("x=server.json", {"server.json": "{}"}, "kind"),
        ("x=server.json", {"server.json": '{"kind": "url"}'}, "url"),
    ],
)
def test_what_is_no_server_is_refused_in_one_line(here, text, files, words):
    for name, content in files.items():
        (here / name).write_text(content)
    with pytest.raises(ValueError, match=r".") as raised:
        parse_model_server(text)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


KEYS = sorted(
    {
        key
        for server in (SimulatedModelServer(), CommandModelServer(("a",)))
        for key in to_document(server)
    }
    | {"url", "in_process"}
)


@settings(max_examples=300)
@given(
    st.one_of(
        JSON,
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["simulated", "command", "url"])},
            optional={key: JSON for key in KEYS if key != "kind"},
        ),
    )
)
def test_any_document_is_a_server_or_refused(document):
    """Never anything but ValueError; and what is taken is written and read the same."""
    server, refused = None, ""
    try:
        server = from_document(document)
    except ValueError as error:
        refused = str(error)
    assert (server is None) == bool(refused)
    if server is not None:
        assert from_document(json.loads(json.dumps(to_document(server)))) == server


@settings(max_examples=300)
@given(st.text(max_size=30))
def test_any_text_is_a_server_or_refused(text):
    with contextlib.suppress(ValueError):
        parse_model_server(text)
    with contextlib.suppress(ValueError):
        parse_model_server(f"x={text}")


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("team/ranker", True),
        ("team/*", True),
        ("team/ranker:3", True),
        ("*ranker*", True),
        ("123456789012.dkr.ecr.*/team/ranker:3", True),
        ("ranker", False),
        ("team/ranker:4", False),
    ],
)
def test_chosen_by_the_image(pattern, chosen):
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/ranker:3"
    server = SimulatedModelServer()
    assert (model_server_for({"Image": image}, {pattern: server}) is server) is chosen


def test_the_environment_chooses_before_the_image():
    a, b = SimulatedModelServer(seed=1), SimulatedModelServer(seed=2)
    container = {"Image": "x/a:1", "Environment": {"LOCAL_MODEL_SERVER": "b"}}
    assert model_server_for(container, {"a": a, "b": b}) is b


# -------------------------------------------------------------------------- simulated servers


def timed(here, name, count, at_once):
    began = time.perf_counter()
    here.invoke_many(name, count, at_once=at_once)
    return time.perf_counter() - began


def quickest(here, name, count, at_once):
    """The best of some: a busy machine makes a run longer, never shorter."""
    return min(timed(here, name, count, at_once) for _ in range(4))


def test_workers_work_side_by_side_and_others_queue(site):
    server = SimulatedModelServer(service_time=ServiceTime.constant(0.2), concurrency=2)
    here = site({"model": server})
    name = here.endpoint()
    here.invoke(name)
    assert 0.2 <= quickest(here, name, 2, at_once=2) < 0.39
    assert 0.4 <= quickest(here, name, 4, at_once=4) < 0.59


def test_a_full_queue_answers_503(site):
    server = SimulatedModelServer(service_time=ServiceTime.constant(1.0), queue_limit=0)
    here = site({"model": server})
    name = here.endpoint()
    here.aws.client("sagemaker-runtime")
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(here.invoke, name)
        time.sleep(0.3)
        with pytest.raises(ClientError) as raised:
            here.invoke(name)
        assert raised.value.response["OriginalStatusCode"] == 503
        assert first.result()["Body"] == b"{}"


def test_a_share_of_failures(site):
    here = site({"model": SimulatedModelServer(service_time=ECHO, failure_share=0.3)})
    name = here.endpoint()
    failed = 0
    for _ in range(200):
        try:
            here.invoke(name)
        except ClientError:
            failed += 1
    assert 34 < failed < 86  # 60 +- 4 deviations of 6.5


def test_the_first_requests_of_a_cold_instance_are_slow():
    """On a clock that jumps: what an instance computes, to the bit."""
    server = SimulatedModelServer(
        service_time=ServiceTime.constant(0.01), cold_requests=2, cold_factor=20
    )

    async def times(loop: JumpingLoop) -> list[float]:
        async with asyncio.timeout(60):
            listener = await serve(Simulation(server, 0))
            connections, ended = Connections("127.0.0.1", listener.port), [loop.time()]
            for _ in range(4):
                await connections.request("POST", "/invocations", body=b"{}")
                ended.append(loop.time())
            connections.close()
            listener.close()
        return [after - before for before, after in itertools.pairwise(ended)]

    loop = JumpingLoop()
    loop.jump_from_now_on(True)
    try:
        assert loop.run_until_complete(times(loop)) == pytest.approx([0.2, 0.2, 0.01, 0.01])
    finally:
        loop.close()


@pytest.mark.parametrize("kind", [SimulatedModelServer, LanguageModelServer])
def test_a_fault_can_come_and_go_while_it_runs(site, kind):
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}).encode()
    here = site({"model": kind()})
    name = here.endpoint()
    here.invoke(name, body)
    here.aws.set_model_servers({"model": kind(failure_share=1.0)})
    with pytest.raises(ClientError, match="500"):
        here.invoke(name, body)
    here.aws.set_model_servers({"model": kind()})
    here.invoke(name, body)


# ---------------------------------------------------------------------------------- processes


def children_of(parent: int) -> list[int]:
    """The processes that a process has started, and that still run."""
    found = subprocess.run(
        ["ps", "-ww", "-o", "pid=,stat=,args=", "--ppid", str(parent)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    lines = [line.split() for line in found.splitlines() if "local_sagemaker" in line]
    return [int(words[0]) for words in lines if "Z" not in words[1]]


def test_a_process_for_each_instance_that_ends_with_it(site):
    server = SimulatedModelServer(service_time=ECHO, in_process=False)
    here = site({"model": server})
    before = set(children_of(os.getpid()))
    name = here.endpoint({"InitialInstanceCount": 2})
    started = [pid for pid in children_of(os.getpid()) if pid not in before]
    assert len(started) == 2
    assert here.invoke(name, b"x")["Body"] == b"x"
    here.aws.client("sagemaker").delete_endpoint(EndpointName=name)
    wait_for(lambda: not any(map(alive, started)))


@pytest.mark.parametrize("which", ["the server", "its supervisor"])
def test_a_process_that_dies_is_started_again(site, which):
    here = site({"model": SimulatedModelServer(service_time=ECHO, in_process=False)})
    before = set(children_of(os.getpid()))
    name = here.endpoint()
    (supervisor,) = [pid for pid in children_of(os.getpid()) if pid not in before]
    (server,) = children_of(supervisor)
    os.kill(server if which == "the server" else supervisor, signal.SIGKILL)
    wait_for(lambda: not any(map(alive, (supervisor, server))))
    codes = set()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            here.invoke(name)
            break
        except ClientError as error:
            codes.add(error.response["Error"]["Code"])
            time.sleep(0.05)
    assert codes == {"ServiceUnavailable"}
    assert here.invoke(name)["Body"] == b"{}"


def test_the_real_model_computes(site):
    here = site({"model": sentiment_model_server()})
    name = here.endpoint()
    texts = ["what a delightful meal", "the plot was dreadful"]
    answer = here.invoke(
        name, json.dumps({"inputs": texts}).encode(), ContentType="application/json"
    )
    found = json.loads(answer["Body"])
    assert [one["label"] for one in found] == ["POSITIVE", "NEGATIVE"]
    assert all(0.5 < one["score"] < 1 for one in found)
    with pytest.raises(ClientError) as raised:
        here.invoke(name, b"not JSON")
    assert raised.value.response["OriginalStatusCode"] == 400
    here.invoke_many(name, 50, body=json.dumps({"inputs": "a good film"}).encode())
    here.aws.advance(60)
    used = here.statistics(name, "CPUUtilization", "Maximum", namespace="/aws/sagemaker/Endpoints")
    assert used["Maximum"] > 0
