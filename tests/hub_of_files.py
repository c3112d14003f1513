"""A Hugging Face Hub on loopback: models' files, the CDN of large ones, and what goes wrong with both.

It answers what `low-latency pin` (with huggingface_hub 2.4.0) and the staging function ask for, with
the statuses and headers of the Hub's documentation.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
import socket
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

_API = re.compile(r"/api/models/(?P<name>[^/]+/[^/]+)(?:/revision/(?P<revision>[^/]+))?")
_CHECK = re.compile(r"/api/models/(?P<name>[^/]+/[^/]+)/auth-check")
_FILE = re.compile(r"/(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
# Small files come by one more redirect, a relative one: huggingface/swift-transformers#209.
_CACHED = re.compile(
    r"/api/resolve-cache/models/(?P<name>[^/]+/[^/]+)/(?P<revision>[^/]+)/(?P<path>.+)"
)


@dataclass(frozen=True, kw_only=True)
class FakeModel:
    """A model: its newest files and earlier ones, who may read it, and what its page says."""

    files: Mapping[str, bytes]
    history: tuple[Mapping[str, bytes], ...] = ()
    branches: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    gated: str | bool = False
    private: bool = False
    tokens: tuple[str, ...] = ()
    card: Mapping[str, Any] = field(default_factory=dict)
    pipeline_tag: str | None = None
    library_name: str | None = None
    parameters: Mapping[str, int] = field(default_factory=dict)


class Repository:
    """A model's commits while the Hub runs. Tests may change both mappings."""

    def __init__(self, name: str, model: FakeModel) -> None:
        self.name, self.model = name, model
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[str, str] = {}
        for files in (*model.history, model.files):
            self.commit(files)
        for branch, files in model.branches.items():
            self.commit(files, branch)

    def commit(self, files: Mapping[str, bytes], branch: str = "main") -> str:
        contents = sorted((path, _git_id(content)) for path, content in files.items())
        said = repr((self.name, len(self.commits), contents))
        self.branches[branch] = commit = hashlib.sha1(said.encode()).hexdigest()
        self.commits[commit] = dict(files)
        return commit

    def information(self, commit: str) -> dict[str, Any]:
        """What ``/api/models`` says: huggingface_hub 2.4.0, ``ModelInfo`` and ``RepoSibling``."""
        model = self.model
        stated = {
            "id": self.name,
            "sha": commit,
            "private": model.private,
            "gated": model.gated,
            "tags": [],
            "siblings": [
                {"rfilename": path, **_facts(path, content)}
                for path, content in sorted(self.commits[commit].items())
            ],
            "cardData": dict(model.card) or None,
            "pipeline_tag": model.pipeline_tag,
            "library_name": model.library_name,
            "safetensors": {"parameters": dict(model.parameters), "total": 0}
            if model.parameters
            else None,
        }
        return {key: value for key, value in stated.items() if value is not None}


def _is_large(path: str, content: bytes) -> bool:
    """Whether a file is in Git LFS: https://huggingface.co/docs/hub/repositories-getting-started."""
    return path.endswith((".safetensors", ".bin", ".gguf")) or len(content) > 10_000_000


@lru_cache(maxsize=64)
def _git_id(content: bytes) -> str:
    """The only hash that the Hub has of a small file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _facts(path: str, content: bytes) -> dict[str, Any]:
    facts: dict[str, Any] = {"size": len(content), "blobId": _git_id(content)}
    if _is_large(path, content):
        sha256 = hashlib.sha256(content).hexdigest()
        facts["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
    return facts


class SeenRequest(NamedTuple):
    """A request, by the server that it came to; status 0 for no answer."""

    origin: str
    path: str
    with_token: bool
    status: int
    range: str | None


class _Refused(Exception):
    def __init__(self, status: int, code: str | None, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, hub: FakeHub, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.hub = hub
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

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
    """A Hub, as a context manager.

    Parameters
    ----------
    tokens
        Of accounts that exist besides those that models name.
    renamed
        Names that models had before, which the Hub redirects.
    """

    def __init__(
        self,
        models: Mapping[str, FakeModel],
        *,
        tokens: Iterable[str] = (),
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self.repositories = {name: Repository(name, model) for name, model in models.items()}
        self.renamed = dict(renamed or {})
        self.requests: list[SeenRequest] = []
        self.tokens = {each for model in models.values() for each in model.tokens} | set(tokens)
        self.key = secrets.token_hex(8)
        self.limited = (0, 0)
        self.down_with: int | None = None
        self.cuts: dict[str, list[int]] = defaultdict(list)
        self.tampered: set[str] = set()
        self.pace: dict[str, int] = {}
        self.stopping = threading.Event()

    def __enter__(self) -> Self:
        self._hub, self._cdn = _Server(self, _Hub), _Server(self, _Cdn)
        self.endpoint, self.cdn = self._hub.url, self._cdn.url
        return self

    def __exit__(self, *error: object) -> None:
        self.stopping.set()
        self._hub.stop()
        self._cdn.stop()

    def commit(self, model: str, files: Mapping[str, bytes], branch: str = "main") -> str:
        """Let a branch of a model have other files, all of them; gives the commit."""
        return self.repositories[model].commit(files, branch)

    def seen(self, origin: str, containing: str = "") -> list[SeenRequest]:
        """The requests so far to ``hub`` or ``cdn``, whose path contains a text."""
        return [each for each in self.requests if each.origin == origin and containing in each.path]

    # ------------------------------------------------------------------------------------ faults

    def rate_limit(self, requests: int, seconds: int = 0) -> None:
        """Refuse the Hub's next requests with 429, for a window that ends in so many seconds."""
        self.limited = (requests, seconds)

    def cut(self, path: str, after_bytes: int, times: int = 1) -> None:
        """Close the connection after so many bytes of a file's body, the next times."""
        self.cuts[path] = [after_bytes] * times

    def tamper(self, path: str, tampered: bool = True) -> None:
        """Serve other bytes of the same length as a file."""
        (self.tampered.add if tampered else self.tampered.discard)(path)

    def slow(self, path: str, bytes_per_second: int) -> None:
        """Serve a file no faster."""
        self.pace[path] = bytes_per_second

    def down(self, status: int = 0) -> None:
        """Answer everything with a status such as 503; 0 closes connections without an answer."""
        self.down_with = status

    def up(self) -> None:
        """Answer again."""
        self.down_with = None

    def expire_urls(self) -> None:
        """Let the CDN refuse every URL that was signed so far."""
        self.key = secrets.token_hex(8)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    origin = ""

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        down = self.server.hub.down_with
        if down is None:
            self.answer()
        elif down:
            self.reply(down, b"Service Unavailable")
        else:
            self._record(0)
            self.close_connection = True

    def answer(self) -> None:
        raise NotImplementedError

    def _record(self, status: int) -> None:
        with_token, part = "Authorization" in self.headers, self.headers.get("Range")
        seen = SeenRequest(self.origin, self.path, with_token, status, part)
        self.server.hub.requests.append(seen)

    def reply(self, status: int, body: bytes = b"", path: str = "", **headers: str) -> None:
        self._record(status)
        self.send_response_only(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        for piece in self._pieces(path, body):
            self.wfile.write(piece)

    def _pieces(self, path: str, body: bytes) -> Iterator[bytes]:
        """A body as faults leave it."""
        hub = self.server.hub
        if (cuts := hub.cuts[path]) and cuts[0] < len(body):
            body = body[: cuts.pop()]
            self.close_connection = True
        pace = hub.pace.get(path)
        step = max(1, pace // 20) if pace else 1 << 20
        for start in range(0, len(body), step):
            if pace and hub.stopping.wait(step / pace):
                return
            yield body[start : start + step]

    def reply_with_file(self, path: str, content: bytes, **headers: str) -> None:
        """Answer with a file's bytes, or with those from a byte on."""
        if path in self.server.hub.tampered:
            content = bytes([content[0] ^ 1]) + content[1:]
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked is None:
            self.reply(200, content, path, **headers)
            return
        first, size = int(asked[1]), len(content)
        if first >= size:
            self.reply(416, Content_Range=f"bytes */{size}")
            return
        headers["Content_Range"] = f"bytes {first}-{size - 1}/{size}"
        self.reply(206, content[first:], path, **headers)


class _Hub(_Handler):
    """The Hub itself: models by the API, files by ``/resolve/``."""

    origin = "hub"

    def answer(self) -> None:
        hub = self.server.hub
        requests, seconds = hub.limited
        if requests:
            hub.limited = (requests - 1, seconds)
            # https://huggingface.co/docs/hub/rate-limits
            self.reply(429, RateLimit=f'"api";r=0;t={seconds}')
            return
        try:
            self._answer(urlsplit(self.path).path)
        except _Refused as refused:
            code = {"X_Error_Code": refused.code} if refused.code else {}
            body = json.dumps({"error": refused.message}).encode()
            self.reply(refused.status, body, X_Error_Message=refused.message, **code)

    def _answer(self, path: str) -> None:
        for pattern, answer in (
            (_CHECK, self._check),
            (_CACHED, self._small_file),
            (_API, self._information),
            (_FILE, self._file),
        ):
            if found := pattern.fullmatch(path):
                now = self.server.hub.renamed.get(found["name"])
                if now is None:
                    answer(
                        {name: unquote(text or "main") for name, text in found.groupdict().items()}
                    )
                else:
                    self.reply(307, Location=self.path.replace(found["name"], now, 1))
                return
        raise _Refused(404, None, "Not Found")

    def _check(self, found: Mapping[str, str]) -> None:
        self._repository(found["name"], files=True)
        self.reply(200, b"{}")

    def _information(self, found: Mapping[str, str]) -> None:
        repository = self._repository(found["name"], files=False)
        said = repository.information(self._commit(repository, found["revision"]))
        self.reply(200, json.dumps(said).encode(), Content_Type="application/json")

    def _file(self, found: Mapping[str, str]) -> None:
        repository, commit, content = self._content(found)
        path, hub = found["path"], self.server.hub
        if _is_large(path, content):
            sha256 = hashlib.sha256(content).hexdigest()
            target = f"{hub.cdn}/{sha256}?key={hub.key}&filename={quote(path, safe='')}"
            self.reply(302, Location=target, X_Repo_Commit=commit)
        else:
            target = f"/api/resolve-cache/models/{repository.name}/{commit}/{quote(path)}"
            self.reply(307, Location=target, X_Repo_Commit=commit)

    def _small_file(self, found: Mapping[str, str]) -> None:
        _, commit, content = self._content(found)
        self.reply_with_file(found["path"], content, X_Repo_Commit=commit)

    def _content(self, found: Mapping[str, str]) -> tuple[Repository, str, bytes]:
        repository = self._repository(found["name"], files=True)
        commit = self._commit(repository, found["revision"])
        content = repository.commits[commit].get(found["path"])
        if content is None:
            raise _Refused(404, "EntryNotFound", "Entry not found")
        return repository, commit, content

    def _repository(self, name: str, *, files: bool) -> Repository:
        """The repository, if who asks may see it; `files` if its files too.

        The statuses are those that huggingface_hub 2.4.0 expects, utils/_http.py,
        hf_raise_for_status. What does not exist and what is private answer the same; to nobody in
        particular with 401 and without a code, which the library knows by its URL alone.
        """
        hub, stated = self.server.hub, self.headers.get("Authorization")
        token = stated.removeprefix("Bearer ") if stated else None
        if token is not None and token not in hub.tokens:
            raise _Refused(401, None, "Invalid credentials in Authorization header")
        repository = hub.repositories.get(name)
        granted = repository is not None and token in repository.model.tokens
        if repository is None or (repository.model.private and not granted):
            if token is None:
                raise _Refused(401, None, "Invalid username or password.")
            raise _Refused(404, "RepoNotFound", "Repository not found")
        if files and repository.model.gated and not granted:
            message = f"Access to model {name} is restricted."
            raise _Refused(403 if token else 401, "GatedRepo", message)
        return repository

    def _commit(self, repository: Repository, revision: str) -> str:
        commit = repository.branches.get(revision, revision)
        if commit not in repository.commits:
            raise _Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit


class _Cdn(_Handler):
    """The CDN: bytes for who has a signed URL, and nothing else."""

    origin = "cdn"

    def answer(self) -> None:
        url, hub = urlsplit(self.path), self.server.hub
        stated = {name: values[0] for name, values in parse_qs(url.query).items()}
        if "Authorization" in self.headers:
            # As S3 does with a URL that is signed already: "Only one auth mechanism allowed".
            self.reply(400, b"<Error><Code>InvalidArgument</Code></Error>")
        elif stated.get("key") != hub.key:
            self.reply(403, b"<Error><Code>AccessDenied</Code></Error>")
        else:
            for repository in hub.repositories.values():
                for files in list(repository.commits.values()):
                    for content in files.values():
                        if hashlib.sha256(content).hexdigest() == url.path[1:]:
                            self.reply_with_file(stated["filename"], content)
                            return
            self.reply(404)
