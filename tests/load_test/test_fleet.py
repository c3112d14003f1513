"""The fleet in the local AWS: tasks are processes, so a whole run happens, and goes wrong."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from local_sagemaker import LocalAws, RuntimeOptions, deploy_template
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from low_latency_endpoint.account.sessions import AwsUnavailable
from low_latency_endpoint.cli import app
from low_latency_endpoint.load_test.engine.arrivals import PoissonArrivals
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.prompts import Prompts
from low_latency_endpoint.load_test.engine.steps import Progress, Step
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.fleet import fleet_generator
from low_latency_endpoint.load_test.fleet.fleet_generator import (
    FleetDescription,
    FleetGenerator,
    FleetTasks,
    find_fleet,
)
from low_latency_endpoint.load_test.fleet.task import STATUS, RunFolder
from tests.refusals import refused

from .locust_runs import free_port, until

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).parents[2]
TARGET = Target("sentiment", "us-east-1")
PAYLOADS = Payloads.of_bytes(b'{"inputs": "I like you."}')
STEP = Step("60 TPS", 2, PoissonArrivals(60), seed=7)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    """The stacks of app.py in a local AWS of its own process, whose model takes 20 ms."""
    from aws_cdk import App, Environment

    from low_latency_endpoint import LoadTestFleetStack, LowLatencyEndpointStack
    from low_latency_endpoint.settings import parse_settings

    data = yaml.safe_load((ROOT / "endpoint.yaml").read_text())
    sentiment = data["endpoints"]["sentiment"]
    sentiment["warm_up"] = {**sentiment["warm_up"], "requests": 0}
    folder = tmp_path_factory.mktemp("assembly")
    made = App(outdir=str(folder), context=json.loads((ROOT / "cdk.json").read_text())["context"])
    settings = parse_settings(yaml.safe_dump(data))
    env = Environment(account="123456789012", region="us-east-1")
    serving = LowLatencyEndpointStack(made, "Serving", settings=settings, env=env)
    LoadTestFleetStack(made, "Testing", serving=serving, env=env)
    made.synth()
    servers = {"*": SimulatedModelServer(service_time=ServiceTime.constant(0.02), concurrency=64)}
    with LocalAws.start(model_servers=servers, runtime=RuntimeOptions(seed=1)) as running_aws:
        deploy_template(running_aws, folder, "Serving", timeout=300)
        deploy_template(running_aws, folder, "Testing")
        yield running_aws


@pytest.fixture
def fleet(aws: LocalAws) -> FleetDescription:
    return find_fleet(aws.client, "sentiment")


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def open_fleet(aws: LocalAws, fleet: FleetDescription, told: list[str]) -> Any:
    """A fleet that polls quickly, on ports of its own: all tasks are on this machine."""

    def opened(
        workers: int = 2,
        payloads: Payloads = PAYLOADS,
        target: Target = TARGET,
        description: FleetDescription = fleet,
        **more: Any,
    ) -> FleetGenerator:
        return FleetGenerator(
            aws.client,
            description,
            target,
            payloads,
            **{
                "workers": workers,
                "tell": told.append,
                "master_port": free_port(),
                "poll_seconds": 0.1,
                **more,
            },
        )

    return opened


def tasks(aws: LocalAws, fleet: FleetDescription, run_id: str) -> list[dict[str, Any]]:
    """Every task of a run, stopped or not."""
    ecs = aws.client("ecs")
    arns = [
        arn
        for status in ("RUNNING", "STOPPED")
        for arn in ecs.list_tasks(cluster=fleet.cluster, startedBy=run_id, desiredStatus=status)[
            "taskArns"
        ]
    ]
    return list(ecs.describe_tasks(cluster=fleet.cluster, tasks=arns)["tasks"]) if arns else []


def task_of(found: list[dict[str, Any]], container: str) -> dict[str, Any]:
    return next(task for task in found if task["containers"][0]["name"] == container)


def running_tasks(aws: LocalAws, fleet: FleetDescription) -> list[str]:
    return list(aws.client("ecs").list_tasks(cluster=fleet.cluster)["taskArns"])


def log_of(aws: LocalAws, fleet: FleetDescription, task: dict[str, Any]) -> str:
    stream = f"load-test/{task['containers'][0]['name']}/{task['taskArn'].rpartition('/')[2]}"
    answer = aws.client("logs").get_log_events(logGroupName=fleet.log_group, logStreamName=stream)
    return "\n".join(event["message"] for event in answer["events"])


# --- a run ----------------------------------------------------------------------------------------


def test_two_workers_in_two_zones_send_every_request_once(aws, fleet, open_fleet, told):
    seconds: list[Progress] = []
    generator = open_fleet()
    with generator:
        result = generator.run(STEP, seconds.append)
        again = generator.run(replace(STEP, name="again", seconds=1))
        started = tasks(aws, fleet, generator.run_id)
    offsets = list(STEP.arrivals.offsets(STEP.seconds, seed=STEP.seed))
    assert result.step == STEP
    assert (result.intended, result.sent, result.completed) == (len(offsets),) * 3
    assert not result.errors
    assert result.latency.count == len(offsets)
    assert 0.02 <= result.latency.percentile(50) < 5  # seconds, and not milliseconds
    assert result.processes == 2
    assert again.step.name == "again"
    assert sum(second.completed for second in seconds) > 0
    assert [second.seconds for second in seconds] == sorted(s.seconds for s in seconds)

    kinds = sorted(task["containers"][0]["name"] for task in started)
    assert kinds == ["master", "worker", "worker"]
    subnets = {
        detail["value"]
        for task in started
        if task["containers"][0]["name"] == "worker"
        for detail in task["attachments"][0]["details"]
        if detail["name"] == "subnetId"
    }
    assert subnets == set(fleet.subnets)
    # The image's environment is not the way in: nothing but the run is passed.
    assert "step 1: 60 TPS" in log_of(aws, fleet, task_of(started, "master"))

    assert told[-1] == "The fleet is stopped; nothing of it runs any more"
    ended = tasks(aws, fleet, generator.run_id)
    assert {task["lastStatus"] for task in ended} == {"STOPPED"}
    assert running_tasks(aws, fleet) == []


def test_a_payload_function_travels(open_fleet, tmp_path, monkeypatch):
    (tmp_path / "made_here.py").write_text(
        "def body(index):\n    return {'inputs': f'number {index}'}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with open_fleet(workers=1, payloads=Payloads.of_generator("made_here:body")) as generator:
        result = generator.run(replace(STEP, seconds=1))
    assert result.completed == result.sent > 0


@pytest.mark.parametrize("name", ["json:dumps", "os.path:basename", "math:sqrt"])
def test_a_payload_function_that_cannot_travel_is_refused(open_fleet, name):
    payloads = Payloads((), generator=name)
    with refused("LLT127", got=name):
        open_fleet(payloads=payloads)


def test_workers_do_not_share_a_session(open_fleet):
    prompts = Prompts.of("input=9,output=2,turns=2,conversations=10", sessions=True)
    with refused("LLT169"):
        open_fleet(payloads=Payloads.of_prompts(prompts), workers=3)


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 201, 1.5, "four"])
def test_an_impossible_number_of_workers_is_refused(open_fleet, workers):
    with refused("LLT124"):
        open_fleet(workers=workers)


def test_no_fleet_is_said_with_the_way_to_one(aws):
    with refused("LLT123") as raised:
        find_fleet(aws.client, "nobody")
    assert "load-test-fleet=true" in raised.value.fix


@pytest.mark.parametrize("count", [2, 11])  # ten to a page
def test_of_several_fleets_none_is_chosen_and_each_is_told(aws, count):
    for number in range(count):
        name = f"/low-latency-endpoint/load-test-fleet/many-{count}/stack-{number}"
        aws.client("ssm").put_parameter(Name=name, Value="{}", Type="String", Overwrite=True)
    with refused("LLT170") as raised:
        find_fleet(aws.client, f"many-{count}")
    assert raised.value.got.count(f"/many-{count}/") == count


@pytest.mark.parametrize("value", ["{", "[]", '{"schema": 1}', '{"subnets": 3}'])
def test_a_description_of_another_version_is_said(aws, value):
    name = "/low-latency-endpoint/load-test-fleet/older/testing-fleet"
    aws.client("ssm").put_parameter(Name=name, Value=value, Type="String", Overwrite=True)
    with refused("LLT123") as raised:
        find_fleet(aws.client, "older")
    assert "again" in raised.value.fix


@pytest.mark.parametrize("private_dns", [True, False])
def test_each_worker_calls_its_own_zone_where_there_is_no_private_dns(fleet, private_dns):
    urls = {
        subnet: f"https://vpce-1-{zone}.example.com"
        for subnet, zone in zip(fleet.subnets, fleet.zones, strict=True)
    }
    described = fleet if private_dns else replace(fleet, zonal_urls=tuple(urls.values()))
    called: dict[tuple[str, str], str | None] = {}

    class Ecs:
        def run_task(self, **request: Any) -> dict[str, Any]:
            (override,) = request["overrides"]["containerOverrides"]
            (subnet,) = request["networkConfiguration"]["awsvpcConfiguration"]["subnets"]
            environment = {each["name"]: each["value"] for each in override["environment"]}
            called[override["name"], subnet] = environment.get("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME")
            assert environment["MADE"] == "for all"
            return {"tasks": [{"taskArn": "arn"}] * request["count"]}

    started = FleetTasks(lambda service: Ecs(), described, "a-run")
    started.start("master", 1, {"MADE": "for all"})
    started.start("worker", 2, {"MADE": "for all"})  # one in each zone
    workers = {subnet: url for (kind, subnet), url in called.items() if kind == "worker"}
    assert workers == (dict.fromkeys(urls) if private_dns else urls)
    assert [url for (kind, _), url in called.items() if kind == "master"] == [None]


def test_a_task_that_does_not_start_ends_the_run_with_ecss_reason(aws, fleet, open_fleet):
    ecs = aws.client("ecs")
    wrong = ecs.register_task_definition(
        family="wrong",
        requiresCompatibilities=["FARGATE"],
        networkMode="awsvpc",
        cpu="256",
        memory="512",
        containerDefinitions=[{"name": "worker", "image": "x", "command": ["sh"]}],
    )["taskDefinition"]["taskDefinitionArn"]
    with refused("LLT125") as raised, open_fleet(description=replace(fleet, worker=wrong)):
        pass
    assert "CannotPullContainerError" in raised.value.got
    assert running_tasks(aws, fleet) == []


def test_fewer_tasks_than_asked_for_end_the_run(aws, fleet, open_fleet, monkeypatch):
    """No capacity: RunTask answers 200 with failures."""
    ecs = aws.client("ecs")
    whole = ecs.run_task

    def run_task(**request: Any) -> dict[str, Any]:
        if request["overrides"]["containerOverrides"][0]["name"] == "master":
            return dict(whole(**request))
        return {"tasks": [], "failures": [{"reason": "Capacity is unavailable at this time"}]}

    monkeypatch.setattr(ecs, "run_task", run_task)
    generator = open_fleet()
    generator._tasks._ecs = ecs
    with refused("LLT125") as raised, generator:
        pass
    assert "Capacity is unavailable" in raised.value.got
    assert running_tasks(aws, fleet) == []


def test_a_lost_worker_ends_the_run_and_the_rest_of_the_fleet(aws, fleet, open_fleet, monkeypatch):
    monkeypatch.setattr(fleet_generator, "_LOOK_EVERY", 0.5)
    generator = open_fleet()

    def lose(second: Progress) -> None:
        worker = task_of(tasks(aws, fleet, generator.run_id), "worker")
        aws.client("ecs").stop_task(cluster=fleet.cluster, task=worker["taskArn"], reason="spot")

    with refused("LLT126") as raised, generator:
        generator.run(replace(STEP, seconds=30), lose)
    assert "spot" in raised.value.got
    assert running_tasks(aws, fleet) == []


def test_what_the_generator_fails_with_arrives_with_its_code(
    aws, fleet, open_fleet, tmp_path, monkeypatch
):
    """A payload module that imports what only this machine has."""
    (tmp_path / "needs_more.py").write_text(
        "import os\nif 'LOAD_TEST_RUN' in os.environ:\n    import pandas_of_mine\n"
        "def body(index):\n    return 'x'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    payloads = Payloads.of_generator("needs_more:body")
    with refused("LLT102") as raised, open_fleet(1, payloads):
        pass
    assert "pandas_of_mine" in raised.value.got
    assert running_tasks(aws, fleet) == []


def test_a_refusal_of_aws_is_said_in_words(aws, fleet, open_fleet):
    with (
        pytest.raises(AwsUnavailable, match="ClusterNotFound"),
        open_fleet(description=replace(fleet, cluster="no-such-cluster")),
    ):
        pass


def test_the_fleet_ends_by_itself_when_this_machine_has_died(aws, fleet, open_fleet, monkeypatch):
    monkeypatch.setattr(fleet_generator, "_PATIENCE_SECONDS", 2.0)
    generator = open_fleet(workers=1)
    generator.__enter__()
    generator._closed.set()  # no sign of life from now on
    until(lambda: running_tasks(aws, fleet) == [], 60)
    master = task_of(tasks(aws, fleet, generator.run_id), "master")
    assert master["containers"][0]["exitCode"] == 3
    assert "no sign of the machine" in log_of(aws, fleet, master)


def test_it_ends_by_itself_before_its_workers_too(aws, fleet, open_fleet, monkeypatch):
    monkeypatch.setattr(fleet_generator, "_PATIENCE_SECONDS", 2.0)
    generator = open_fleet(workers=1)
    monkeypatch.setattr(generator, "_wait_for_address", lambda: sys.exit("the machine dies here"))
    monkeypatch.setattr(generator, "close", generator._closed.set)
    with pytest.raises(SystemExit), generator:
        pass
    assert len(running_tasks(aws, fleet)) == 1
    until(lambda: running_tasks(aws, fleet) == [], 60)


INTERRUPTED = """
import sys
from low_latency_endpoint.load_test import Payloads, Step, Target
from low_latency_endpoint.load_test.fleet.fleet_generator import FleetGenerator
import boto3
with FleetGenerator.of_endpoint(
    boto3.client, Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"), workers=1,
    tell=lambda text: print(text, flush=True), master_port=int(sys.argv[1]), poll_seconds=0.2,
) as generator:
    print("ready", flush=True)
    generator.run(Step("long", 60, users=1))
"""


def test_ctrl_c_stops_every_task(aws, fleet):
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(free_port())],
        env=aws.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "ready\n":
                assert len(running_tasks(aws, fleet)) == 2
                os.kill(process.pid, signal.SIGINT)
    assert any("nothing of it runs any more" in line for line in lines), lines
    assert running_tasks(aws, fleet) == []


# --- through the command --------------------------------------------------------------------------


def test_the_command_runs_on_the_fleet(aws, fleet, monkeypatch, tmp_path):
    for name, value in aws.exports().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        FleetGenerator,
        "of_endpoint",
        staticmethod(
            functools.partial(FleetGenerator.of_endpoint, master_port=free_port(), poll_seconds=0.2)
        ),
    )
    output = tmp_path / "result.json"
    line = (
        "load-test sentiment --fleet 2 --tps 40 --duration 2s --alone 1s --metrics-wait 0s "
        f"--payload {{}} --target p99=2s --region us-east-1 -o {output}"
    )
    done = CliRunner().invoke(app, line.split())
    # Files and tasks are what this is about; a busy machine may make the generator late, and then
    # the command says so, with status 1.
    late = "Client-bound: result invalid" in done.stdout
    assert done.exit_code == (1 if late else 0), done.output
    assert "nothing of it runs any more" in done.stderr
    steps = json.loads(output.read_text())["steps"]
    assert [step["step"]["name"] for step in steps] == ["alone", "40 TPS"]
    assert steps[1]["generator"]["processes"] == 2
    (run_id,) = re.findall(r"Run (\S+): the master is starting", done.stderr)
    assert RunFolder(aws.client("s3"), fleet.bucket, run_id).read(STATUS)["state"] == "done"
    assert running_tasks(aws, fleet) == []


def test_processes_of_this_machine_do_not_go_with_a_fleet():
    done = CliRunner().invoke(
        app, ["load-test", "sentiment", "--fleet", "2", "--processes", "2", "--tps", "1"]
    )
    assert done.exit_code == 2
    assert "--processes" in done.output
