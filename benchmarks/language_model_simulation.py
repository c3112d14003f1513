"""The simulation of language models beside llama.cpp, a real server with continuous batching.

    chrt -f 10 python -m benchmarks.language_model_simulation [--requests 60] [--json result.json]

llama.cpp (the package ``xllamacpp``) runs in this process on one thread, with a small Llama of random
weights made here. The time of an iteration is fitted to requests without a queue: some numbers of
answers at once, to short and to long prompts, and lone prompts of two lengths. Predicted and measured are then other batch
sizes, other prompts, and two open loads, whose requests are simulated at the times at which they
were really sent. As other work on the machine slows all of it (``chrt`` keeps it from the processor,
not from caches and a shared core), the law for a load is the mean of those fitted before and after
it. Takes about two minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from low_latency_endpoint.simulate import (
    IterationTime,
    TokenScenario,
    TokenServer,
    TokenTrace,
    simulate_tokens,
)

HIDDEN, LAYERS, HEADS, KEY_HEADS, FEED_FORWARD, CONTEXT = 384, 6, 6, 2, 1024, 512
SLOTS, BATCH = 16, 256  # requests at once, tokens of an iteration
FITTED_BATCHES, OTHER_BATCHES = (1, 2, 4, 8, 16), (3, 6, 12)
FITTED_PROMPTS, OTHER_PROMPTS = (48, 160), (32, 96, 256)
LOADS = (0.4, 0.7)  # of what one thread computes
RUNS = 3
SHORT, LONG, ANSWER = 16, 208, 48  # tokens of prompts and of the answers whose gaps are fitted


@dataclass(frozen=True)
class Compared:
    """One number, in milliseconds."""

    what: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """As a share of what was measured."""
        return self.predicted / self.measured - 1


def write_model(path: Path) -> None:
    """A Llama of about eight million random weights whose every answer is plain ASCII.

    A token is a byte. Only the rows of printable ones in the output matrix are not zero: others
    are never chosen, and each token makes a chunk of its own.
    """
    import gguf
    import numpy

    source = numpy.random.default_rng(0)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = gguf.TokenType
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("small-llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.BYTE] * 256])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(False)

    def add(name: str, *shape: int) -> None:
        values = numpy.ones(shape) if "norm" in name else source.uniform(-0.05, 0.05, shape)
        if name == "output.weight":
            values[: 3 + ord("a")] = 0
            values[3 + ord("z") + 1 :] = 0
        writer.add_tensor(name, values.astype(numpy.float32))

    keys = HIDDEN // HEADS * KEY_HEADS
    add("token_embd.weight", len(tokens), HIDDEN)
    add("output_norm.weight", HIDDEN)
    add("output.weight", len(tokens), HIDDEN)
    for layer in range(LAYERS):
        for name, *shape in (
            ("attn_norm", HIDDEN),
            ("ffn_norm", HIDDEN),
            ("attn_q", HIDDEN, HIDDEN),
            ("attn_k", keys, HIDDEN),
            ("attn_v", keys, HIDDEN),
            ("attn_output", HIDDEN, HIDDEN),
            ("ffn_gate", FEED_FORWARD, HIDDEN),
            ("ffn_up", FEED_FORWARD, HIDDEN),
            ("ffn_down", HIDDEN, FEED_FORWARD),
        ):
            add(f"blk.{layer}.{name}.weight", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCpp:
    """The server, and requests with exact lengths."""

    def __init__(self, folder: Path) -> None:
        xllamacpp = import_module("xllamacpp")
        path = folder / "small-llama.gguf"
        write_model(path)
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.n_parallel, parameters.n_ctx = SLOTS, SLOTS * CONTEXT
        parameters.n_batch = parameters.n_ubatch = BATCH
        # One cache for all slots: with one for each, a batch of answers and a prompt is computed in
        # two passes, of equally many tokens for every slot. Flash attention skips others' tokens there.
        parameters.kv_unified = True
        parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        parameters.cache_ram_mib, parameters.verbosity = 0, 0
        self.server = xllamacpp.Server(parameters)
        self.source = random.Random(1)

    def ask(self, prompt: int, output: int) -> list[float]:
        """When a request was sent and each token came, in seconds."""
        text = "".join(self.source.choices("abcdefghijklmnopqrstuvwxyz", k=prompt - 1))
        times = [time.perf_counter()]

        def took(chunk: Any) -> None:
            if chunk["choices"] and chunk["choices"][0]["text"]:
                times.append(time.perf_counter())

        self.server.handle_completions(
            {
                "prompt": text,
                "max_tokens": output,
                "temperature": 0,
                "ignore_eos": True,
                "stream": True,
                "cache_prompt": False,
            },
            took,
        )
        assert len(times) == output + 1, (len(times), output)
        return times

    def together(self, requests: list[tuple[float, int, int]]) -> list[list[float]]:
        """Send requests of (seconds from now, prompt, output), each on a thread."""
        found: list[list[float]] = [[] for _ in requests]
        start = time.perf_counter() + 0.05

        def send(at: int) -> None:
            second, prompt, output = requests[at]
            time.sleep(max(0.0, start + second - time.perf_counter()))
            found[at] = self.ask(prompt, output)

        threads = [threading.Thread(target=send, args=(at,)) for at in range(len(requests))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def decode(self, batch: int, prompt: int = SHORT) -> float:
        """Median time between tokens while so many requests decode and nobody's prompt is read."""
        gaps: list[float] = []
        for _ in range(RUNS):
            runs = self.together([(0.0, prompt, ANSWER)] * batch)
            begin, end = max(times[1] for times in runs), min(times[-1] for times in runs)
            gaps += [
                later - earlier
                for times in runs
                for earlier, later in pairwise(times[1:])
                if begin <= earlier and later <= end
            ]
        return statistics.median(gaps)

    def prefill(self, prompt: int) -> float:
        """Median time to first token of a request that is alone."""
        runs = [self.ask(prompt, 2) for _ in range(2 * RUNS)]
        return statistics.median(times[1] - times[0] for times in runs)


def fitted(server: LlamaCpp) -> IterationTime:
    """The law from requests without a queue.

    Answers to long and to short prompts, four at a time, tell what a cached token costs; points are
    less that of the tokens that were cached meanwhile.
    """
    cached = (server.decode(4, LONG) - server.decode(4)) / (4 * (LONG - SHORT))
    points = [
        (batch, server.decode(batch) - cached * batch * (SHORT + ANSWER / 2))
        for batch in FITTED_BATCHES
    ]
    points += [(prompt, server.prefill(prompt)) for prompt in FITTED_PROMPTS]
    return IterationTime(points=tuple(points), seconds_per_cached_token=max(0.0, cached))


def law_of(*fits: IterationTime) -> IterationTime:
    """The mean of some fits."""
    return IterationTime(
        points=tuple(
            (each[0][0], statistics.fmean(seconds for _, seconds in each))
            for each in zip(*(fit.points for fit in fits), strict=True)
        ),
        seconds_per_cached_token=statistics.fmean(fit.seconds_per_cached_token for fit in fits),
    )


def open_load(server: LlamaCpp, load: float, requests: int) -> list[Compared]:
    """A Poisson stream measured, and the same requests simulated."""
    before = fitted(server)
    law = before
    source = random.Random(int(100 * load))
    lengths = [(source.randint(32, 192), source.randint(16, 64)) for _ in range(requests)]
    # Work in batches of four: prompts by their tokens, answers by their share of an iteration.
    work = statistics.fmean(
        prompt * law.seconds(160) / 160 + output * law.seconds(4) / 4 for prompt, output in lengths
    )
    rate = load / work
    now, asked = 0.0, []
    for prompt, output in lengths:
        now += source.expovariate(rate)
        asked.append((now, prompt, output))
    runs = server.together(asked)
    law = law_of(before, fitted(server))
    order = sorted(range(requests), key=lambda at: runs[at][0])
    first = runs[order[0]][0]
    trace = TokenTrace(
        tuple(runs[at][0] - first for at in order),
        tuple(lengths[at][0] for at in order),
        tuple(lengths[at][1] for at in order),
    )
    simulated = simulate_tokens(
        TokenScenario(
            server=TokenServer(
                iteration=law, max_batched_tokens=BATCH, max_sequences=SLOTS, prefix_cache=False
            ),
            traffic=trace,
        ),
        replications=2,
    ).replications[0]
    firsts = sorted(times[1] - times[0] for times in runs)
    gaps = sorted(later - earlier for times in runs for earlier, later in pairwise(times[1:]))
    name = f"load {load:g}"
    return [
        Compared(f"{name}: TTFT mean", 1e3 * statistics.fmean(firsts), 1e3 * simulated.mean_ttft),
        Compared(f"{name}: TTFT p50", 1e3 * _at(firsts, 50), 1e3 * simulated.ttft[50.0]),
        Compared(f"{name}: TTFT p95", 1e3 * _at(firsts, 95), 1e3 * simulated.ttft[95.0]),
        Compared(f"{name}: ITL mean", 1e3 * statistics.fmean(gaps), 1e3 * simulated.mean_itl),
        Compared(f"{name}: ITL p50", 1e3 * _at(gaps, 50), 1e3 * simulated.itl[50.0]),
        Compared(f"{name}: ITL p95", 1e3 * _at(gaps, 95), 1e3 * simulated.itl[95.0]),
    ]


def _at(values: list[float], percentile: float) -> float:
    return values[min(len(values) - 1, round(percentile / 100 * len(values)))]


def compare(requests: int = 60) -> tuple[IterationTime, list[Compared]]:
    """Fit, predict and measure."""
    with tempfile.TemporaryDirectory(prefix="low-latency-llama-") as folder:
        server = LlamaCpp(Path(folder))
        server.decode(SLOTS)  # warm
        law = fitted(server)
        found = [
            Compared(
                f"decode, batch {batch}",
                1e3 * server.decode(batch),
                1e3 * law.seconds(batch, round(batch * (SHORT + ANSWER / 2))),
            )
            for batch in OTHER_BATCHES
        ]
        found += [
            Compared(
                f"lone prompt of {prompt}", 1e3 * server.prefill(prompt), 1e3 * law.seconds(prompt)
            )
            for prompt in OTHER_PROMPTS
        ]
        for load in LOADS:
            found += open_load(server, load, requests)
        return law, found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=60, help="of each open load")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    options = parser.parse_args()
    law, found = compare(options.requests)
    print(
        "fitted:",
        ", ".join(f"{tokens} = {1e3 * s:.2f} ms" for tokens, s in law.points),
        f"and {1e6 * law.seconds_per_cached_token:.1f} us for each cached token",
    )
    for each in found:
        print(f"{each.what:24} {each.measured:9.2f} {each.predicted:9.2f} {each.error:+7.1%}")
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
