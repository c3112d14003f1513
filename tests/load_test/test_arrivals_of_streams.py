"""When the parts of a stream came: as the kernel has it, not when the generator read them."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from low_latency_endpoint.load_test.engine.connections import _STAMP, _STAMPED, GeneratorConnection

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#: For how long the generator does something else while a part comes.
BUSY = 0.3


class Server(threading.Thread):
    """Answers one request in three parts, the last two once asked; notes when they went out."""

    def __init__(self, certificate: Path | None) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._certificate = certificate
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.wanted, self.sent = threading.Event(), threading.Event()
        self.begun = self.ended = 0.0

    def run(self) -> None:
        connection, _ = self._listener.accept()
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
            connection = context.wrap_socket(connection, server_side=True)
        with self._listener, connection:
            connection.recv(1 << 16)
            connection.sendall(HEAD + b"3\r\none\r\n")
            self.wanted.wait()
            self.begun = time.perf_counter()
            connection.sendall(b"3\r\ntwo\r\n")
            self.ended = time.perf_counter()
            self.sent.set()
            connection.sendall(b"5\r\nth")
            connection.recv(1)
            connection.sendall(b"ree\r\n0\r\n\r\n")
            connection.recv(1)


@pytest.fixture
def stamping() -> Iterator[None]:
    """The kernel notes arrivals: it begins a moment after the first socket asks, if it is busy."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        own.setsockopt(socket.SOL_SOCKET, _STAMPED, 1)
        late = 0.0
        while late < 0.01:
            own.sendto(b".", own.getsockname())
            time.sleep(0.02)
            _, notes, _, _ = own.recvmsg(1, 64)
            seconds, nanoseconds = _STAMP.unpack(notes[0][2])
            late = time.time() - seconds - nanoseconds / 1e9
        yield


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel tells no arrivals")
@pytest.mark.usefixtures("stamping")
def test_a_part_that_is_read_late_came_when_it_came(tls: Path | None) -> None:
    server = Server(tls and tls / "server.pem")
    server.start()
    connection = GeneratorConnection(server.url, 60, str(tls / "ca.pem") if tls else "")
    found: dict[bytes, tuple[float, float]] = {}

    def read(part: bytes) -> None:
        found[part] = connection.came_at, time.perf_counter()
        if part == b"one":
            server.wanted.set()
            server.sent.wait()
            time.sleep(BUSY)  # the whole thread: no greenlet of it reads
        if part == b"th":
            connection._socket.send(b".")

    connection.exchange(b"POST / HTTP/1.1\r\n\r\n", read)
    connection.close()
    server.join()
    came, at = found[b"two"]
    assert at - came > 0.9 * BUSY
    # Loopback takes microseconds; the kernel's clock and ours are two.
    assert server.begun - 0.001 <= came <= server.ended + 0.1
    moments = [came for came, _ in found.values()]
    assert list(found) == [b"one", b"two", b"th", b"ree"]
    assert moments == sorted(moments)
