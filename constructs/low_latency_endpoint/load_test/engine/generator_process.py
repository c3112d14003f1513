"""Drives load generator processes: starts them, gives them steps, reads results, ends them.

This process imports neither gevent nor Locust, so that it may be a command, a test or a notebook.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, cast

from ...errors import ConfigurationError, rule
from ...facts.limit_kinds import Range
from .steps import OnSecond, Progress, Step, StepResult, ignore_progress
from .target import Target

if TYPE_CHECKING:
    import boto3

    from .payloads import Payloads

GENERATOR_PROCESSES = Range(
    rule(
        "LLT134",
        "the number of generator processes is out of range",
        fix="Give at most one process per core.",
    ),
    "the number of generator processes",
    1,
    1024,
)
GENERATOR = rule(
    "LLT135",
    "the load generator did not start, or ended early",
    fix="Read the load generator's last output above. Install the extra load-test if "
    "packages are missing.",
)
NO_REPORT = rule(
    "LLT144",
    "a process of the load generator does not report: it is busy or, on another machine, may have "
    "ended",
    fix="See that the function that makes payloads does not block, and look at the process on the other "
    "machine; or use more machines.",
)

_LAST_WORDS = 30
_END_SECONDS = 5.0
_PARTS = ("code", "what", "got", "allowed", "fix", "source", "where")


class GeneratorProcess:
    """Load generator processes on this machine, or the master of workers on others.

    Parameters
    ----------
    target : Target
        What is called.
    payloads : Payloads
        What is sent.
    processes : int
        Processes that send. By default one, which is good for some thousand requests per second;
        more only help on as many cores.
    session : boto3.Session, optional
        Its profile, or the keys it was made with, are what requests are signed with. By default
        the environment's.
    environment : mapping of str to str, optional
        Environment of the processes: account, ``AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME``. By default
        this process's own.
    expect_workers : int
        Number of workers on other machines (``python -m
        low_latency_endpoint.load_test.engine.generator --worker HOST:PORT``); no process of this
        machine sends then. By default none.
    bind : str
        Where the master listens for workers, such as ``0.0.0.0:5557``. By default on loopback, on
        any port.

    Raises
    ------
    ConfigurationError
        ``LLT134`` for a number of processes out of range; ``LLT135`` when the processes do not
        start, or end too early; ``LLT144`` when they are too busy to connect; ``LLT169`` for sessions that several processes would share; the
        codes of target, payloads and credentials.

    Examples
    --------
    ::

        with GeneratorProcess(Target("sentiment", "us-east-1"), payloads) as generator:
            result = generator.run(Step("100 TPS", 10, PoissonArrivals(100)))
        print(result.rate, result.latency.percentile(99), result.client_bound)
    """

    def __init__(
        self,
        target: Target,
        payloads: Payloads,
        processes: int = 1,
        *,
        session: boto3.Session | None = None,
        environment: Mapping[str, str] | None = None,
        expect_workers: int = 0,
        bind: str = "127.0.0.1:0",
    ) -> None:
        GENERATOR_PROCESSES.check(processes, "processes")
        if payloads.prompts is not None:
            payloads.prompts.check_processes(expect_workers or processes)
        self._last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        variables = dict(os.environ if environment is None else environment)
        variables.update(_credentials(session))
        # Of this interpreter, even when the package is only on its path.
        variables["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "low_latency_endpoint.load_test.engine.generator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=variables,
            # Ctrl-C reaches this process, which then ends the others in order.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read_words, daemon=True)
        self._reader.start()
        self._ready = False
        try:
            self._write(
                {
                    "target": target.to_dict(),
                    "payloads": payloads.to_dict(),
                    "processes": processes,
                    "expect_workers": expect_workers,
                    "bind": bind,
                    "profile": _profile(session),
                }
            )
            #: Port on which the master listens for workers; ``None`` for a single process.
            self.port: int | None = self._await("listening", ignore_progress)
            if not expect_workers:
                self.wait_until_ready()
        except BaseException:
            self.close()
            raise

    @classmethod
    def of_profile(
        cls, target: Target, payloads: Payloads, processes: int, profile: str | None
    ) -> GeneratorProcess:
        """With a profile of the AWS CLI; without one they find credentials as this process did."""
        import boto3

        session = boto3.Session(profile_name=profile) if profile else None
        return cls(target, payloads, processes, session=session)

    def __enter__(self) -> GeneratorProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    @property
    def pid(self) -> int:
        """Number of the process that this one talks to."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Return when every worker has connected and knows what to send."""
        if not self._ready:
            self._await("ready", ignore_progress)
            self._ready = True

    def run(self, step: Step, progress: OnSecond = ignore_progress) -> StepResult:
        """Run one step to the last answer, calling ``progress`` about once a second.

        When that answers true, no more is sent; see :class:`.steps.Generator`.

        Raises
        ------
        ConfigurationError
            ``LLT135`` when a process ended, ``LLT144`` when a worker does not report; the generator is
            closed then.
        """
        try:
            self.wait_until_ready()
            self._write({"run": step.to_dict()})
            return StepResult.of_dict(self._await("result", progress))
        except BaseException:  # an interrupt too: the step would go on without its reader
            self.close()
            raise

    def close(self) -> None:
        """End every process; again does nothing."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            with contextlib.suppress(OSError):
                process.stdin.close()  # the generator ends itself and its workers
        try:
            process.wait(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()  # its workers notice
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        if self._reader is not threading.current_thread():
            self._reader.join(timeout=1)

    def _write(self, message: dict[str, Any]) -> None:
        commands = cast(IO[bytes], self._process.stdin)
        try:
            commands.write(json.dumps(message).encode() + b"\n")
            commands.flush()
        except (OSError, ValueError):
            raise self._ended() from None

    def _await(self, wanted: str, progress: OnSecond) -> Any:
        """Read messages until one of the wanted kind has come."""
        stopped = False
        messages = cast(IO[bytes], self._process.stdout)
        while True:
            try:
                line = messages.readline()
            except ValueError:  # closed
                line = b""
            if not line:
                raise self._ended()
            message = json.loads(line)
            if wanted in message:
                return message[wanted]
            if "failed" in message:
                raise error_of(message["failed"])
            told = message.get("progress")
            if told and progress(Progress.of_message(told)) and not stopped:
                stopped = True
                self._write({"stop": True})

    def _ended(self) -> Exception:
        self._reader.join(timeout=1)
        words = " | ".join(self._last_words) or "nothing said"
        ended = "closed its output"
        with contextlib.suppress(subprocess.TimeoutExpired):  # its output ends a little earlier
            ended = f"ended with status {self._process.wait(_END_SECONDS)}"
        return GENERATOR.error(got=f"{ended}: {words}", allowed="a running generator")

    def _read_words(self) -> None:
        with cast(IO[bytes], self._process.stderr) as words:
            for line in words:
                self._last_words.append(line.decode(errors="replace").rstrip())


def _profile(session: boto3.Session | None) -> str | None:
    if session is None or session.profile_name == "default":
        return None
    return str(session.profile_name)


def _credentials(session: boto3.Session | None) -> dict[str, str]:
    """Keys that a session was made with; all others the processes find as it did."""
    credentials = None if session is None else session.get_credentials()
    if credentials is None or credentials.method != "explicit":
        return {}
    frozen = credentials.get_frozen_credentials()
    return {
        name: value
        for name, value in (
            ("AWS_ACCESS_KEY_ID", frozen.access_key),
            ("AWS_SECRET_ACCESS_KEY", frozen.secret_key),
            ("AWS_SESSION_TOKEN", frozen.token),
        )
        if value
    }


def problem_of(problem: BaseException) -> dict[str, Any]:
    """A problem as plain JSON; coded ones keep their code."""
    if isinstance(problem, ConfigurationError):
        return {name: getattr(problem, name) for name in _PARTS}
    return {"message": f"{type(problem).__name__}: {problem}"}


def error_of(content: Mapping[str, Any]) -> ConfigurationError:
    """The error that :func:`problem_of` described."""
    if "code" in content:
        return ConfigurationError(**content)
    return GENERATOR.error(got=content["message"], allowed="a running generator")
