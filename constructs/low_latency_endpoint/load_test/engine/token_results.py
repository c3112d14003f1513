"""What was recorded of a language model's answers: filled, added up, sent and written in one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from .latencies import LatencyHistogram, summary_ms
from .target import TokenLimits

if TYPE_CHECKING:
    from .invoking import Invocation


@dataclass
class TokenResult:
    """What a step showed of a language model's answers, or a second of it, or one process of it.

    Attributes
    ----------
    first_token : LatencyHistogram
        From the intended start to the first chunk with content, or to giving up where none came.
    inter_token : LatencyHistogram
        The gaps between successive chunks with content, of all streams together; of a stream that
        somebody gave up, its last wait too.
    per_token : LatencyHistogram
        Of each stream of two tokens or more: the time from first to last, by the tokens after the
        first.
    output_tokens, prompt_tokens, cached_tokens : int
        As the model counts them; those from its prefix cache are among the prompts'.
    tokens_in_time : int
        Output tokens of the answers of ``answered_in_time``.
    good : int
        Answers that kept both limits of :class:`.target.TokenLimits`; failed requests are none.
    uncounted : int
        Answers without the model's own count of tokens: their chunks were counted.
    unstreamed : int
        Answers of several tokens that came in one chunk: nothing streamed.
    """

    first_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    inter_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    per_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    output_tokens: int = 0
    tokens_in_time: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    good: int = 0
    uncounted: int = 0
    unstreamed: int = 0

    def count(self, answer: Invocation, latency: float, limits: TokenLimits) -> None:
        """Count one answer, or a request that was given up before its last token.

        Parameters
        ----------
        latency : float
            From the intended start to the answer's end, seconds.
        """
        times = answer.tokens
        ended, intended = answer.ended, answer.ended - latency
        if times is None or times.first is None:
            if answer.unanswered:
                self.first_token.record(latency)  # it took at least that
            return
        first_token, gap = times.first - intended, self.inter_token.record
        self.first_token.record(first_token)
        for seconds in times.gaps:
            gap(seconds)
        self.output_tokens += times.output_tokens
        self.prompt_tokens += times.prompt_tokens
        self.cached_tokens += times.cached_tokens
        if answer.unanswered and times.last is not None:
            gap(ended - times.last)
        if answer.error is not None:
            return
        per_token = times.per_token
        if per_token is not None:
            self.per_token.record(per_token)
            self.unstreamed += not times.gaps
        self.uncounted += not times.counted
        self.good += (limits.first_token is None or first_token <= limits.first_token) and (
            limits.per_token is None or per_token is None or per_token <= limits.per_token
        )

    def add(self, other: TokenResult) -> None:
        """Count everything that another holds, without loss."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in TOKEN_HISTOGRAMS:
            getattr(self, name).add(getattr(other, name))

    @classmethod
    def sum(cls, results: Iterable[TokenResult]) -> TokenResult:
        """One of what all of them hold."""
        made = cls()
        for one in results:
            made.add(one)
        return made

    def to_counts(self) -> dict[str, Any]:
        """Plain numbers for a message between processes; cheap, unlike :meth:`to_dict`."""
        return {
            **{name: getattr(self, name) for name in _SUMS},
            **{name: getattr(self, name).to_counts() for name in TOKEN_HISTOGRAMS},
        }

    @classmethod
    def of_counts(cls, content: Mapping[str, Any]) -> TokenResult:
        """What :meth:`to_counts` gave."""
        found = {name: LatencyHistogram.of_counts(content[name]) for name in TOKEN_HISTOGRAMS}
        return cls(**{**content, **found})

    def to_dict(self) -> dict[str, Any]:
        """JSON for a file: the histograms whole, and what a reader wants to see beside them."""
        histograms = {name: getattr(self, name) for name in TOKEN_HISTOGRAMS}
        return {
            **{name: getattr(self, name) for name in _SUMS},
            **{f"{name}_ms": summary_ms(each) for name, each in histograms.items()},
            "histograms": {name: each.encode() for name, each in histograms.items()},
        }

    @classmethod
    def of_dict(cls, content: Mapping[str, Any]) -> TokenResult:
        """What :meth:`to_dict` gave."""
        texts = content["histograms"]
        found: dict[str, Any] = {
            name: LatencyHistogram.decode(texts[name]) for name in TOKEN_HISTOGRAMS
        }
        return cls(**found, **{name: content[name] for name in _SUMS})


TOKEN_HISTOGRAMS = ("first_token", "inter_token", "per_token")
_SUMS = tuple(each.name for each in fields(TokenResult) if each.name not in TOKEN_HISTOGRAMS)
