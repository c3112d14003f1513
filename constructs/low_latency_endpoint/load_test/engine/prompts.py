"""Prompts of given or recorded lengths for a language model, and how long its answers are to be."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any, cast

from ...errors import rule
from ...errors.given_files import MOST_LINES, check_csv, check_lines, json_value, text_of
from ...facts.limit_kinds import USE_AN_ALLOWED_VALUE, Range
from ...options.load import TokenLengths, TokenTraffic
from ...report.numbers import readable
from .token_streams import TokenReader

TOKENS_FORM = rule(
    "LLT165",
    "the token counts of prompts and answers cannot be read",
    fix="Give input=512,output=128,shared_prefix=0.5, a varying length as median:p95 "
    "(input=300:1800), or a file with a column for each. For conversations, add "
    "turns=4,conversations=50.",
)
PREFIXES = Range(
    rule("LLT166", "the number of shared prefixes is out of range", fix=USE_AN_ALLOWED_VALUE),
    "the number of shared prefixes",
    1,
    100_000,
)
_CONVERSATIONS = rule(
    "LLT168", "the conversations of a load test are out of range", fix=USE_AN_ALLOWED_VALUE
)
TURNS = Range(_CONVERSATIONS, "the number of turns", 1, 1_000)
CONVERSATIONS = Range(_CONVERSATIONS, "the number of conversations at once", 1, 100_000)
SESSIONS = rule(
    "LLT169",
    "the sessions of a load test do not fit its conversations",
    fix="Give turns and conversations. The number of conversations must be a multiple of the "
    "generator processes: --tokens input=512,output=128,turns=4,conversations=50.",
)
#: More than a language model answers in a step: by so many the next one's are numbered on.
PROMPTS_OF_A_STEP = 1_000_000
#: Columns of recorded lengths: our own, and of the traces of Azure, Vidur, BurstGPT and Mooncake.
_COLUMNS = (
    ("input", "output"),
    ("ContextTokens", "GeneratedTokens"),
    ("num_prefill_tokens", "num_decode_tokens"),
    ("Request tokens", "Response tokens"),
    ("input_length", "output_length"),
)
#: Of a prompt or an answer: no model has such a context, and a prompt of more is no request.
MOST_TOKENS = 100_000_000
_COUNT = (int, float, str, None)
#: A line of JSON: our columns and those of traces, a benchmark's file, usage, or data capture.
_LINE = {
    **{f"{name}?": _COUNT for names in _COLUMNS for name in names},
    "input_lens?": [_COUNT],
    "output_lens?": [_COUNT],
    "usage?": ({"prompt_tokens?": _COUNT, "completion_tokens?": _COUNT}, object),
    "captureData?": ({"endpointOutput?": ({"data?": (str, None)}, None)}, None),
}
_POOL = 1 << 16
#: Words of common English that stand for tokens.
_WORDS = """
the of and to in that is was for it with as his on be at by had not are but from or have an they
which one you were all her she there would their we him been has when who will no more if out so
up said what its about than into them can only other time new some could these two may first
then do any like my now over such our man me even most made after also did many off before must
well back through years much where your way down should because long each just state people
those too little good make very year still see own work men day get here between
"""


@dataclass(frozen=True)
class Prompts:
    """What requests to a language model are made of, by the request's number."""

    # lengths, and the share of a mean prompt that requests share; ``None`` with ``recorded``
    traffic: TokenTraffic | None = None
    recorded: tuple[tuple[int, int], ...] = ()  # tokens of prompts and answers, sent in turn
    shared_prefix: float = 0.0  # the share with ``recorded``
    prefixes: int = 1  # how many different ones are shared, such as one for each tenant
    # name the prefix to the router (``PrefixAwareId``), with turns the conversation
    tell_prefix: bool = False
    seed: int = 1  # of lengths and words
    source: str = ""  # in words
    # of each conversation. Lengths are those of its first prompt and of an answer; each later turn
    # adds the answer before and a question as long as the first, which is the prompt without what
    # is shared
    turns: int = 1
    # that go on at once and take turns, each at another of its turns from the start, and give way
    # to new ones: two turns of one are so many requests apart
    conversations: int = 1
    # each conversation in a session of its container (``SessionId``), which keeps it on one
    # instance; Locust's users have none
    sessions: bool = False

    def __post_init__(self) -> None:
        if (self.traffic is None) is not bool(self.recorded):
            raise TOKENS_FORM.error(
                got="neither" if self.traffic is None else "both",
                allowed="either lengths or recorded lengths",
            )
        PREFIXES.check(self.prefixes, "prefixes")
        TURNS.check(self.turns, "turns")
        CONVERSATIONS.check(self.conversations, "conversations")
        if self.sessions and self.turns == 1:
            raise SESSIONS.error(got="conversations of one turn", allowed="several turns")
        if self.traffic is not None:
            object.__setattr__(self, "shared_prefix", self.traffic.shared_prefix)
            object.__setattr__(self, "source", f"prompts of {self.traffic.text}")
        if not 0 <= self.shared_prefix <= 1:
            raise TOKENS_FORM.error(
                got=f"shared_prefix={readable(self.shared_prefix)}", allowed="0 to 1"
            )
        if self.turns > 1 and not self.source.endswith(told := self._conversations_text):
            object.__setattr__(self, "source", f"{self.source}{told}")

    @classmethod
    def of(cls, text: str, **more: Any) -> Prompts:
        """Lengths as a command line gives them, or with ``file=`` recorded ones."""
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
        if len(talks := {"turns", "conversations"} & set(given)) == 1:
            raise TOKENS_FORM.error(got=f"{talks.pop()} alone", allowed="turns and conversations")
        for limit, name in (
            (PREFIXES, "prefixes"),
            (TURNS, "turns"),
            (CONVERSATIONS, "conversations"),
        ):
            more[name] = int(limit.check(_number(given, name, 1), name))
        if "file" in given:
            if both := {"input", "output"} & set(given):
                raise TOKENS_FORM.error(
                    got=f"file with {' and '.join(sorted(both))}", allowed="one of the two"
                )
            found, left_out = recorded_lengths(Path(given["file"]))
            source = f"{len(found):,} recorded lengths of {Path(given['file']).name}"
            if left_out:  # BurstGPT's failures have no answer
                source += f", {left_out:,} without a prompt or an answer left out"
            return cls(None, found, share, source=source, **more)
        return cls(
            TokenTraffic(
                input=_length(given, "input"), output=_length(given, "output"), shared_prefix=share
            ),
            **more,
        )

    def body(self, number: int) -> bytes:
        """The request with that number, from 0."""
        _, turn = self.turn(number)
        first = number - turn * self.conversations
        shared = max(0, min(self._shared_tokens, self.lengths(first)[0] - 1))
        messages = []
        if shared > 0:
            messages.append({"role": "system", "content": self._prefix(first, shared)})
        for each in range(first, number, self.conversations):
            prompt, answer = self.lengths(each)
            messages.append({"role": "user", "content": self._question(each, prompt - shared)})
            text = _text_of(_mixed(self.seed + 2, each), answer)
            messages.append({"role": "assistant", "content": text})
        prompt, answer = self.lengths(number)
        messages.append({"role": "user", "content": self._question(number, prompt - shared)})
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
        if self.turns > 1:
            return {"PrefixAwareId": f"conversation-{self.turn(number)[0]}"}
        return {"PrefixAwareId": f"prefix-{self._kind(number)}"}

    def check_processes(self, processes: int) -> None:
        """Refuse sessions whose turns several processes would send, as each opens its own."""
        if self.sessions and self.conversations % processes:
            raise SESSIONS.error(
                got=f"{self.conversations:,} conversations for {processes:,} processes",
                allowed="a multiple of the processes",
            )

    def turn(self, number: int) -> tuple[int, int]:
        """Which conversation the request belongs to, and which of its turns it is, from 0."""
        if self.turns == 1:
            return number, 0
        rounds, slot = divmod(number, self.conversations)
        before, turn = divmod(rounds + self._begun[slot], self.turns)
        return before * self.conversations + slot, turn

    def lengths(self, number: int) -> tuple[int, int]:
        """Tokens of its prompt, without what was said before, and of its answer."""
        if self.recorded:
            return self.recorded[number % len(self.recorded)]
        traffic = cast(TokenTraffic, self.traffic)
        chance = random.Random(_mixed(self.seed, 2 * number))
        return _drawn(traffic.input, chance), _drawn(traffic.output, chance)

    @cached_property
    def _begun(self) -> list[int]:
        """At which turn each conversation is at first: all as often from then on, in no order."""
        begun = [slot % self.turns for slot in range(self.conversations)]
        random.Random(self.seed).shuffle(begun)
        return begun

    @cached_property
    def _means(self) -> tuple[float, float]:
        """Tokens of a first prompt and of an answer."""
        if self.traffic is not None:
            return self.traffic.mean_input, self.traffic.mean_output
        prompts, answers = zip(*self.recorded, strict=True)
        return sum(prompts) / len(prompts), sum(answers) / len(answers)

    @cached_property
    def _shared_tokens(self) -> int:
        return round(self.shared_prefix * self._means[0])

    @property
    def _conversations_text(self) -> str:
        prompt, answer = self._means
        longest = prompt + (self.turns - 1) * (prompt - self._shared_tokens + answer)
        return (
            f", {self.turns} turns of {self.conversations:,} conversations at once, "
            f"{longest:,.0f} tokens in for the last turn{', each in a session' * self.sessions}"
        )

    def _kind(self, number: int) -> int:
        """Which of the prefixes; at random, or callers that take turns would each send their own."""
        return _mixed(self.seed + 1, number) % self.prefixes

    def _prefix(self, number: int, tokens: int) -> str:
        return _text_of(_mixed(self.seed, -1 - self._kind(number)), tokens)

    def _question(self, number: int, tokens: int) -> str:
        """Its number comes first, so that no two prompts share more than they are to."""
        return f"{number} {_text_of(_mixed(self.seed, 2 * number + 1), tokens - 1)}".rstrip()

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


_NAMES = ("input", "output", "shared_prefix", "prefixes", "turns", "conversations", "file")


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
    value = (seed * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ (value >> 30)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return value ^ (value >> 31)


@cache
def _pool() -> tuple[str, tuple[int, ...]]:
    """Many words, and where each begins: a text is a piece of it."""
    words = random.Random(0).choices(_WORDS.split(), k=_POOL)
    begins, at = [], 0
    for word in words:
        begins.append(at)
        at += len(word) + 1
    return " ".join(words), (*begins, at)


def _text_of(start: int, count: int) -> str:
    """So many words, from a place that the first number stands for."""
    text, begins = _pool()
    pieces = []
    at = start % _POOL
    while count > 0:
        end = min(_POOL, at + count)
        pieces.append(text[begins[at] : begins[end] - 1])
        count -= end - at
        at = 0
    return " ".join(pieces)


def recorded_lengths(path: Path) -> tuple[tuple[tuple[int, int], ...], int]:
    """Tokens of prompts and answers that were recorded, and how many had no prompt or no answer."""
    text = text_of(path, TOKENS_FORM)
    is_json = text.lstrip().startswith("{")
    try:
        check = check_lines if is_json else check_csv
        check(text)
        told = _pairs(_json_lines(text, path) if is_json else csv.DictReader(io.StringIO(text)))
    except (ValueError, csv.Error) as error:
        raise TOKENS_FORM.error(got=f"{path}: {error}", allowed="CSV or lines of JSON") from None
    found = tuple(pair for pair in told if min(pair) > 0)
    if not found:
        columns = " or ".join(" and ".join(names) for names in _COLUMNS)
        raise TOKENS_FORM.error(
            got=f"no line in {path} with both lengths",
            allowed=f"columns {columns}, usage, or data capture of answers with usage",
        )
    return found, len(told) - len(found)


def _json_lines(text: str, path: Path) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json_value(line, _LINE)
            except ValueError as error:
                raise TOKENS_FORM.error(
                    got=f"line {number} of {path}: {error}", allowed="a JSON object in each line"
                ) from None
            if "input_lens" in row:  # vllm bench serve --save-detailed
                pairs = zip(row["input_lens"], row.get("output_lens", ()), strict=False)
                yield from ({"input": prompt, "output": answer} for prompt, answer in pairs)
            else:
                yield row


def _pairs(rows: Iterator[Any]) -> list[tuple[int, int]]:
    """The lengths that rows tell; a line of JSON may have those of many requests."""
    told = [pair for row in islice(rows, MOST_LINES) if (pair := _pair(row)) is not None]
    if next(rows, None) is not None:
        raise ValueError(f"more than {MOST_LINES:,} requests")
    return told


def _pair(row: Mapping[str, Any]) -> tuple[int, int] | None:
    if "captureData" in row:
        told = (row["captureData"] or {}).get("endpointOutput") or {}
        reader = TokenReader()
        reader.feed(str(told.get("data") or "").encode(), 0.0)
        reader.end()
        times = reader.times()
        found: tuple[Any, Any] = (times.prompt_tokens or None, times.output_tokens)
    elif "usage" in row:
        usage = row["usage"] if isinstance(row["usage"], dict) else {}
        found = usage.get("prompt_tokens"), usage.get("completion_tokens")
    else:
        names = next((names for names in _COLUMNS if set(names) <= set(row)), None)
        found = (None, None) if names is None else (row[names[0]], row[names[1]])
    try:
        prompt, answer = (int(float(value)) for value in found)
    except (TypeError, ValueError, OverflowError):
        return None
    for tokens in (prompt, answer):
        if tokens > MOST_TOKENS:
            raise TOKENS_FORM.error(
                got=f"a line with {readable(tokens)} tokens", allowed=f"at most {MOST_TOKENS:,}"
            )
    return prompt, answer
