"""Continuous batching with a KV cache in blocks, as vLLM v1's scheduler does it; knows no time.

Each iteration has a budget of tokens. Sequences at work come first, in the order of admission: one
token each, or the next part of a long prompt (chunked prefill). What is left of the budget goes to
those that wait. Where a sequence at work finds no free block, the one admitted last is preempted:
it gives back its blocks, waits at the front, and computes everything again (recompute).

Sources: vllm-project/vllm, `vllm/v1/core/sched/scheduler.py` (schedule), `block_pool.py` and
`kv_cache_utils.py` (blocks, their hashes, the queue of free ones); its design document "Automatic
Prefix Caching".
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Generation:
    """A prompt, and what has been generated for it.

    Parameters
    ----------
    tokens
        The prompt's tokens, to which the scheduler adds the generated ones.
    output_tokens
        How many it generates.
    """

    tokens: list[Hashable]
    output_tokens: int
    prompt_tokens: int = field(init=False)
    generated: int = 0
    computed: int = 0
    """Tokens whose keys and values lie in its blocks."""
    cached_tokens: int = 0
    """Tokens of the prompt that were found in the prefix cache at its first admission."""
    preemptions: int = 0
    admitted: bool = False
    """Whether it has been at work."""
    ended: bool = False
    """Whether it has all its tokens, or was given up."""
    blocks: list[int] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    """Of its first full blocks; each also of all blocks before it."""

    def __post_init__(self) -> None:
        self.prompt_tokens = len(self.tokens)
        if self.prompt_tokens < 1 or self.output_tokens < 1:
            raise ValueError("a prompt and an output have at least one token")


@dataclass(slots=True)
class Iteration:
    """What one iteration computes."""

    parts: list[tuple[Generation, int]]
    """Each sequence with its tokens in this iteration."""
    tokens: int
    cached_tokens: int
    """Tokens whose keys and values it reads: those computed before."""
    preempted: list[Generation]
    decodes: bool
    """Whether any of the sequences had a token already."""

    def growing(self) -> list[Generation]:
        """Give the sequences that will have one token more."""
        return [one for one, tokens in self.parts if one.computed + tokens == len(one.tokens)]


class _Blocks:
    """The KV cache's blocks: free, or used by one or more sequences; a free one may be known."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._users = [0] * count
        self._hash_of: list[int | None] = [None] * count
        self._known: dict[int, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(count))

    @property
    def free(self) -> int:
        return len(self._free)

    def find(self, hashes: Sequence[int]) -> list[int]:
        """Give the known blocks of the longest beginning."""
        found = []
        for one in hashes:
            block = self._known.get(one)
            if block is None:
                break
            found.append(block)
        return found

    def free_among(self, blocks: Sequence[int]) -> int:
        """How many of them nobody uses: to use them again takes them from the free ones."""
        return sum(not self._users[block] for block in blocks)

    def share(self, blocks: Sequence[int]) -> None:
        """Use known blocks, beside others who may."""
        for block in blocks:
            if not self._users[block]:
                del self._free[block]
            self._users[block] += 1

    def take(self, count: int) -> list[int]:
        """Take free blocks, those first that nobody has used for longest; what they held is gone."""
        taken = [self._free.popitem(last=False)[0] for _ in range(count)]
        for block in taken:
            known = self._hash_of[block]
            if known is not None:
                del self._known[known]
                self._hash_of[block] = None
            self._users[block] = 1
        return taken

    def publish(self, block: int, known_as: int) -> None:
        """Let others find a full block; the first one with that content stays the known one."""
        if self._hash_of[block] is None and known_as not in self._known:
            self._known[known_as] = block
            self._hash_of[block] = known_as

    def give_back(self, blocks: Sequence[int]) -> None:
        """Use them no longer; the last of a sequence are the first to be taken."""
        for block in reversed(blocks):
            self._users[block] -= 1
            if not self._users[block]:
                self._free[block] = None


class Scheduler:
    """Which sequences get how many tokens in the next iteration.

    Parameters
    ----------
    max_batched_tokens
        Tokens of an iteration, at most.
    max_sequences
        Sequences at work at a time, at most.
    kv_tokens
        Tokens that the KV cache has room for; what does not fill a block is left out.
    block_tokens
        Tokens of a block.
    prefix_cache
        Whether blocks are found again by what is in them.

    Examples
    --------
    >>> scheduler = Scheduler(max_batched_tokens=8, kv_tokens=64, block_tokens=4)
    >>> scheduler.add(Generation(list("a long prompt"), output_tokens=1))
    >>> [scheduler.step().tokens for _ in range(2)]  # 13 tokens, in two parts
    [8, 5]
    """

    def __init__(
        self,
        *,
        kv_tokens: int,
        max_batched_tokens: int = 2048,
        max_sequences: int = 256,
        block_tokens: int = 16,
        prefix_cache: bool = True,
    ) -> None:
        self._budget = max_batched_tokens
        self._most = max_sequences
        self._size = block_tokens
        self._caches = prefix_cache
        self._blocks = _Blocks(kv_tokens // block_tokens)
        self.running: list[Generation] = []
        self.waiting: deque[Generation] = deque()
        self.preemptions = 0
        self.prefix_queries = 0
        """Tokens of prompts that were looked for in the prefix cache."""
        self.prefix_hits = 0
        """Those of them that were found."""

    @property
    def usage(self) -> float:
        """Share of the blocks that sequences use, each block counted once."""
        return 1.0 - self._blocks.free / self._blocks.count

    @property
    def used_blocks(self) -> int:
        """Blocks that sequences use, each counted once."""
        return self._blocks.count - self._blocks.free

    def change_limits(self, max_batched_tokens: int, max_sequences: int) -> None:
        """Go on with other limits from the next iteration on; whoever is at work stays."""
        self._budget, self._most = max_batched_tokens, max_sequences

    def add(self, one: Generation) -> None:
        """Let one wait for its turn.

        Raises
        ------
        ValueError
            When the KV cache could not hold it even alone.
        """
        # The last token's keys and values are never computed.
        if self._blocks_for(one.prompt_tokens + one.output_tokens - 1) > self._blocks.count:
            raise ValueError("the KV cache has no room for so many tokens")
        self.waiting.append(one)

    def abort(self, one: Generation) -> None:
        """Give one up and free its blocks, also in the middle of an iteration."""
        if one.ended:
            return
        one.ended = True
        if one in self.running:
            self.running.remove(one)
        elif one in self.waiting:
            self.waiting.remove(one)
        self._release(one)

    def step(self) -> Iteration | None:
        """Compute an iteration at once, for whom time is of no interest."""
        iteration = self.schedule()
        if iteration is not None:
            self.complete(iteration)
        return iteration

    # --------------------------------------------------------------------------- one iteration

    def schedule(self) -> Iteration | None:
        """Choose what the next iteration computes; None when there is nothing to do."""
        budget = self._budget
        parts: dict[Generation, int] = {}
        preempted: list[Generation] = []
        place = 0
        while place < len(self.running) and budget > 0:
            one = self.running[place]
            tokens = min(len(one.tokens) - one.computed, budget)
            if not self._make_room(one, tokens, preempted):
                break  # it was the last one itself
            parts[one] = tokens
            budget -= tokens
            place += 1
        if not preempted:
            self._admit(parts, budget)
        if not parts:
            return None
        cached = sum(one.computed for one in parts)
        decodes = any(one.generated for one in parts)
        return Iteration(list(parts.items()), sum(parts.values()), cached, preempted, decodes)

    def _make_room(self, one: Generation, tokens: int, preempted: list[Generation]) -> bool:
        """Give a sequence at work the blocks it needs, if need be those of the last one."""
        while not self._allocate(one, tokens):
            last = self.running.pop()
            self._release(last)
            last.computed = 0
            last.preemptions += 1
            self.preemptions += 1
            self.waiting.appendleft(last)
            preempted.append(last)
            if last is one:
                return False
        return True

    def _admit(self, parts: dict[Generation, int], budget: int) -> None:
        """Take in whoever waits, as long as there is room."""
        while self.waiting and budget > 0 and len(self.running) < self._most:
            one = self.waiting[0]
            known = self._known_beginning(one)
            computed = len(known) * self._size
            tokens = min(len(one.tokens) - computed, budget)
            needed = self._blocks_for(computed + tokens) - len(known)
            if needed + self._blocks.free_among(known) > self._blocks.free:
                return
            self.waiting.popleft()
            self._blocks.share(known)
            one.blocks, one.computed = known, computed
            if not one.admitted:
                one.admitted, one.cached_tokens = True, computed
                if self._caches:
                    self.prefix_queries += len(one.tokens)
                    self.prefix_hits += computed
            self._allocate(one, tokens)
            self.running.append(one)
            parts[one] = tokens
            budget -= tokens

    def _known_beginning(self, one: Generation) -> list[int]:
        """Find its blocks in the cache; the last token is computed in any case, for its answer."""
        if not self._caches:
            return []
        whole = (len(one.tokens) - 1) // self._size
        return self._blocks.find(self._hashes(one, whole))

    def _hashes(self, one: Generation, count: int) -> list[int]:
        hashes, size = one.hashes, self._size
        for place in range(len(hashes), count):
            before = hashes[-1] if hashes else 0
            hashes.append(hash((before, *one.tokens[place * size : (place + 1) * size])))
        return hashes if len(hashes) == count else hashes[:count]

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self._size)

    def _allocate(self, one: Generation, tokens: int) -> bool:
        """Give it the blocks for so many more tokens; full ones can be found from now on."""
        after = one.computed + tokens
        needed = self._blocks_for(after) - len(one.blocks)
        if needed > self._blocks.free:
            return False
        if needed > 0:
            one.blocks += self._blocks.take(needed)
        if self._caches and after // self._size > one.computed // self._size:
            full = after // self._size
            hashes = self._hashes(one, full)
            for place in range(one.computed // self._size, full):
                self._blocks.publish(one.blocks[place], hashes[place])
        return True

    def complete(self, iteration: Iteration) -> list[Generation]:
        """End an iteration; gives the sequences that have one token more than before."""
        grown = []
        for one, tokens in iteration.parts:
            if one.ended:  # given up meanwhile
                continue
            one.computed += tokens
            if one.computed < len(one.tokens):
                continue
            one.tokens.append(_WORDS[one.generated % len(_WORDS)])
            one.generated += 1
            grown.append(one)
            if one.generated == one.output_tokens:
                one.ended = True
                self._release(one)
        if any(one.ended for one in grown):
            self.running = [one for one in self.running if not one.ended]
        return grown

    def _release(self, one: Generation) -> None:
        self._blocks.give_back(one.blocks)
        one.blocks = []


_WORDS = [
    "the",
    "river",
    "went",
    "on",
    "through",
    "the",
    "town",
    "and",
    "under",
    "the",
    "bridge",
    "where",
    "two",
    "boys",
    "sat",
    "with",
    "their",
    "lines",
    "in",
    "the",
    "water",
    "and",
    "said",
    "little",
    "until",
    "the",
    "light",
    "began",
    "to",
    "fade",
]


def word(number: int) -> str:
    """Give the text of a generated token; the first has no space before it."""
    text = _WORDS[number % len(_WORDS)]
    return f" {text}" if number else text
