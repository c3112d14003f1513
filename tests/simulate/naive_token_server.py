"""The same server as ``token_core.serve``, written plainly: an oracle for the tests.

Every block is an object with a place in one line of free blocks, every iteration is computed by
itself, nothing is skipped. It shares no code with the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Request:
    arrival: float
    prompt: int
    output: int
    prefix: int = -1
    shared: int = 0
    computed: int = 0
    tokens: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    borrowed: int = 0  # of its blocks, the first: those of the prefix
    preempted: int = 0
    hit: int = 0
    reads: bool = False  # its prompt, or after a preemption all its tokens again


class Cache:
    def __init__(self, blocks: int, size: int) -> None:
        self.size = size
        self.line = list(range(blocks))  # free, least recently used first
        self.known: dict[tuple[int, int], int] = {}  # (prefix, number) -> block
        self.name: dict[int, tuple[int, int]] = {}
        self.users: dict[int, set[int]] = {}

    def take(self, count: int) -> list[int]:
        taken, self.line = self.line[:count], self.line[count:]
        for block in taken:
            if block in self.name:
                del self.known[self.name.pop(block)]
        return taken

    def found(self, prefix: int, most: int) -> list[int]:
        blocks: list[int] = []
        while len(blocks) < most and (prefix, len(blocks)) in self.known:
            blocks.append(self.known[prefix, len(blocks)])
        return blocks

    def give_back(self, request: Request) -> None:
        own = request.blocks[request.borrowed :]
        self.line += own[::-1]
        if request.borrowed:
            users = self.users[request.prefix]
            users.remove(id(request))
            if not users:
                number = 0
                while (request.prefix, number) in self.known:
                    number += 1
                self.line += [self.known[request.prefix, at] for at in reversed(range(number))]
        request.blocks, request.borrowed, request.computed = [], 0, 0

    def publish(self, request: Request, reach: int) -> None:
        """Blocks of the prefix up to so many tokens are there for others."""
        number = request.borrowed
        while number == len(self.found(request.prefix, 10**9)) and (number + 1) * self.size <= min(
            reach, request.shared
        ):
            self.known[request.prefix, number] = request.blocks[number]
            self.name[request.blocks[number]] = (request.prefix, number)
            self.users.setdefault(request.prefix, set()).add(id(request))
            number += 1
        request.borrowed = number


def run(
    requests: list[Request],
    *,
    seconds: Callable[[int, int, float], float],
    budget: int,
    sequences: int,
    blocks: int,
    size: int = 16,
) -> None:
    """Serve all on one instance with chunked prefill."""
    cache = Cache(blocks, size)
    coming, waiting, running = list(requests), list[Request](), list[Request]()
    now = 0.0
    while coming or waiting or running:
        if not waiting and not running:
            now = max(now, coming[0].arrival)
        while coming and coming[0].arrival <= now:
            waiting.append(coming.pop(0))
        left, batch, stopped, at = budget, list[tuple[Request, int, int]](), False, 0
        while at < len(running):
            request = running[at]
            chunk = min(request.prompt + len(request.tokens) - request.computed, left)
            if chunk > 0:
                need = -(-(request.computed + chunk) // size) - len(request.blocks)
                while need > len(cache.line) and at < len(running):
                    victim = running.pop()
                    cache.give_back(victim)
                    victim.preempted += 1
                    waiting.insert(0, victim)
                    stopped = True
                if at >= len(running):
                    break
                request.blocks += cache.take(need)
                if request.reads:
                    cache.publish(request, request.computed + chunk)
                batch.append((request, chunk, request.computed))
                left -= chunk
            at += 1
        while waiting and not stopped and left > 0 and len(running) < sequences:
            request = waiting[0]
            whole = request.prompt + len(request.tokens)
            hit = cache.found(request.prefix, min(request.shared, whole - 1) // size)
            chunk = min(whole - len(hit) * size, left)
            need = -(-chunk // size)
            unused = hit if not cache.users.get(request.prefix) else []
            if need > len(cache.line) - len(unused):
                break
            waiting.pop(0)
            cache.line = [each for each in cache.line if each not in unused]
            if hit:
                cache.users.setdefault(request.prefix, set()).add(id(request))
            request.blocks = hit + cache.take(need)
            request.borrowed, request.computed = len(hit), len(hit) * size
            request.hit += request.computed
            request.reads = True
            cache.publish(request, request.computed + chunk)
            running.append(request)
            batch.append((request, chunk, request.computed))
            left -= chunk
        now += seconds(
            sum(chunk for _, chunk, _ in batch),
            sum(computed for _, _, computed in batch),
            sum(
                chunk * (computed + (chunk + 1) / 2)
                for request, chunk, computed in batch
                if request.reads
            ),
        )
        for request, chunk, _ in batch:
            request.computed += chunk
            if request.computed == request.prompt + len(request.tokens):
                request.tokens.append(now)
                request.reads = False
        for request in [each for each in running if len(each.tokens) == each.output]:
            running.remove(request)
            cache.give_back(request)
    assert sorted(cache.line) == list(range(blocks))  # nothing is lost, nothing is there twice
