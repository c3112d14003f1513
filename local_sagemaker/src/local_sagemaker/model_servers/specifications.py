"""Which model server stands behind an image, and how long a simulated model computes."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import json
import math
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from ..argument_kinds import check_kinds

_LAWS = ("constant", "lognormal", "gamma", "empirical")


@dataclass(frozen=True)
class ServiceTime:
    """A distribution of seconds per request.

    Make one with `constant`, `lognormal`, `gamma` or `empirical`.

    Examples
    --------
    >>> import random
    >>> ServiceTime.constant(0.02).draw(random.Random(1))
    0.02
    >>> law = ServiceTime.lognormal(p50=0.010, p99=0.040)
    >>> draws = sorted(law.draw(random.Random(n)) for n in range(2001))
    >>> 0.009 < draws[1000] < 0.011
    True
    """

    kind: str
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.kind not in _LAWS:
            raise ValueError(f"unknown distribution {self.kind!r}: {', '.join(_LAWS)}")
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        if not self.values or any(not math.isfinite(v) or v < 0 for v in self.values):
            raise ValueError(f"times in seconds must be 0 or more: {self.values}")

    @classmethod
    def constant(cls, seconds: float) -> ServiceTime:
        """Every request takes the same time."""
        return cls("constant", (seconds,))

    @classmethod
    def lognormal(cls, *, p50: float, p99: float) -> ServiceTime:
        """Skewed to the right as most models' times are; by its median and 99th percentile."""
        if not 0 < p50 <= p99:
            raise ValueError(f"0 < p50 <= p99 is needed: {p50}, {p99}")
        return cls("lognormal", (p50, p99))

    @classmethod
    def gamma(cls, *, mean: float, variation: float) -> ServiceTime:
        """By mean and coefficient of variation; 1 is the exponential distribution."""
        if mean <= 0 or variation <= 0:
            raise ValueError(f"mean and variation must be above 0: {mean}, {variation}")
        return cls("gamma", (mean, variation))

    @classmethod
    def empirical(cls, samples: Iterable[float]) -> ServiceTime:
        """Measured times, drawn with linear interpolation between neighbours."""
        return cls("empirical", tuple(sorted(samples)))

    def draw(self, generator: random.Random) -> float:
        """Draw one time in seconds."""
        values = self.values
        match self.kind:
            case "lognormal":
                sigma = math.log(values[1] / values[0]) / 2.3263478740408408  # the normal's 99 %
                return values[0] * math.exp(sigma * generator.gauss(0.0, 1.0))
            case "gamma":
                shape = 1.0 / values[1] ** 2
                return generator.gammavariate(shape, values[0] / shape)
            case "empirical":
                return _interpolated(values, generator.random())
        return values[0]


def _interpolated(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


CHOICE = "LOCAL_MODEL_SERVER"
"""The container's environment variable that names a key of the mapping."""


def check_numbers(settings: Any) -> None:
    """Refuse infinity and what is no number among the fields of a dataclass."""
    for one in dataclasses.fields(settings):
        value = getattr(settings, one.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{one.name} must be a finite number: {value}")


def check_ranges(settings: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse what is no number, and what lies outside of its range; None goes for any."""
    check_numbers(settings)
    for name, (least, most) in ranges.items():
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:
            up_to = f" and at most {most}" if most < math.inf else ""
            raise ValueError(f"{name} must be at least {least}{up_to}: {value}")


def check_places(slow_instances: Mapping[int, float]) -> None:
    for place, factor in slow_instances.items():
        if place < 0 or not 0 <= factor < math.inf:
            raise ValueError(
                f"slow_instances are places from 0 with a factor of at least 0: {place}: {factor}"
            )


_RANGES = {
    **dict.fromkeys(("failure_share", "hang_share"), (0, 1)),
    **dict.fromkeys(("concurrency", "stream_chunks"), (1, math.inf)),
    **dict.fromkeys(("cold_start", "cold_requests", "cold_factor"), (0, math.inf)),
    **dict.fromkeys(("slope", "queue_limit"), (0, math.inf)),
    "ping_status": (200, 599),
    "failure_status": (400, 599),
}


@dataclass(frozen=True)
class SimulatedModelServer:
    """A model server that computes nothing and takes the time it is told.

    It answers `/invocations` with the request's own body and content type.

    Examples
    --------
    >>> SimulatedModelServer(service_time=ServiceTime.constant(0.02), concurrency=4).concurrency
    4
    """

    # seconds per request on an idle server; by default 5 ms
    service_time: ServiceTime = field(default_factory=lambda: ServiceTime.constant(0.005))
    # workers, each busy with one request at a time; by default 1. More requests queue.
    concurrency: int = 1
    # waiting requests beyond which it answers 503; by default there is no limit
    queue_limit: int | None = None
    # while n of the workers are busy, each takes 1 + slope x (n - 1) times as long as alone. By
    # default 0: workers that do not feel each other; 1 is a processor that all share.
    slope: float = 0.0
    # seconds until `/ping` answers 200, by the runtime's clock; by default 0
    cold_start: float = 0.0
    # the first requests of an instance take so many times longer; by default none does
    cold_requests: int = 0
    cold_factor: float = 1.0
    # that share of requests is answered with that status; by default none
    failure_share: float = 0.0
    failure_status: int = 500
    failure_message: str = "simulated failure"
    hang_share: float = 0.0  # that share of requests is never answered; by default none
    # factor of the service time by the instance's place in its variant, counted from 0
    slow_instances: Mapping[int, float] = field(default_factory=dict)
    # what `/ping` answers once started; anything but 200 is unhealthy for ever
    ping_status: int = 200
    # utilisation told, in AWS's percent (100 for each CPU): CPU when all workers are busy
    cpu_busy: float = 100.0
    memory: float = 30.0
    # chunks that the answer comes in, spread over the service time; by default 1
    stream_chunks: int = 1
    # true: a task of the local AWS, which takes next to no time to start. False: a process of its
    # own for each instance.
    in_process: bool = True
    seed: int = 0  # of the random draws; each instance adds its place

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        check_places(self.slow_instances)


_TOKEN_RANGES = {
    **dict.fromkeys(("gap_seconds", "seconds_per_neighbour"), (0, math.inf)),
    **dict.fromkeys(("seconds_per_prompt_token", "cold_start"), (0, math.inf)),
    **dict.fromkeys(("extra_first_token_seconds", "extra_gap_seconds"), (0, math.inf)),
    **dict.fromkeys(("max_sequences", "kv_tokens", "output_tokens"), (1, math.inf)),
    **dict.fromkeys(("failure_share", "mid_stream_share"), (0, 1)),
    "context_tokens": (1, math.inf),
    "failure_status": (400, 599),
}


@dataclass(frozen=True)
class LanguageModelServer:
    """A language model's server that computes nothing: it streams tokens in the time it is told.

    It speaks OpenAI's chat completions as vLLM does, streamed or whole, at `/invocations` and
    `/v1/chat/completions`. A token is a word: text is split at white space.

    Examples
    --------
    >>> LanguageModelServer(kv_tokens=28_000, context_tokens=8_192).max_sequences
    256
    """

    # the first token takes so long for each token of the prompt that is not cached, and at least
    # `gap_seconds`; by default 0.1 ms
    seconds_per_prompt_token: float = 0.0001
    # each further token takes ``gap_seconds + seconds_per_neighbour x n`` beside n other requests;
    # by default 20 ms and nothing
    gap_seconds: float = 0.02
    seconds_per_neighbour: float = 0.0
    # requests at a time; others wait for their first token. By default 256.
    max_sequences: int = 256
    # tokens of prompts and answers at a time, beyond which requests wait; the beginnings of so
    # many tokens of prompts are known again. By default 32,768.
    kv_tokens: int = 32_768
    # tokens of a prompt and its answer together, at most; by default `kv_tokens`
    context_tokens: int | None = None
    # where the model ends its answer by itself, unless the request has ``ignore_eos`` or a larger
    # ``min_tokens``; ``max_tokens`` may end it before. By default 128.
    output_tokens: int = 128
    # faults: the first token, and each further one, comes later by so much. By default 0.
    extra_first_token_seconds: float = 0.0
    extra_gap_seconds: float = 0.0
    failure_share: float = 0.0  # that share of requests fails; by default none
    # share of the failing streams that fail in their middle, with an error event, half of the
    # tokens sent; the others fail with `failure_status` before anything is sent. By default half.
    mid_stream_share: float = 0.5
    failure_status: int = 500  # by default 500
    # seconds until `/ping` answers 200, by the runtime's clock; by default 0
    cold_start: float = 0.0
    # factor of a token's time by the instance's place in its variant, counted from 0
    slow_instances: Mapping[int, float] = field(default_factory=dict)
    # whether `/invocations` keeps sessions, as AWS's vLLM and SGLang images do with
    # `SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true`: `{"requestType": "NEW_SESSION"}` opens one,
    # `{"requestType": "CLOSE"}` closes it. By default it does not, as theirs, and refuses both and
    # any `SessionId`.
    stateful_sessions: bool = False
    # true: a task of the local AWS. False: a process of its own for each instance.
    in_process: bool = True
    seed: int = 0  # of the random draws; each instance adds its place

    def __post_init__(self) -> None:
        check_ranges(self, _TOKEN_RANGES)
        check_places(self.slow_instances)
        if self.context_tokens is not None and self.context_tokens > self.kv_tokens:
            # Source: vllm/v1/core/kv_cache_utils.py, which refuses to start.
            raise ValueError(
                f"context_tokens must fit into kv_tokens, {self.kv_tokens}: {self.context_tokens}"
            )


@dataclass(frozen=True)
class CommandModelServer:
    """Any program that speaks the container contract, a process for each instance."""

    # the program and its arguments. Its port is in the environment as SAGEMAKER_BIND_TO_PORT, the
    # variable that SageMaker's own serving toolkits read, and the folder with the model's data as
    # SM_MODEL_DIR; an argument may name both with a ``$``. It listens on 127.0.0.1.
    command: tuple[str, ...]
    # further variables, which go before the model container's Environment
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str | None = None  # where it runs; by default where the local AWS does
    in_process: bool = field(default=False, init=False)  # always False

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", tuple(self.command))
        if not self.command or not self.command[0]:
            raise ValueError("a command is needed")
        if any(not name or "=" in name for name in self.environment):
            raise ValueError(
                f"names of variables are not empty and have no '=': {', '.join(self.environment)}"
            )
        texts = (*self.command, *self.environment, *self.environment.values())
        if any("\0" in text for text in (*texts, self.directory or "")):
            raise ValueError("no process can be given a text with a NUL character")


@dataclass(frozen=True)
class UrlModelServer:
    """A model server that runs already and stands for every instance."""

    url: str  # such as ``http://127.0.0.1:8080``; loopback only
    in_process: bool = field(default=False, init=False)  # always False

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            good = (parts.scheme, parts.hostname) in _LOOPBACK and parts.port
        except ValueError:
            good = False
        if not good or parts.path not in ("", "/") or parts.query or parts.username is not None:
            raise ValueError(f"a model server on loopback, as http://127.0.0.1:8080: {self.url}")


_LOOPBACK = (("http", "127.0.0.1"), ("http", "localhost"))

ModelServer = SimulatedModelServer | LanguageModelServer | CommandModelServer | UrlModelServer

_KINDS: dict[str, type[Any]] = {
    "simulated": SimulatedModelServer,
    "language-model": LanguageModelServer,
    "command": CommandModelServer,
    "url": UrlModelServer,
}

ECHO = SimulatedModelServer(service_time=ServiceTime.constant(0.0), concurrency=10_000)
"""What stands behind an image for which no model server is given."""


NEVER_RUNS = SimulatedModelServer(ping_status=503)
"""What stands behind an image that cannot run on its instances: never healthy, and logs nothing."""


def handlers_model_server(script: str | Path) -> CommandModelServer:
    """Serve an inference script of SageMaker's toolkits: ``model_fn``, ``predict_fn`` and so on."""
    path = Path(script).resolve()
    return CommandModelServer((sys.executable, "-m", f"{__package__}.handlers", str(path)))


def to_documents(model_servers: Mapping[str, ModelServer]) -> dict[str, dict[str, Any]]:
    """Write model servers by image, as another process reads them."""
    check_kinds({"model_servers": Mapping[str, ModelServer]}, {"model_servers": model_servers})
    return {image: to_document(server) for image, server in model_servers.items()}


def to_document(server: ModelServer) -> dict[str, Any]:
    kind = next(name for name, cls in _KINDS.items() if isinstance(server, cls))
    given = {f.name for f in dataclasses.fields(server) if f.init}
    return {"kind": kind, **_adapter(kind).dump_python(server, mode="json", include=given)}


def from_document(document: Mapping[str, Any]) -> ModelServer:
    """Read what `to_document` wrote; what it leaves out has its default.

    Examples
    --------
    >>> from_document({"kind": "simulated", "concurrency": 4,
    ...     "service_time": {"kind": "lognormal", "values": [0.02, 0.08]}}).service_time
    ServiceTime(kind='lognormal', values=(0.02, 0.08))
    """
    if not isinstance(document, Mapping):
        raise ValueError(
            f'a model server is an object such as {{"kind": "simulated"}}, not {_short(document)}'
        )
    fields = dict(document)
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind: one of {', '.join(_KINDS)}, not {_short(kind)}")
    known = {f.name for f in dataclasses.fields(_KINDS[kind]) if f.init}
    if unknown := sorted(map(str, fields.keys() - known)):
        raise ValueError(
            f"{kind} has no {_short(', '.join(unknown))}; it has {', '.join(sorted(known))}"
        )
    try:
        # As JSON, where a list is a tuple and a key a number, but no text is a number.
        text = json.dumps(fields, allow_nan=False)
        return cast("ModelServer", _adapter(kind).validate_json(text, strict=True))
    except ValidationError as error:
        raise ValueError(
            "; ".join(
                f"{'.'.join(map(str, error['loc'])) or kind}: {error['msg'].removeprefix('Value error, ')}"
                + (f", not {_short(error.get('input'))}" if error["loc"] else "")
                for error in error.errors()
            )
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{kind}: {error}") from None


@functools.cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])


def _short(value: object) -> str:
    """Write a value, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=True) if not isinstance(value, str) else value
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


def model_server_for(
    container: Mapping[str, Any], servers: Mapping[str, ModelServer]
) -> ModelServer | None:
    """Choose the model server for a container of a model.

    Examples
    --------
    >>> fast = SimulatedModelServer(service_time=ServiceTime.constant(0.001))
    >>> image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/ranker:3"
    >>> model_server_for({"Image": image}, {"team/ranker": fast}) is fast
    True
    >>> model_server_for({"Image": image}, {"other*": fast}) is None
    True
    """
    named = str((container.get("Environment") or {}).get(CHOICE, ""))
    if named in servers:
        return servers[named]
    image = str(container.get("Image") or "")
    path = image.partition("/")[2] or image
    repository = path.partition("@")[0].partition(":")[0]
    for pattern, server in servers.items():
        if any(fnmatch.fnmatchcase(name, pattern) for name in (image, path, repository)):
            return server
    return None
