"""Prompts of given lengths for a language model, and how long its answers are to be.

A request is a chat of OpenAI's form, which vLLM, SGLang, LMI and llama.cpp take: a system prompt
that requests share, a user's message that none shares, and an answer of a length that is asked for
(``max_tokens``, ``min_tokens``, ``ignore_eos``), so that every run does the same work.

Words of common English stand for tokens: nearly all are one token in the vocabularies of Llama,
Qwen, Mistral and GPT. The model counts for itself, and results say what it counted.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ...errors import rule
from ...plan.limits import USE_AN_ALLOWED_VALUE, Range
from ...plan.token_traffic import TokenLengths, TokenTraffic
from .recorded_lengths import TOKENS_FORM, recorded_lengths

PREFIXES = Range(
    rule("LLT166", "the number of shared prefixes is out of range", fix=USE_AN_ALLOWED_VALUE),
    "the number of shared prefixes",
    1,
    100_000,
)

#: More than a language model answers in a step: by so many the next one's are numbered on.
PROMPTS_OF_A_STEP = 1_000_000
_POOL = 1 << 16
_WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "that",
    "is",
    "was",
    "for",
    "it",
    "with",
    "as",
    "his",
    "on",
    "be",
    "at",
    "by",
    "had",
    "not",
    "are",
    "but",
    "from",
    "or",
    "have",
    "an",
    "they",
    "which",
    "one",
    "you",
    "were",
    "all",
    "her",
    "she",
    "there",
    "would",
    "their",
    "we",
    "him",
    "been",
    "has",
    "when",
    "who",
    "will",
    "no",
    "more",
    "if",
    "out",
    "so",
    "up",
    "said",
    "what",
    "its",
    "about",
    "than",
    "into",
    "them",
    "can",
    "only",
    "other",
    "time",
    "new",
    "some",
    "could",
    "these",
    "two",
    "may",
    "first",
    "then",
    "do",
    "any",
    "like",
    "my",
    "now",
    "over",
    "such",
    "our",
    "man",
    "me",
    "even",
    "most",
    "made",
    "after",
    "also",
    "did",
    "many",
    "off",
    "before",
    "must",
    "well",
    "back",
    "through",
    "years",
    "much",
    "where",
    "your",
    "way",
    "down",
    "should",
    "because",
    "long",
    "each",
    "just",
    "state",
    "people",
    "those",
    "too",
    "little",
    "good",
    "make",
    "very",
    "year",
    "still",
    "see",
    "own",
    "work",
    "men",
    "day",
    "get",
    "here",
    "between",
]


@dataclass(frozen=True)
class Prompts:
    """What requests to a language model are made of, by the request's number.

    Parameters
    ----------
    traffic : TokenTraffic or None
        Lengths and the share of a mean prompt that requests share; ``None`` with ``recorded``.
    recorded : tuple of (int, int)
        Tokens of prompt and answer of requests that were seen, sent in turn.
    shared_prefix : float
        The share with ``recorded``; by default 0.
    prefixes : int
        How many different prefixes are shared, such as one for each tenant. By default 1.
    tell_prefix : bool
        Name the prefix to the router (``PrefixAwareId``). By default not.
    seed : int
        Of lengths and words.
    source : str
        Where it comes from, in words.

    Raises
    ------
    ConfigurationError
        ``LLT165`` without traffic and recording, or with both; ``LLT166``.

    Examples
    --------
    >>> prompts = Prompts(TokenTraffic(input=40, output=8, shared_prefix=0.5))
    >>> first, second = (json.loads(prompts.body(number)) for number in (0, 1))
    >>> first["messages"][0] == second["messages"][0], first["messages"][1] == second["messages"][1]
    (True, False)
    >>> len(first["messages"][0]["content"].split()), first["max_tokens"]
    (20, 8)
    """

    traffic: TokenTraffic | None = None
    recorded: tuple[tuple[int, int], ...] = ()
    shared_prefix: float = 0.0
    prefixes: int = 1
    tell_prefix: bool = False
    seed: int = 1
    source: str = ""

    def __post_init__(self) -> None:
        if (self.traffic is None) is not bool(self.recorded):
            raise TOKENS_FORM.error(
                got="neither" if self.traffic is None else "both",
                allowed="either lengths or recorded ones",
            )
        PREFIXES.check(self.prefixes, "prefixes")
        if self.traffic is not None:
            object.__setattr__(self, "shared_prefix", self.traffic.shared_prefix)
            object.__setattr__(self, "source", f"prompts of {self.traffic.text}")
        if not 0 <= self.shared_prefix <= 1:
            raise TOKENS_FORM.error(got=f"shared_prefix={self.shared_prefix:g}", allowed="0 to 1")

    @classmethod
    def of(cls, text: str, **more: Any) -> Prompts:
        """Lengths as a command line gives them, or a file of recorded ones.

        Parameters
        ----------
        text : str
            ``input=512,output=128``, each a number or ``median:p95``, with ``shared_prefix`` and
            ``prefixes`` if there are any; or ``file=lengths.csv`` in place of the two lengths.
        **more
            ``tell_prefix``, ``seed``.

        Raises
        ------
        ConfigurationError
            ``LLT165``, ``LLT166``, ``LLE893`` to ``LLE895`` for values.

        Examples
        --------
        >>> Prompts.of("input=300:1800,output=128").source
        'prompts of 300 (p50) to 1,800 (p95) tokens in, 128 out'
        """
        given: dict[str, str] = {}
        for part in text.split(","):
            name, equals, value = part.strip().partition("=")
            if not equals or name in given or name not in _NAMES:
                raise TOKENS_FORM.error(got=part.strip() or repr(text), allowed=", ".join(_NAMES))
            given[name] = value
        if missing := {"input", "output"} - set(given) if "file" not in given else set():
            raise TOKENS_FORM.error(
                got=f"{text} without {' and '.join(sorted(missing))}", allowed="input and output"
            )
        share = _number(given, "shared_prefix", 0.0)
        more["prefixes"] = int(_number(given, "prefixes", 1))
        if "file" in given:
            if both := {"input", "output"} & set(given):
                raise TOKENS_FORM.error(
                    got=f"file with {' and '.join(sorted(both))}", allowed="one of the two"
                )
            found = recorded_lengths(Path(given["file"]))
            source = f"{len(found):,} recorded lengths of {Path(given['file']).name}"
            return cls(None, found, share, source=source, **more)
        return cls(
            TokenTraffic(
                input=_length(given, "input"), output=_length(given, "output"), shared_prefix=share
            ),
            **more,
        )

    def body(self, number: int) -> bytes:
        """The request with that number, from 0."""
        prompt, answer = self.lengths(number)
        shared = min(self._shared_tokens, prompt - 1)
        messages = []
        if shared > 0:
            messages.append({"role": "system", "content": self._prefix(number, shared)})
        own = _words(_mixed(self.seed, 2 * number + 1), max(1, prompt - max(shared, 0)) - 1)
        # Its number comes first, so that no two prompts share more than they are to.
        messages.append({"role": "user", "content": f"{number} {own}".rstrip()})
        return json.dumps(
            {
                "messages": messages,
                "max_tokens": answer,
                "min_tokens": answer,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ).encode()

    def parameters(self, number: int) -> dict[str, str] | None:
        """Of that request by boto3's names, beside the body; ``None`` for none."""
        if not self.tell_prefix:
            return None
        return {"PrefixAwareId": f"prefix-{self._kind(number)}"}

    def lengths(self, number: int) -> tuple[int, int]:
        """Tokens of its prompt and of its answer."""
        if self.recorded:
            return self.recorded[number % len(self.recorded)]
        assert self.traffic is not None
        chance = random.Random(_mixed(self.seed, 2 * number))
        return _drawn(self.traffic.input, chance), _drawn(self.traffic.output, chance)

    @cached_property
    def _shared_tokens(self) -> int:
        if self.traffic is not None:
            mean = self.traffic.mean_input
        else:
            mean = sum(prompt for prompt, _ in self.recorded) / len(self.recorded)
        return round(self.shared_prefix * mean)

    def _kind(self, number: int) -> int:
        """Which of the prefixes; at random, or callers that take turns would each send their own."""
        return _mixed(self.seed + 1, number) % self.prefixes

    def _prefix(self, number: int, tokens: int) -> str:
        return _words(_mixed(self.seed, -1 - self._kind(number)), tokens)

    def to_dict(self) -> dict[str, Any]:
        """What :meth:`of_dict` reads; plain JSON."""
        return asdict(self)

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> Prompts:
        """What :meth:`to_dict` wrote."""
        values = {**data, "recorded": tuple(map(tuple, data["recorded"]))}
        if (traffic := data["traffic"]) is not None:
            lengths = {
                name: TokenLengths(**each) if isinstance(each := traffic[name], Mapping) else each
                for name in ("input", "output")
            }
            values["traffic"] = TokenTraffic(**{**traffic, **lengths})
        return cls(**values)


_NAMES = ("input", "output", "shared_prefix", "prefixes", "file")


def _number(given: Mapping[str, str], name: str, otherwise: float) -> float:
    try:
        return float(given[name]) if name in given else otherwise
    except ValueError:
        raise TOKENS_FORM.error(got=f"{name}={given[name]}", allowed="a number") from None


def _length(given: Mapping[str, str], name: str) -> int | TokenLengths:
    try:
        values = [int(part) for part in given[name].split(":")]
        if len(values) > 2:
            raise ValueError
    except ValueError:
        raise TOKENS_FORM.error(
            got=f"{name}={given[name]}", allowed="tokens such as 512, or median:p95 as 300:1800"
        ) from None
    return values[0] if len(values) == 1 else TokenLengths(p50=values[0], p95=values[1])


def _drawn(length: Any, chance: random.Random) -> int:
    if not isinstance(length, TokenLengths):
        return int(length)
    return max(1, round(length.p50 * math.exp(length.deviation * chance.gauss(0.0, 1.0))))


def _mixed(seed: int, number: int) -> int:
    """A seed of its own for each number (SplitMix64); Python's own takes 20 times as long."""
    mixed = (seed * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return mixed ^ (mixed >> 31)


@cache
def _pool() -> tuple[str, tuple[int, ...]]:
    """Many words, and where each begins: a prompt is a piece of it, made in microseconds."""
    words = random.Random(0).choices(_WORDS, k=_POOL)
    begins, at = [], 0
    for word in words:
        begins.append(at)
        at += len(word) + 1
    return " ".join(words), (*begins, at)


def _words(start: int, count: int) -> str:
    text, begins = _pool()
    pieces = []
    at = start % _POOL
    while count > 0:
        end = min(_POOL, at + count)
        pieces.append(text[begins[at] : begins[end] - 1])
        count -= end - at
        at = 0
    return " ".join(pieces)
