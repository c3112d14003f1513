"""One comment on a pull request that updates itself, by GitHub's REST API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import __version__
from ..errors import rule

ANSWER = rule(
    "LLE982",
    "GitHub refuses the comment",
    fix="Give the job `permissions: {contents: read, pull-requests: write}` and GITHUB_TOKEN, "
    "or leave --post out. The job's summary has the comment.",
    source="https://docs.github.com/rest/issues/comments",
)
MARKER = "<!-- low-latency-endpoint: check-pull-request -->"
"""The first line of the comment, by which a later run finds it."""

_API = "https://api.github.com"
_SECONDS = 30
_TRIES = 4
_LONGEST_WAIT = 120.0  # of one Retry-After; whoever says more is asked another time
_MOST_PAGES = 100


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """urllib would send the token along to wherever an answer points."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Refusal(Exception):
    """GitHub's answer is no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}" if status else message)
        self.status = status


class Posted(NamedTuple):
    """What became of the comment.

    Attributes
    ----------
    what : str
        ``created``, ``updated``, ``unchanged``, or ``not posted``.
    url : str
    why : str
        Why it was not posted.
    """

    what: str
    url: str = ""
    why: str = ""


@dataclass(frozen=True)
class GitHub:
    """GitHub's REST API for one repository.

    Attributes
    ----------
    repository : str
        Owner and name.
    token : str
        Stays out of every message.
    api_url : str
        Of GitHub Enterprise another one.
    sleep : callable
    """

    repository: str
    token: str = field(repr=False)
    api_url: str = _API
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def of(cls, repository: str, environment: Mapping[str, str]) -> GitHub:
        """As a workflow's environment says.

        Raises
        ------
        ConfigurationError
            ``LLE982`` without a token, or with an address that is none of a server.
        """
        token = environment.get("GITHUB_TOKEN", "").strip()
        if not token or any(not "!" <= each <= "~" for each in token):
            raise ANSWER.error(got="no GITHUB_TOKEN", allowed="a token in GITHUB_TOKEN")
        url = environment.get("GITHUB_API_URL", "").rstrip("/") or _API
        if not url.startswith(("https://", "http://")):
            raise ANSWER.error(got=f"GITHUB_API_URL={url}", allowed="the address of a server")
        return cls(repository, token, url)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request; asks again where GitHub is overloaded or asks for patience.

        Raises
        ------
        Refusal
        """
        return self._ask(method, path, body)[0]

    def pages(self, path: str) -> list[Any]:
        """All items of a list, page by page."""
        found: list[Any] = []
        for page in range(1, _MOST_PAGES + 1):
            items, headers = self._ask("GET", f"{path}?per_page=100&page={page}")
            found += items if isinstance(items, list) else []
            if 'rel="next"' not in headers.get("Link", ""):
                break
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[Any, Mapping[str, str]]:
        for tried in range(1, _TRIES + 1):
            try:
                return self._once(method, path, body)
            except urllib.error.HTTPError as error:
                with error:
                    refusal = Refusal(error.code, _message(error))
                    wait = _wait(error, refusal, tried)
            except OSError as error:  # no connection, or one that broke
                reason = getattr(error, "reason", error)
                refusal, wait = Refusal(0, f"no answer: {reason}"), float(2 ** (tried - 1))
            if wait is None or wait > _LONGEST_WAIT or tried == _TRIES or _is_made(method, refusal):
                raise refusal
            self.sleep(wait)
        raise AssertionError  # the last try returns or raises

    def _once(self, method: str, path: str, body: Any) -> tuple[Any, Mapping[str, str]]:
        request = urllib.request.Request(
            f"{self.api_url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Accept": "application/vnd.github+json",
                "Content-Type": "application/json",
                "User-Agent": f"low-latency/{__version__}",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_SECONDS) as answer:
            try:
                return json.loads(answer.read()), answer.headers
            except ValueError:
                raise Refusal(0, "the answer is no JSON") from None


def _is_made(method: str, refusal: Refusal) -> bool:
    """Whether it may have been done: a comment must not be made twice."""
    return method == "POST" and (refusal.status == 0 or refusal.status >= 500)


def _message(error: urllib.error.HTTPError) -> str:
    try:
        said = json.loads(error.read(10_000))["message"]
    except (OSError, ValueError, KeyError, TypeError):
        said = error.reason
    return " ".join(str(said).split())[:300]


def _wait(error: urllib.error.HTTPError, refusal: Refusal, tried: int) -> float | None:
    """Seconds until the next try; ``None`` where another try has no use."""
    if error.code >= 500:
        return float(2 ** (tried - 1))
    if error.code not in (403, 429):
        return None
    after = error.headers.get("Retry-After", "")
    if after.isascii() and after.isdigit():
        return float(after)
    if error.headers.get("X-RateLimit-Remaining") == "0":
        reset = error.headers.get("X-RateLimit-Reset", "")
        return max(1.0, float(reset) - time.time()) if reset.isdigit() else 60.0
    return 60.0 if "rate limit" in str(refusal) else None


def post_comment(github: GitHub, number: int, body: str) -> Posted:
    """Make the comment, or renew the one that a former run made.

    Parameters
    ----------
    github : GitHub
    number : int
        Of the pull request.
    body : str
        Begins with :data:`MARKER`.

    Raises
    ------
    ConfigurationError
        ``LLE982`` when GitHub refuses it for another reason than a token that may only read.
    """
    try:
        return _posted(github, number, body)
    except Refusal as refusal:
        if refusal.status == 403 and "rate limit" not in str(refusal):
            return Posted("not posted", why=f"the token may not write comments ({refusal})")
        raise ANSWER.error(
            got=str(refusal), allowed=f"a comment on {github.repository}#{number}"
        ) from None


def _posted(github: GitHub, number: int, body: str) -> Posted:
    comments = f"/repos/{github.repository}/issues/{number}/comments"
    is_own = _own(github)
    for tried in range(1, _TRIES + 1):
        own = [each for each in github.pages(comments) if is_own(each)]
        for each in own:
            if each["body"].replace("\r\n", "\n").rstrip() == body.rstrip():
                return Posted("unchanged", each["html_url"])
            path = f"/repos/{github.repository}/issues/comments/{each['id']}"
            try:
                return Posted("updated", github.ask("PATCH", path, {"body": body})["html_url"])
            except Refusal as refusal:  # another app's, or deleted meanwhile
                if refusal.status not in (403, 404) or "rate limit" in str(refusal):
                    raise
        try:
            return Posted("created", github.ask("POST", comments, {"body": body})["html_url"])
        except Refusal as refusal:
            if not _is_made("POST", refusal) or tried == _TRIES:
                raise
            github.sleep(float(2 ** (tried - 1)))  # then look whether it was made all the same
    raise AssertionError  # the last try returns or raises


def _own(github: GitHub) -> Callable[[Any], bool]:
    """What tells a comment of this check from another's that has the marker in it.

    The token of a workflow may not ask who it is: then the author has to be an app.
    """
    try:
        login = github.ask("GET", "/user").get("login")
    except Refusal as refusal:
        if refusal.status not in (401, 403, 404):
            raise
        login = None

    def is_own(comment: Any) -> bool:
        author = comment.get("user") or {}
        if not str(comment.get("body") or "").startswith(MARKER):
            return False
        return author.get("type") == "Bot" if login is None else author.get("login") == login

    return is_own
