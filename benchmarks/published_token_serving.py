"""The simulation of language models beside published measurements: what is fitted, what predicted.

    python -m benchmarks.published_token_serving

Three sources; their numbers stand here once, the page and the tests take them from here.

``SARATHI``
    Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve" (OSDI
    2024), github.com/microsoft/sarathi-serve, branch ``osdi-sarathi-serve`` at ceaa066:
    ``osdi-experiments/figure-2/prefill.csv`` and ``decode.csv``, ``figure-9/chunking-overhead.csv``,
    ``table-2/results.csv``. Yi-34B on two A100.
``A6000``
    "Inference Benchmark Report" of 2026-06-27, ld-singh.github.io/ai-factory-ops-lab: vLLM 0.23.0
    with Qwen2.5-7B-Instruct on one RTX A6000; closed loops of 512 requests, of its ``loadgen.py``.
``VLLM_CI``
    vLLM's own benchmark of Llama 3.1 8B on one H100: 8 requests at once of 32 tokens, 128 out.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import lru_cache

from low_latency_endpoint.plan.token_traffic import TokenLengths, TokenTraffic
from low_latency_endpoint.simulate import (
    ClosedLoop,
    IterationTime,
    TokenScenario,
    TokenServer,
    TokenTrace,
    iteration_profile,
)
from low_latency_endpoint.simulate.compilation import loops, token_loop
from low_latency_endpoint.simulate.token_blocks import LONGEST_GAP
from low_latency_endpoint.simulate.token_world import Served, served


@dataclass(frozen=True)
class Prediction:
    """One published number that nothing was fitted to.

    Attributes
    ----------
    source, what, unit : str
    published, predicted : float
    """

    source: str
    what: str
    unit: str
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """As a share of the published number."""
        return self.predicted / self.published - 1


# --- Sarathi-Serve ----------------------------------------------------------------------------------

#: Figure 2: milliseconds of whole prompts by their tokens, and of decoding by the batch.
SARATHI_PROMPTS = {
    128: 48.094,
    512: 105.582,
    1024: 214.301,
    2048: 366.025,
    4096: 757.603,
    8192: 1863.265,
    16384: 4407.501,
}
SARATHI_DECODE_ONE = 46.803
#: Figure 9a: milliseconds of a prompt by its tokens and the tokens of a chunk.
SARATHI_CHUNKS = {
    (2047, 512): 435.679,
    (2047, 1024): 444.168,
    (2047, 2048): 377.710,
    (4095, 512): 921.958,
    (4095, 1024): 932.263,
    (4095, 2048): 793.904,
    (8191, 512): 1958.531,
    (8191, 1024): 1946.237,
    (8191, 2048): 1643.372,
    (16383, 512): 4512.830,
    (16383, 1024): 4357.554,
    (16383, 2048): 3651.590,
}
#: Table 2: one iteration with 1,021 tokens of a prompt and three that decode.
SARATHI_HYBRID = 217.650


def sarathi_law() -> IterationTime:
    """Fitted to figure 2 alone: its whole prompts, of which none is read in chunks.

    The part for each pair of tokens and a straight line are least squares of relative errors over
    2,048 to 16,384 tokens; shorter ones are points, less that part.
    """
    a = b = c = x = y = 0.0
    for tokens in (2048, 4096, 8192, 16384):
        took = SARATHI_PROMPTS[tokens] / 1e3
        linear, pairs = tokens / took, tokens * (tokens + 1) / 2 / took
        a, b, c = a + linear * linear, b + linear * pairs, c + pairs * pairs
        x, y = x + linear, y + pairs
    determinant = a * c - b * b
    per_token, per_pair = (x * c - y * b) / determinant, (a * y - b * x) / determinant
    points = [(1, SARATHI_DECODE_ONE / 1e3), (128, SARATHI_PROMPTS[128] / 1e3)]
    points += [
        (tokens, SARATHI_PROMPTS[tokens] / 1e3 - per_pair * tokens * (tokens + 1) / 2)
        for tokens in (512, 1024, 2048)
    ]
    points.append((16384, points[-1][1] + per_token * (16384 - 2048)))
    return IterationTime(points=tuple(points), seconds_per_attended_pair=per_pair)


def sarathi() -> list[Prediction]:
    """Chunks, and an iteration of prompt and answers."""
    law, found = sarathi_law(), []
    for (tokens, chunk), published in SARATHI_CHUNKS.items():
        server = TokenServer(
            iteration=law, max_batched_tokens=chunk, max_sequences=1, prefix_cache=False
        )
        run = _served(TokenScenario(server=server, traffic=TokenTrace((0.0,), (tokens,), (1,))), 1)
        found.append(
            Prediction(
                "Sarathi-Serve",
                f"prompt of {tokens:,} in chunks of {chunk:,}",
                "ms",
                published,
                1e3 * run.first[0],
            )
        )
    # Three requests of 1,024 tokens decode, as in that experiment; one of 1,021 is read beside.
    server = TokenServer(iteration=law, max_batched_tokens=1024, max_sequences=4)
    trace = TokenTrace((0.0, 0.0, 0.0, 0.64), (1024, 1024, 1024, 1021), (8, 8, 8, 1))
    run = _served(TokenScenario(server=server, traffic=trace), 4)
    took = run.sums[LONGEST_GAP]  # of the three, while the fourth is read
    found.append(
        Prediction(
            "Sarathi-Serve",
            "1,021 of a prompt beside 3 that decode",
            "ms",
            SARATHI_HYBRID,
            1e3 * took,
        )
    )
    return found


# --- vLLM on an RTX A6000 ---------------------------------------------------------------------------

#: By streams at once: TTFT p50 and p95, TPOT p50, whole call p95 (s), tokens/s, share within 1 s.
A6000 = {
    64: (0.087, 0.163, 0.0275, 1.678, 2127.6, 1.0),
    128: (0.126, 0.325, 0.0360, 2.291, 3138.1, 1.0),
    256: (0.299, 0.517, 0.0531, 3.535, 4039.9, 1.0),
    512: (1.043, 3.564, 0.0564, 5.828, 3896.1, 0.5),
}
A6000_ALONE = 0.0219  # TPOT of one stream, s
_NAMES = (
    ("TTFT p50", "s"),
    ("TTFT p95", "s"),
    ("TPOT p50", "s"),
    ("whole call p95", "s"),
    ("tokens per second", "/s"),
    ("first token within 1 s", "share"),
)


def a6000_run(streams: int, law: IterationTime) -> tuple[float, ...]:
    """The numbers of a row, means of three runs.

    A prompt is one sentence of about 40 tokens with its template, the same for all. Answers have 51
    tokens in the middle; that 95 in 100 have at most 57 follows from the whole calls of 64 streams.
    """
    scenario = TokenScenario(
        server=TokenServer(iteration=law),  # vLLM's defaults: 256 requests, 2,048 tokens
        traffic=ClosedLoop(streams),
        tokens=TokenTraffic(input=40, output=TokenLengths(p50=51, p95=57), shared_prefix=0.8),
    )
    rows = []
    for replication in range(3):
        run = _served(scenario, 512, replication)
        first = sorted(a - b for a, b in zip(run.first, run.arrival, strict=True))
        whole = sorted(a - b for a, b in zip(run.end, run.arrival, strict=True))
        each = sorted(
            (end - begin) / (tokens - 1)
            for end, begin, tokens in zip(run.end, run.first, run.output, strict=True)
        )
        rows.append(
            (
                first[255],
                first[486],
                each[255],
                whole[486],
                sum(run.output) / max(run.end),
                sum(value <= 1.0 for value in first) / 512,
            )
        )
    return tuple(map(statistics.fmean, zip(*rows, strict=True)))


@lru_cache(maxsize=1)
def a6000_law() -> IterationTime:
    """Fitted to the time per output token at 1, 64 and 256 streams, and to nothing else.

    What an iteration reads is not fitted: 57,344 bytes of a token at 768 GB/s.
    """

    def law(at_64: float, at_256: float) -> IterationTime:
        return IterationTime(
            points=((1, A6000_ALONE), (64, at_64), (256, at_256)), seconds_per_cached_token=75e-9
        )

    at_64, at_256 = A6000[64][2], A6000[256][2]
    for _ in range(10):
        at_64 *= A6000[64][2] / a6000_run(64, law(at_64, at_256))[2]
        at_256 *= A6000[256][2] / a6000_run(256, law(at_64, at_256))[2]
    return law(at_64, at_256)


def a6000() -> list[Prediction]:
    """All rows but what was fitted."""
    found = []
    for streams, row in A6000.items():
        for at, (value, (name, unit)) in enumerate(
            zip(a6000_run(streams, a6000_law()), _NAMES, strict=True)
        ):
            fitted = (name == "TPOT p50" and streams in (64, 256)) or (
                name == "whole call p95" and streams == 64
            )
            if not fitted and (streams == 512 or unit != "share"):  # all of them, below
                found.append(
                    Prediction("vLLM, A6000", f"{streams} streams: {name}", unit, row[at], value)
                )
    return found


# --- vLLM's benchmark on an H100 ---------------------------------------------------------------------

VLLM_CI = 997.5  # ms


def vllm_ci_law() -> IterationTime:
    """Nothing fitted: Vidur's H100 profile of Llama 2 7B, scaled by the weights that are read.

    Llama 2 7B has 6.48e9 weights in its layers, Llama 3.1 8B 6.98e9 and 0.53e9 in its output head.
    A token of its cache has 131,072 bytes, the memory 3,350 GB/s.
    """
    profile = iteration_profile("h100/llama-2-7b/tp1")
    return IterationTime(
        points=tuple((tokens, seconds * 7.51 / 6.48) for tokens, seconds in profile.points),
        seconds_per_cached_token=131_072 / 3350e9,
    )


def vllm_ci() -> list[Prediction]:
    """Eight requests at once, to the last token."""
    server = TokenServer(iteration=vllm_ci_law())
    run = _served(
        TokenScenario(server=server, traffic=TokenTrace((0.0,) * 8, (32,) * 8, (128,) * 8)), 8
    )
    return [Prediction("vLLM CI, H100", "8 of 32 in, 128 out", "ms", VLLM_CI, 1e3 * max(run.end))]


def _served(scenario: TokenScenario, requests: int, replication: int = 0) -> Served:
    return served(
        scenario,
        loops(),
        token_loop(),
        requests=requests,
        window=None,
        seed=1,
        replication=replication,
    )


def rows() -> list[str]:
    """All of them, as the page shows them."""
    return [
        f"| {each.source} | {each.what} | {_shown(each.published, each.unit)} "
        f"| {_shown(each.predicted, each.unit)} | {100 * each.error:+.0f} % |"
        for each in (*sarathi(), *a6000(), *vllm_ci())
    ]


def _shown(value: float, unit: str) -> str:
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "s":
        value, unit = 1e3 * value, "ms"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def main() -> None:
    """Print them."""
    print("\n".join(rows()))


if __name__ == "__main__":
    main()
