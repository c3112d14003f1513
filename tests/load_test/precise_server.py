"""A server that answers invocations after a time drawn beforehand, and tells the time it took.

A process of its own: reads one line such as ``{"seconds": [0.1], "stall": [2, 2]}`` and prints its
port. ``seconds`` are the service times, taken in turn, or by the number in a body such as
``{"number": 3}``; ``stall`` is when, in seconds after the first request, it does nothing, and for
how long. ``GET /times`` gives, as JSON, the seconds from reading each request to sending its
answer, ``GET /seen`` how many requests were read, ``GET /stood`` the epoch seconds from and to
which it did nothing. It spins for the last millisecond of a wait: timers of ``epoll`` are no finer.
"""

from __future__ import annotations

import heapq
import json
import select
import socket
import sys
import time

_SPIN = 0.0015


def main() -> None:
    """Serve until killed."""
    options = json.loads(sys.stdin.readline())
    delays, stall = options["seconds"], options.get("stall")
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    poll.register(sys.stdin, select.EPOLLIN)
    connections: dict[int, tuple[socket.socket, bytearray]] = {}
    waiting: list[tuple[float, int, float, int]] = []
    taken: list[float] = []
    stood: list[float] = []
    count = 0
    first: float | None = None
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

    def take(descriptor: int) -> None:
        nonlocal count, first
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
        head = buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        if buffer.startswith(b"GET /"):
            told = {b"times": taken, b"seen": count, b"stood": stood}
            body = json.dumps(told[bytes(buffer[5 : buffer.find(b" ", 5)])]).encode()
            connection.setblocking(True)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: "
                + str(len(body)).encode()
                + b"\r\n\r\n"
                + body
            )
            poll.unregister(descriptor)
            connections.pop(descriptor)[0].close()
            return
        length = 0
        for line in bytes(buffer[:head]).split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if len(buffer) < head + 4 + length:
            return
        number = count
        if buffer.find(b'"number"', head) > 0:
            number = json.loads(buffer[head + 4 :])["number"]
        buffer.clear()
        now = time.perf_counter()
        first = now if first is None else first
        heapq.heappush(waiting, (now + delays[number % len(delays)], count, now, descriptor))
        count += 1

    while True:
        left = waiting[0][0] - time.perf_counter() if waiting else 3600.0
        events = poll.poll(0 if left < _SPIN else left - _SPIN)
        if stall and first is not None and time.perf_counter() >= first + stall[0]:
            stood.append(time.time())
            time.sleep(stall[1])
            stood.append(time.time())
            stall = None
        for descriptor, _ in events:
            if descriptor == listener.fileno():
                while True:
                    try:
                        made, _ = listener.accept()
                    except BlockingIOError:
                        break
                    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    connections[made.fileno()] = made, bytearray()
                    poll.register(made, select.EPOLLIN)
            elif descriptor == sys.stdin.fileno():
                return
            else:
                take(descriptor)
        while waiting and waiting[0][0] <= time.perf_counter():
            _, _, since, descriptor = heapq.heappop(waiting)
            if descriptor in connections:
                taken.append(time.perf_counter() - since)  # sending may cost us the processor
                connections[descriptor][0].send(answer)


if __name__ == "__main__":
    main()
