"""Runs inside a function's subprocess: loads the handler, calls it, writes the answer.

This file is started as a script and must not import anything of the library's.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import random
import socket
import sys
import time
import traceback
import uuid
import weakref
from pathlib import Path
from typing import Any


class Context:
    """What a handler gets as its second argument."""

    def __init__(self) -> None:
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = "$LATEST"
        self.invoked_function_arn = os.environ["LOCAL_FUNCTION_ARN"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.aws_request_id = str(uuid.uuid4())
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.identity = None
        self.client_context = None
        self._deadline = time.monotonic() + float(os.environ["LOCAL_FUNCTION_TIMEOUT"])

    def get_remaining_time_in_millis(self) -> int:
        """Give the time left before Lambda would stop the function."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


_HTTPS = 443
_LOST_SECONDS = 0.2
"""How long connecting to a lost address takes at most, whatever the socket's timeout is."""


class PlayedNetwork:
    """The names and addresses of a function's VPC that are played; all others stay what they are.

    A path's delay is added to each connect, and to each answer after something was sent. Sockets that
    do not block have no delay.
    """

    def __init__(self, names: Any, domains: list[str], addresses: Any) -> None:
        self._names: dict[str, list[str]] = names
        self._domains = tuple(domains)
        self._addresses: dict[str, dict[str, Any]] = addresses
        self._delays: weakref.WeakKeyDictionary[socket.socket, float] = weakref.WeakKeyDictionary()
        self._asked: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def begin(self) -> None:
        """Take the place of what sockets do."""
        self._getaddrinfo = socket.getaddrinfo
        self._gethostbyname = socket.gethostbyname
        self._connect, self._connect_ex = socket.socket.connect, socket.socket.connect_ex
        socket.getaddrinfo = self._resolve
        socket.gethostbyname = self._first_address
        replaced = {
            "connect": lambda sock, address: self._connect_to(sock, address),
            "connect_ex": lambda sock, address: self._try_to_connect(sock, address),
        }
        replaced |= {n: self._sending(getattr(socket.socket, n)) for n in ("send", "sendall")}
        replaced |= {n: self._receiving(getattr(socket.socket, n)) for n in ("recv", "recv_into")}
        for name, method in replaced.items():
            setattr(socket.socket, name, method)

    def _found(self, host: Any) -> list[str]:
        """Give a played name's addresses, in any order; none for names that are not played."""
        name = (host.decode() if isinstance(host, bytes) else str(host)).rstrip(".").lower()
        found = self._names.get(name, [])
        if not found and name.endswith(self._domains):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return random.sample(found, len(found))

    def _resolve(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        return [
            entry
            for each in self._found(host) or [host]
            for entry in self._getaddrinfo(each, port, family, type, proto, flags)
        ]

    def _first_address(self, host: str) -> str:
        return (self._found(host) or [self._gethostbyname(host)])[0]

    def _path(self, address: Any) -> dict[str, Any] | None:
        host = address[0] if isinstance(address, tuple) else ""
        return self._addresses.get((self._found(host) or [host])[0])

    def _connect_to(self, sock: socket.socket, address: Any) -> None:
        path = self._path(address)
        if path is None:
            self._connect(sock, address)
            return
        began, timeout = time.monotonic(), sock.gettimeout()
        if path["lost"] or address[1] != _HTTPS:
            time.sleep(min(_LOST_SECONDS, _LOST_SECONDS if timeout is None else timeout))
            raise TimeoutError("timed out")
        self._delays[sock] = path["delay"]
        self._connect(sock, ("127.0.0.1", path["port"]))
        self._delay(sock, began)

    def _try_to_connect(self, sock: socket.socket, address: Any) -> int:
        if self._path(address) is None:
            return self._connect_ex(sock, address)
        try:
            self._connect_to(sock, address)
        except OSError as error:
            return error.errno or errno.ETIMEDOUT
        return 0

    def _sending(self, original: Any) -> Any:
        def send(sock: socket.socket, *given: Any) -> Any:
            if sock in self._delays:
                self._asked.add(sock)
            return original(sock, *given)

        return send

    def _receiving(self, original: Any) -> Any:
        def receive(sock: socket.socket, *given: Any) -> Any:
            began = time.monotonic()
            got = original(sock, *given)
            if sock in self._asked:
                self._asked.discard(sock)
                self._delay(sock, began)
            return got

        return receive

    def _delay(self, sock: socket.socket, began: float) -> None:
        """Wait as long as the path takes, within the timeout of what began."""
        delay, timeout = self._delays[sock], sock.gettimeout()
        left = delay if timeout is None else timeout - (time.monotonic() - began)
        if timeout != 0:
            time.sleep(max(0.0, min(delay, left)))
            if left < delay:
                raise TimeoutError("timed out")


def main(event_file: Path, answer: Path) -> None:
    """Call the handler with the event of a file."""
    network = event_file.with_name("network.json")
    if network.exists():
        PlayedNetwork(**json.loads(network.read_text())).begin()
    answer.with_name("begun").touch()
    task_root = os.environ["LAMBDA_TASK_ROOT"]
    # First the function's own code; last the modules that Lambda brings along for inline code.
    sys.path.insert(0, task_root)
    sys.path.append(str(Path(__file__).with_name("lambda_modules")))
    event = json.loads(event_file.read_text())
    module, _, function = os.environ["_HANDLER"].rpartition(".")
    try:
        handler = getattr(importlib.import_module(module.replace("/", ".")), function)
        result = {"failed": False, "payload": handler(event, Context())}
        text = json.dumps(result, default=str)
    except BaseException as error:
        traceback.print_exc()
        failure = {
            "errorMessage": str(error),
            "errorType": type(error).__name__,
            "stackTrace": traceback.format_tb(error.__traceback__),
        }
        text = json.dumps({"failed": True, "payload": failure})
    answer.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
