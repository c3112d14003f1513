"""Faults of overhead, configurations, deployments and paths."""

from __future__ import annotations

from ..scenarios import ENDPOINT, Scaled, constant
from .endpoints import asked_late, few_requests, limited, named, not_started, saturated
from .fault import between, fault, from_minute, slow, watched

ROWS = {
    "LLD604: a threshold in milliseconds": fault(
        "above 160 microseconds, which is 0.16 ms; for 160 ms it is 160000", **limited(0.16)
    ),
    "LLD604: a threshold in seconds": fault("for 200 ms it is 200000", **limited(0.0002)),
    "LLD604: a threshold in nanoseconds": fault("for 160 ms it is 160000", **limited(160_000)),
    "LLD604: a threshold that no invocation can reach, of a slow endpoint": fault(
        "for 160 ms it is 160000",
        companion="LLD127",
        latency=slow(20, 60, 400),
        thresholds={("ModelLatency", "p99"): 160_000.0},
    ),
    "LLD604: a threshold in milliseconds, beside the plan's, which is missed": fault(
        "160 microseconds",
        companion="LLD127",
        latency=slow(20, 60, 400),
        thresholds={("ModelLatency", "p99"): 0.16},
    ),
    "LLD604: alarms without a variant": fault(
        "ModelLatency has the dimensions EndpointName and VariantName, not EndpointName",
        alarm={"Dimensions": named(EndpointName=ENDPOINT)},
    ),
    "LLD604: alarms on another variant": fault(
        "no VariantName AllTraffic",
        alarm={"Dimensions": named(EndpointName=ENDPOINT, VariantName="AllTraffic")},
    ),
    "LLD604: alarms in milliseconds": fault(
        "published in Microseconds, not in Milliseconds", alarm={"Unit": "Milliseconds"}
    ),
    "LLD604: alarms in the other namespace": fault(
        "/aws/sagemaker/Endpoints has no ModelLatency; AWS/SageMaker has ModelLatency",
        alarm={"Namespace": "/aws/sagemaker/Endpoints"},
    ),
    "LLD604: an alarm on percentiles that there are not": fault(
        "OverheadLatency has no percentiles",
        thresholds={("ModelLatency", "p99"): 160.0, ("OverheadLatency", "p99"): 40.0},
    ),
    "LLD604: alarms more often than the metric": fault(
        "comes every 60 s, not every 10 s", alarm={"Period": 10}
    ),
    "LLD604: an alarm on a share above one": fault(
        "share of the requests, 1 at most",
        alarm={"MetricName": "Invocation5XXErrors", "Threshold": 5.0},
        thresholds={("ModelLatency", "Average"): 160.0},
    ),
    "LLD201: an overhead after a scale-out, and another under steady traffic": fault(
        "the scale-out to 8 instances",
        "instances.min",
        companion="LLD203",
        instances=from_minute(20, 5, 8),
        tps=constant(500),
        overhead=lambda m: 90 if 20 <= m < 25 or m >= 45 else 6,
        activities=[Scaled(15, 8)],
    ),
    "LLD201: an overhead that follows a scale-out": fault(
        "the scale-out to 8 instances",
        "instances.min",
        instances=from_minute(27, 5, 8),
        tps=constant(500),
        overhead=between(27, 33, 90, 6),
        activities=[Scaled(21, 8, took=6)],
    ),
    "LLD201: an overhead after a deployment": fault(
        "the deployment of sentiment-config-2",
        "warm_up: {payload: ...} & deployment: {canary: {size_percent: 10, wait: 10m}}",
        overhead=between(30, 36, 90, 6),
        deployed=30,
    ),
    "LLD201: an overhead of the first requests to an endpoint, half an hour after its creation": fault(
        "within 10 minutes of the first requests to the new endpoint at 03:35",
        "warm_up: {payload: ...}",
        of=asked_late,
        overhead=between(35, 40, 90, 6),
    ),
    "LLD201: an overhead of the first requests after a deployment": fault(
        "within 10 minutes of the first requests after the deployment of sentiment-config-2 at 03:35",
        "warm_up: {payload: ...} & deployment: {canary: {size_percent: 10, wait: 10m}}",
        of=asked_late,
        created=None,
        deployed=12,
        tps=between(10, 35, 0, 300),
        overhead=between(35, 40, 90, 6),
    ),
    "LLD202: requests too rare to keep the path warm": fault(
        "20 slow periods follow pauses & 0.69 requests a minute",
        "warm_up.keep_warm",
        tps=lambda m: 1 / 30 if m % 3 == 0 else 0,
        instances=constant(2),
        overhead=constant(70),
        cpu=constant(2),
    ),
    "LLD202: two requests in each minute": fault(
        "2 requests a minute while overhead was high",
        "warm_up.keep_warm",
        tps=constant(1 / 30),
        instances=constant(2),
        overhead=constant(70),
        cpu=constant(2),
    ),
    "LLD202: batches of many requests, with pauses between them": fault(
        "11 of 12 slow periods follow pauses",
        "warm_up.keep_warm",
        tps=lambda m: 10 if m % 5 == 0 else 0,
        overhead=constant(70),
        cpu=constant(2),
    ),
    "LLD202: the first minutes after a pause": fault(
        "6 of 6 slow periods follow pauses",
        "warm_up.keep_warm",
        tps=between(10, 40, 0, 300),
        overhead=between(40, 46, 90, 6),
    ),
    "LLD203: an overhead at few requests, though more than rare ones": fault(
        "12 requests a minute",
        "warm_up.keep_warm & client_zones.ids",
        tps=constant(0.2),
        instances=constant(2),
        overhead=constant(70),
        cpu=constant(2),
    ),
    "LLD203: an overhead under steady traffic": fault(
        "600 requests a second & data capture records 100 %",
        "data_capture.sampling_percentage & client_zones.ids",
        overhead=from_minute(10, 6, 65),
        data_capture=100,
    ),
    "LLD603: silence where an alarm expects traffic": fault(
        "alarm silence is in ALARM", tps=constant(0), silence_alarm=True
    ),
    "LLD701: a deployment that was rolled back": fault(
        "CloudWatch alarms in ALARM",
        status="UpdateRollbackFailed",
        failure="CloudWatch alarms in ALARM",
    ),
    "LLD701: an update without instances": fault(
        "the endpoint is InService; AWS says: & InsufficientInstanceCapacity",
        "capacity_reservation_arn & instance_type & client_zones.ids & deployment.rolling",
        failure="Unable to provision requested ML compute capacity due to "
        "InsufficientInstanceCapacity error.",
    ),
    "LLD701: an update with a role that does not trust SageMaker": fault(
        "Could not assume role",
        "role_arn",
        failure="Could not assume role arn:aws:iam::123456789012:role/r.",
    ),
    "LLD701: an update whose containers answer no ping": fault(
        "did not pass the ping health check",
        "startup_health_check_timeout & aws logs tail /aws/sagemaker/Endpoints/sentiment --since 1h",
        failure="The primary container for production variant primary did not pass the ping health "
        "check. Please check CloudWatch logs for this endpoint.",
    ),
    "LLD701: an endpoint that failed for want of quota, and never had a log": fault(
        "the endpoint is Failed; AWS says: & is 0 Instances & there is no log group",
        "instance_type",
        of=not_started,
        status="Failed",
        failure="The account-level service limit 'ml.g6e.2xlarge for endpoint usage' is 0 Instances, "
        "with current utilization of 0 Instances and a request delta of 1 Instances.",
    ),
    "LLD701: an update that failed in words of tomorrow": fault(
        "the endpoint is InService; AWS says: & The moon is full",
        "aws logs tail",
        failure="The moon is full.",
    ),
    "LLD702: a version that is slower": fault(
        "before 03:20 & and no slow period before",
        "containers[].image",
        deployed=20,
        latency=slow(22, 60, 130),
    ),
    "LLD702: a version that is slower, after a slow minute of the former": fault(
        "before 03:20 & and 1 slow period before",
        deployed=20,
        latency=lambda m, i: 130 if m == 5 or m >= 22 else 40,
    ),
    "LLD119: a CUDA 13 image on the default driver": fault(
        "Creating for 40 min & no log group & CUDA 13.0 & ml.g6e.2xlarge",
        "inference_ami: al2023-ami-sagemaker-inference-gpu-4-1",
        of=not_started,
    ),
    "LLD119: a CUDA 12 image on the driver for CUDA 13": fault(
        "CUDA 12.9 & no log group",
        "inference_ami",
        of=not_started,
        image="ray:2.0-gpu-py312-cu129-ubuntu24.04",
        inference_ami="al2023-ami-sagemaker-inference-gpu-4-1",
    ),
    "LLD119: a CUDA 13 image that failed on the default driver": fault(
        "the endpoint is Failed & no log group",
        "inference_ami",
        of=not_started,
        companion="LLD701",
        status="Failed",
        failure="did not pass the ping health check",
    ),
    "LLD120: no capacity for half an hour": fault(
        "Creating for 40 min & no log group",
        "instance_type",
        of=not_started,
        image="pytorch-inference:2.6.0-gpu-py312-cu124-ubuntu22.04",
    ),
    "LLD118: a disk that is nearly full": fault(
        "disk at 9", "volume_size_gib", disk=lambda m: 85 + m / 6
    ),
    "LLD704: somebody lowered the maximum": fault(
        "MaxCapacity is 8, the template says 16",
        "npx cdk deploy --revert-drift",
        of=saturated,
        companion="LLD102",
        stated={"max": 16},
    ),
    "LLD704: the target was raised, and the fleet is full": fault(
        "TargetValue is 90000, the template says 7800",
        of=saturated,
        companion="LLD107",
        scaling={"min": 2, "max": 16, "target": 90000.0},
        stated={"target": 7800.0},
    ),
    "LLD709: the configuration that serves is deleted": fault(
        "sentiment-config-2, the configuration that serves, is deleted", deleted="EndpointConfig"
    ),
    "LLD709: the model that serves is deleted": fault(
        "sentiment-model, the model that serves primary, is deleted", deleted="Model"
    ),
    "LLD715: the minimum was raised, and nothing happens": fault(
        "instances wanted: 8; the scalable target's minimum is 10",
        scaling={"min": 10, "max": 16, "target": 7800.0},
    ),
    "LLD801: time lost before SageMaker": fault(
        "client p99 400 ms & outside of SageMaker",
        "client_zones.ids & private_link.sagemaker_api: true",
        client_latency={"p99": 400.0},
    ),
    "LLD809: callers whose idle connections died": fault(
        "client p99 60.0 s is a time limit of 60 s, client p50 90 ms",
        of=few_requests,
        latency=slow(0, 60, 40),
        client_latency={"p50": 90.0, "p99": 60_050.0},
    ),
    "LLD809: the same in the other order, with a retry after 70 s": fault(
        "client p99 70.2 s is a time limit of 70 s, client p50 90 ms",
        of=few_requests,
        latency=slow(0, 60, 40),
        client_latency={"p99": 70_200.0, "p50": 90.0},
    ),
    "LLD801: a few calls that take long, and end at no time limit": fault(
        "client p99 52.0 s", client_latency={"p50": 60.0, "p99": 52_000.0}
    ),
    "LLD801: every call waits as long": fault(
        "client p50 1,340 ms", client_latency={"p50": 1340.0, "p99": 1390.0}
    ),
    "LLD801: all calls wait for a time limit": fault(
        "client p50 60.0 s", client_latency={"p50": 60_010.0, "p99": 60_050.0}
    ),
    "LLD802: 20 ms more on the path of one zone": fault(
        "connecting from use1-az1 takes 21 ms (median), from the other zones 1 ms",
        canary=watched(CanaryConnectTime=from_minute(30, 1, 21)),
    ),
    "LLD803: a zone that gets no answers": fault(
        "100 % of the canary's runs in use1-az1 got no answer & this ended at 03:43",
        canary=watched(CanaryUnreachable=between(20, 43, 1, 0)),
    ),
    "LLD807: a zone whose calls a policy denies": fault(
        "100 % of the canary's runs in use1-az1 were refused & this ended at 03:43",
        canary=watched(
            CanaryUnreachable=between(20, 43, 1, 0), CanaryRefused=between(20, 43, 1, 0)
        ),
    ),
    "LLD806: answers that one zone waits for, though it connects fast": fault(
        "answers take 2,500 ms from use1-az1 (median), from the other zones 50 ms & takes 1 ms",
        canary=watched(CanaryAnswerTime=from_minute(30, 50, 2500)),
    ),
    "LLD805: a canary that fell silent in one zone": fault(
        "the canary in use1-az1 has been silent since 03:30",
        canary=watched(CanaryUnreachable=lambda minute: None if minute >= 30 else 0),
    ),
    "LLD804: the runtime's name leads out of the zone": fault(
        "in use1-az1 the runtime's name gave another zone's address in 100 % of",
        canary=watched(CanaryOutOfZone=constant(1)),
    ),
}
