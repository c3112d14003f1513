"""Faults of fleets that are full, and of scaling."""

from __future__ import annotations

from ..scenarios import Scaled, constant
from .endpoints import (
    by_concurrency,
    cold_then_saturated,
    custom_metric,
    flapping,
    gpu,
    one_core,
    pinned,
    saturated,
    scale_out_failed,
    stuck,
    unanswered,
)
from .fault import between, fault, from_minute, slow, up_to

ROWS = {
    "LLD102: a saturated fleet at its maximum": fault(
        "CPU at 97 % & all 8 instances & 14,250 invocations & planned for 1,600",
        "instances.max: 15 & throughput.peak_tps",
        of=saturated,
    ),
    # 8 x 97 / 65; full at 50 a second where a load test found 200: no capacity to plan with.
    "LLD102: a saturated fleet at its maximum, far below its scaling target": fault(
        "CPU at 97 % & all 8 instances & 3,000 invocations",
        "instances.max: 12 & throughput.tps_per_instance",
        of=saturated,
        tps=from_minute(25, 200, 400),
    ),
    "LLD102: a fleet as full as while it was fast, slow since one minute": fault(
        "CPU at 97 % & from 03:25 on & nothing was deployed at 03:25, and no instances started",
        "instances.max",
        of=saturated,
        tps=constant(1900),
        cpu=constant(97),
    ),
    "LLD103: a scale-out that AWS has no capacity for": fault(
        "3 scaling activities failed & AWS has no more instances",
        "capacity_reservation_arn & instance_type",
        of=scale_out_failed,
        message="Failed to set desired instance count to 15. Reason: unable to provision requested "
        "ML compute capacity",
    ),
    "LLD103: a scale-out whose containers answer no ping": fault(
        "did not answer /ping",
        "startup_health_check_timeout",
        of=scale_out_failed,
        message="The primary container for production variant primary did not pass the ping health "
        "check.",
    ),
    "LLD103: a scale-out that failed in words of tomorrow": fault(
        'scaling activities failed: "The moon is full."',
        of=scale_out_failed,
        message="The moon is full.",
    ),
    "LLD103: a scale-out without capacity, which the endpoint's description tells, too": fault(
        "3 scaling activities failed",
        of=scale_out_failed,
        message="Failed to set desired instance count to 15. Reason: unable to provision requested "
        "ML compute capacity",
        failure="Unable to provision requested ML compute capacity",
    ),
    "LLD103: a scale-out beyond the account's quota": fault(
        "the account's quota is used up",
        "instance_type",
        of=scale_out_failed,
        message="The account-level service limit 'ml.m5.12xlarge for endpoint usage' is 8 Instances",
    ),
    # The load doubles over 25 minutes, each step of scaling comes late.
    "LLD104: scaling that lags behind a ramp": fault(
        "scaling requested the first instances at",
        "scaling: {metric: concurrency, concurrency_target: ...} & scaling.scale_out_cooldown: 60s",
        minutes=90,
        tps=lambda m: min(max(300 + 40 * (m - 30), 300), 1500),
        instances=lambda m: 3 if m < 55 else 6 if m < 68 else 12,
        cpu=lambda m: 45 if m < 38 else 96 if m < 68 else 60,
        latency=lambda m, i: 40 if m < 38 else 320 if m < 68 else 42,
        scaling=up_to(16) | {"cooldown": 600},
        activities=[Scaled(49, 6), Scaled(62, 12)],
    ),
    "LLD109: a target per second where the metric counts per minute": fault(
        "2,250 invocations per instance and minute against a target of 100 & CPU at 12 %"
        " & 100 a second is 6,000 a minute",
        "throughput.tps_per_instance: 100",
        of=pinned,
    ),
    "LLD109: a target of 70 that keeps instances, below the maximum": fault(
        "0.049 requests in progress & the measurements fit a target of up to 2,300",
        of=pinned,
        tps=constant(17.5),
        instances=constant(15),
        cpu=constant(2),
        scaling=up_to(64, 70.0),
    ),
    "LLD109: a target per second, and what the instances wait for": fault(
        "against a target of 100",
        of=pinned,
        companion="LLD123",
        cpu=from_minute(20, 30, 12),
        latency=slow(20, 60, 400),
        in_flight=from_minute(20, 24, 240),
    ),
    "LLD102: instances that are full at the same counts": fault(
        "up to 2,250 invocations", of=pinned, cpu=constant(93), scaling=up_to(16, 2000.0)
    ),
    "LLD110: scaling that never acts": fault(
        "18,000 invocations per instance and minute against a target of 3,000 for 60 min"
        " & no alarm TargetTracking-",
        of=stuck,
        cpu=constant(97),
        latency=slow(0, 60, 400),
    ),
    "LLD110: scaling that never acts, while latency holds": fault("for 60 min", of=stuck),
    "LLD110: scaling by concurrency that never acts, while latency holds": fault(
        "40 requests in flight on an instance against a target of 4",
        of=stuck,
        tps=constant(60),
        in_flight=constant(40),
        scaling=up_to(16, 4.0)
        | {"metric": "SageMakerVariantConcurrentRequestsPerModelHighResolution"},
    ),
    # The load doubles: 10 % above the target, 14,250 / 7,800 = 1.15 times 7,800 and so on.
    "LLD110: scaling that does not act on a load just above its target": fault(
        "9,000 invocations per instance and minute against a target of 7,800 for 40 min"
        " & no scaling activity added instances",
        over=60,
        of=unanswered,
    ),
    "LLD110: scaling that acted before, and not on this load": fault(
        "9,000 invocations & no scaling activity added instances",
        over=60,
        of=unanswered,
        activities=[Scaled(2, 8)],
    ),
    "LLD110: a step policy that does not act": fault(
        "the instances were full, with the policy StepScaling for 40 min",
        over=60,
        of=unanswered,
        scaling=up_to(16) | {"policy": "StepScaling"},
    ),
    "LLD144: an update that holds scaling back": fault(
        "for 40 min: for 30 min of them the endpoint was being updated",
        "instances.min",
        over=60,
        of=unanswered,
        status="Updating",
        deployed=30,
    ),
    "LLD145: a policy that somebody deleted": fault(
        "registered for 2 to 16 instances, without a policy",
        over=60,
        of=unanswered,
        scaling=up_to(16) | {"policy": None},
    ),
    "LLD122: a fleet that goes out and in at the same load": fault(
        "6 scaling activities between 2 and 3 instances & 10 min apart",
        "instances: {min: 3",
        of=flapping,
    ),
    "LLD122: a fleet that goes out and in, and again hours later": fault(
        "6 scaling activities & 10 min apart",
        over=360,
        of=flapping,
        minutes=360,
        instances=lambda m: 3 if 10 <= m < 20 or 30 <= m < 320 or 330 <= m < 340 else 2,
        activities=[
            Scaled(minute - 1, to, took=1)
            for minute, to in zip((10, 20, 30, 320, 330, 340), (3, 2, 3, 2, 3, 2), strict=True)
        ],
    ),
    "LLD122: a fleet that goes out and in, each new instance cold and failing at first": fault(
        "6 scaling activities & of all requests arrived then",
        "scaling.scale_in_cooldown",
        of=flapping,
        latency=lambda m, i: 500 if i == 2 and m % 20 < 3 else 40,
        errors={"Invocation5XXErrors": lambda m: 0.1 if m % 20 == 0 else 0},
    ),
    "LLD122: two times out and two times in, too slow with the fewer": fault(
        "scaling activities between 2 and 4 instances",
        "instances: {min: 4",
        over=60,
        instances=lambda m: 2 if m // 15 % 2 else 4,
        tps=constant(300),
        latency=lambda m, i: 400 if m // 15 % 2 else 40,
        activities=[Scaled(15, 2), Scaled(30, 4, took=1), Scaled(45, 2), Scaled(59, 4, took=1)],
    ),
    "LLD110: scaling by a metric of another variant": fault(
        "no VariantName AllTraffic; there is primary",
        scaling=up_to(16) | {"custom": custom_metric("Sum", VariantName="AllTraffic")},
    ),
    "LLD110: scaling by the mean of ones": fault(
        "take the Sum",
        scaling=up_to(16) | {"custom": custom_metric("Average", VariantName="primary")},
    ),
    "LLD105: a saturated fleet that does not scale": fault(
        "CPU at 97 %",
        "instances: {min: 12, initial: 12, max: 24} & scaling: {enabled: true} & throughput",
        of=saturated,
        scaling=None,
    ),
    "LLD106: scaling out that somebody suspended": fault(
        "CPU at 97 %",
        "instances: {min: 15, initial: 15, max: 16} & scaling.enabled & instance_type",
        of=saturated,
        scaling=up_to(16),
        suspended=True,
    ),
    "LLD107: a scaling target above what instances hold": fault(
        "only 7,125 invocations per instance and minute against a target of 7,800",
        "throughput.tps_per_instance: 119 & throughput.safety_factor",
        tps=from_minute(25, 400, 950),
        cpu=from_minute(25, 45, 97),
        latency=slow(25, 60, 300),
    ),
    "LLD108: a CPU that cannot feed its GPU": fault(
        "GPU at 30 % while CPU at 9",
        "instance_type",
        of=gpu,
        cpu=from_minute(25, 50, 96),
        gpu=from_minute(25, 25, 30),
        latency=slow(25, 60, 300),
    ),
    "LLD147: full instances that are fast enough, and nothing scales": fault(
        "CPU at 95 % of the whole instance for 60 min",
        "instances: {min: 12, initial: 12, max: 24} & scaling: {enabled: true} & instance_type",
        cpu=constant(95),
        scaling=None,
    ),
    # 8 x 82 / 65: at the target, which asks for no more.
    "LLD147: instances at 82 %, below their scaling target": fault(
        "CPU at 82 % of the whole instance for 60 min & only 4,500 invocations",
        "throughput.tps_per_instance & instances: {min: 11",
        cpu=constant(82),
    ),
    "LLD147: a GPU that is always full": fault(
        "GPU at 99 % of the whole instance for 60 min",
        "instances: {min: 13",
        instance_type="ml.g5.xlarge",
        gpu=constant(99),
    ),
    # 600 a second are 4.6 times 200 x 0.65.
    "LLD148: a fleet at its planned peak that hardly uses its CPU": fault(
        "CPU at most 12 % of the whole instance in 1 h, 1 h of them with requests & 8 instances at the busiest time"
        " & up to 600 requests a second, planned for 600"
        " & 5 would do (by the throughput of the load test), which saves 3 instances of ml.m5.12xlarge",
        "instances: {min: 5, initial: 5, max: 8} & scaling: {enabled: true} & instance_type",
        cpu=lambda m: 12 if m == 30 else 11,
        scaling=None,
        planned={"peak TPS": 600.0, "TPS per instance": 200.0, "safety factor": 0.65},
    ),
    "LLD601: a spike shorter than scaling can follow": fault(
        "3,600 requests a second in the spike, 600 in the median",
        # 3,600 x 60 / 7,800 = 27.7; the most that scaling may start now is 16.
        "instances: {min: 28, initial: 28, max: 28}",
        tps=between(30, 35, 3600, 600),
        cpu=between(30, 35, 98, 45),
        latency=slow(30, 35, 400),
    ),
    "LLD102: requests that queue in a fleet at its maximum, scaled by concurrency": fault(
        "40 requests in flight on an instance against a target of 4 & all 8 instances",
        "instances.max: 10",
        of=by_concurrency,
        most=8,
        used=78,
    ),
    "LLD104: scaling by concurrency that does not follow": fault(
        "GPU at 97 % & up to 40 requests in flight on an instance against a target of 4",
        "scaling.concurrency_target & instances.min",
        of=by_concurrency,
        most=16,
        used=97,
        activities=[Scaled(50, 9, "InProgress")],
    ),
    "LLD107: a target of concurrency above what instances hold": fault(
        "only 4 requests in flight on an instance against a target of 4",
        "scaling.concurrency_target",
        of=by_concurrency,
        most=16,
        used=97,
        in_flight=from_minute(25, 2, 4),
    ),
    "LLD102: a saturated fleet, and a cold one before": fault(
        "in 12 of & CPU at 97 % & all 8 instances",
        "instances.max",
        of=cold_then_saturated,
        companion="LLD121",
    ),
    "LLD102: a cold fleet and a saturated one, metrics per instance": fault(
        "in 12 of & CPU at 97 %",
        of=cold_then_saturated,
        companion="LLD121",
        enhanced=True,
        latency=lambda m, i: 400 if i >= 6 and 18 <= m < 26 else 300 if 40 <= m < 52 else 40,
    ),
    "LLD102: a model somewhat slow, until its fleet is saturated too": fault(
        "in 20 of & CPU at 97 % & 14,250 invocations",
        "instances.max: 15",
        of=saturated,
        companion="LLD112",
        tps=from_minute(40, 600, 1900),
        cpu=from_minute(40, 45, 97),
        latency=lambda m, i: 85 if m < 40 else 300,
        in_flight=constant(24),
    ),
    "LLD102: a saturated fleet with one instance slower still, metrics per instance": fault(
        "CPU at 97 % & all 8 instances",
        "instances.max: 15",
        of=saturated,
        routing="RANDOM",
        enhanced=True,
        latency=lambda m, i: 40 if m < 25 else 700 if i == 0 else 300,
    ),
    "LLD102: a saturated fleet at its maximum that fails": fault(
        "CPU at 97 % & all 8 instances & 5XX errors",
        "instances.max: 15",
        of=saturated,
        errors={"Invocation5XXErrors": from_minute(25, 0, 0.06)},
    ),
    # 1,900 - 600 requests a second are refused at once: those that are answered are fast.
    "LLD401: saturated instances that fail and are fast": fault(
        "5XX errors & CPU at 97 % & all 8 instances",
        "instances.max: 15 & instance_type",
        of=saturated,
        latency=slow(0, 60, 40),
        errors={"Invocation5XXErrors": from_minute(25, 0, 0.6)},
    ),
    "LLD105: a saturated fleet that does not scale, and requests that wait until SageMaker gives up": fault(
        "CPU at 97 % & neither 4XX nor 5XX & longest ModelLatency then 60.0 s",
        "scaling: {enabled: true}",
        of=saturated,
        scaling=None,
        errors={"InvocationModelErrors": from_minute(30, 0, 0.1)},
        longest_ms=from_minute(30, 0, 60_000),
    ),
    "LLD108: one CPU that cannot feed its GPU": fault(
        "1.00 of 4 CPUs busy & GPU at 15 %",
        of=one_core,
        instance_type="ml.g4dn.xlarge",
        tps=constant(9),
        latency=slow(0, 60, 420),
        cpu=constant(25),
        gpu=constant(15),
    ),
    "LLD122: a fleet that goes out and in, each new instance cold, metrics per instance": fault(
        "6 scaling activities",
        of=flapping,
        enhanced=True,
        latency=lambda m, i: 500 if i == 2 and m % 20 < 3 else 40,
    ),
}
