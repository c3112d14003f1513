"""The model servers themselves: what they are told to do, in this process and in their own."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from jumping_loop import JumpingLoop
from roles_under_test import give_hosting_role, trust

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import (
    CommandModelServer,
    ServiceTime,
    SimulatedModelServer,
    UrlModelServer,
    parse_model_server,
    sentiment_model_server,
)
from local_sagemaker.model_servers.simulated import Simulation
from local_sagemaker.model_servers.specifications import model_server_for
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


def test_servers_named_on_the_command_line(tmp_path):
    document = tmp_path / "ranker.json"
    document.write_text(json.dumps({"kind": "simulated", "concurrency": 4}))
    assert parse_model_server("*=simulated") == ("*", SimulatedModelServer())
    assert parse_model_server(f"team/ranker={document}") == (
        "team/ranker",
        SimulatedModelServer(concurrency=4),
    )
    assert parse_model_server("a=sentiment")[1] == sentiment_model_server()


@pytest.mark.parametrize(
    "document",
    ['{"kind": "magic"}', '{"kind": "url"}', "{}", "{", '{"kind": "simulated", "workers": 4}'],
)
def test_documents_that_name_no_server_are_refused(document, tmp_path):
    path = tmp_path / "server.json"
    path.write_text(document)
    with pytest.raises(ValueError, match=r"[a-z]{3}"):
        parse_model_server(f"*={path}")


@pytest.mark.parametrize(
    "text", ["simulated", "=simulated", "*=", "*=no/such/file.json", "*=http://10.0.0.1:80"]
)
def test_text_that_names_no_server_is_refused(text):
    with pytest.raises(ValueError, match=r"[a-z]{3}"):
        parse_model_server(text)


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


def test_a_fault_can_come_and_go_while_it_runs(site):
    here = site({"model": SimulatedModelServer(service_time=ECHO)})
    name = here.endpoint()
    here.invoke(name)
    here.aws.set_model_servers({"model": SimulatedModelServer(failure_share=1.0)})
    with pytest.raises(ClientError):
        here.invoke(name)
    here.aws.set_model_servers({"model": SimulatedModelServer(service_time=ECHO)})
    here.invoke(name)


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


def running(pid: int) -> bool:
    found = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(found) and not found.startswith("Z")


def gone(pids: list[int], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(map(running, pids)):
            return True
        time.sleep(0.05)
    return False


def test_a_process_for_each_instance_that_ends_with_it(site):
    server = SimulatedModelServer(service_time=ECHO, in_process=False)
    here = site({"model": server})
    before = set(children_of(os.getpid()))
    name = here.endpoint({"InitialInstanceCount": 2})
    started = [pid for pid in children_of(os.getpid()) if pid not in before]
    assert len(started) == 2
    assert here.invoke(name, b"x")["Body"] == b"x"
    here.aws.client("sagemaker").delete_endpoint(EndpointName=name)
    assert gone(started)


@pytest.mark.parametrize("which", ["the server", "its supervisor"])
def test_a_process_that_dies_is_started_again(site, which):
    here = site({"model": SimulatedModelServer(service_time=ECHO, in_process=False)})
    before = set(children_of(os.getpid()))
    name = here.endpoint()
    (supervisor,) = [pid for pid in children_of(os.getpid()) if pid not in before]
    (server,) = children_of(supervisor)
    os.kill(server if which == "the server" else supervisor, signal.SIGKILL)
    assert gone([supervisor, server])
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


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_no_process_outlives_the_local_aws(how):
    script = (
        "import sys, time\n"
        "from local_sagemaker import LocalAws\n"
        "from local_sagemaker.model_servers import *\n"
        "server = SimulatedModelServer(in_process=False)\n"
        "aws = LocalAws.start(model_servers={'*': server})\n"
        "sagemaker = aws.client('sagemaker')\n"
        "aws.client('iam').create_role(RoleName='models',\n"
        f"    AssumeRolePolicyDocument={json.dumps(trust('sagemaker'))!r})\n"
        "sagemaker.create_model(ModelName='m', PrimaryContainer={'Image': 'a/b:1'},\n"
        "                       ExecutionRoleArn='arn:aws:iam::123456789012:role/models')\n"
        "sagemaker.create_endpoint_config(EndpointConfigName='c', ProductionVariants=[dict(\n"
        "    VariantName='v', ModelName='m', InstanceType='ml.c7i.large',\n"
        "    InitialInstanceCount=1)])\n"
        "sagemaker.create_endpoint(EndpointName='e', EndpointConfigName='c')\n"
        "while sagemaker.describe_endpoint(EndpointName='e')['EndpointStatus'] == 'Creating':\n"
        "    time.sleep(0.02)\n"
        "answer = aws.client('sagemaker-runtime').invoke_endpoint(EndpointName='e', Body=b'hi')\n"
        "print(answer['Body'].read().decode(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline().strip() == "hi"
        (server,) = children_of(process.pid)
        models = children_of(server)
        assert len(models) == 1
        if how == "killed":
            os.kill(server, signal.SIGKILL)
        process.stdin.close()
        process.wait(30)
    assert gone([server, *models])


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


def test_a_command_that_is_no_server_fails_the_endpoint():
    server = CommandModelServer((sys.executable, "-c", "raise SystemExit(3)"))
    with LocalAws.in_process(model_servers={"*": server}) as aws:  # 240 s to become healthy
        sagemaker = aws.client("sagemaker")
        sagemaker.create_model(
            ModelName="exits",
            PrimaryContainer={"Image": "a/b:1"},
            ExecutionRoleArn=give_hosting_role(aws),
        )
        sagemaker.create_endpoint_config(
            EndpointConfigName="exits",
            ProductionVariants=[
                {
                    "VariantName": "v",
                    "ModelName": "exits",
                    "InstanceType": "ml.c7i.large",
                    "InitialInstanceCount": 1,
                }
            ],
        )
        sagemaker.create_endpoint(EndpointName="exits", EndpointConfigName="exits")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = sagemaker.describe_endpoint(EndpointName="exits")
            if found["EndpointStatus"] != "Creating":
                break
            time.sleep(0.02)
        assert found["EndpointStatus"] == "Failed"
        assert "did not pass the ping health check" in found["FailureReason"]
        assert "exit code 3" in found["FailureReason"]
        for kind in ("endpoint", "endpoint_config", "model"):
            member = {
                "endpoint": "EndpointName",
                "endpoint_config": "EndpointConfigName",
                "model": "ModelName",
            }[kind]
            getattr(sagemaker, f"delete_{kind}")(**{member: "exits"})
