"""A machine without a loopback interface, or without its name: what is missing is said at the start."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest

from local_sagemaker import LocalAws, LocalAwsError


def unnamed(*_: object, **__: object) -> list[object]:
    raise socket.gaierror(-2, "Name or service not known")


def elsewhere(*_: object, **__: object) -> list[object]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 80))]


@pytest.mark.parametrize("answer", [unnamed, elsewhere])
def test_a_hosts_file_without_localhost(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with pytest.raises(LocalAwsError, match=r"add the line `127.0.0.1 localhost` to /etc/hosts"):
        LocalAws.in_process()


def test_a_port_in_use_is_said_to_be() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LocalAwsError, match=f"port {port} of 127.0.0.1 .* it is in use"):
            LocalAws.in_process(port=port)


ISOLATED = ["unshare", "--user", "--map-root-user", "--net"]


@pytest.mark.realtime
def test_a_machine_whose_loopback_interface_is_down() -> None:
    if not shutil.which("unshare") or subprocess.run([*ISOLATED, "true"]).returncode:
        pytest.skip("no network namespaces for users here")
    command = [*ISOLATED, sys.executable, "-m", "local_sagemaker"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ})
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "bring its loopback interface up" in ran.stderr
    assert "Traceback" not in ran.stderr
