"""The language model's server: `batching` in real time, behind OpenAI's paths and `/invocations`.

An iteration's tokens go out together when its time has come. The times of iterations that follow
each other are added up, so that a late wake-up does not move the next one; a server that the
machine holds up for longer than `_LATEST` goes on from there.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ..runtime.http_server import Connection, Request, chunk
from .batching import Generation, Iteration, Scheduler, word
from .language_model_metrics import Metrics
from .language_model_settings import LanguageModelServer
from .openai_format import Answer, Asked, Wrong, error_document, read, usage_of
from .stateful_sessions import Sessions

_PATHS = ("/invocations", "/v1/chat/completions", "/v1/completions")
_JSON = [("content-type", "application/json")]
_FAILURE = "simulated failure"
_LATEST = 0.5
"""Seconds."""
_COARSE = 0.0012
"""Seconds: epoll, with which asyncio waits on Linux, rounds up to whole milliseconds."""


async def until(moment: float) -> None:
    """Wait for a moment of the event loop's clock, to some tens of microseconds."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(moment - loop.time() - _COARSE)
    while (now := loop.time()) < moment:
        await asyncio.sleep(0)
        if loop.time() == now:  # a clock that only moves from timer to timer
            await asyncio.sleep(moment - now)
            return


@dataclass(eq=False)
class _Call:
    """A request with what is generated for it."""

    generation: Generation
    answer: Answer
    connection: Connection
    arrived: float
    fails_after: int | None
    done: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    held: asyncio.TimerHandle | None = None
    admitted: bool = False
    first: float = 0.0
    last: float = 0.0
    sent: int = 0

    @property
    def asked(self) -> Asked:
        return self.answer.asked

    def text(self, generated: int) -> str:
        """Give the text of what was not sent yet of so many tokens."""
        numbers = range(self.sent, generated)
        self.sent = generated
        return "".join(map(word, numbers))


class LanguageModel:
    """Answers the container contract as a `LanguageModelServer` says.

    Parameters
    ----------
    settings
        How it behaves.
    place
        The instance's place in its variant.
    sleep
        Waits for the cold start; the runtime's clock when it runs in the local AWS.
    """

    def __init__(
        self,
        settings: LanguageModelServer,
        place: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._slowness = settings.slow_instances.get(place, 1.0)
        self._place = place
        self._random = random.Random(f"{settings.seed}/{place}")
        self._sleep = sleep
        self._scheduler = Scheduler(
            kv_tokens=settings.kv_tokens,
            max_batched_tokens=settings.max_batched_tokens,
            max_sequences=settings.max_sequences,
            block_tokens=settings.block_tokens,
            prefix_cache=settings.prefix_cache,
        )
        self._sessions = Sessions()
        self._metrics = Metrics(settings.model_name or "language-model")
        self._calls: dict[Generation, _Call] = {}
        self._work = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = settings.cold_start == 0
        self._busy = 0.0
        self._told_at = 0.0

    def change(self, settings: LanguageModelServer) -> None:
        """Behave otherwise from now on; the KV cache stays as it is, and what it holds."""
        self._settings = settings
        self._slowness = settings.slow_instances.get(self._place, 1.0)
        self._scheduler.change_limits(settings.max_batched_tokens, settings.max_sequences)

    def start(self) -> None:
        """Begin the cold start, and to compute."""
        loop = asyncio.get_running_loop()
        self._told_at = loop.time()
        self._tasks = [loop.create_task(self._run()), loop.create_task(self._warm())]

    async def _warm(self) -> None:
        if not self._ready:
            await self._sleep(self._settings.cold_start)
            self._ready = True

    def stop(self) -> None:
        """Give up the cold start and whatever is under way."""
        for task in self._tasks:
            task.cancel()
        for call in list(self._calls.values()):
            self._give_up(call)

    # ---------------------------------------------------------------------------------- requests

    async def __call__(self, request: Request, connection: Connection) -> None:
        """Answer one request."""
        path = request.target.partition("?")[0]
        if path == "/ping":
            connection.send(200 if self._ready else 503, (), b"")
        elif path == "/utilization":
            connection.send(200, _JSON, json.dumps(self.utilization()).encode())
        elif path == "/metrics":
            kind = [("content-type", "text/plain; version=0.0.4; charset=utf-8")]
            connection.send(200, kind, self.metrics().encode())
        elif path in _PATHS and request.method == "POST":
            try:
                if path == "/invocations" and self._is_of_session(request, connection):
                    return
                await self._answer(path, request, connection)
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

    async def _answer(self, path: str, request: Request, connection: Connection) -> None:
        settings = self._settings
        asked = read(request.body, path, settings)
        fails_after = None
        if settings.failure_share and self._random.random() < settings.failure_share:
            half = asked.output_tokens // 2
            if not asked.stream or not half or self._random.random() >= settings.mid_stream_share:
                raise Wrong(_FAILURE, settings.failure_status, "InternalServerError")
            fails_after = half
        loop = asyncio.get_running_loop()
        call = _Call(
            Generation(asked.tokens, asked.output_tokens),
            Answer(asked),
            connection,
            loop.time(),
            fails_after,
        )
        if asked.stream:
            connection.start_stream(200, [("content-type", "text/event-stream; charset=utf-8")])
        connection.lost = lambda: self._give_up(call)
        self._calls[call.generation] = call
        if settings.extra_first_token_seconds:
            call.held = loop.call_later(settings.extra_first_token_seconds, self._admit, call)
        else:
            self._admit(call)
        await call.done
        if not asked.stream and call.generation.generated == asked.output_tokens:
            one = call.generation
            usage = usage_of(one.prompt_tokens, one.generated, one.cached_tokens)
            text = call.text(one.generated)
            connection.send(200, _JSON, call.answer.whole(text, usage))

    def _admit(self, call: _Call) -> None:
        call.held = None
        self._scheduler.add(call.generation)
        self._work.set()

    def _give_up(self, call: _Call) -> None:
        """End a call that nobody waits for; its blocks are free from now on."""
        if self._calls.pop(call.generation, None) is None:
            return
        if call.held is not None:
            call.held.cancel()
        self._scheduler.abort(call.generation)
        self._metrics.finished["abort"] += 1
        if not call.done.done():
            call.done.set_result(None)

    # -------------------------------------------------------------------------------- iterations

    def seconds(self, iteration: Iteration) -> float:
        """Give the time that an iteration takes."""
        settings = self._settings
        computing = max(settings.step_seconds, settings.seconds_per_token * iteration.tokens)
        reading = settings.seconds_per_cached_token * iteration.cached_tokens
        fault = settings.extra_gap_seconds if iteration.decodes else 0.0
        return (computing + reading) * self._slowness + fault

    async def _run(self) -> None:
        """Compute one iteration after the other, as long as there is any."""
        loop = asyncio.get_running_loop()
        end = loop.time()
        while True:
            iteration = self._scheduler.schedule()
            if iteration is None:
                self._work.clear()
                await self._work.wait()
                end = loop.time()
                continue
            for one, _ in iteration.parts:
                call = self._calls[one]
                if not call.admitted:
                    call.admitted = True
                    self._metrics.queue.observe(loop.time() - call.arrived)
            seconds = self.seconds(iteration)
            end = max(end, loop.time() - _LATEST) + seconds
            # Written before, sent at once: the last stream waits for as little as can be.
            streams = [self._calls[one] for one in iteration.growing()]
            chunks = [(each, self._chunk(each)) for each in streams if each.asked.stream]
            await until(end)
            now = loop.time()
            for call, data in chunks:
                if data and not call.generation.ended:
                    call.connection.write(data)
            self._busy += seconds
            for one in self._scheduler.complete(iteration):
                self._count(self._calls[one], now)

    def _chunk(self, call: _Call) -> bytes:
        """Write what goes out with the next token: the first, the last, else when a chunk is full."""
        one, answer = call.generation, call.answer
        first, generated = one.generated == 0, one.generated + 1
        last = generated == one.output_tokens
        if not (first or last or generated - call.sent >= self._settings.tokens_per_chunk):
            return b""
        data = answer.opening() if first else b""
        data += answer.content(call.text(generated))
        if call.fails_after is not None and generated >= call.fails_after:
            return chunk(data + answer.failing(_FAILURE), last=True)
        if last:
            data += answer.ending(usage_of(one.prompt_tokens, generated, one.cached_tokens))
        return chunk(data, last=last)

    def _count(self, call: _Call, now: float) -> None:
        """Count one more token of a sequence, and end its call with the last one."""
        one, metrics = call.generation, self._metrics
        metrics.generation_tokens += 1
        if one.generated == 1:
            call.first = now
            metrics.prompt_tokens += one.prompt_tokens
            metrics.first_token.observe(now - call.arrived)
        else:
            metrics.between_tokens.observe(now - call.last)
        call.last = now
        if call.fails_after is not None and call.sent >= call.fails_after:
            self._give_up(call)
        elif one.ended:
            del self._calls[one]
            metrics.finished[call.asked.finish_reason] += 1
            metrics.whole.observe(now - call.arrived)
            # 0 for a single token, as vLLM counts it.
            metrics.per_output_token.observe((now - call.first) / max(1, one.generated - 1))
            if not call.done.done():
                call.done.set_result(None)

    # ------------------------------------------------------------------------------- what it tells

    def metrics(self) -> str:
        """Write its metrics as Prometheus reads them."""
        scheduler = self._scheduler
        held = sum(call.held is not None for call in self._calls.values())
        return self._metrics.text(
            {
                "num_requests_running": len(scheduler.running),
                "num_requests_waiting": len(scheduler.waiting) + held,
                "kv_cache_usage_perc": scheduler.usage,
            },
            {
                "num_preemptions_total": scheduler.preemptions,
                "prefix_cache_queries_total": scheduler.prefix_queries,
                "prefix_cache_hits_total": scheduler.prefix_hits,
            },
        )

    def utilization(self) -> dict[str, float]:
        """Tell utilisation since the last time it was asked, in AWS's names and percent.

        The GPU is busy while an iteration is computed. Its memory is taken at the start, whatever
        is in it: 92 % of it is vLLM's default. A core is busy with giving it work.
        """
        now = asyncio.get_running_loop().time()
        share = min(1.0, self._busy / max(now - self._told_at, 1e-9))
        self._busy, self._told_at = 0.0, now
        return {
            "CPUUtilization": 2.0 + 98.0 * share,
            "MemoryUtilization": 30.0,
            "GPUUtilization": 100.0 * share,
            "GPUMemoryUtilization": 92.0,
        }
