"""A server on loopback that ends connections without saying so, as proxies and restarts do."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["ClosingServer"]

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class ClosingServer:
    """Answers, and closes with every nth answer without ``Connection: close``.

    The end comes in the segment of the answer, as from a proxy that writes and closes: how soon a
    busy machine lets this process go on is no matter. A body that begins with ``hang up`` is read
    to its end and then not answered: the connection is closed, or reset where it begins with
    ``hang up: reset``.

    Parameters
    ----------
    answers : int
        Of each connection.
    folder : Path, optional
        With ``server.pem``; TLS then.

    Attributes
    ----------
    read : Counter of bytes
        Bodies of the requests, whole ones only.
    """

    def __init__(self, answers: int, folder: Path | None = None) -> None:
        self._answers, self._tls = answers, None
        if folder is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(folder / "server.pem")
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        scheme = "http" if folder is None else "https"
        self.url = f"{scheme}://localhost:{self._listener.getsockname()[1]}"
        self.read: Counter[bytes] = Counter()
        self.closed = threading.Event()

    def __enter__(self) -> ClosingServer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Any) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for left in reversed(range(self._answers)):
                body = _read_request(connection)
                if body is None:
                    break
                self.read[body] += 1
                if body.startswith(b"hang up"):
                    if body.startswith(b"hang up: reset"):
                        connection.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                        )
                    break
                if not left:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
                connection.sendall(ANSWER)
        connection.close()
        self.closed.set()


def _read_request(connection: Any) -> bytes | None:
    """The body of the next request; ``None`` when there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        more = connection.recv(65536)
        if not more:
            return None
        body += more
    return bytes(body)
