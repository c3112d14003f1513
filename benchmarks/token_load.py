"""The load generator on streams of tokens: how far its gaps are from those of a server that tells its own.

``make bench ARGS=token_load`` measures the error at 100 streams. Server and generator share a clock
(``time.perf_counter()`` of all processes of a Linux machine): each chunk carries the time at which it
was sent.

    python -m benchmarks.token_load --aiperf /path/to/aiperf

sends the same load with NVIDIA's AIPerf and with ours to one language model of the local AWS, in
turns, over the OpenAI-compatible path: the same moments, and prompts and answers of the same
lengths; other words, which the server's prefix cache does not know from the turn before. AIPerf is not among the development dependencies, as it brings
some hundred packages: ``python -m venv v && v/bin/pip install aiperf``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from .measure import ROOT, BenchmarkFailed, heading, line, model_role, percentile, run, sized
from .tls_server import write_certificates

STREAMS, GAP_SECONDS = sized(100, 10), 0.02
CHUNKS = sized(200, 20)
_ENDPOINT = "chat"
_SERVER = ROOT / "tests" / "load_test" / "precise_server.py"
_LENGTHS, _RATE = "input=300,output=40", 4.0
_REQUESTS = sized(240, 8)
_FIGURES = (
    *("first token p50", "first token p99", "per output token p50", "per output token p99"),
    "processor for a request",
)


def token_load(rounds: int) -> None:
    """The error of the gaps between tokens, for streams that are in step and for others."""
    heading(f"Gaps between tokens, {STREAMS} streams, one every {1000 * GAP_SECONDS:g} ms")
    for name, spread, more in (
        ("all at the same moment", 0.0, ()),
        ("spread over a second", 1.0, ()),
        ("the same over TLS", 1.0, ("--tls",)),
    ):
        found = [
            run("-m", "benchmarks.token_load", "--measure", f"{spread}", *more).answer()
            for _ in range(rounds)
        ]
        p50, p99, server, cpu = (
            statistics.median(each[key] for each in found)
            for key in ("p50", "p99", "server_p99", "cpu_share")
        )
        line(f"{name}: error p50, p99", f"{1000 * p50:.3f}, {1000 * p99:.2f} ms", "1 ms or less")
        line("  of the server itself, p99", f"{1000 * server:.2f} ms")
        line("  processor of the generator", f"{cpu:.0%} of a core")


def measured(spread: float, certificates: Path | None = None) -> dict[str, float]:
    """One run in this process: the errors of all gaps; over TLS with a folder of certificates."""
    import boto3
    import gevent

    from low_latency_endpoint.load_test.engine.invoking import SageMakerInvoker
    from low_latency_endpoint.load_test.engine.sending import keep_for_good
    from low_latency_endpoint.load_test.engine.target import Target, TokenLimits

    with subprocess.Popen(
        [sys.executable, str(_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            options: dict[str, Any] = {"first": 0.3, "gaps": [GAP_SECONDS], "chunks": CHUNKS}
            if certificates is not None:
                options["certificate"] = str(certificates / "server.pem")
                # The server shakes hands one by one; all are done before the first token.
                options["first"] = sized(2.5, 0.3)
            process.stdin.write(json.dumps(options) + "\n")
            process.stdin.flush()
            url = f"http{'s' * bool(certificates)}://127.0.0.1:{int(process.stdout.readline())}"
            target = Target("chat", "us-east-1", (url,), streaming=True, tokens=TokenLimits())
            session = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
            invoker = SageMakerInvoker(
                target, session=session, ca_bundle=certificates and certificates / "ca.pem"
            )
            keep_for_good()
            begun, used = time.perf_counter(), time.process_time()
            greenlets = [
                gevent.spawn_later(spread * number / STREAMS, invoker.invoke, b"{}")
                for number in range(STREAMS)
            ]
            gevent.joinall(greenlets, raise_error=True)
            share = (time.process_time() - used) / (time.perf_counter() - begun)
        finally:
            process.kill()
    errors: list[float] = []
    of_server: list[float] = []
    for answer in (each.value for each in greenlets):
        if answer.error is not None:
            raise BenchmarkFailed(f"{answer.error}: {answer.message}")
        sent = [
            json.loads(text[6:])["sent"] for text in answer.body.split(b"\n") if b'"sent"' in text
        ]
        told = [later - earlier for earlier, later in pairwise(sent)]
        errors += [abs(a - b) for a, b in zip(answer.tokens.gaps, told, strict=True)]
        of_server += [abs(each - GAP_SECONDS) for each in told]
    return {
        "p50": percentile(errors, 0.5),
        "p99": percentile(errors, 0.99),
        "server_p99": percentile(of_server, 0.99),
        "cpu_share": share,
    }


def beside_aiperf(program: str, turns: int) -> None:
    """The same load from both generators, in turns, to one server; prints their figures."""
    from local_sagemaker import LocalAws
    from local_sagemaker.model_servers import LanguageModelServer
    from low_latency_endpoint.load_test.engine.arrivals import PoissonArrivals

    server = LanguageModelServer(
        gap_seconds=0.0239, seconds_per_prompt_token=0.00013, kv_tokens=13_840
    )
    rows: dict[str, list[list[float]]] = {"AIPerf": [], "load-test": []}
    with LocalAws.start(region="us-east-1", model_servers={"*": server}) as aws:
        _serve(aws)
        for turn in range(turns):
            moments = list(PoissonArrivals(_RATE).offsets(_REQUESTS / _RATE, seed=turn + 1))
            for number, (name, generator) in enumerate((("AIPerf", _aiperf), ("load-test", _ours))):
                used = _processor_seconds()
                with tempfile.TemporaryDirectory() as folder:
                    found = generator(
                        program, Path(folder), aws.environment(), moments, 2 * turn + number + 1
                    )
                cpu = 1000 * (_processor_seconds() - used) / len(moments)
                rows[name].append([*found, cpu])
    print(f"{'medians of the turns, in ms':<34}" + "".join(f"{name:>14}" for name in rows))
    for number, what in enumerate(_FIGURES):
        values = [statistics.median(each[number] for each in found) for found in rows.values()]
        print(f"{what:<34}" + "".join(f"{value:>14.2f}" for value in values))


def _processor_seconds() -> float:
    now = os.times()
    return now.children_user + now.children_system


def _serve(aws: Any) -> None:
    """An endpoint of one instance in the local AWS."""
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model(
        ModelName="chat",
        ExecutionRoleArn=model_role(aws),
        PrimaryContainer={"Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/chat:1"},
    )
    variant = {"VariantName": "primary", "ModelName": "chat", "InstanceType": "ml.g5.xlarge"}
    sagemaker.create_endpoint_config(
        EndpointConfigName="chat", ProductionVariants=[{**variant, "InitialInstanceCount": 1}]
    )
    sagemaker.create_endpoint(EndpointName=_ENDPOINT, EndpointConfigName="chat")
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=_ENDPOINT, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )


def _ours(
    program: str, folder: Path, environment: dict[str, str], moments: list[float], seed: int
) -> list[float]:
    result, replay = folder / "result.json", folder / "moments.json"
    replay.write_text(json.dumps({"times": moments}))
    _command(
        [
            str(Path(sys.executable).parent / "low-latency"),
            *("load-test", _ENDPOINT, "--openai", "--alone", "0s", "--metrics-wait", "0s"),
            *("--tokens", _LENGTHS, "--replay", str(replay)),
            *("--seed", str(seed), "-o", str(result)),
        ],
        environment,
        folder,
    )
    (step,) = json.loads(result.read_text())["steps"]
    return [
        step["tokens"][f"{name}_ms"]["percentiles"][share]["ms"]
        for name in ("first_token", "per_token")
        for share in ("p50", "p99")
    ]


def _aiperf(
    program: str, folder: Path, environment: dict[str, str], moments: list[float], seed: int
) -> list[float]:
    import boto3

    from low_latency_endpoint.client.bearer_tokens import bearer_token
    from low_latency_endpoint.load_test.engine.prompts import Prompts

    prompts, trace = Prompts.of(_LENGTHS, seed=seed), folder / "trace.jsonl"
    with trace.open("w") as lines:
        for number, moment in enumerate(moments):
            payload = {"model": "chat", **json.loads(prompts.body(number))}
            lines.write(json.dumps({"timestamp": 1000 * moment, "payload": payload}) + "\n")
    # Words are tokens, as in the local AWS; without it AIPerf asks the network for a tokenizer.
    python = str(Path(program).parent / "python")
    _command([python, "-c", _TOKENIZER, str(folder / "tokenizer")], environment, folder)
    session = boto3.Session(
        environment["AWS_ACCESS_KEY_ID"],
        environment["AWS_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    )
    _command(
        [
            program,
            "profile",
            *("--model", "chat", "--url", environment["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"]),
            *("--custom-endpoint", f"/endpoints/{_ENDPOINT}/openai/v1/chat/completions"),
            *("--endpoint-type", "chat", "--streaming", "--use-server-token-count"),
            *("--api-key", str.__str__(bearer_token(session, "us-east-1"))),
            *("--tokenizer", str(folder / "tokenizer")),
            *("--input-file", str(trace), "--custom-dataset-type", "mooncake_trace"),
            *("--fixed-schedule", "--ui", "none", "--workers-max", "1"),
        ],
        environment,
        folder,
    )
    (export,) = folder.glob("artifacts/*/profile_export_aiperf.json")
    found = json.loads(export.read_text())
    return [
        found[name][share]
        for name in ("time_to_first_token", "inter_token_latency")
        for share in ("p50", "p99")
    ]


def _command(arguments: list[str], environment: dict[str, str], folder: Path) -> None:
    done = subprocess.run(
        arguments, env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):  # 1: not held, or too busy a machine
        raise BenchmarkFailed(f"{arguments[0]}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


_TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
made = Tokenizer(models.WordLevel(
    {**{f"w{n}": n for n in range(2000)}, "<unk>": 2000, "</s>": 2001}, unk_token="<unk>"))
made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(
    tokenizer_object=made, unk_token="<unk>", bos_token="</s>", eos_token="</s>"
).save_pretrained(sys.argv[1])
"""


def main() -> None:
    """Measure once, or compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.token_load", description=__doc__)
    parser.add_argument("--measure", type=float, metavar="SPREAD", help="one run, as JSON")
    parser.add_argument("--tls", action="store_true", help="measure over TLS")
    parser.add_argument("--aiperf", metavar="PROGRAM", help="compare with it")
    parser.add_argument("--turns", type=int, default=sized(3, 1), help="of each generator")
    arguments = parser.parse_args()
    if arguments.aiperf:
        beside_aiperf(arguments.aiperf, arguments.turns)
    else:
        with tempfile.TemporaryDirectory() as folder:
            if arguments.tls:
                write_certificates(Path(folder))
            certificates = Path(folder) if arguments.tls else None
            print(json.dumps(measured(arguments.measure or 0.0, certificates)))


if __name__ == "__main__":
    main()
