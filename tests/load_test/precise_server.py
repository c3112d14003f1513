"""A server that answers at moments fixed beforehand, and tells when it really did.

A process of its own: reads one line of options and prints its port.

``{"seconds": [0.1]}`` answers each request whole, after the service times in turn, or after that of
the number in a body such as ``{"number": 3}``. ``GET /times`` gives, as JSON, the seconds from
reading each request to sending its answer.

``{"first": 0.1, "gaps": [0.02], "chunks": 50}`` streams: an event stream of SageMaker's with
server-sent events of OpenAI's form in its parts, the first ``first`` seconds after the request was
read, then one after each of ``gaps``, taken in turn. Each carries ``"sent"``, the
``time.perf_counter()`` of its sending, a clock that all processes of a Linux machine share.

It spins for the last part of a wait: timers of ``epoll`` are no finer.
"""

from __future__ import annotations

import heapq
import itertools
import json
import select
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

from local_sagemaker.runtime.answers import payload_part

_SPIN = 0.0015
_STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def _whole(body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{more}"
    return b"%bContent-Length: %d\r\n\r\n%b" % (head.encode(), len(body), body)


def _event(**document: object) -> bytes:
    data = payload_part(b"data: %b\n\n" % json.dumps(document).encode())
    return b"%x\r\n%b\r\n" % (len(data), data)


class Server:
    """Requests as they are read, and their answers when they are due."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.times: list[float] = []
        self.seen = 0
        self.due: list[tuple[float, int, Iterator[float]]] = []
        self._order = itertools.count()

    def answer(self, connection: socket.socket, body: bytes) -> Iterator[float]:
        """Sends what is to be sent, and between that says how long to wait."""
        if "seconds" in self.options:
            since, delays = time.perf_counter(), self.options["seconds"]
            number = json.loads(body)["number"] if b'"number"' in body else self.seen
            self.seen += 1
            yield delays[number % len(delays)]
            if connection.fileno() >= 0:
                self.times.append(time.perf_counter() - since)  # sending may cost the processor
                connection.sendall(_whole(b"{}"))
            return
        connection.sendall(_STREAM)
        yield self.options["first"]
        for _, gap in zip(
            range(self.options["chunks"]), itertools.cycle(self.options["gaps"]), strict=False
        ):
            token = {"delta": {"content": "x"}}
            connection.sendall(_event(choices=[token], sent=time.perf_counter()))
            yield gap
        last = {"delta": {}, "finish_reason": "length"}
        connection.sendall(_event(choices=[last]) + b"0\r\n\r\n")

    def go_on(self, moment: float, answer: Iterator[float]) -> None:
        """Send what an answer has for this moment."""
        try:
            wait = next(answer, None)
        except OSError:  # the caller has gone
            return
        if wait is not None:
            heapq.heappush(self.due, (moment + wait, next(self._order), answer))


def main() -> None:
    """Serve until killed."""
    server = Server(json.loads(sys.stdin.readline()))
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listener.getsockname()[1], flush=True)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    poll.register(sys.stdin, select.EPOLLIN)
    connections: dict[int, tuple[socket.socket, bytearray]] = {}

    def take(descriptor: int) -> None:
        connection, buffer = connections[descriptor]
        try:
            data = connection.recv(1 << 16)
        except OSError:
            data = b""
        buffer += data
        head, mark, body = bytes(buffer).partition(b"\r\n\r\n")
        asked = head.startswith(b"GET /")
        if mark and asked:
            told = getattr(server, head[5 : head.index(b" ", 5)].decode())
            connection.sendall(_whole(json.dumps(told).encode(), "Connection: close\r\n"))
        if not data or (mark and asked):
            poll.unregister(descriptor)
            connections.pop(descriptor)[0].close()
            return
        lengths = (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        if mark and len(body) >= next(lengths, 0):
            buffer.clear()
            server.go_on(time.perf_counter(), server.answer(connection, body))

    while True:
        left = server.due[0][0] - time.perf_counter() if server.due else 3600.0
        events = poll.poll(0 if left < _SPIN else left - _SPIN)
        for descriptor, _ in events:
            if descriptor == sys.stdin.fileno():
                return
            if descriptor == listener.fileno():
                made, _ = listener.accept()
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[made.fileno()] = made, bytearray()
                poll.register(made, select.EPOLLIN)
            else:
                take(descriptor)
        while server.due and server.due[0][0] <= time.perf_counter():
            moment, _, answer = heapq.heappop(server.due)
            server.go_on(moment, answer)


if __name__ == "__main__":
    main()
