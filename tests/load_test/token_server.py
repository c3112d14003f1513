"""A server that streams tokens at moments fixed beforehand, and tells when it really sent each.

A process of its own: reads one line such as ``{"first": 0.1, "gaps": [0.02], "chunks": 50}`` and
prints its port. Each answer is an event stream of SageMaker's with server-sent events of OpenAI's
form in its parts: the first chunk ``first`` seconds after the request was read, then one after each
of ``gaps``, taken in turn. Each chunk carries ``"sent"``, the ``time.perf_counter()`` of its
sending, a clock that all processes of a Linux machine share. It spins for the last part of a
wait: timers of ``epoll`` are no finer. With ``"certificate"``, a file with its key, over TLS.
"""

from __future__ import annotations

import heapq
import itertools
import json
import select
import socket
import ssl
import sys
import time

from local_sagemaker.runtime.event_stream import payload_part

_SPIN = 0.0012
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(document: object) -> bytes:
    return _chunk(payload_part(b"data: %b\n\n" % json.dumps(document).encode()))


def main() -> None:
    """Serve until killed."""
    options = json.loads(sys.stdin.readline())
    first, gaps, chunks = options["first"], options["gaps"], options["chunks"]
    tls = None
    if "certificate" in options:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options["certificate"])
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    poll.register(sys.stdin, select.EPOLLIN)
    connections: dict[int, tuple[socket.socket, bytearray]] = {}
    due: list[tuple[float, int, socket.socket, int]] = []
    order = itertools.count()

    def take(descriptor: int) -> None:
        connection, buffer = connections[descriptor]
        try:
            data = connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            poll.unregister(descriptor)
            connections.pop(descriptor)[0].close()
            return
        buffer += data
        head, mark, rest = bytes(buffer).partition(b"\r\n\r\n")
        if not mark:
            return
        size = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        if len(rest) >= size:
            buffer.clear()
            connection.sendall(_HEAD)
            heapq.heappush(due, (time.perf_counter() + first, next(order), connection, 0))

    def send(moment: float, connection: socket.socket, number: int) -> None:
        try:
            if number < chunks:
                told = {"choices": [{"delta": {"content": "x"}}], "sent": time.perf_counter()}
                connection.sendall(_event(told))
                gap = gaps[number % len(gaps)]
                heapq.heappush(due, (moment + gap, next(order), connection, number + 1))
            else:
                last = {"choices": [{"delta": {}, "finish_reason": "length"}]}
                connection.sendall(_event(last) + b"0\r\n\r\n")
        except OSError:
            return

    while True:
        wait = due[0][0] - time.perf_counter() - _SPIN if due else 1.0
        for descriptor, _ in poll.poll(max(0.0, wait)):
            if descriptor == sys.stdin.fileno():
                return
            if descriptor == listener.fileno():
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if tls is not None:
                    try:
                        connection = tls.wrap_socket(connection, server_side=True)
                    except OSError:
                        continue  # the caller gave up
                poll.register(connection, select.EPOLLIN)
                connections[connection.fileno()] = connection, bytearray()
            else:
                take(descriptor)
        while due and due[0][0] <= time.perf_counter() + _SPIN:
            moment, _, connection, number = heapq.heappop(due)
            while time.perf_counter() < moment:
                pass
            send(moment, connection, number)


if __name__ == "__main__":
    main()
