"""A model of the Hugging Face Hub, from an empty folder to a fleet that scales without the Hub.

Run it with ``make demo-hub``. It needs no AWS account and no internet: the Hub is one on loopback,
with a tiny model of random weights, and llama.cpp itself serves it in the local AWS. What it answers
is nonsense, computed for real.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from examples.demo_surroundings import stand_ins_for_images
from examples.demo_terminal import CdkCli, StepFailed, console, low_latency, report, say, step
from local_sagemaker import LocalAws, LocalAwsError
from local_sagemaker.hub import FakeHub, tiny_models
from local_sagemaker.model_servers import llama_cpp_model_server
from low_latency_endpoint.errors import LowLatencyEndpointError
from low_latency_endpoint.settings import load_settings

MODEL = "local/tiny-llama-GGUF"
STEPS = 6
INSTANCES = 5
DEPLOY = ("deploy", "--require-approval", "never")
#: What the template states, and what the tiny model's context has room for.
TOKENS, FEWER_TOKENS = "tokens: {input: 512, output: 128}", "tokens: {input: 64, output: 16}"
CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}


def run(hub: FakeHub, aws: LocalAws, folder: Path) -> None:
    """The steps; each checks what it says.

    Raises
    ------
    StepFailed
    """
    numbers = itertools.count(1)
    settings, cdk = folder / "endpoint.yaml", CdkCli(aws, folder)

    def next_step(title: str) -> Any:
        return step(next(numbers), STEPS, title)

    with next_step("An empty folder: settings, and the model pinned"):
        where = ("--region", "us-east-1", "--zones", "use1-az1,use1-az2")
        template = ("--template", "hugging-face", "--model", MODEL)
        low_latency(aws, "init", str(folder), *template, *where, expected=0, shown=False)
        os.environ["HF_ENDPOINT"] = hub.endpoint
        low_latency(aws, "pin", MODEL, "--lock", str(folder / "models.lock.yaml"), expected=0)
        # Pin takes the Hub from HF_ENDPOINT; the deployment from the settings alone.
        text = settings.read_text(encoding="utf-8")
        mirror = f"model: {MODEL}\n      hub_endpoint: {hub.endpoint}"
        text = text.replace(f"model: {MODEL}", mirror, 1)
        text = text.replace(TOKENS, FEWER_TOKENS, 1)
        settings.write_text(text, encoding="utf-8")
    with next_step("Plan it"):
        low_latency(aws, "plan", str(settings), expected=0)
    with next_step("Deploy: copied from the Hub into S3, served in network isolation"):
        for uri in stand_ins_for_images(aws, load_settings(settings)):
            say(uri)
        cdk.run("bootstrap", f"aws://{aws.account}/us-east-1", cwd=folder)
        cdk.run(*DEPLOY, cwd=folder)
        sagemaker = aws.client("sagemaker")
        [made] = sagemaker.list_models()["Models"]
        _check(
            sagemaker.describe_model(ModelName=made["ModelName"])["EnableNetworkIsolation"],
            "the model is not isolated",
        )
    with next_step(f"Call it, scale out to {INSTANCES} instances, call it again"):
        _call(aws)
        asked = len(hub.requests)
        sagemaker.update_endpoint_weights_and_capacities(
            EndpointName="hub",
            DesiredWeightsAndCapacities=[
                {"VariantName": "primary", "DesiredInstanceCount": INSTANCES}
            ],
        )
        sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="hub")
        [variant] = sagemaker.describe_endpoint(EndpointName="hub")["ProductionVariants"]
        _check(variant["CurrentInstanceCount"] == INSTANCES, "the fleet did not scale out")
        _call(aws)
    with next_step("Deploy once more"):
        cdk.run(*DEPLOY, cwd=folder)
        more = len(hub.requests) - asked
        say(f"Requests to the Hub: {asked} by pin and the first deployment, {more} since.")
        _check(asked > 0 and more == 0, "the Hub was asked again")
    with next_step("Destroy"):
        cdk.run("destroy", "--force", cwd=folder)
        buckets = [each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]]
        left = [name for name in buckets if not name.startswith("cdk-")]
        _check(not left, f"buckets are left: {', '.join(left)}")


def _call(aws: LocalAws) -> None:
    said = aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="hub", ContentType="application/json", Body=json.dumps(CHAT)
    )
    answer = json.loads(said["Body"].read())
    say(f"{answer['choices'][0]['message']['content']!r}, {answer['usage']}")
    _check(answer["usage"]["completion_tokens"] == CHAT["max_tokens"], "tokens are missing")


def _check(holds: object, what: str) -> None:
    if not holds:
        raise StepFailed(what, [], "")


def main() -> int:
    """Run the demo; the exit status is 0 only when every step did what it should."""
    started = time.monotonic()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="low-latency-hub-demo-") as folder,
            FakeHub(tiny_models()) as hub,
            LocalAws.start(
                region="us-east-1", model_servers={"llama-cpp": llama_cpp_model_server()}
            ) as aws,
        ):
            aws.set_clock_speed(300)
            run(hub, aws, Path(folder))
    except StepFailed as failure:
        return report(failure.what, failure.output[-8:], failure.advice)
    except (LocalAwsError, LowLatencyEndpointError) as error:
        return report("the step above did not work", str(error).splitlines(), "")
    except KeyboardInterrupt:
        console.print("\nInterrupted. Nothing is left running.")
        return 130
    console.print(f"\n[bold]Done in {time.monotonic() - started:.0f} s.[/bold]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
