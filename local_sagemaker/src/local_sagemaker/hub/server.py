"""The fake Hub's two servers: the Hub, and the CDN that its large files come from."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from .repository import FakeModel, Repository


class SeenRequest(NamedTuple):
    """A request that a fake Hub answered, or did not."""

    origin: Literal["hub", "cdn"]
    method: str
    path: str
    with_token: bool
    status: int
    """0 when the connection was closed without an answer."""
    range: str | None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that goes away is none of the server's errors."""

    def stop(self) -> None:
        """Answer no more, and close what clients keep open."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class FakeHub:
    """A Hugging Face Hub on loopback, as a context manager.

    Parameters
    ----------
    models : mapping of str to FakeModel
        By name, such as ``acme/tiny``.
    tokens : iterable of str
        Of accounts that exist besides those that models name: they are nobody's guests.
    renamed : mapping of str to str
        Names that models had before, which the Hub redirects.
    port : int
        Of the Hub; 0 takes a free one.

    Examples
    --------
    >>> import json, urllib.request
    >>> with FakeHub({"acme/tiny": FakeModel(files={"config.json": b"{}"})}) as hub:
    ...     with urllib.request.urlopen(f"{hub.endpoint}/api/models/acme/tiny") as answer:
    ...         said = json.load(answer)
    >>> said["siblings"], [each.path for each in hub.requests]
    ([{'rfilename': 'config.json'}], ['/api/models/acme/tiny'])
    """

    def __init__(
        self,
        models: Mapping[str, FakeModel],
        *,
        tokens: Iterable[str] = (),
        renamed: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        self.repositories = {name: Repository(name, model) for name, model in models.items()}
        self.renamed = dict(renamed or {})
        self.requests: list[SeenRequest] = []
        self.tokens = {each for model in models.values() for each in model.tokens} | set(tokens)
        self.stopping = threading.Event()
        self._port = port
        self._lock = threading.Lock()
        self._key = secrets.token_bytes(16)
        self._limited = (0, 0)
        self._down: int | None = None
        self._cuts: dict[str, tuple[int, int]] = {}
        self._tampered: set[str] = set()
        self._slow: dict[str, int] = {}

    def __enter__(self) -> Self:
        from .answers import CdnHandler, HubHandler

        self._hub = _Server(self._port, type("Hub", (HubHandler,), {"hub": self}))
        try:
            self._cdn = _Server(0, type("Cdn", (CdnHandler,), {"hub": self}))
        except BaseException:
            self._hub.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self._hub.stop()
        self._cdn.stop()

    @property
    def endpoint(self) -> str:
        """What ``HF_ENDPOINT`` is."""
        return f"http://127.0.0.1:{self._hub.server_port}"

    @property
    def cdn(self) -> str:
        """Another origin: what the Hub's token is none of."""
        return f"http://127.0.0.1:{self._cdn.server_port}"

    def commit(self, model: str, files: Mapping[str, bytes], branch: str = "main") -> str:
        """Let a branch of a model have other files, all of them; gives the commit."""
        return self.repositories[model].commit(files, branch)

    def seen(self, origin: Literal["hub", "cdn"], containing: str = "") -> list[SeenRequest]:
        """The requests so far to one origin, whose path contains a text."""
        with self._lock:
            return [
                each for each in self.requests if each.origin == origin and containing in each.path
            ]

    # ------------------------------------------------------------------------------------ faults

    def rate_limit(self, requests: int, seconds: int = 0) -> None:
        """Refuse the Hub's next requests with 429, for a window that ends in so many seconds."""
        with self._lock:
            self._limited = (requests, seconds)

    def cut(self, path: str, after_bytes: int, times: int = 1) -> None:
        """Close the connection after so many bytes of a file's body, the next times."""
        with self._lock:
            self._cuts[path] = (after_bytes, times)

    def tamper(self, path: str, tampered: bool = True) -> None:
        """Serve other bytes of the same length as a file."""
        with self._lock:
            (self._tampered.add if tampered else self._tampered.discard)(path)

    def slow(self, path: str, bytes_per_second: int) -> None:
        """Serve a file no faster."""
        with self._lock:
            self._slow[path] = bytes_per_second

    def down(self, status: int = 0) -> None:
        """Answer everything with a status such as 503; 0 closes connections without an answer."""
        with self._lock:
            self._down = status

    def up(self) -> None:
        """Answer again."""
        with self._lock:
            self._down = None

    def expire_urls(self) -> None:
        """Let the CDN refuse every URL that was signed so far."""
        with self._lock:
            self._key = secrets.token_bytes(16)

    # ---------------------------------------------------------------- what the two servers ask it

    def record(self, seen: SeenRequest) -> None:
        """Keep what came."""
        with self._lock:
            self.requests.append(seen)

    def down_with(self) -> int | None:
        """The status that everything is answered with, if it is."""
        with self._lock:
            return self._down

    def limited(self) -> int | None:
        """In how many seconds the window ends for a request that is over the limit."""
        with self._lock:
            requests, seconds = self._limited
            if not requests:
                return None
            self._limited = (requests - 1, seconds)
            return seconds

    def signed(self, sha256: str, path: str, seconds: int = 3600) -> str:
        """A URL at the CDN that is good for a while, as the Hub's are."""
        expires = str(int(time.time()) + seconds)
        return (
            f"{self.cdn}/xet-bridge/{sha256}?Expires={expires}"
            f"&Signature={self._signature(sha256, expires)}&filename={_quoted(path)}"
        )

    def is_signed(self, sha256: str, expires: str, signature: str) -> bool:
        """Whether a URL is the Hub's, and has not expired."""
        good = hmac.compare_digest(self._signature(sha256, expires), signature)
        return good and time.time() < int(expires)

    def _signature(self, sha256: str, expires: str) -> str:
        return hmac.new(self._key, f"{sha256} {expires}".encode(), hashlib.sha256).hexdigest()

    def pieces(self, path: str, body: bytes) -> Iterator[bytes | None]:
        """A body as faults leave it, in pieces; None where the connection is closed."""
        with self._lock:
            after, times = self._cuts.get(path, (0, 0))
            cut = times > 0 and after < len(body)
            if cut:
                self._cuts[path] = (after, times - 1)
                body = body[:after]
            pace = self._slow.get(path)
        step = max(1, pace // 20) if pace else 1 << 20
        for start in range(0, len(body), step):
            if pace and self.stopping.wait(step / pace):
                break
            yield body[start : start + step]
        if cut:
            yield None

    def served(self, path: str, content: bytes) -> bytes:
        """A file's bytes, tampered with or not."""
        with self._lock:
            tampered = path in self._tampered
        return bytes([content[0] ^ 1]) + content[1:] if tampered and content else content


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
