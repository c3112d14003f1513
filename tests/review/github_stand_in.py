"""GitHub's comments on loopback: pages with Link headers, refusals, hiccups."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = {"login": "github-actions[bot]", "id": 41898282, "type": "Bot"}
TOKEN = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
NOT_BY_INTEGRATION = "Resource not accessible by integration"
MOST_CHARACTERS = 65_536


class StandIn:
    """What it holds, and what it is told to answer instead.

    Attributes
    ----------
    comments : list
        Of pull request 7 of octocat/endpoints.
    asked : list
        Method and path of each request.
    answers : list
        Method, status, headers and message of answers that come first; with ``done`` in the
        headers, after the work was done.
    read_only : bool
    user : dict or None
        Whose token it is; a workflow's token may not ask.
    """

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.answers: list[tuple[str, int, dict[str, str], str]] = []
        self.read_only = False
        self.user: dict[str, Any] | None = None
        self.url = ""
        self._next = 1000

    def add(self, body: str, user: dict[str, Any]) -> dict[str, Any]:
        self._next += 1
        url = f"https://github.com/octocat/endpoints/pull/7#issuecomment-{self._next}"
        self.comments.append({"id": self._next, "body": body, "user": user, "html_url": url})
        return self.comments[-1]

    @property
    def writes(self) -> list[str]:
        return [method for method, _ in self.asked if method != "GET"]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        """Status, data and headers."""
        told = next((each for each in self.answers if each[0] == method), None)
        if told is not None:
            self.answers.remove(told)
            if "done" in told[2]:
                self._do(method, path, body)
            return told[1], {"message": told[3]}, told[2]
        return self._do(method, path, body)

    def _do(self, method: str, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        parts = urlsplit(path)
        if parts.path == "/user":
            if self.user is None:
                return 403, {"message": NOT_BY_INTEGRATION}, {}
            return 200, self.user, {}
        if method != "GET" and self.read_only:
            return 403, {"message": NOT_BY_INTEGRATION}, {}
        if method != "GET" and len(body["body"]) > MOST_CHARACTERS:
            return 422, {"message": "Validation Failed"}, {}
        comments = "/repos/octocat/endpoints/issues/7/comments"
        if (method, parts.path) == ("GET", comments):
            query = parse_qs(parts.query)
            size, page = int(query["per_page"][0]), int(query["page"][0])
            link = f'<{self.url}{comments}?per_page={size}&page={page + 1}>; rel="next"'
            more = page * size < len(self.comments)
            found = self.comments[(page - 1) * size : page * size]
            return 200, found, {"Link": link} if more else {}
        if (method, parts.path) == ("POST", comments):
            return 201, self.add(body["body"], self.user or BOT), {}
        found = re.fullmatch(r"/repos/octocat/endpoints/issues/comments/(\d+)", parts.path)
        for each in self.comments:
            if method == "PATCH" and found and each["id"] == int(found[1]):
                if each["user"] != (self.user or BOT):
                    return 403, {"message": NOT_BY_INTEGRATION}, {}
                each["body"] = body["body"]
                return 200, each, {}
        return 404, {"message": "Not Found"}, {}


@contextmanager
def github_stand_in() -> Iterator[StandIn]:
    """It serves while the context lasts."""
    held = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            held.asked.append((self.command, self.path))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, data, headers = 401, {"message": "Bad credentials"}, {}
            else:
                status, data, headers = held.answer(self.command, self.path, body)
            text = json.dumps(data).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        held.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield held
        finally:
            server.shutdown()
            thread.join()
