"""What the reader of each page has before the first command: files, and an account's content.

A page of `READERS` is run as it is printed (test_commands_run.py), but for what `ELSEWHERE` says of
single commands, with what `ADDED` adds to those that would take half an hour.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any

import yaml
from botocore.exceptions import ClientError

from examples.demo_surroundings import model_uris, stand_ins_for_images
from local_sagemaker import LocalAws, RuntimeOptions, deploy_template
from local_sagemaker.model_servers import LanguageModelServer, ServiceTime, SimulatedModelServer
from low_latency_endpoint.settings import parse_settings
from tests.git_commands import git
from tests.load_test.locust_runs import free_port
from tests.pinned_models import QWEN, written_lock

from .console_blocks import ROOT

TEMPLATES = ROOT / "constructs" / "low_latency_endpoint" / "cli" / "init_templates"
SHIPPED: dict[str, Any] = yaml.safe_load((ROOT / "endpoint.yaml").read_text("utf-8"))
REQUEST = '{"inputs": "I like you."}'
#: 20 requests a second from each instance: eight of them are less than a machine can send.
#: Constant times would leave only the machine's own noise, whose bursts make requests late together.
SMALL = SimulatedModelServer(
    service_time=ServiceTime.gamma(mean=0.05, variation=0.2), concurrency=1
)
#: 100 of them, for two instances and the warm-up of settings that `init` wrote.
LARGER = SimulatedModelServer(
    service_time=ServiceTime.gamma(mean=0.02, variation=0.2), concurrency=2
)
#: A limit that twenty seconds of a busy machine show with a confidence; hardly ever that of p99.
SEARCHED = {"p90": "200ms"}
#: Of containers with vLLM.
CHAT = LanguageModelServer(gap_seconds=0.001, seconds_per_prompt_token=1e-5)


def settings(**changes: Any) -> str:
    """The settings that ship, with changes of their endpoint."""
    sentiment = dict(SHIPPED["endpoints"]["sentiment"])
    sentiment["warm_up"] = {**sentiment["warm_up"], "requests": 4}
    # What a machine that runs other tests can send, and the model below can answer.
    sentiment["throughput"] = {**sentiment["throughput"], "peak_tps": 80, "tps_per_instance": 16}
    sentiment |= changes
    return yaml.safe_dump({**SHIPPED, "endpoints": {"sentiment": sentiment}}, sort_keys=False)


_CONTAINER_PORT = free_port()  # of the model server that a page starts


@dataclass
class Desk:
    """A reader's folder, and the account that their commands reach."""

    folder: Path
    environment: dict[str, str]
    aws: LocalAws = field(init=False)
    """Of a page that needs one."""

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.folder / name).write_text(text, "utf-8")

    def run(self, *command: str) -> None:
        """Run a command before the reader's first."""
        subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            check=True,
            capture_output=True,
        )

    def modules(self) -> None:
        """What `npm ci` brings."""
        (self.folder / "node_modules").symlink_to(ROOT / "node_modules")

    def app(self) -> None:
        """What `cdk deploy` needs of this repository, and the settings that ship."""
        for name in ("app.py", "cdk.json"):
            shutil.copy(ROOT / name, self.folder)
        shutil.copytree(ROOT / "stacks", self.folder / "stacks")
        self.modules()
        shutil.copy(ROOT / "endpoint.yaml", self.folder)
        shutil.copy(ROOT / "endpoint.schema.json", self.folder)

    def commit(self, text: str, name: str = "endpoint.yaml") -> None:
        """Commit settings, on the branch main."""
        if not (self.folder / ".git").exists():
            git(self.folder, "init", "--quiet", "--initial-branch=main")
        self.write(name, text)
        git(self.folder, "add", name)
        git(self.folder, "commit", "--quiet", "-m", "Settings")

    def images_and_models(self, text: str) -> None:
        """Put into the account what settings name: images, and model data in a bucket."""
        stated = parse_settings(text)
        list(stand_ins_for_images(self.aws, stated))
        if stated.alarm_topic_arn:
            self.aws.client("sns").create_topic(Name=stated.alarm_topic_arn.rpartition(":")[2])
        s3 = self.aws.client("s3")
        prefixes = [
            container.data.s3_prefix
            for endpoint in stated.endpoints.values()
            for container in endpoint.containers
            if container.data and container.data.s3_prefix
        ]
        for uri in [*model_uris(stated), *prefixes]:
            bucket, _, key = uri.removeprefix("s3://").partition("/")
            with contextlib.suppress(s3.exceptions.BucketAlreadyOwnedByYou):
                s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key=key + "model" * key.endswith("/"), Body=b"weights")

    def bootstrap(self) -> None:
        """What `cdk bootstrap` makes, once for each account."""
        self.run("npx", "cdk", "bootstrap", "--no-notices", f"aws://{self.aws.account}/us-east-1")

    def deployed(
        self, text: str, *, stack: str = "LowLatencyEndpoint", with_fleet: bool = False
    ) -> None:
        """Deploy settings as `cdk deploy` would; the CLI has its turn in other pages."""
        from aws_cdk import App, Environment, Stack

        from low_latency_endpoint import LoadTestFleetStack, LowLatencyEndpointStack

        self.write("endpoint.yaml", text)
        out = self.folder / ".assembly"
        context = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]
        app = App(outdir=str(out), context=context)
        env = Environment(account=self.aws.account, region="us-east-1")
        serving = LowLatencyEndpointStack(app, stack, settings=parse_settings(text), env=env)
        stacks: list[Stack] = [serving]
        if with_fleet:
            stacks += [LoadTestFleetStack(app, "LoadTestFleet", serving=serving, env=env)]
        app.synth()
        for each in stacks:
            deploy_template(self.aws, out, each.stack_name, timeout=300)

    def load(self, requests: int = 60) -> None:
        """Some minutes of callers."""
        runtime = self.aws.client("sagemaker-runtime")
        for _ in range(requests):
            runtime.invoke_endpoint(EndpointName="sentiment", Body=REQUEST.encode())
            time.sleep(0.01)
        self.aws.flush_metrics()

    @contextlib.contextmanager
    def called(self) -> Iterator[None]:
        """Callers all the while, from when the endpoint serves: a slow machine's hour has some too."""
        over, runtime = threading.Event(), self.aws.client("sagemaker-runtime")

        def call() -> None:
            while not over.wait(0.5):
                with contextlib.suppress(ClientError):
                    runtime.invoke_endpoint(EndpointName="sentiment", Body=REQUEST.encode())

        caller = threading.Thread(target=call)
        caller.start()
        try:
            yield
        finally:
            over.set()
            caller.join()


@dataclass(frozen=True)
class Reader:
    """Who reads a page: what they have, and of which account."""

    has: Callable[[Desk], None] = lambda _: None
    needs_aws: bool = True
    deploys: bool = False
    server: SimulatedModelServer = SMALL
    stands_for: dict[str, str] = field(default_factory=dict)
    """What the page writes for something of the reader's own."""
    has_typed: str = ""
    """The beginning of commands that the reader has typed elsewhere: another terminal, say."""


@contextlib.contextmanager
def at_desk(reader: Reader, folder: Path) -> Iterator[Desk]:
    """The reader's folder, and a local AWS where the page needs an account."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "CDK_NOTICES": "false",
        "CDK_REQUIRE_APPROVAL": "never",  # a terminal would be asked
    }
    with contextlib.ExitStack() as around:
        desk = Desk(folder, environment)
        if reader.needs_aws:
            desk.aws = around.enter_context(
                LocalAws.start(
                    model_servers={"*": reader.server, "vllm": CHAT},
                    runtime=RuntimeOptions(interfaces_stay=0),
                )
            )
            desk.aws.set_clock_speed(60)
            desk.environment = {**environment, **desk.aws.exports()}
        reader.has(desk)
        if reader.needs_aws and not reader.deploys:
            desk.aws.set_clock_speed(1)  # or scaling ends its cooldowns within a load test
        if reader.deploys:
            around.enter_context(desk.called())
        yield desk


# ------------------------------------------------------------------------------------- each reader


def _shown(page: str, language: str) -> list[str]:
    """The blocks of a how-to page in a language."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def _deployed(desk: Desk, **changes: Any) -> None:
    desk.images_and_models(settings(**changes))
    desk.deployed(settings(**changes))
    desk.write("body.json", REQUEST)


def _with_callers(desk: Desk) -> None:
    _deployed(desk)
    desk.load()


def _two_variants(desk: Desk) -> None:
    _deployed(desk, variants={"random": {"routing": "random"}}, scaling={"enabled": False})


def _and_chat(desk: Desk) -> None:
    """A language model beside the variants, with the settings that the page shows of it."""
    (shown,) = (text for text in _shown("compare-routing", "yaml") if "tokens:" in text)
    template = Template((TEMPLATES / "language-model.yaml").read_text("utf-8"))
    desk.write("prompts.jsonl", f"{REQUEST}\n")
    given = {"name": "chat", "model_data": "s3://my-bucket/chat/"}
    chat = yaml.safe_load(template.safe_substitute(given))["endpoints"]["chat"]
    chat |= yaml.safe_load(shown)["endpoints"]["chat"]
    text = yaml.safe_dump({**SHIPPED, "endpoints": {"chat": chat}})
    desk.images_and_models(text)
    desk.deployed(text, stack="Chat")
    _two_variants(desk)


def _from_random(desk: Desk) -> None:
    _two_variants(desk)
    shutil.move(desk.folder / "endpoint.yaml", desk.folder / "routing.yaml")
    desk.write("endpoint.yaml", settings())
    desk.write("random.yaml", settings(routing="random"))


def _readme(desk: Desk) -> None:
    desk.app()
    text = settings(scaling={"enabled": False}, latency=SEARCHED)  # as load tests want it
    desk.write("endpoint.yaml", text)
    desk.images_and_models(text)
    desk.bootstrap()


def _changed(desk: Desk) -> None:
    """A deployed version, and another one after it; as a Git repository."""
    desk.commit(settings(tags={"version": "1"}))
    desk.commit(settings(tags={"version": "2"}))
    _deployed(desk, tags={"version": "2"})


def _roll_back(desk: Desk) -> None:
    desk.app()
    desk.bootstrap()
    _changed(desk)
    desk.load()


def _pull_request(desk: Desk) -> None:
    (desk.folder / "endpoints").mkdir()
    desk.commit(settings(), "endpoints/sentiment.yaml")
    git(desk.folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    desk.commit(settings(tags={"team": "nlp"}), "endpoints/sentiment.yaml")


def _vpc_with_subnets(desk: Desk, *zones: str) -> tuple[str, dict[str, str]]:
    """A VPC that the reader has, and a subnet's ID by zone ID."""
    ec2 = desk.aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    for name in ("EnableDnsSupport", "EnableDnsHostnames"):
        ec2.modify_vpc_attribute(VpcId=vpc, **{name: {"Value": True}})
    subnets = {
        zone: ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.7.{16 * number}.0/20", AvailabilityZoneId=zone
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate(zones)
    }
    return vpc, subnets


def _existing_vpc(desk: Desk) -> None:
    vpc, subnets = _vpc_with_subnets(desk, "use1-az1", "use1-az2")
    desk.app()
    desk.bootstrap()
    stated = yaml.safe_load(settings())
    stated |= {
        "account": desk.aws.account,
        "region": "us-east-1",
        "client_zones": {"ids": list(subnets)},
        "network": {"vpc_id": vpc, "subnets": subnets},
        "private_link": {"private_dns": True},
    }
    desk.write("endpoint.yaml", yaml.safe_dump(stated))
    desk.images_and_models(yaml.safe_dump(stated))


_OWN_PEAKS = """\
import yaml
with open("endpoint.yaml") as file:
    settings = yaml.safe_load(file)
throughput = settings["endpoints"]["fraud-score"]["throughput"]
night = {"tps": 60, "from": "22:00", "to": "06:00", "time_zone": "Europe/Berlin"}
throughput |= {"rise_tps_per_minute": 1, "peaks": {"night": night}}
with open("endpoint.yaml", "w") as file:
    yaml.safe_dump(settings, file)
"""


def _own_endpoint(desk: Desk) -> None:
    """The page's file in the reader's VPC, with a target that a busy machine meets."""
    shown, _ = _shown("own-endpoint-in-ten-minutes", r'yaml(?: title="endpoint.yaml")?')
    stated = yaml.safe_load(shown)
    vpc, subnets = _vpc_with_subnets(desk, *stated["client_zones"]["ids"])
    stated["network"] = {"vpc_id": vpc, "subnets": subnets}
    fraud_score = stated["endpoints"]["fraud-score"]
    fraud_score["latency"] = SEARCHED
    # One at a time in each zone: more would wait for the one worker, beyond the target.
    fraud_score["warm_up"] |= {"requests": 6, "concurrency_per_zone": 1}
    desk.app()
    desk.bootstrap()
    desk.write("endpoint.yaml", yaml.safe_dump(stated, sort_keys=False))
    desk.write("edit.py", _OWN_PEAKS)
    desk.images_and_models(yaml.safe_dump(stated))


def _init(*arguments: str, bootstrapped: bool = True) -> Callable[[Desk], None]:
    """An account with what the settings name that ``low-latency init`` is going to write."""

    def has(desk: Desk) -> None:
        with tempfile.TemporaryDirectory() as folder:
            desk.run("low-latency", "init", folder, *arguments)
            desk.images_and_models((Path(folder) / "endpoint.yaml").read_text("utf-8"))
        desk.modules()
        if bootstrapped:
            desk.bootstrap()
        desk.write("body.json", REQUEST)
        desk.write("prompts.jsonl", '{"messages": [{"role": "user", "content": "Hello"}]}\n')

    return has


def _without_bootstrap(desk: Desk) -> None:
    """The page's app.py, which the reader writes over that of init, and a bucket for assets."""
    _init(*_DATA, *_INIT, bootstrapped=False)(desk)
    (shown,) = _shown("terraform-and-other-languages", "python")
    desk.write("app.py", shown)
    desk.aws.client("s3").create_bucket(Bucket="my-assets")


def _chat(desk: Desk) -> None:
    """The page starts its own local AWS; the result of its search is here already."""
    desk.modules()
    result = {
        "schema": "low-latency-endpoint/load-test-result/1",
        "source": "load test on ml.g5.xlarge",
        "endpoint": "chat",
        "instances": 1,
        "region": "us-east-1",
        "fleet": {"instance_type": "ml.g5.xlarge"},
        "latency_target": {"targets_ms": {"p99": 100.0}},
        "limit": {
            "tps_per_instance": 3.63,
            "concurrency_per_instance": 11.7,
            "lower_bound": False,
            # What the page shows: latency held, and 145 requests say little of failures.
            "assured": {
                "tps_per_instance": 3.63,
                "concurrency_per_instance": 11.7,
                "failures": 0.021,
                "requests": 145,
                "when": "from 14:02:10 to 14:02:30 UTC",
            },
        },
        "steps": [],
    }
    desk.write("limit.json", json.dumps(result))


def _hugging_face(desk: Desk) -> None:
    """Pinned already: what pinning does is tried at a Hub of tiny models."""
    desk.modules()
    written_lock(desk.folder, replace(QWEN, commit="b968826d9c46dd6066d109eabc6255188de91218"))


def _jumpstart(desk: Desk) -> None:
    (shown,) = _shown("jumpstart", "yaml")
    desk.write("endpoint.yaml", shown)


def _own_container(desk: Desk) -> None:
    """The page's server, which takes some time."""
    (shown,) = _shown("own-container", 'python title="serve.py"')
    server = shown.replace("    return", "    await asyncio.sleep(0.1)\n    return")
    server = server.replace("0.0.0.0", "127.0.0.1")  # other machines need not reach a test's server
    desk.write("serve.py", f"import asyncio\n{server}")


def _with_fleet(desk: Desk) -> None:
    desk.app()
    desk.images_and_models(settings())
    desk.deployed(settings(), with_fleet=True)


def _costs(desk: Desk) -> None:
    desk.write("endpoint.yaml", settings())
    minutes = [f"2026-11-20T{n // 60:02}:{n % 60:02}:00Z" for n in range(24 * 60)]
    rates = [1000.0 + 10 * (n % 60) for n in range(24 * 60)]
    found = {"Id": "m", "Label": "Invocations", "Timestamps": minutes, "Values": rates}
    desk.write("invocations.json", json.dumps({"MetricDataResults": [found]}))


def _regulated(desk: Desk) -> None:
    (desk.folder / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "regulated.yaml", desk.folder / "examples")
    desk.aws.client("logs").create_log_group(logGroupName="/aws/sagemaker/Endpoints/sentiment")


def _local_aws(desk: Desk) -> None:
    desk.app()
    desk.write("endpoint.yaml", settings())
    desk.images_and_models(settings())


_IMAGE = SHIPPED["endpoints"]["sentiment"]["containers"][0]["image"]["dlc"]
# `npm install` of an app that init wrote gets what stands in node_modules here: its package.json
# has the same versions (tests/packaging/test_init.py).
_INSTALLED = {"npm install && ": ""}
_INIT = ("--zones", "use1-az1,use1-az2", "--region", "us-east-1", "--account", "123456789012")
_DATA = ("--model-data", "s3://my-bucket/model.tar.gz")

READERS: dict[str, Reader] = {
    "README.md": Reader(
        _readme,
        deploys=True,
        # What `make deploy` does, which is run elsewhere; what follows looks at the stack.
        stands_for={"npm install && npx cdk synth": "npx cdk deploy"},
    ),
    "docs/explanation/networks.md": Reader(),
    "docs/explanation/updates.md": Reader(_changed),
    "docs/how-to/an-alarm-went-off.md": Reader(_with_callers),
    "docs/how-to/compare-routing.md": Reader(_and_chat),
    "docs/how-to/everyday-changes.md": Reader(_changed),
    "docs/how-to/existing-vpc.md": Reader(_existing_vpc, deploys=True),
    "docs/how-to/from-random-routing.md": Reader(_from_random),
    "docs/how-to/hugging-face.md": Reader(
        _hugging_face,
        needs_aws=False,
        # Deploying copies 16 GB: tests/deploy/test_staged_model.py does it with a small model.
        stands_for={"npm install && npx cdk deploy": "npx cdk synth --quiet"},
    ),
    "docs/how-to/inferentia2.md": Reader(
        _init("--template", "inferentia2", *_DATA, *_INIT),
        deploys=True,
        server=LARGER,
        stands_for={**_INSTALLED, "body.json": "../body.json"},
    ),
    "docs/how-to/jumpstart.md": Reader(_jumpstart, needs_aws=False),
    "docs/how-to/language-model-on-a-gpu.md": Reader(
        _chat,
        needs_aws=False,
        stands_for={
            **_INSTALLED,
            # The search takes six minutes. tests/load_test/test_token_judging.py has one of a model.
            "low-latency load-test --find-limit --duration 20s --metrics-wait 0s -o": (
                "cp ../limit.json"
            ),
        },
    ),
    "docs/how-to/load-test-fleet.md": Reader(
        _with_fleet,
        # The image is built by Docker, which is not here; the CLI finds the stacks that are named.
        stands_for={
            "npx cdk deploy --all -c load-test-fleet=true": "npx cdk ls -c load-test-fleet=true",
            "npx cdk destroy LowLatencyEndpoint-LoadTestFleet": (
                "npx cdk ls LowLatencyEndpoint-LoadTestFleet"
            ),
        },
    ),
    "docs/how-to/load-tests.md": Reader(lambda desk: _deployed(desk, latency=SEARCHED)),
    "docs/how-to/own-container.md": Reader(
        _own_container,
        needs_aws=False,
        # No Docker here, and another test may have the port.
        stands_for={
            "docker run --rm --publish 127.0.0.1:8080:8080 --env WORKERS=4 team/measure:1.4.2 serve": (
                f"SAGEMAKER_BIND_TO_PORT={_CONTAINER_PORT} python serve.py > server.log 2>&1"
            ),
            "python serve.py &": (
                f"SAGEMAKER_BIND_TO_PORT={_CONTAINER_PORT} python serve.py > server.log 2>&1 &"
            ),
            "127.0.0.1:8080": f"127.0.0.1:{_CONTAINER_PORT}",
        },
    ),
    "docs/how-to/own-endpoint-in-ten-minutes.md": Reader(
        _own_endpoint,
        deploys=True,
        # As many callers, and then instances, as a machine has that runs other tests.
        stands_for={
            **_INSTALLED,
            "--peak-tps 400": "--peak-tps 40",
            # What the page has the reader add to the file before.
            "low-latency plan -v": "python edit.py && low-latency plan -v",
        },
    ),
    "docs/how-to/pull-request-check.md": Reader(_pull_request, needs_aws=False),
    "docs/how-to/regulated-account.md": Reader(_regulated),
    "docs/how-to/roll-back.md": Reader(_roll_back, deploys=True),
    "docs/how-to/terraform-and-other-languages.md": Reader(
        _without_bootstrap,
        deploys=True,
        server=LARGER,
        stands_for={
            "npm install && ": "cp ../app.py . && ",
            "model.tar.gz": f"model.tar.gz {' '.join(_INIT)}",
        },
    ),
    "docs/how-to/what-it-costs.md": Reader(_costs, needs_aws=False),
    "docs/reference/local-aws.md": Reader(
        _local_aws,
        deploys=True,
        stands_for={"IMAGE:TAG": f"{_IMAGE['repository']}:{_IMAGE['tag']}"},
        has_typed="low-latency local-aws --model-server",
    ),
    "docs/reference/preflight.md": Reader(_deployed),
    "docs/tutorial/first-endpoint.md": Reader(Desk.app, needs_aws=False),
}
