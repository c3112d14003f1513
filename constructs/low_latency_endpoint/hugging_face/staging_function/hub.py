"""Reads a file of a commit from the Hub as one stream, over cut connections and rate limits.

What is followed: https://huggingface.co/docs/hub/rate-limits for 429; the headers and error codes
of huggingface_hub 2.4.0, file_download.py and utils/_http.py; and its rule for tokens, more
strictly: a token goes to the Hub's own scheme, host and port, and nowhere else.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urljoin
from urllib.request import (
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

from .addresses import (
    StagingFailed,
    file_url,
    has_plain_host,
    hub_endpoint,
    is_guarded,
    is_local,
    origin_of,
)

CHUNK = 1024 * 1024
_TIMEOUT = 30.0  # seconds in which nothing arrives
_REDIRECTS = 5
_TRIES = 7
"""In a row without a mebibyte of progress; the waits between them add up to half a minute."""
_FIRST_WAIT = 0.5
_WAITS = 12
"""For the rate limit, whose window is five minutes."""
_LONGEST_WAIT = 600.0  # seconds that a Hub may ask for
_TOKEN = re.compile(r"[\x21-\x7e]+")
_REFUSALS = {
    "GatedRepo": ("LLE349", "the model is gated, and the token's account has no access to it"),
    "RepoNotFound": ("LLE347", "the Hub has no such model, or does not show it to this token"),
    "RevisionNotFound": ("LLE348", "the Hub does not have the pinned commit any more"),
    "EntryNotFound": ("LLE313", "the pinned commit has no such file"),
}


class _Again(Exception):
    """An answer that may be another later; ``after``: the seconds a rate limit asks to wait."""

    def __init__(self, problem: str, after: float | None = None) -> None:
        super().__init__(problem)
        self.after = after


class _AsItIs(HTTPErrorProcessor):
    """Redirects and errors are answers: urllib would take a token along, and URLs into errors."""

    def http_response(self, request: Request, response: Any) -> Any:
        return response

    https_response = http_response


def _timely(handler: Any, left: Callable[[], float]) -> Any:
    """A handler of urllib's that reads, heads too, as long as there is time left: byte by byte."""

    def answer(sock: Any, *given: Any, **named: Any) -> HTTPResponse:
        response = HTTPResponse(sock, *given, **named)
        raw: Any = response.fp.raw
        read = raw.readinto

        def readinto(buffer: Any) -> Any:
            sock.settimeout(min(_TIMEOUT, left()))
            return read(buffer)

        raw.readinto = readinto
        return response

    def opened(connect: Any, request: Request, **more: Any) -> Any:
        def connected(host: str, **given: Any) -> Any:
            connection = connect(host, **given)
            connection.response_class = answer
            return connection

        return do_open(connected, request, **more)

    do_open, handler.do_open = handler.do_open, opened
    return handler


class _Failed(NamedTuple):
    """How often it failed in a row, and how often there was a rate limit."""

    tries: int = 0
    waits: int = 0


class Hub:
    """The Hub, or a mirror of it."""

    def __init__(
        self,
        endpoint: str,
        token: str = "",
        *,
        left: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = hub_endpoint(endpoint)
        if token and not _TOKEN.fullmatch(token):  # urllib would say the token
            raise StagingFailed("LLE349", "the token is no token: it has other characters in it")
        self._token, self._left, self._sleep = token, left, sleep
        handlers = (_timely(each, left) for each in (HTTPHandler(), HTTPSHandler()))
        self._opener: OpenerDirector = build_opener(_AsItIs, *handlers)

    def pieces(self, model: str, commit: str, path: str, size: int) -> Iterator[bytes]:
        """Yield a file's bytes, in pieces, as many as are pinned."""
        url = file_url(self._endpoint, model, commit, path)
        done = counted = 0
        failed = _Failed()
        while True:
            after: float | None = None
            said = "the connection ended early"
            try:
                with self._opened(url, path, done, size) as answer:
                    while done < size and (piece := answer.read1(min(CHUNK, size - done))):
                        done += len(piece)
                        yield piece
                if done == size:
                    return
            except _Again as again:
                said, after = str(again), again.after
            except (OSError, HTTPException) as error:
                said = f"the connection broke ({type(error).__name__})"
            if done - counted >= CHUNK:
                counted, failed = done, _Failed()
            failed = self._wait(failed, after, f"{path} at byte {done} of {size}: {said}")

    def _wait(self, failed: _Failed, after: float | None, problem: str) -> _Failed:
        limited = after is not None
        now = _Failed(failed.tries + (not limited), failed.waits + limited)
        seconds = after if after is not None else _FIRST_WAIT * 2 ** (now.tries - 1)
        left = min(self._left(), _LONGEST_WAIT)
        if now.tries >= _TRIES or now.waits > _WAITS:
            raise StagingFailed("LLE358", f"{problem}; given up")
        if seconds >= left:
            raise StagingFailed(
                "LLE358", f"{problem}; to wait {seconds:.0f} s there are {left:.0f} s left"
            )
        self._sleep(seconds * random.uniform(1.0, 1.2))
        return now

    def _opened(self, url: str, path: str, start: int, size: int) -> Any:
        """The answer whose next byte is the one at ``start``."""
        answer = self._answer(url, path, start)
        skipped = start if answer.status == 200 else 0  # a server that knows no ranges
        length = _whole(answer.headers.get("Content-Length", ""))
        if length is not None and length + start - skipped != size:
            answer.close()
            raise _differs(path, f"{length + start - skipped} bytes, not {size}")
        while skipped:
            skipped -= len(answer.read1(min(CHUNK, skipped)) or _cut())
        return answer

    def _answer(self, url: str, path: str, start: int) -> Any:
        try:
            return self._followed(url, path, start)
        except ValueError as error:  # of urllib's, which names neither Hub nor file
            raise StagingFailed(
                "LLE358", f"{path}: the Hub points to no address ({type(error).__name__})"
            ) from None

    def _followed(self, url: str, path: str, start: int) -> Any:
        token, hub = self._token, origin_of(self._endpoint)
        for _ in range(_REDIRECTS + 1):
            if origin_of(url) != hub:
                token = ""  # nor back: what is elsewhere does not say where a token goes
            headers = {"Accept-Encoding": "identity", "User-Agent": "low-latency-endpoint"}
            if start:
                headers["Range"] = f"bytes={start}-"
            if token:
                headers["Authorization"] = f"Bearer {token}"
            waits = min(_TIMEOUT, self._left())
            answer = self._opener.open(Request(url, headers=headers), timeout=waits)
            if answer.status in (200, 206):
                if answer.status == 206 and not _starts_at(answer.headers, start):
                    answer.close()
                    raise _Again("another range than asked for")
                return answer
            answer.close()
            location = answer.headers.get("Location")
            if answer.status not in (301, 302, 303, 307, 308) or not location:
                raise _refusal(answer.status, answer.headers, path, of_hub=origin_of(url) == hub)
            url = urljoin(url, location)
            if not is_guarded(url):
                raise StagingFailed("LLE358", f"{path}: the Hub points to an address without TLS")
            if not has_plain_host(url):
                raise StagingFailed(
                    "LLE358", f"{path}: the Hub points to no address of a plain name"
                )
            if is_local(url) and not is_local(self._endpoint):
                raise StagingFailed("LLE358", f"{path}: the Hub points to this machine itself")
        raise StagingFailed("LLE358", f"{path}: more than {_REDIRECTS} redirects")


def _cut() -> bytes:
    raise _Again("the connection ended early")


def _whole(text: str) -> int | None:
    """A number of a header; what is longer than any real one is none."""
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _starts_at(headers: Mapping[str, str], start: int) -> bool:
    return headers.get("Content-Range", "").startswith(f"bytes {start}-")


def _differs(path: str, found: str) -> StagingFailed:
    return StagingFailed("LLE313", f"{path}: the Hub has {found}")


def _refusal(status: int, headers: Mapping[str, str], path: str, *, of_hub: bool) -> Exception:
    """What an answer means: the header decides, as for huggingface_hub, then the status."""
    if status == 429:
        # RateLimit: "resolvers";r=0;t=55
        seconds = re.search(r";\s*t=(\d{1,9})\b", headers.get("RateLimit", ""))
        retry = _whole(headers.get("Retry-After", ""))
        after = int(seconds[1]) + 1 if seconds else 5 if retry is None else retry
        return _Again("the Hub's rate limit", float(after))
    if of_hub and (known := _REFUSALS.get(headers.get("X-Error-Code", ""))):
        return StagingFailed(known[0], f"{path}: {known[1]}")
    if status == 416:
        return _differs(path, "fewer bytes than are pinned")
    if status >= 500 or status == 408 or not of_hub:  # a signed address may have expired: anew
        return _Again(f"answer {status} of {'the Hub' if of_hub else 'the CDN'}")
    if status in (401, 403, 404):
        # Without a token the Hub says 401 of a model that does not exist, too.
        return StagingFailed("LLE347", f"{path}: {_REFUSALS['RepoNotFound'][1]} ({status})")
    return StagingFailed("LLE358", f"{path}: answer {status} of the Hub")
