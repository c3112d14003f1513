"""Faults of containers with room on their instances, and errors."""

from __future__ import annotations

from ..scenarios import constant
from .endpoints import (
    batches,
    by_concurrency,
    few_requests,
    four_workers,
    gpu,
    one_core,
    since_deployment,
    slow_dependency,
)
from .fault import between, fault, from_minute, slow

ROWS = {
    "LLD111: workers too few for idle CPUs": fault(
        "requests in flight at once & workers per instance in the environment: 1",
        "containers[].environment & scaling: {metric: concurrency, concurrency_target: 1}",
        tps=lambda m: 100 + 20 * m,
        cpu=lambda m: 10 + m / 4,
        latency=lambda m, i: 40 if m < 30 else 40 * (1 + (m - 30) / 4),
        in_flight=lambda m: 4 if m < 30 else 4 + 3 * (m - 30),
        environment={"SAGEMAKER_MODEL_SERVER_WORKERS": "1"},
    ),
    "LLD112: a model that is slow on idle CPUs": fault(
        "p50 24 & CPU at 30 %",
        "instance_type: ml.inf2.xlarge & instance_type: ml.g5.xlarge",
        latency=slow(0, 60, 240),
        cpu=constant(30),
        in_flight=constant(20),
    ),
    "LLD113: requests of very different length": fault(
        "times p50", "metrics.enhanced: true", spread=1.0
    ),
    "LLD115: a GPU image that runs on the CPU": fault(
        "GPU at 0.0 %",
        "containers[].image",
        of=gpu,
        gpu=constant(0),
        cpu=constant(70),
        latency=slow(0, 60, 300),
        in_flight=constant(20),
    ),
    "LLD117: memory that is full": fault(
        "memory at 9", "instance_type", memory=from_minute(20, 50, 96), latency=slow(20, 60, 300)
    ),
    "LLD111: workers too few, scaled by concurrency": fault(
        "workers per instance in the environment: 2",
        "scaling.concurrency_target: 2",
        of=by_concurrency,
        most=8,
        used=30,
        environment={"SAGEMAKER_MODEL_SERVER_WORKERS": "2"},
    ),
    "LLD301: more models than fit into memory": fault(
        "40 % of the requests & 12 models loaded",
        "instance_type",
        latency=slow(0, 60, 70),
        spread=0.9,
        overhead=constant(60),
        multi_model={
            "ModelCacheHit": constant(0.6),
            "LoadedModelCount": constant(12),
            "ModelLoadingWaitTime": constant(900),
            "ModelDownloadingTime": constant(300),
            "ModelLoadingTime": constant(600),
            "ModelUnloadingTime": constant(40),
        },
    ),
    "LLD302: models that are far away": fault(
        "download 3,500 ms, load 500 ms",
        "containers[].data",
        multi_model={
            "ModelCacheHit": constant(0.8),
            "LoadedModelCount": constant(30),
            "ModelLoadingWaitTime": constant(4000),
            "ModelDownloadingTime": constant(3500),
            "ModelLoadingTime": constant(500),
        },
    ),
    "LLD402: a container that crashes": fault(
        "5XX errors & most at 03:",
        "containers[].environment",
        errors={
            "Invocation5XXErrors": between(30, 50, 0.05, 0),
            "InvocationModelErrors": between(30, 50, 0.05, 0),
        },
    ),
    "LLD403: callers that send what the model refuses": fault(
        "4XX errors, 5.0 %",
        "alarms.client_error_rate: 0.05",
        errors={"Invocation4XXErrors": from_minute(30, 0, 0.1)},
    ),
    "LLD407: callers beyond a limit of 700 requests a second": fault(
        "4XX errors & requests were refused only above 700 requests a second",
        "containers[].environment",
        over=60,
        tps=lambda m: 500 + 10 * m,
        errors={"Invocation4XXErrors": lambda m: max(0.0, 1 - 700 / (500 + 10 * m))},
    ),
    "LLD404: a container that drops connections": fault(
        "model errors that are neither 4XX nor 5XX",
        errors={"InvocationModelErrors": from_minute(30, 0, 0.04)},
    ),
    "LLD405: requests that reach the time limit": fault(
        "60.0 s",
        "containers[].environment",
        errors={"InvocationModelErrors": from_minute(30, 0, 0.03)},
        longest_ms=from_minute(30, 0, 60_000),
    ),
    "LLD404: connections that break beside streams of 90 s": fault(
        "model errors that are neither 4XX nor 5XX",
        errors={"InvocationModelErrors": constant(0.03)},
        longest_ms=constant(90_000),
    ),
    "LLD405: half of all requests reach the time limit": fault(
        "60.0 s & 50 % of the requests",
        tps=constant(3),
        latency=slow(0, 60, 30_000),
        errors={"InvocationModelErrors": constant(0.5)},
        longest_ms=constant(60_000),
    ),
    "LLD111: one worker on four CPUs, and what its full queue refuses": fault(
        "0.96 of 4 CPUs busy & 5XX errors",
        "containers[].environment",
        of=one_core,
        errors={"Invocation5XXErrors": constant(0.23)},
    ),
    "LLD111: four workers nearly busy, below a target that they never reach": fault(
        "3.84 of 8 CPUs busy & only 2,850 invocations & had no reason to add instances",
        "containers[].environment & throughput.tps_per_instance & instances: {min: 5",
        instance_type="ml.c7i.2xlarge",
        instances=constant(4),
        scaling={"min": 4, "max": 12, "target": 4000.0},
        planned=None,
        tps=constant(190),
        latency=slow(0, 60, 300),
        cpu=constant(48),
        in_flight=constant(40),
    ),
    "LLD123: the typical request waits, and not a tail alone": fault(
        "2.2 CPUs busy for 16 requests in progress", "containers[].environment", of=four_workers
    ),
    "LLD111: the same with the workers in the environment": fault(
        "workers per instance in the environment: 4 & only 2,280 invocations",
        "instances: {min: 7",
        of=four_workers,
        environment={"SAGEMAKER_MODEL_SERVER_WORKERS": "4"},
    ),
    "LLD111: one worker fast enough, and what its full queue refuses": fault(
        "0.96 of 4 CPUs busy & 5XX errors",
        of=one_core,
        thresholds={},
        errors={"Invocation5XXErrors": constant(0.23)},
    ),
    "LLD111: one worker under a load that rises": fault(
        "3.7 times the rate",
        of=one_core,
        tps=from_minute(30, 3, 11),
        latency=lambda m, i: 80 if m < 30 else 400,
        cpu=from_minute(30, 6, 24),
        in_flight=from_minute(30, 1, 6),
    ),
    "LLD123: what the model calls becomes slow": fault(
        "1 times the rate, 0.27 times the CPU", "containers[].environment", of=slow_dependency
    ),
    "LLD123: what the model calls becomes slow, CPU as before": fault(
        "1 times the CPU", of=slow_dependency, cpu=constant(45), in_flight=from_minute(20, 3, 30)
    ),
    "LLD123: what the model calls is slow all the time": fault(
        "5.8 CPUs busy for 31 requests in progress",
        "containers[].environment",
        of=slow_dependency,
        cpu=constant(12),
        latency=slow(0, 60, 400),
        in_flight=constant(240),
    ),
    "LLD125: callers that wait for each answer, of a model that waits for another": fault(
        "0.1 times the rate & 40 ms at 600 requests a second, 399 ms at 60",
        of=slow_dependency,
        tps=from_minute(20, 600, 60),
        in_flight=constant(24),
    ),
    # triton-inference-server/server#3953: too few model instances, all else flat.
    "LLD123: requests queue in the model server, GPU at 45 %": fault(
        "0.45 GPUs busy for 6 requests in progress",
        "containers[].environment",
        of=gpu,
        instances=constant(2),
        tps=constant(30),
        latency=slow(0, 60, 380),
        gpu=constant(45),
        cpu=constant(12),
        in_flight=constant(18),
        planned=None,
    ),
    "LLD112: a model that keeps its GPU busy and is slow": fault(
        "0.8 CPUs and 0.6 GPUs busy",
        "instance_type",
        of=gpu,
        instances=constant(2),
        tps=constant(3),
        latency=slow(0, 60, 380),
        gpu=constant(60),
        cpu=constant(20),
        in_flight=constant(2),
        planned=None,
    ),
    "LLD112: a slow model on a processor at work, beside a batch delay that plays no part": fault(
        "busy for 19 requests in progress",
        "instance_type: ml.inf2.xlarge & instance_type: ml.g5.xlarge",
        latency=slow(0, 60, 240),
        cpu=constant(30),
        in_flight=constant(160),
        environment={"SAGEMAKER_TS_MAX_BATCH_DELAY": "20"},
    ),
    "LLD112: always slow, and asked too rarely to show why": fault(
        "CPU at 2 %",
        "containers[].image",
        of=few_requests,
        latency=slow(0, 60, 300),
        cpu=constant(2),
    ),
    "LLD112: always slow and rarely asked, on processors that are busy with something else": fault(
        "CPU at 15 %",
        "containers[].image",
        of=few_requests,
        tps=lambda m: 1 / 60 if m % 10 == 0 else 0,
        latency=slow(0, 60, 438),
        cpu=constant(15),
    ),
    "LLD123: slow since one minute, the processors idle": fault(
        "from 03:20 on, 40 ms otherwise & nothing was deployed at 03:20, and no instances started",
        of=few_requests,
    ),
    "LLD123: slow for a quarter of an hour, the processors idle": fault(
        "from 03:20 to 03:34, 39 ms otherwise", of=few_requests, latency=slow(20, 35, 300)
    ),
    "LLD123: slow from the beginning until one minute": fault(
        "from 03:00 to 03:29, 39 ms otherwise", over=60, of=few_requests, latency=slow(0, 30, 300)
    ),
    "LLD127: slow since one minute, and processors that show nothing": fault(
        "from 03:20 on", of=few_requests, cpu=constant(2)
    ),
    "LLD127: requests that became heavier in one minute, far from full": fault(
        "3 times the CPU & CPU at 30 %",
        cpu=from_minute(20, 10, 30),
        latency=slow(20, 60, 240),
        in_flight=from_minute(20, 24, 144),
    ),
    "LLD127: slow since one minute, memory as full as before": fault(
        "3 times the CPU",
        memory=constant(93),
        cpu=from_minute(20, 10, 30),
        latency=slow(20, 60, 240),
        in_flight=from_minute(20, 24, 144),
    ),
    "LLD127: slow since one minute, the GPU as idle as before": fault(
        "from 03:20 on", of=few_requests, instance_type="ml.g5.xlarge", gpu=constant(1)
    ),
    "LLD125: slow with two requests a second, fast with forty": fault(
        "50 ms at 40 requests a second, 1,05 & 0.2 times the GPU",
        "containers[].environment",
        of=batches,
    ),
    "LLD125: the same, and the GPU next to idle": fault(
        "at 40 requests a second", of=batches, gpu=from_minute(20, 30, 1)
    ),
    "LLD125: the same on processors": fault(
        "at 40 requests a second",
        of=batches,
        instance_type="ml.m5.12xlarge",
        gpu=None,
        cpu=from_minute(20, 30, 3),
    ),
    "LLD126: slow with two requests a second, and why stands in the environment": fault(
        "SAGEMAKER_TS_MAX_BATCH_DELAY is 1000 & at 40 requests a second",
        "containers[].environment: {SAGEMAKER_TS_MAX_BATCH_DELAY: ...}",
        of=batches,
        environment={"SAGEMAKER_TS_MAX_BATCH_DELAY": "1000"},
    ),
    "LLD126: two requests a second wait for a batch, all the time": fault(
        "SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS is 1000000 & p50 1,0",
        of=batches,
        tps=constant(2),
        latency=slow(0, 60, 1058),
        gpu=constant(3),
        cpu=constant(4),
        environment={"SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS": "1000000"},
    ),
    # triton-inference-server/server#7312: 5 a second of 50 ms are 0.25 in the mean.
    "LLD128: requests that come fourteen at a time": fault(
        "14 requests in flight on an instance at once & make 0.",
        "containers[].environment",
        instance_type="ml.g5.xlarge",
        instances=constant(1),
        tps=constant(5),
        latency=slow(0, 60, 60),
        spread=0.7,
        gpu=constant(25),
        cpu=constant(10),
        in_flight=constant(14),
        scaling=None,
        planned=None,
    ),
    "LLD128: three callers at once, one worker, and long pauses": fault(
        "3 requests in flight on an instance at once & make 0.046",
        of=few_requests,
        instances=constant(1),
        tps=constant(0.02),
        latency=slow(0, 60, 2308),
        thresholds={("ModelLatency", "p50"): 1000.0},
        in_flight=constant(3),
    ),
    "LLD112: callers at once, and each request takes as long": fault(
        "CPU at 0 % of the whole instance",
        of=few_requests,
        instance_type="ml.m5.12xlarge",
        latency=slow(0, 60, 302),
        spread=0.003,
        in_flight=constant(6),
        cpu=constant(0.1),
    ),
    "LLD113: a tail beside as many at once as chance brings together": fault(
        "times p50", spread=1.0, tps=constant(40), in_flight=constant(16)
    ),
    "LLD124: a burstable type without credits": fault(
        "CPU at 20 % & baseline of ml.t2.medium",
        "instance_type",
        of=one_core,
        instance_type="ml.t2.medium",
        tps=constant(4),
        cpu=from_minute(20, 60, 20),
        latency=slow(20, 60, 900),
    ),
    "LLD111: an overload since a deployment, no cold start": fault(
        "5 requests in flight at first and 17 at last",
        "instances.min",
        of=since_deployment,
        latency=lambda m, i: 400 if m < 54 else 1500 + 2700 * (m - 54),
        in_flight=lambda m: 1 if m < 54 else 2 + 3 * (m - 54),
    ),
    "LLD405: requests that reach the time limit, as callers see it": fault(
        "60.0 s",
        companion="LLD801",
        errors={"InvocationModelErrors": constant(0.03)},
        longest_ms=constant(60_000),
        client_latency={"p50": 60.0, "p99": 60_050.0},
    ),
}
