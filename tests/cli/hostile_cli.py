"""Runs the command line often and quickly: imported once, then a process forked for each run.

Reads a run as JSON from each line of standard input, and writes what came of it as a line of JSON.
The streams are made anew in each process, as Python makes them when it starts.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import Any

# What commands load: so that no run has to.
import boto3
import huggingface_hub
import pydantic  # noqa: F401
import rich.table  # noqa: F401
import typer.main
from botocore.loaders import JSONFileLoader, Loader

from low_latency_endpoint import cli
from low_latency_endpoint import operate as operations
from low_latency_endpoint.account import sessions

SECONDS = 60.0
MEMORY = 4 << 30  # bytes; a run that wants more must not take the machine along


def main() -> None:
    """Run what is asked for until standard input ends."""
    home = os.getcwd()
    for line in sys.stdin:
        os.chdir(home)
        print(json.dumps(run(json.loads(line))), flush=True)


def _make_the_same_things_once() -> None:
    """Typer's commands, boto3's models of services and what registers codes: most of what a run
    costs, and the same in all."""
    cli.errors._registering = functools.cache(cli.errors._registering)
    cli.errors.all_codes()
    huggingface_hub.HfApi()
    built = typer.main.get_command(cli.app)
    typer.main.get_command = lambda _: built
    loaded: dict[str, Any] = {}
    load_file = JSONFileLoader.load_file

    def load_once(self: JSONFileLoader, path: str) -> Any:
        if path not in loaded:
            loaded[path] = load_file(self, path)
        return loaded[path]

    JSONFileLoader.load_file = load_once
    services = functools.cache(Loader().list_available_services)
    Loader.list_available_services = lambda _, type_name: services(type_name)
    session = boto3.Session("key", "secret", region_name="us-east-1")
    for service in (
        "application-autoscaling",
        "cloudformation",
        "cloudwatch",
        "ec2",
        "iam",
        "s3",
        "sagemaker",
        "sts",
    ):
        session.client(service)


def run(case: dict[str, Any]) -> dict[str, Any]:
    """One run: exit code and what it wrote. Or several, one after the other in one process."""
    out_read, out = os.pipe()
    err_read, err = os.pipe()
    child = os.fork()
    if not child:
        os.close(out_read)
        os.close(err_read)
        if "runs" in case:
            _be_one_after_the_other(case, out)
        _be(case, out, err)
    os.close(out)
    os.close(err)
    if case.get("stdout") == "broken":
        os.close(out_read)
        out_read = os.open(os.devnull, os.O_RDONLY)
    texts = {out_read: b"", err_read: b""}
    left, ends = set(texts), time.monotonic() + SECONDS * (4 if "runs" in case else 1)
    while left and time.monotonic() < ends:
        for descriptor in select.select(sorted(left), [], [], 1)[0]:
            data = os.read(descriptor, 65536)
            texts[descriptor] += data
            if not data:
                left.discard(descriptor)
    late = bool(left)
    if late:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for descriptor in texts:
        os.close(descriptor)
    if "runs" in case and not late:
        return {"runs": json.loads(texts[out_read])}
    return {
        "code": "late" if late else code,
        "out": texts[out_read].decode(errors="replace"),
        "err": texts[err_read].decode(errors="replace"),
    }


def _be(case: dict[str, Any], out: int, err: int) -> None:
    """In the child: become the command line in its surroundings."""
    code: int | None = None
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.environ.clear()
        os.environ.update(case["environment"])
        if case.get("folder"):
            os.chdir(case["folder"])
        if case.get("folder_gone"):
            os.mkdir("gone")
            os.chdir("gone")
            os.rmdir("../gone")
        _stream(0, case.get("stdin", os.devnull), os.O_RDONLY)
        os.dup2(err, 2)
        os.dup2(out, 1)
        os.closerange(3, 64)
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            if case.get(name) not in (None, "broken"):
                _stream(descriptor, case[name], os.O_WRONLY)
        _remake_streams(case.get("encoding", "utf-8"))
        if case.get("stdout") == "broken":
            time.sleep(0.05)  # the reader goes
        code = _command(case["arguments"])
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="replace"))
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        code = 120  # as Python does
        os.write(2, b"Exception ignored")
    os._exit(1 if code is None else code)


def _be_one_after_the_other(case: dict[str, Any], answer: int) -> None:
    """In the child: become one command line after the other, each with streams of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # All in one environment, where a session and its clients come out alike.
    sessions.open_session = functools.cache(sessions.open_session)
    sessions.client_config = functools.cache(sessions.client_config)
    boto3.Session.client = functools.cache(boto3.Session.client)
    found = []
    _stream(0, os.devnull, os.O_RDONLY)
    for arguments in case["runs"]:
        os.environ.clear()
        os.environ.update(case["environment"])
        os.chdir(case["folder"])
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            _remake_streams("utf-8")
            code = 1
            try:
                code = _command(arguments)
            except BaseException:
                os.write(2, traceback.format_exc().encode(errors="replace"))
            sys.stdout.flush()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            found.append({"code": code, "out": texts[0], "err": texts[1]})
    with open(answer, "w") as file:
        json.dump(found, file)
    os._exit(0)


def _command(arguments: list[str]) -> int:
    """Run it; its exit code."""
    sys.argv = ["low-latency", *arguments]
    try:
        cli.main()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


def _stream(descriptor: int, path: str, flags: int) -> None:
    if path == "closed":
        os.close(descriptor)
        return
    opened = os.open(path, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)


def _remake_streams(encoding: str) -> None:
    def made(descriptor: int, mode: str, errors: str) -> Any:
        try:
            os.fstat(descriptor)
        except OSError:
            return None
        return open(descriptor, mode, encoding=encoding, errors=errors, closefd=False)

    sys.stdin = sys.__stdin__ = made(0, "r", "strict")
    sys.stdout = sys.__stdout__ = made(1, "w", "strict")
    sys.stderr = sys.__stderr__ = made(2, "w", "backslashreplace")


if __name__ == "__main__":
    for package in (cli, operations):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    _make_the_same_things_once()
    gc.freeze()  # what is here stays shared with the processes that are forked
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shutil.get_terminal_size()
    main()
