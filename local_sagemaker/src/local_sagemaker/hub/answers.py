"""What the fake Hub and its CDN answer, request by request."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit

from .repository import Repository, git_blob_id, is_lfs
from .server import FakeHub, SeenRequest

_API = re.compile(r"/api/models/(?P<name>[^/]+(?:/[^/]+)?)(?:/revision/(?P<revision>[^/]+))?")
_TREE = re.compile(r"/api/models/(?P<name>[^/]+(?:/[^/]+)?)/tree/(?P<revision>[^/]+)")
_CHECK = re.compile(r"/api/models/(?P<name>[^/]+(?:/[^/]+)?)/auth-check")
_FILE = re.compile(r"/(?P<name>[^/]+(?:/[^/]+)?)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
# Small files come by one more redirect, a relative one, as huggingface/swift-transformers#209 and
# raullenchai/Rapid-MLX#1122 (July 2026, with all headers) show it.
_CACHED = re.compile(
    r"/api/resolve-cache/models/(?P<name>[^/]+(?:/[^/]+)?)/(?P<revision>[0-9a-f]{40})/(?P<path>.+)"
)


class _Refused(Exception):
    """An answer that is an error: its status, its ``X-Error-Code`` if it has one, its message."""

    def __init__(self, status: int, code: str | None, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class _Handler(BaseHTTPRequestHandler):
    hub: ClassVar[FakeHub]
    origin: ClassVar[Literal["hub", "cdn"]]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: the record of requests is :attr:`FakeHub.requests`."""

    def do_GET(self) -> None:
        down = self.hub.down_with()
        if down is None:
            self.answer()
        elif down:
            self.reply(down, b"Service Unavailable")
        else:
            self._record(0)
            self.close_connection = True

    do_HEAD = do_GET  # noqa: N815

    def answer(self) -> None:
        raise NotImplementedError

    def _record(self, status: int) -> None:
        with_token = "Authorization" in self.headers
        self.hub.record(
            SeenRequest(
                self.origin, self.command, self.path, with_token, status, self.headers.get("Range")
            )
        )

    def reply(
        self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, path: str = ""
    ) -> None:
        """Answer, with the faults that tests have set for the file at a path."""
        self._record(status)
        self.send_response_only(status)
        stated = {"Content-Type": "text/plain; charset=utf-8", **(headers or {})}
        chunked = "Content-Encoding" in stated
        stated |= (
            {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(body))}
        )
        for name, value in stated.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        for piece in self.hub.pieces(path, body):
            if piece is None:
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def reply_with_range(self, body: bytes, headers: dict[str, str], path: str) -> None:
        """Answer with a file's bytes, or with those that were asked for."""
        headers = {"Accept-Ranges": "bytes", **headers}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self.reply(200, body, headers, path)
            return
        first, last = int(asked[1]), min(int(asked[2] or len(body)), len(body) - 1)
        if first > last:
            self.reply(416, b"", headers | {"Content-Range": f"bytes */{len(body)}"})
            return
        headers |= {"Content-Range": f"bytes {first}-{last}/{len(body)}"}
        self.reply(206, body[first : last + 1], headers, path)


class HubHandler(_Handler):
    """The Hub itself: models by the API, files by ``/resolve/``."""

    origin = "hub"

    def answer(self) -> None:
        kind = "api" if self.path.startswith("/api/models/") else "resolvers"
        seconds = self.hub.limited()
        # On every answer: https://huggingface.co/docs/hub/rate-limits, and utils/_http.py.
        self._limit = {"RateLimit-Policy": f'"fixed window";"{kind}";q=3000;w=300'}
        if seconds is not None:
            self._limit["RateLimit"] = f'"{kind}";r=0;t={seconds}'
            self.reply(429, b"Too Many Requests", self._limit)
            return
        self._limit["RateLimit"] = f'"{kind}";r=2999;t=300'
        try:
            self._answer(urlsplit(self.path))
        except _Refused as refused:
            headers = self._limit | {"X-Error-Message": refused.message}
            if refused.code:
                headers["X-Error-Code"] = refused.code
            self.reply(refused.status, json.dumps({"error": refused.message}).encode(), headers)

    def _answer(self, url: Any) -> None:
        if found := _CHECK.fullmatch(url.path):
            self._repository(found["name"], files=True)
            self.reply(200, b"{}", self._limit)
        elif found := _CACHED.fullmatch(url.path):
            self._small_file(found)
        elif found := _TREE.fullmatch(url.path):
            repository = self._repository(found["name"], files=False)
            listed = repository.tree(self._commit(repository, found["revision"]))
            self._json(listed)
        elif found := _API.fullmatch(url.path):
            self._information(found, "blobs" in parse_qs(url.query))
        elif found := _FILE.fullmatch(url.path):
            self._file(found)
        else:
            raise _Refused(404, None, "Not Found")

    def _information(self, found: re.Match[str], blobs: bool) -> None:
        if self._moved(found):
            return
        repository = self._repository(found["name"], files=False)
        commit = self._commit(repository, found["revision"] or "main")
        self._json(repository.information(commit, blobs))

    def _json(self, value: Any) -> None:
        headers = self._limit | {"Content-Type": "application/json"}
        self.reply(200, json.dumps(value).encode(), headers)

    def _file(self, found: re.Match[str]) -> None:
        if self._moved(found):
            return
        repository, commit, path, content = self._content(found)
        headers = self._limit | {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if is_lfs(path, content):
            sha256 = hashlib.sha256(content).hexdigest()
            headers |= {
                "X-Linked-Size": str(len(content)),
                "X-Linked-ETag": f'"{sha256}"',
                "Location": self.hub.signed(sha256, path),
            }
            self.reply(302, b"Found", headers)
            return
        etag = f'"{git_blob_id(content)}"'
        target = f"/api/resolve-cache/models/{repository.name}/{commit}/{quote(path)}"
        query = f"{quote(urlsplit(self.path).path, safe='')}=&etag={quote(etag, safe='')}"
        self.reply(307, b"Temporary Redirect", headers | {"Location": f"{target}?{query}"})

    def _small_file(self, found: re.Match[str]) -> None:
        _, commit, path, content = self._content(found)
        body = self.hub.served(path, content)
        etag = f'"{git_blob_id(content)}"'
        headers = self._limit | {"X-Repo-Commit": commit, "ETag": etag}
        if "gzip" in self.headers.get("Accept-Encoding", "") and "Range" not in self.headers:
            # "Hub serves compressible text files with Content-Encoding: gzip and
            # Transfer-Encoding: chunked": huggingface_hub 2.4.0, file_download.py, http_get.
            headers |= {"Content-Encoding": "gzip", "ETag": f"W/{etag}"}
            self.reply(200, gzip.compress(body, mtime=0), headers, path)
            return
        self.reply_with_range(body, headers, path)

    def _content(self, found: re.Match[str]) -> tuple[Repository, str, str, bytes]:
        repository = self._repository(found["name"], files=True)
        commit = self._commit(repository, found["revision"])
        path = unquote(found["path"])
        if path not in repository.commits[commit]:
            raise _Refused(404, "EntryNotFound", "Entry not found")
        return repository, commit, path, repository.commits[commit][path]

    def _moved(self, found: re.Match[str]) -> bool:
        """Redirect a name that the model had before: containers/podman-desktop-extension-ai-lab#1651."""
        now = self.hub.renamed.get(unquote(found["name"]))
        if now is None:
            return False
        target = self.path.replace(found["name"], now, 1)
        self.reply(307, b"Temporary Redirect", self._limit | {"Location": target})
        return True

    def _repository(self, name: str, *, files: bool) -> Repository:
        """The repository, if who asks may see it; `files` if its files too.

        The statuses are those that huggingface_hub 2.4.0 expects, utils/_http.py,
        hf_raise_for_status. What does not exist and what is private answer the same; to nobody in
        particular with 401 and without a code, which the library knows by its URL alone.
        """
        token = self._token()
        repository = self.hub.repositories.get(unquote(name))
        granted = repository is not None and token in repository.model.tokens
        if repository is None or (repository.model.private and not granted):
            if token is None:
                raise _Refused(401, None, "Invalid username or password.")
            raise _Refused(404, "RepoNotFound", "Repository not found")
        if files and repository.model.gated and not granted:
            raise _Refused(
                403 if token else 401,
                "GatedRepo",
                f"Access to model {repository.name} is restricted and you are not in the "
                "authorized list.",
            )
        return repository

    def _token(self) -> str | None:
        stated = self.headers.get("Authorization")
        if stated is None:
            return None
        token = stated.removeprefix("Bearer ")
        if token not in self.hub.tokens:
            raise _Refused(401, None, "Invalid credentials in Authorization header")
        return token

    def _commit(self, repository: Repository, revision: str) -> str:
        commit = repository.resolved(unquote(revision))
        if commit is None:
            raise _Refused(404, "RevisionNotFound", f"Invalid rev id: {unquote(revision)}")
        return commit


class CdnHandler(_Handler):
    """The CDN: bytes for who has a signed URL, and nothing else."""

    origin = "cdn"

    def answer(self) -> None:
        url = urlsplit(self.path)
        stated = {name: values[0] for name, values in parse_qs(url.query).items()}
        if "Authorization" in self.headers:
            # As S3 does with a URL that is signed already: "Only one auth mechanism allowed".
            self.reply(400, b"<Error><Code>InvalidArgument</Code></Error>")
            return
        sha256 = url.path.removeprefix("/xet-bridge/")
        expires, signature = stated.get("Expires", ""), stated.get("Signature", "")
        good = expires.isdigit() and self.hub.is_signed(sha256, expires, signature)
        if not good or self.command != "GET":  # a signature is for one method
            self.reply(403, b"<Error><Code>AccessDenied</Code></Error>")
            return
        for repository in self.hub.repositories.values():
            content = repository.blob(sha256)
            if content is not None:
                path = stated.get("filename", "")
                self.reply_with_range(self.hub.served(path, content), {"ETag": f'"{sha256}"'}, path)
                return
        self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
