"""What the load generator's own records cost, how exact they are, and how late requests start."""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hdrh.histogram import HdrHistogram

from low_latency_endpoint.load_test.engine.arrivals import PoissonArrivals
from low_latency_endpoint.load_test.engine.generator_process import GeneratorProcess
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.steps import Step, StepResult
from low_latency_endpoint.load_test.engine.target import Target

from .clients import pin
from .load_generator import BODY, SERVER, SERVICE_MS, TOKEN
from .measure import BenchmarkFailed, sized

SAMPLES = sized(100_000, 1_000)
RATES = sized((100, 1000, 4000), (100,))
SECONDS = sized(3.0, 0.5)


def latencies(count: int = SAMPLES) -> list[float]:
    """Lognormal, around 20 ms."""
    draw = random.Random(1)
    return [draw.lognormvariate(-4, 1) for _ in range(count)]


def cost(act: Callable[[], object], times: int) -> float:
    """Processor seconds of each of so many acts."""
    began = time.process_time()
    act()
    return (time.process_time() - began) / times


def record_costs(rounds: int) -> tuple[float, float]:
    """Seconds to record one latency: ours, and the Python package's."""
    samples = latencies()
    ours, theirs = [], []
    for _ in range(rounds):
        record = LatencyHistogram().record

        def fill(record: Callable[[float], None] = record) -> None:
            for sample in samples:
                record(sample)

        ours.append(cost(fill, len(samples)))
        record_value = HdrHistogram(1, 3600 * 10**9, 3).record_value

        def fill_theirs(record_value: Callable[[int], None] = record_value) -> None:
            for sample in samples:
                record_value(int(sample * 1e9))

        theirs.append(cost(fill_theirs, len(samples)))
    return statistics.median(ours), statistics.median(theirs)


def largest_error() -> float:
    """The largest share by which a bucket's middle can be off, from a microsecond to an hour."""
    draw = random.Random(2)
    spread = LatencyHistogram.of(
        math.exp(draw.uniform(math.log(1e-6), math.log(3600))) for _ in range(SAMPLES)
    )
    return max((high - low) / 2 / low for low, high, _ in spread.buckets())


def paced(rate: float, folder: Path) -> StepResult:
    """A generator of one process on one processor, the server on the other."""
    url = json.loads((folder / "server.json").read_text(encoding="utf-8"))["http"]
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": TOKEN,
    }
    with GeneratorProcess(
        Target(f"d{SERVICE_MS}", "us-east-1", (url,)),
        Payloads.of_bytes(BODY),
        environment=environment,
    ) as generator:
        pin(0, generator.pid)
        result = generator.run(
            Step("paced", SECONDS + 0.5, PoissonArrivals(rate), settle_seconds=0.5)
        )
    if result.errors:
        raise BenchmarkFailed(f"the paced generator met errors: {dict(result.errors)}")
    return result


def load_records(rounds: int, heading: Callable[[str], None], line: Callable[..., None]) -> None:
    """Cost and error of a record; send lag at some rates."""
    heading("Load generator: records of latencies (HDR histogram, three digits)")
    ours, theirs = record_costs(rounds)
    line("one record", f"{ours * 1e6:.2f} us", "1 us or less")
    line("  with the package hdrhistogram", f"{theirs * 1e6:.2f} us")
    line("largest error of a percentile", f"{largest_error():.2%}", "0.5 % or less")
    filled = LatencyHistogram.of(latencies())
    merged = LatencyHistogram()
    line("merging a worker's", f"{cost(lambda: merged.add(filled), 1) * 1e3:.2f} ms")
    heading(f"Load generator: open loop of one process, a server that takes {SERVICE_MS} ms")
    from .clients import running_server

    with tempfile.TemporaryDirectory() as name, running_server(Path(name), *SERVER):
        for rate in RATES:
            result = paced(rate, Path(name))
            p50, p99 = result.send_lag.quantiles((0.5, 0.99))
            line(
                f"{rate:,} requests per second: start late by, p50 and p99",
                f"{p50 * 1e6:.0f}, {p99 * 1e6:.0f} us",
            )
            line(
                "  share of a core, processor time per request",
                f"{result.generator.cpu_share:.0%}, "
                f"{result.generator.cpu_seconds_per_request * 1e6:.0f} us",
            )
