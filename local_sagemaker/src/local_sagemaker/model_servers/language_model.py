"""The language model's server: tokens in the time that its settings say, in OpenAI's format."""

from __future__ import annotations

import asyncio
import bisect
import json
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..runtime.http_server import Connection, Request
from .instance_task import InstanceTask
from .openai_format import (
    AskedCompletion,
    CompletionAnswer,
    Sessions,
    Wrong,
    error_document,
    read,
    word,
)
from .specifications import LanguageModelServer

BLOCK = 16  # tokens of a block, in which beginnings of prompts are found again; vLLM's default
_JSON = [("content-type", "application/json")]
_FAILURE = "simulated failure"
# Of Prometheus: names, labels and buckets of vLLM v1 (vllm-project/vllm,
# `vllm/v1/metrics/loggers.py`). Times are seconds inside the server.
_LABELS = 'engine="0",model_name="language-model"'
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_BETWEEN_TOKENS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)


class Prefixes:
    """The beginnings of prompts and answers that an instance has computed lately, by block."""

    def __init__(self, tokens: int) -> None:
        self._most = tokens // BLOCK
        self._known: OrderedDict[int, None] = OrderedDict()

    def find(self, tokens: Sequence[Hashable]) -> int:
        """Count the first tokens that are known; the last one is computed in any case."""
        found = 0
        for block in _blocks(tokens[:-1]):
            if block not in self._known:
                break
            found += BLOCK
        return found

    def keep(self, tokens: Sequence[Hashable]) -> None:
        """Know these from now on; what was used longest ago is forgotten, ends before beginnings."""
        for block in reversed([*_blocks(tokens)]):
            self._known[block] = None
            self._known.move_to_end(block)
        while len(self._known) > self._most:
            self._known.popitem(last=False)


def _blocks(tokens: Sequence[Hashable]) -> Iterable[int]:
    """Give a number for each whole block, which stands for all before it too."""
    known_as = 0
    for end in range(BLOCK, len(tokens) + 1, BLOCK):
        known_as = hash((known_as, *tokens[end - BLOCK : end]))
        yield known_as


@dataclass(eq=False)
class _Call:
    asked: AskedCompletion
    connection: Connection
    arrived: float
    fails_after: int | None
    turn: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def size(self) -> int:
        """Tokens that it takes of the KV cache."""
        return len(self.asked.tokens) + self.asked.output_tokens


class LanguageModel(InstanceTask[LanguageModelServer]):
    """Answers the container contract as a `LanguageModelServer` says."""

    def __init__(
        self,
        settings: LanguageModelServer,
        place: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(settings, place, sleep)
        self._sessions = Sessions()
        self._first = _Histogram("vllm:time_to_first_token_seconds", _FIRST_TOKEN)
        self._between = _Histogram("vllm:inter_token_latency_seconds", _BETWEEN_TOKENS)
        self._prefixes = Prefixes(settings.kv_tokens)
        self._calls: set[_Call] = set()
        self._queue: deque[_Call] = deque()
        self._running: set[_Call] = set()
        self._busy = self._busy_since = self._told_at = 0.0

    def change(self, settings: LanguageModelServer) -> None:
        super().change(settings)
        self._admit()

    def start(self) -> None:
        self._told_at = asyncio.get_running_loop().time()
        super().start()

    # ---------------------------------------------------------------------------------- requests

    async def __call__(self, request: Request, connection: Connection) -> None:
        path = request.target.partition("?")[0]
        if path == "/ping":
            connection.send(200 if self._ready else 503, (), b"")
        elif path == "/utilization":
            connection.send(200, _JSON, json.dumps(self.utilization()).encode())
        elif path == "/metrics":
            kind = [("content-type", "text/plain; version=0.0.4; charset=utf-8")]
            connection.send(200, kind, self.metrics().encode())
        elif path in ("/invocations", "/v1/chat/completions") and request.method == "POST":
            try:
                if path == "/invocations" and self._is_of_session(request, connection):
                    return
                await self._answer(request.body, connection)
            except Wrong as wrong:
                told = error_document(str(wrong), wrong.status, wrong.kind)
                connection.send(wrong.status, _JSON, told)
        else:
            connection.send(404, _JSON, b'{"detail":"Not Found"}')

    def _is_of_session(self, request: Request, connection: Connection) -> bool:
        """Open or close a session, if that is what is asked for."""
        enabled = self._settings.stateful_sessions
        told = self._sessions.answer(request.body, request.headers, enabled=enabled)
        if told is not None:
            connection.send(200, [told[0]], told[1])
        return told is not None

    async def _answer(self, body: bytes, connection: Connection) -> None:
        settings = self._settings
        asked = read(body, settings)
        fails_after = None
        if settings.failure_share and self._random.random() < settings.failure_share:
            half = asked.output_tokens // 2
            if not asked.stream or not half or self._random.random() >= settings.mid_stream_share:
                raise Wrong(_FAILURE, settings.failure_status, "InternalServerError")
            fails_after = half
        call = _Call(asked, connection, asyncio.get_running_loop().time(), fails_after)
        task = self._begin(self._generate(call))
        connection.lost = task.cancel
        await asyncio.wait([task])

    async def _generate(self, call: _Call) -> None:
        """Send a request's tokens, each at its time; a late one moves none of the next."""
        asked, connection = call.asked, call.connection
        answer, loop = CompletionAnswer(asked), asyncio.get_running_loop()
        self._calls.add(call)
        try:
            if asked.stream:
                connection.start_stream(200, [("content-type", "text/event-stream; charset=utf-8")])
            await asyncio.sleep(self._settings.extra_first_token_seconds)
            self._queue.append(call)
            self._admit()
            await call.turn.wait()
            cached = self._prefixes.find(asked.tokens)
            due = last = loop.time()
            for number in range(asked.output_tokens):
                due += self._seconds(len(asked.tokens) - cached, number)
                await asyncio.sleep(due - loop.time())
                now = loop.time()
                if number:
                    self._between.observe(now - last)
                else:
                    self._first.observe(now - call.arrived)
                last = now
                if number == call.fails_after:
                    await connection.send_chunk(answer.failing(_FAILURE))
                    break
                token = answer.token(number)
                if number + 1 == asked.output_tokens:
                    self._leave(call, generated=number)
                    token += answer.ending(cached)
                elif not number:
                    self._prefixes.keep(asked.tokens)
                if asked.stream:
                    await connection.send_chunk(token)
            if asked.stream:
                connection.end_stream()
            else:
                connection.send(200, _JSON, answer.whole(cached))
        finally:
            self._leave(call)

    def _seconds(self, prompt: int, number: int) -> float:
        """Give the time of one token: of the first from the prompt, of another from the neighbours."""
        settings = self._settings
        if number == 0:
            return self._slowness * max(
                settings.gap_seconds, settings.seconds_per_prompt_token * prompt
            )
        neighbours = len(self._running) - 1
        gap = settings.gap_seconds + settings.seconds_per_neighbour * neighbours
        return self._slowness * gap + settings.extra_gap_seconds

    def _admit(self) -> None:
        """Let those begin that wait, in their order, as long as there is room."""
        settings = self._settings
        while self._queue and len(self._running) < settings.max_sequences:
            call = self._queue[0]
            if self._held + call.size > settings.kv_tokens:
                return
            if not self._running:
                self._busy_since = asyncio.get_running_loop().time()
            self._running.add(self._queue.popleft())
            call.turn.set()

    def _leave(self, call: _Call, generated: int | None = None) -> None:
        """End a request, which the next one may have the room of."""
        if call not in self._calls:
            return
        self._calls.discard(call)
        if generated is not None:
            # The last token's keys and values are never computed.
            self._prefixes.keep([*call.asked.tokens, *map(word, range(generated))])
        if call in self._running:
            self._running.discard(call)
            if not self._running:
                self._busy += asyncio.get_running_loop().time() - self._busy_since
        elif call in self._queue:
            self._queue.remove(call)
        self._admit()

    # ------------------------------------------------------------------------------- what it tells

    @property
    def _held(self) -> int:
        """Tokens of the KV cache that are taken."""
        return sum(call.size for call in self._running)

    def metrics(self) -> str:
        """Write its metrics as Prometheus reads them."""
        running = len(self._running)
        lines: list[str] = []
        for name, value in (
            ("num_requests_running", running),
            ("num_requests_waiting", len(self._calls) - running),
            ("kv_cache_usage_perc", self._held / self._settings.kv_tokens),
        ):
            lines += [f"# TYPE vllm:{name} gauge", f"vllm:{name}{{{_LABELS}}} {value}"]
        return "\n".join([*lines, *self._first.lines(), *self._between.lines(), ""])

    def utilization(self) -> dict[str, float]:
        """Tell utilisation since the last time it was asked, in AWS's names and percent."""
        # The GPU is busy while there are requests; of its memory vLLM takes 92 % at the start.
        now = asyncio.get_running_loop().time()
        if self._running:
            self._busy += now - self._busy_since
            self._busy_since = now
        share = min(1.0, self._busy / max(now - self._told_at, 1e-9))
        self._busy, self._told_at = 0.0, now
        return {
            "CPUUtilization": 2.0 + 98.0 * share,
            "MemoryUtilization": 30.0,
            "GPUUtilization": 100.0 * share,
            "GPUMemoryUtilization": 92.0,
        }


class _Histogram:
    """Counts by upper limit, in ascending order; infinity goes without saying."""

    def __init__(self, name: str, limits: Sequence[float]) -> None:
        self._name, self._limits = name, limits
        self._counts = [0] * (len(limits) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect.bisect_left(self._limits, value)] += 1
        self._sum += value

    def lines(self) -> Iterator[str]:
        yield f"# TYPE {self._name} histogram"
        total = 0
        for limit, count in zip((*self._limits, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{self._name}_bucket{{{_LABELS},le="{limit}"}} {total}'
        yield f"{self._name}_count{{{_LABELS}}} {total}"
        yield f"{self._name}_sum{{{_LABELS}}} {self._sum}"
