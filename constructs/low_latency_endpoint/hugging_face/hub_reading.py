"""What the Hub says of a model, read with huggingface_hub, and its errors as ours."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from ..errors import ConfigurationError
from ..plan.pinned_model import HUB_ENDPOINT, HUB_GATED, HUB_MODEL, HUB_REVISION, HUB_UNREACHABLE
from . import HUB

_TIMEOUT = 30  # seconds
# The Hub counts in fixed windows of five minutes: https://huggingface.co/docs/hub/rate-limits
_LONGEST_WAIT = 310
_PAUSES = (1, 2, 4)  # seconds, between attempts at a Hub that does not answer
# Plain git takes no larger ones: https://huggingface.co/docs/hub/repositories-getting-started
LARGEST_READ = 64 * 2**20
_Answer = TypeVar("_Answer")


class HubFile(NamedTuple):
    """A file as the Hub states it; one of Git LFS has a SHA-256, another git's SHA-1 alone."""

    path: str
    size: int
    sha256: str | None
    blob_id: str


class HubInformation(NamedTuple):
    """What the Hub says of a model at a revision."""

    name: str
    commit: str
    files: dict[str, HubFile]
    gated: bool
    task: str | None
    library: str | None
    license: str | None
    parameters: dict[str, int]


def hub_endpoint() -> str:
    """Where the Hub is: ``HF_ENDPOINT``, or huggingface.co."""
    stated = (os.environ.get("HF_ENDPOINT") or HUB).strip().rstrip("/")
    try:
        url = urlsplit(stated)
        local = url.hostname in ("localhost", "127.0.0.1", "::1")
    except ValueError:
        url, local = urlsplit(""), False
    good = url.scheme == "https" or (url.scheme == "http" and local)
    if not good or not url.hostname or url.username or url.password:
        # Never the whole of it: somebody's password may be in it.
        raise HUB_ENDPOINT.error(
            got=f"{url.scheme or 'no scheme'}://{url.hostname or ''}",
            allowed="https://HOST, or http on loopback, without a user name",
            where="HF_ENDPOINT",
        )
    return stated


class _NotTheHubs(OSError):
    """Something else answered."""


class HubReader:
    """The Hub, with the library's own ways to find a token: HF_TOKEN, or hf auth login."""

    def __init__(
        self,
        say: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        from huggingface_hub import HfApi

        self.endpoint = hub_endpoint()
        self._api = HfApi(endpoint=self.endpoint, library_name="low-latency-endpoint")
        self._say = say
        self._sleep = sleep

    def information(self, model: str, revision: str) -> HubInformation:
        return self._asked(model, revision, lambda: self._information(model, revision))

    def _information(self, model: str, revision: str) -> HubInformation:
        from huggingface_hub.errors import HFValidationError

        try:
            return _read(
                self._api.model_info(
                    model, revision=revision, files_metadata=True, timeout=_TIMEOUT
                )
            )
        except HFValidationError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            # A page of a proxy's, or JSON of somebody else's.
            raise _NotTheHubs(f"an answer that is not the Hub's: {problem}") from None

    def check_access(self, model: str) -> None:
        """Ask whether the files of a gated model are for the token's account."""
        self._asked(model, "", lambda: self._api.auth_check(model))

    def content(self, model: str, commit: str, file: HubFile) -> bytes:
        """A small file's bytes, held against the hash that the Hub has of it."""
        if file.size > LARGEST_READ:
            raise self._unreachable(model, f"{file.path} of {file.size} bytes without a SHA-256")
        url = f"{self.endpoint}/{model}/resolve/{commit}/{quote(file.path)}"
        for _ in range(2):  # a connection that was cut may have looked like a whole answer
            body = self._asked(model, commit, lambda: _download(url, file.size))
            if _is_as_stated(body, file):
                return body
        raise self._unreachable(model, f"other bytes of {file.path} than its hash on the Hub")

    def _asked(self, model: str, revision: str, ask: Callable[[], _Answer]) -> _Answer:
        """Ask, and wait where the Hub says so; ours hides the library's error, which has the token."""
        pauses, waited = iter(_PAUSES), 0.0
        while True:
            try:
                return ask()
            except Exception as error:
                if isinstance(error, ConfigurationError) or not _is_the_hubs(error):
                    raise
                problem, pause = self._problem(error, model, revision), _pause(error)
            if pause is None:
                raise problem
            if pause < 0:
                pause = next(pauses, -1)
            if pause < 0 or waited + pause > _LONGEST_WAIT:
                raise problem
            self._say(f"the Hub asks to wait {pause:.0f} s" if pause > 4 else "asking again")
            self._sleep(pause)
            waited += pause

    def _problem(self, error: Exception, model: str, revision: str) -> ConfigurationError:
        from huggingface_hub import errors

        status, message = _status(error), _message(error)
        if isinstance(error, errors.GatedRepoError):
            with_token = status == 403
            return HUB_GATED.error(
                got="a token of an account without access" if with_token else "no token",
                allowed="the token of an account whose request was granted",
                where=model,
            )
        if isinstance(error, errors.RevisionNotFoundError):
            return HUB_REVISION.error(
                got=revision, allowed="a branch, a tag or a commit", where=model
            )
        if "Invalid credentials" in message:
            return HUB_MODEL.error(
                got="a token that the Hub does not know",
                allowed="a valid token, or no token",
                where=model,
                fix="Renew the token: HF_TOKEN, or hf auth login.",
            )
        # Without a code, and on a mirror whose URL the library does not know as the Hub's, 401 is
        # what nobody may see too.
        if isinstance(error, errors.RepositoryNotFoundError) or status == 401:
            return HUB_MODEL.error(got=model, allowed="a model of the Hub", where=self.endpoint)
        if isinstance(error, errors.HFValidationError):
            return HUB_MODEL.error(
                got=model, allowed="the name of a model, OWNER/NAME", where=self.endpoint
            )
        if isinstance(error, errors.OfflineModeIsEnabled):
            return HUB_UNREACHABLE.error(
                got="HF_HUB_OFFLINE is set",
                allowed="the network, for low-latency pin alone",
                where=self.endpoint,
                fix="Unset HF_HUB_OFFLINE.",
            )
        if isinstance(error, _NotTheHubs):
            return self._unreachable(model, str(error))
        said = f"HTTP {status}" if status else type(error).__name__
        return self._unreachable(model, said)

    def _unreachable(self, model: str, got: str) -> ConfigurationError:
        return HUB_UNREACHABLE.error(
            got=f"{got} ({model})", allowed="an answer", where=self.endpoint
        )


def _download(url: str, size: int) -> bytes:
    """GET; the library's client sends the token to no other origin that it is redirected to."""
    from huggingface_hub import utils

    library: Any = utils
    body = bytearray()
    with library.get_session().stream(
        "GET", url, headers=library.build_hf_headers(), timeout=_TIMEOUT, follow_redirects=True
    ) as answer:
        library.hf_raise_for_status(answer)
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > size:  # no more than was stated, whoever sends it
                break
    return bytes(body)


def _is_as_stated(body: bytes, file: HubFile) -> bool:
    if len(body) != file.size:
        return False
    if file.sha256 is not None:
        return hashlib.sha256(body).hexdigest() == file.sha256
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest() == file.blob_id


def _read(info: Any) -> HubInformation:
    card = info.card_data.to_dict() if info.card_data is not None else {}
    licence = card.get("license")
    if licence == "other":
        licence = card.get("license_name") or licence
    if isinstance(licence, list):
        licence = ", ".join(str(each) for each in licence)
    if not isinstance(info.sha, str) or len(info.sha) != 40:
        raise ValueError("no commit")
    if not info.siblings:
        raise ValueError("no files")
    return HubInformation(
        name=str(info.id),
        commit=info.sha,
        files={sibling.rfilename: _file(sibling) for sibling in info.siblings},
        gated=bool(info.gated),
        task=info.pipeline_tag,
        library=info.library_name,
        license=str(licence) if licence else None,
        parameters=dict(info.safetensors.parameters) if info.safetensors else {},
    )


def _file(sibling: Any) -> HubFile:
    if not isinstance(sibling.size, int) or not sibling.blob_id:
        raise ValueError(f"no size or hash of {sibling.rfilename}")
    sha256 = sibling.lfs.sha256 if sibling.lfs is not None else None
    return HubFile(sibling.rfilename, sibling.size, sha256, sibling.blob_id)


def _is_the_hubs(error: Exception) -> bool:
    """Whether an error is the library's or the network's, and not a mistake of ours."""
    # httpx until 1.x of the library, httpx2 since.
    module = type(error).__module__.partition(".")[0]
    return module in ("httpx", "httpx2", "huggingface_hub") or isinstance(
        error, OSError | ValueError
    )


def _pause(error: Exception) -> float | None:
    """Seconds to wait before asking again; -1 for a short while, None for not at all."""
    from huggingface_hub import utils
    from huggingface_hub.errors import HFValidationError, OfflineModeIsEnabled

    library: Any = utils
    if isinstance(error, HFValidationError | OfflineModeIsEnabled):
        return None
    status = _status(error)
    if status == 429:
        headers = getattr(error, "response").headers  # noqa: B009
        limit = library.parse_ratelimit_headers(headers)
        if limit is not None and limit.remaining == 0:
            return float(limit.reset_in_seconds) + 1
        after = headers.get("Retry-After", "")
        return float(after) if after.isdigit() else -1
    return -1 if status is None or status >= 500 else None


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None)


def _message(error: Exception) -> str:
    response = getattr(error, "response", None)
    return str(response.headers.get("X-Error-Message", "")) if response is not None else ""
