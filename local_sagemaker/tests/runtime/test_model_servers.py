"""The model servers themselves: what they are told to do, in this process and in their own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import os
import random
import signal
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from hosting_site import taking
from hypothesis import given, settings
from hypothesis import strategies as st
from jumping_loop import JumpingLoop, run_jumping
from waiting import alive, processes, processes_of, wait_for

from local_sagemaker.model_servers import (
    CommandModelServer,
    LanguageModelServer,
    ServiceTime,
    SimulatedModelServer,
    UrlModelServer,
    handlers,
    parse_model_server,
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


@given(
    share=st.floats(0, 1),
    concurrency=st.integers(1, 64),
    slow=st.dictionaries(st.integers(0, 9), st.floats(1, 9), max_size=3),
    samples=st.lists(st.floats(0, 5), min_size=1, max_size=5),
    context=st.none() | st.integers(1, 4000),
)
def test_options_survive_the_way_to_another_process(share, concurrency, slow, samples, context):
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
            "d": LanguageModelServer(
                gap_seconds=share,
                max_sequences=concurrency,
                slow_instances=slow,
                context_tokens=context,
                kv_tokens=4096,
            ),
        },
        routers=3,
        clock_speed=60.0,
    )
    assert RuntimeOptions.from_json(options.to_json()) == options


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: ServiceTime.constant(-1), "times in seconds"),
        (lambda: ServiceTime.empirical([]), "times in seconds"),
        (lambda: ServiceTime.lognormal(p50=2, p99=1), "p50 <= p99"),
        (lambda: ServiceTime("weibull", (1.0,)), "unknown distribution"),
        (lambda: ServiceTime.gamma(mean=0, variation=1), "mean and variation"),
        (lambda: SimulatedModelServer(failure_share=1.5), "failure_share"),
        (lambda: SimulatedModelServer(concurrency=0), "concurrency"),
        (lambda: SimulatedModelServer(failure_status=200), "failure_status"),
        (lambda: LanguageModelServer(gap_seconds=-1), "gap_seconds"),
        (lambda: LanguageModelServer(gap_seconds=math.nan), "finite"),
        (lambda: LanguageModelServer(kv_tokens=100, context_tokens=101), "kv_tokens, 100"),
        (lambda: LanguageModelServer(failure_share=1.1), "failure_share"),
        (lambda: LanguageModelServer(mid_stream_share=-0.1), "mid_stream_share"),
        (lambda: LanguageModelServer(output_tokens=0), "output_tokens"),
        (lambda: LanguageModelServer(slow_instances={-1: 2.0}), "slow_instances"),
        (lambda: CommandModelServer(()), "a command is needed"),
        (lambda: UrlModelServer("http://10.0.0.1:80"), "on loopback"),
        (lambda: RuntimeOptions(routers=0), "router"),
        (lambda: RuntimeOptions(invocation_timeout=0), "invocation_timeout"),
        (lambda: RuntimeOptions(provision_time=-1), "provision_time must not be negative"),
        (lambda: RuntimeOptions(endpoint_handler="hopes"), "endpoint_handler is one of"),
        (lambda: RuntimeOptions(unchanged_configuration="hopes"), "unchanged_configuration is"),
        (lambda: RuntimeOptions(permissions="sometimes"), "permissions is one of"),
    ],
)
def test_settings_that_cannot_be_are_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_runs_with_its_own_program_where_it_was_given(here):
    (here / "serve").write_text("#!/bin/sh\n")
    (here / "serve").chmod(0o755)
    place = str(here)
    program = (sys.executable, "--p", "$SAGEMAKER_BIND_TO_PORT")
    quoted = parse_model_server(f"team/x='{sys.executable}' --p $SAGEMAKER_BIND_TO_PORT")
    assert quoted == ("team/x", CommandModelServer(program, directory=place))
    own = CommandModelServer((str(here / "serve"),), directory=place)
    assert parse_model_server("x=./serve")[1] == own
    assert parse_model_server("x=sh -c 'exec a | b'")[1].command[1:] == ("-c", "exec a | b")


def test_handlers_that_are_no_python_file_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(ImportError, match=r"handlers\.txt is no Python file"):
        handlers._load(tmp_path / "handlers.txt")


def test_a_known_word_and_a_document_stay_what_they_are(here):
    (here / "simulated").write_text("a file of that name")
    assert parse_model_server("*=simulated") == ("*", SimulatedModelServer())
    assert parse_model_server("x=language-model")[1] == LanguageModelServer()
    (here / "my server.json").write_text('{"kind": "simulated", "concurrency": 4}')
    found = parse_model_server("team/x=my server.json")
    assert found == ("team/x", SimulatedModelServer(concurrency=4))
    (here / "inference.py").write_text("def model_fn(model_dir): ...")
    assert parse_model_server("x=inference.py")[1] == handlers_model_server("inference.py")


@pytest.mark.parametrize(
    ("text", "content", "words"),
    [
        ("x=serve.py", "import http.server", "'python serve.py'"),
        ("x=serve.py", "def predict_fn(d, m): ...", "has predict_fn, and no model_fn"),
        ("x=serve.py", "def", "cannot be read as Python"),
        ("x=simulatd", None, "neither a file nor a program"),
        ("x=server.json", None, "neither a file nor a program"),
        ("x=server.json", "{", "no JSON document"),
        ("x=server.json", "[1]", "server.json: a model server is an object"),
        ("x=server.json", '{"kind": "command", "command": 5}', "command: Input should be a valid"),
        ("x=server.json", '{"kind": "magic"}', "one of simulated, language-model, command, url"),
        ("x=server.json", '{"kind": "simulated", "workers": 4}', "has no workers"),
        ("x=server.json", '{"kind": "simulated", "concurrency": "4"}', "a valid integer, not 4"),
        ("x=server.json", '{"kind": "simulated", "memory": NaN}', "JSON compliant"),
        (
            "x=server.json",
            '{"kind": "simulated", "service_time": {"kind": "gamma"}}',
            "time.values",
        ),
        ("x=server.json", "{}", "kind"),
        ("x=server.json", '{"kind": "url"}', "url"),
        ("x=notes", "neither", "no JSON document"),
        ("x=nosuchprogram --port 1", None, "nosuchprogram is neither"),
        ("x='python", None, "No closing quotation"),
        ("x=http://127.0.0.1:80@evil.example", None, "on loopback"),
        ("x=http://localhost:99999", None, "on loopback"),
        ("x=https://localhost:8080", None, "on loopback"),
        ("x=http://10.0.0.1:80", None, "on loopback"),
        ("x=a\0b", None, "IMAGE=SERVER"),
        ("simulated", None, "IMAGE=SERVER"),
        ("=simulated", None, "IMAGE=SERVER"),
        ("x=", None, "IMAGE=SERVER"),
    ],
)
def test_what_is_no_server_is_refused_in_one_line(here, text, content, words):
    if content is not None:
        (here / text.removeprefix("x=")).write_text(content)
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


OF_A_KIND = {**to_document(SimulatedModelServer()), **to_document(CommandModelServer(("a",)))}
KEYS = sorted({*OF_A_KIND, "url", "in_process"} - {"kind"})


@settings(max_examples=300)
@given(
    st.one_of(
        JSON,
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["simulated", "command", "url"])},
            optional=dict.fromkeys(KEYS, JSON),
        ),
    )
)
def test_any_document_is_a_server_or_refused(document):
    """Never anything but ValueError; and what is taken is written and read the same."""
    server = None
    with contextlib.suppress(ValueError):
        server = from_document(document)
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


def test_workers_work_side_by_side_and_others_queue(served):
    here, name = served(model=taking(0.2, concurrency=2))
    here.invoke(name)
    assert 0.2 <= quickest(here, name, 2, at_once=2) < 0.39
    assert 0.4 <= quickest(here, name, 4, at_once=4) < 0.59


def test_a_full_queue_answers_503(served):
    here, name = served(model=taking(1.0, queue_limit=0))
    here.aws.client("sagemaker-runtime")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(here.invoke, name)
        time.sleep(0.3)
        with pytest.raises(ClientError) as raised:
            here.invoke(name)
        assert raised.value.response["OriginalStatusCode"] == 503
        assert first.result()["Body"] == b"{}"


def test_a_share_of_failures(served):
    here, name = served(model=taking(0.0, failure_share=0.3))
    for _ in range(200):
        with contextlib.suppress(ClientError):
            here.invoke(name)
    failed = here.statistics(name, "InvocationModelErrors", "Sum")["Sum"]
    assert 34 < failed < 86  # 60 +- 4 deviations of 6.5


def test_the_first_requests_of_a_cold_instance_are_slow():
    """On a clock that jumps: what an instance computes, to the bit."""
    server = taking(0.01, cold_requests=2, cold_factor=20)

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

    assert run_jumping(times) == pytest.approx([0.2, 0.2, 0.01, 0.01])


@pytest.mark.parametrize("kind", [SimulatedModelServer, LanguageModelServer])
def test_a_fault_can_come_and_go_while_it_runs(served, kind):
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}).encode()
    here, name = served(model=kind())
    here.invoke(name, body)
    here.aws.set_model_servers({"model": kind(failure_share=1.0)})
    with pytest.raises(ClientError, match="500"):
        here.invoke(name, body)
    here.aws.set_model_servers({"model": kind()})
    here.invoke(name, body)


# ---------------------------------------------------------------------------------- processes


def test_a_process_for_each_instance_that_ends_with_it(served):
    here, name = served({"InitialInstanceCount": 2}, model=taking(0.0, in_process=False))
    assert len(processes_of(name)) == 4  # each with its supervisor
    assert here.invoke(name, b"x")["Body"] == b"x"
    here.aws.client("sagemaker").delete_endpoint(EndpointName=name)
    wait_for(lambda: not processes_of(name))


@pytest.mark.parametrize("which", ["the server", "its supervisor"])
def test_a_process_that_dies_is_started_again(served, which):
    here, name = served(model=taking(0.0, in_process=False))
    started, supervisors = processes_of(name), processes("process_supervisor")
    (victim,) = started & supervisors if which == "its supervisor" else started - supervisors
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: not any(map(alive, started)))
    codes = set()

    def answered() -> bool:
        try:
            return here.invoke(name)["Body"] == b"{}"
        except ClientError as error:
            codes.add(error.response["Error"]["Code"])
            return False

    wait_for(answered)
    assert codes == {"ServiceUnavailable"}


def test_whoever_adds_a_model_server_reads_who_has_it(site):
    """A simulated server takes settings of its kind at once; another kind waits for new instances."""
    here = site()
    name = here.endpoint()
    for server, changed, kept in (
        (taking(0.01), [name], []),
        (taking(0.01), [], []),
        (CommandModelServer(("python", "serve.py")), [], [name]),
    ):
        assert here.aws.add_model_servers({"model": server}) == {"changed": changed, "kept": kept}
