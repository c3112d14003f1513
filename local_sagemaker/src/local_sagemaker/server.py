"""The local AWS as its users see it."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal, cast

from .admission import TOKEN_VARIABLE, Credentials, Session
from .argument_kinds import check_kinds
from .connections import ACCOUNT, ask, close_clients, new_client
from .images import add_image
from .leftovers import find_leftovers
from .model_servers.specifications import ModelServer, to_documents
from .processes import HeldFolder
from .runtime.options import RuntimeOptions


class LocalAwsError(RuntimeError):
    """The local AWS could not be started."""


class LocalAws:
    """An AWS on this machine's loopback interface.

    Make one with `LocalAws.start` (its own process) or `LocalAws.in_process` (a thread of this
    one). It is a context manager; leaving it stops the server and forgets everything in it.

    Attributes
    ----------
    url : str
        Where all services answer.
    region : str
        The Region that it is.
    log_path : Path
        The server's log.
    credentials : Credentials
        Keys of a user who may do everything.

    Examples
    --------
    >>> with LocalAws.in_process(region="us-east-1") as aws:
    ...     aws.client("sts").get_caller_identity()["Account"]
    '123456789012'
    """

    def __init__(
        self,
        url: str,
        region: str,
        log_path: Path,
        stop: Callable[[], None],
        credentials: Credentials,
    ) -> None:
        self.url = url
        self.credentials = credentials
        self._keys: Credentials | Session = credentials
        self._runtime_urls: dict[str | None, str] = {}
        self.region = region
        self.account = ACCOUNT
        self.log_path = log_path
        self.model_server_folder = log_path.parent / "model-servers"
        """Where the output of each model server is, in a file of its own."""
        self._stop = stop
        self._clients: dict[tuple[str, str], Any] = {}

    # --------------------------------------------------------------------------------- starting

    @classmethod
    def start(
        cls,
        region: str = "us-east-1",
        *,
        port: int = 0,
        model_servers: Mapping[str, ModelServer] | None = None,
        runtime: RuntimeOptions | None = None,
        log_path: Path | None = None,
    ) -> LocalAws:
        """Start a local AWS in its own process; ready when this returns.

        Parameters
        ----------
        region : str
            The Region that it is; by default us-east-1.
        port : int
            The port to listen on; by default a free one.
        model_servers : mapping of str to ModelServer, optional
            Model servers by image; by default endpoints answer with their requests.
        runtime : RuntimeOptions, optional
            How SageMaker's runtime behaves; by default as :class:`RuntimeOptions` does.
        log_path : Path, optional
            The server's log; by default a temporary file.
        """
        options = _options(region, port, log_path, model_servers, runtime)
        folder = HeldFolder("local-aws-")
        log_path = log_path or folder.path / "server.log"
        source_root = str(Path(__file__).resolve().parents[1])
        environment = _without_aws(dict(os.environ))
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [source_root, environment.get("PYTHONPATH")])
        )
        # The child removes the folder itself when this process has died and cannot.
        environment["TMPDIR"] = str(folder.path)
        command = [sys.executable, "-m", "local_sagemaker.separate_process"]
        command += [region, str(port), str(log_path), str(folder.path)]
        command.append(options.to_json())
        with open(log_path, "ab", opener=_for_its_user_only) as log:
            # The child lives as long as this pipe: when this process dies, however it dies, the
            # child reads end-of-file and goes too.
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )
        commands = cast(IO[str], process.stdin)
        answers = cast(IO[str], process.stdout)
        # Over the pipe, which nobody else reads: not by arguments, nor by the log.
        told = answers.readline()
        if not told:
            process.kill()
            process.communicate()
            ending = log_path.read_text()[-3000:]
            folder.remove()
            raise LocalAwsError(f"the local AWS did not start:\n{ending}")

        def stop() -> None:
            with contextlib.suppress(BrokenPipeError):
                commands.close()
            try:
                process.wait(timeout=15)  # model servers have seconds to end
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            answers.close()
            folder.remove()

        started = json.loads(told)
        credentials = Credentials(**started["credentials"])
        aws = cls(started["url"], region, log_path, stop, credentials)
        aws.model_server_folder = Path(started["model_servers"])
        return aws

    @classmethod
    def in_process(
        cls,
        region: str = "us-east-1",
        *,
        port: int = 0,
        model_servers: Mapping[str, ModelServer] | None = None,
        runtime: RuntimeOptions | None = None,
        log_path: Path | None = None,
    ) -> LocalAws:
        """Start a local AWS in a thread of this process, for fast tests.

        All that run in one process share one state, which is forgotten when the last of them
        stops; `reset` clears it at once.

        Parameters
        ----------
        region : str
            The Region that it is; by default us-east-1.
        port : int
            The port to listen on; by default a free one.
        model_servers : mapping of str to ModelServer, optional
            Model servers by image; by default endpoints answer with their requests.
        runtime : RuntimeOptions, optional
            How SageMaker's runtime behaves; by default as :class:`RuntimeOptions` does.
        log_path : Path, optional
            The server's log; by default a temporary file.
        """
        from . import serving
        from .runtime.service import Runtime

        options = _options(region, port, log_path, model_servers, runtime)
        folder = HeldFolder("local-aws-")
        log_path = log_path or folder.path / "server.log"
        with contextlib.ExitStack() as starting:
            starting.callback(folder.remove)
            starting.enter_context(serving.logging_to(log_path))
            behind = Runtime(options, region, folder.path)
            url = starting.enter_context(serving.serving_in_thread(port, behind))
            stop = starting.pop_all().close
        aws = cls(url, region, log_path, stop, behind.credentials)
        aws.model_server_folder = behind.folder
        return aws

    @classmethod
    def of_environment(cls) -> LocalAws:
        """Give the running local AWS that this process's environment names; see `exports`.

        Stopping it does nothing: it is whoever's who started it.
        """
        given = {
            name: os.environ.get(name, "")
            for name in (
                "AWS_ENDPOINT_URL",
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                TOKEN_VARIABLE,
            )
        }
        missing = [name for name, value in given.items() if not value]
        url = given["AWS_ENDPOINT_URL"].rstrip("/")
        if missing or urllib.parse.urlsplit(url).hostname not in ("localhost", "127.0.0.1"):
            raise LocalAwsError(
                "the environment names no local AWS: set the variables that `local-sagemaker` "
                f"printed ({', '.join(missing) or f'AWS_ENDPOINT_URL is {url}'})"
            )
        credentials = Credentials(
            given["AWS_ACCESS_KEY_ID"], given["AWS_SECRET_ACCESS_KEY"], given[TOKEN_VARIABLE]
        )
        region = os.environ.get("AWS_REGION") or "us-east-1"
        aws = cls(url, region, Path(os.devnull), lambda: None, credentials)
        try:
            aws.runtime_time()
        except urllib.error.HTTPError as error:
            raise LocalAwsError(
                f"the local AWS at {url} refuses the environment's token "
                f"({error.code}): has it been started anew?"
            ) from None
        except OSError as error:
            raise LocalAwsError(f"no local AWS answers at {url}: {error}") from None
        return aws

    def stop(self) -> None:
        """Stop the server and remove its temporary files. Stopping twice is no error."""
        stop, self._stop = self._stop, lambda: None
        stop()
        close_clients(self.url)
        while self._clients:
            self._clients.popitem()[1].close()

    def __enter__(self) -> LocalAws:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------------------------------ using

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self.url.rpartition(":")[2])

    def exports(self) -> dict[str, str]:
        """Give the variables that point AWS's tools at this local AWS, and away from any other."""
        token = getattr(self._keys, "session_token", "")
        session = {"AWS_SESSION_TOKEN": token} if token else {}
        return {
            "AWS_ENDPOINT_URL": self.url,
            # The main URL answers InvokeEndpoint too, some milliseconds later.
            "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": self.runtime_url(),
            "AWS_ACCESS_KEY_ID": self._keys.access_key,
            "AWS_SECRET_ACCESS_KEY": self._keys.secret_key,
            **session,
            TOKEN_VARIABLE: self.credentials.token,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_DEFAULT_ACCOUNT": self.account,
            "CDK_DEFAULT_REGION": self.region,
            "CDK_DISABLE_CLI_TELEMETRY": "1",
        }

    def environment(self) -> dict[str, str]:
        """Give a full environment for a subprocess.

        It is this process's environment without any of its AWS variables, plus `exports`, so
        that neither a profile nor a key of the user's can be picked up.
        """
        return {**_without_aws(dict(os.environ)), **self.exports()}

    def client(self, service: str, region: str | None = None) -> Any:
        """Give a boto3 client bound to this local AWS: the same one for the same arguments.

        The local AWS itself works with clients of its own, so what is registered with this one's
        events changes nothing but this caller's requests.
        """
        url = self.runtime_url() if service == "sagemaker-runtime" else self.url
        key = (service, region or self.region)
        if key not in self._clients:
            self._clients[key] = new_client(*key, url, self._keys)
        return self._clients[key]

    def assume_role(self, arn: str) -> LocalAws:
        """Give this local AWS as a session of a role sees it, in the role's account.

        Accounts beside this one are members of its organization: each has
        `OrganizationAccountAccessRole`, which may do everything there.
        """
        given = self.client("sts").assume_role(RoleArn=arn, RoleSessionName="local-sagemaker")
        keys, seen = given["Credentials"], copy.copy(self)
        seen._keys = Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        seen.account, seen._clients, seen._stop = arn.split(":")[4], {}, lambda: None
        return seen

    def runtime_url(self, zone: str | None = None) -> str:
        """Give the URL at which InvokeEndpoint answers."""
        if zone not in self._runtime_urls:
            self._runtime_urls[zone] = self._control("runtime/url", zone=zone or "")["url"]
        return self._runtime_urls[zone]

    def add_image(self, uri: str, architecture: str = "amd64") -> None:
        """Put a container image into a registry, as if somebody had pushed it.

        Any account's registry will do, such as AWS's own of Deep Learning Containers. What the
        image contains is not asked for: model servers stand for it.
        """
        add_image(self.client, uri, architecture)

    def set_model_servers(self, model_servers: Mapping[str, ModelServer]) -> None:
        """Take other model servers, to inject a fault or to fix it.

        New instances have them; running simulated ones behave as the new ones from the next
        request on, running processes stay as they are.
        """
        documents = to_documents(model_servers)
        self._post("/_local/runtime/model-servers", json.dumps(documents).encode())

    def add_model_servers(self, model_servers: Mapping[str, ModelServer]) -> dict[str, list[str]]:
        """Take more model servers, which go before those that are there; see `set_model_servers`.

        An endpoint that was created without one stays as it is: it answers with its request. Gives
        the names of the running endpoints that others are for: which `changed`, which `kept` theirs.
        """
        body = json.dumps(to_documents(model_servers)).encode()
        told: dict[str, list[str]] = json.loads(
            self._post("/_local/runtime/model-servers?keep=true", body)
        )
        return told

    def flush_metrics(self) -> None:
        """Put every request answered so far into CloudWatch, which takes 0.2 s by itself."""
        self._post("/_local/runtime/flush")

    def runtime_time(self) -> datetime:
        """Give the time by the runtime's clock, which its metrics carry."""
        moment = json.loads(self._post("/_local/runtime/time"))["time"]
        return datetime.fromtimestamp(moment, UTC)

    def advance(self, seconds: float) -> None:
        """Move the runtime's clock on: deployments, alarms and scaling do what falls due."""
        self._post(f"/_local/runtime/advance?seconds={seconds}")

    def set_clock_speed(self, factor: float) -> None:
        """Run the runtime's clock so many times faster than real time; 0 stops it."""
        self._post(f"/_local/runtime/speed?factor={factor}")

    def set_path(self, zone: str, *, delay_ms: float = 0.0, lost: bool = False) -> None:
        """Set the path from functions in a VPC to the runtime's interface endpoint in a zone.

        For invocations that begin afterwards, in place of what was set before; `reset` clears it.

        Args:
            zone: The zone's name or ID.
            delay_ms: Milliseconds of real time that each round trip takes longer, from 0 to 60,000.
            lost: Whether connecting times out, after at most 0.2 s of real time.
        """
        self._control("network/path", zone=zone, delay_ms=delay_ms, lost=str(lost).lower())

    def set_names(self, order: Literal["zone", "round robin"]) -> None:
        """Choose what the endpoint's regional names, the private one too, give functions in a VPC.

        The address in the function's own zone, or those of all zones in random order.
        """
        self._control("network/names", order=order)

    def run_schedules(self) -> list[str]:
        """Run the functions of all enabled scheduled rules once, all at the same time.

        Gives the names of those that ran, when all have ended. A function whose policy does not let
        the rule in does not run. The clock stays where it is.
        """
        ran: list[str] = self._control("events/run-schedules")["ran"]
        return ran

    def leftovers(self) -> list[str]:
        """List the resources that still exist, as `service: what` lines.

        What every account has anyway (default VPC, AWS-managed keys) and what belongs to the CDK
        bootstrap stack is left out.
        """
        return find_leftovers(self.client)

    def evaluate_alarms(self, at: datetime | None = None, *, since: datetime | None = None) -> None:
        """Evaluate all alarms on the data before a moment, as CloudWatch does every minute."""
        moments = {"at": at, "since": since}
        given = {name: str(m.timestamp()) for name, m in moments.items() if m is not None}
        self._post(f"/_local/cloudwatch/evaluate?{urllib.parse.urlencode(given)}")

    def evaluate_alarms_in_background(self, on: bool = True) -> None:
        """Evaluate all alarms every minute from now on, or no longer.

        A server of its own process (`LocalAws.start`) does so from the start, one of this process
        does not.
        """
        self._post(f"/_local/cloudwatch/background?on={str(on).lower()}")

    def alarm_actions(self) -> list[dict[str, Any]]:
        """List what alarms have done: alarm, action, state, time, and the problem if one arose."""
        actions: list[dict[str, Any]] = self._control("cloudwatch/actions")["actions"]
        return actions

    def _control(self, name: str, **query: object) -> Any:
        """Ask a control; LocalAwsError when it refuses."""
        try:
            return json.loads(self._post(f"/_local/{name}?{urllib.parse.urlencode(query)}"))
        except urllib.error.HTTPError as error:
            raise LocalAwsError(json.loads(error.read())["error"]) from None

    def _post(self, path: str, body: bytes = b"") -> bytes:
        return ask(self.url, self.credentials.token, path, body)

    def reset(self) -> None:
        """Forget everything: stacks, resources, metrics."""
        self._post("/moto-api/reset")


_KINDS = {
    "region": str,
    "port": int,
    "log_path": Path | None,
    "model_servers": Mapping[str, ModelServer] | None,
    "runtime": RuntimeOptions | None,
}
_REGION = re.compile(r"[a-z]+(-[a-z]+)+-\d+")


def _options(
    region: str,
    port: int,
    log_path: Path | None,
    model_servers: Mapping[str, ModelServer] | None,
    runtime: RuntimeOptions | None,
) -> RuntimeOptions:
    """Check the arguments of a start, before anything is; what of them the runtime is made of."""
    given = {"region": region, "port": port, "log_path": log_path, "runtime": runtime}
    check_kinds(_KINDS, {**given, "model_servers": model_servers})
    if not 0 <= port <= 65535:
        raise ValueError(f"port is {port}, where 0 to 65535 is needed; 0 takes a free one")
    check_region(region)
    options = runtime or RuntimeOptions()
    return dataclasses.replace(options, model_servers=model_servers) if model_servers else options


def check_region(region: str) -> None:
    """Refuse what is no Region's name."""
    if not _REGION.fullmatch(region):
        raise ValueError(f"region is {region!r}, where a Region such as us-east-1 is needed")


def _without_aws(environment: dict[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("AWS_")
        and name not in ("CDK_DEFAULT_ACCOUNT", "CDK_DEFAULT_REGION", "BOTO_CONFIG", TOKEN_VARIABLE)
    }


def _for_its_user_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
