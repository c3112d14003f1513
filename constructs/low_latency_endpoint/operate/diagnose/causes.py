"""Every cause that a diagnosis knows: what it is called, when it is given, and what to do.

A cause's id is contract, as an error's code is: LLD1xx model latency, LLD2xx overhead, LLD3xx
multi-model, LLD4xx errors, LLD5xx skew, LLD6xx traffic, LLD7xx deployments, LLD8xx client.

A row has its confidence and source in brackets, and these lines: ``when`` in words, the ``path``
that led to it, each ``change`` of the settings (``key = value | why``), and what to do ``besides``.
Names in braces are filled by the function that finds the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from ...account.drift import DRIFT_PAGE
from ...errors import AWS_DOCS
from .findings import Confidence, Evidence, Finding, FindingKind, Remedy

_GUIDE = AWS_DOCS + "/sagemaker/latest/dg/"
_API = AWS_DOCS + "/sagemaker/latest/APIReference/"
_SCALING = AWS_DOCS + "/autoscaling/application/userguide/application-auto-scaling-"
_BLOG = "https://aws.amazon.com/blogs/machine-learning/"
_SOURCES = {
    "knowledge center": "https://repost.aws/knowledge-center/sagemaker-endpoint-latency",
    "load testing": _BLOG
    + "best-practices-for-load-testing-amazon-sagemaker-real-time-inference-endpoints/",
    "routing": _BLOG
    + "minimize-real-time-inference-latency-by-using-amazon-sagemaker-routing-strategies/",
    "batching": "https://docs.vllm.ai/en/latest/configuration/optimization/",
    "metrics": _GUIDE + "monitoring-cloudwatch.html",
    "container metrics": _GUIDE + "inference-monitoring.html",
    "scaling": _GUIDE + "endpoint-auto-scaling.html",
    "options": _GUIDE + "deploy-model-options.html",
    "containers": _GUIDE + "your-algorithms-inference-code.html",
    "deploying": _GUIDE + "deployment-best-practices.html",
    "guardrails": _GUIDE + "deployment-guardrails.html",
    "zones": _GUIDE + "realtime-endpoints-privatelink.html",
    "variants": _API + "API_ProductionVariant.html",
    "endpoints": _API + "API_DescribeEndpoint.html",
    "activities": _SCALING + "scaling-activities.html",
    "tracking": _SCALING + "target-tracking.html",
    "suspending": _SCALING + "suspend-resume-scaling.html",
    "credits": AWS_DOCS + "/AWSEC2/latest/UserGuide/burstable-credits-baseline-concepts.html",
    "interface endpoints": AWS_DOCS + "/vpc/latest/privatelink/interface-endpoints.html",
    "drift": AWS_DOCS + DRIFT_PAGE,
}

_ROWS = """
LLD101 The instances are saturated [medium, load testing]
    when: CPU or GPU is at 85 % of the whole instance while slow, or at 50 % (or not published) with
        more load than a load test found, 1.2 times the scaling target's invocations or 1.5 times its
        requests in flight; given where scaling cannot be read
    path: scaling unknown
    change: throughput.safety_factor | lower: instances stay emptier
LLD102 The fleet is at its maximum and needs more instances [high, scaling]
    when: as LLD101, with as many instances as scaling may start; a risk after five periods at this
        maximum and above the scaling target, without slowness
    path: fleet at its maximum
    besides: Check the quota of the instance type before the maximum is raised.
LLD103 Instances that scaling asked for did not come [high, activities]
    when: a scaling activity is Failed or Unfulfilled; a risk while latency holds
    path: scale-out failed
    besides: {advice}
LLD104 Scaling follows the load too slowly [medium, tracking]
    when: as LLD101, below the maximum, with load or requests in flight above the scaling target
    path: below the maximum, load above target
    change: instances.min | more at all times
    besides: A rise at known hours is best met by a scheduled action ahead of it.
LLD105 The fleet is saturated and does not scale [high, scaling]
    when: as LLD101, and the variant is no scalable target
    path: not registered with Application Auto Scaling
    change: scaling.enabled = true | instances follow the load
    change: throughput = {peak_tps: ..., tps_per_instance: ...} | measured in a load test: scaling
        and its target follow from it
LLD106 The fleet is saturated and scaling out is suspended [high, suspending]
    when: as LLD101, with DynamicScalingOutSuspended
    path: scaling out suspended
    change: scaling.enabled = true
    besides: aws application-autoscaling register-scalable-target --service-namespace sagemaker
        --scalable-dimension sagemaker:variant:DesiredInstanceCount --resource-id
        endpoint/{endpoint}/variant/{name} --suspended-state DynamicScalingOutSuspended=false
LLD107 Instances saturate before they reach the scaling target [high, load testing]
    when: as LLD101, while what scaling tracks stays within its target
    path: scaling target not reached
LLD108 The CPU is saturated while the GPU waits for it [high, metrics]
    when: CPU full, or as many CPUs as LLD111 says, and GPU below 50 %
    path: CPU full, GPU not
    change: instance_type | more vCPUs for each GPU
    change: containers[].environment | fewer or lighter steps before the model on the CPU
LLD109 The scaling target is far below what an instance does [high, metrics]
    when: instances that are not full do ten times the target; or at the target a tenth of a request
        would be in work and utilization at a tenth of the 65 % that AWS advises
    path: contradicted by what was measured > scaling target
    change: throughput.tps_per_instance = {tps} | at most
    besides: Set the policy's TargetValue to {target} at most, and see in a load test what one
        instance holds. Until then the fleet is larger than its load needs.
LLD110 Scaling does not act [high, tracking]
    when: below the maximum, without any scaling activity: at three times the target for 20 minutes
        and its cooldown, or as far above as LLD101 says for 30; no data of what is tracked; or a
        metric that cannot be this variant's; a risk while latency holds
    path: no scaling activity
    change: scaling.enabled | false, deploy, then true, deploy: policy and alarms are made anew
    besides: Target tracking acts three minutes after its alarms (TargetTracking-...-AlarmHigh) see
        it. Are they there and in ALARM, is the metric this variant's, and may the service-linked
        role change the endpoint?
LLD111 Requests queue in the container: too few workers [medium, load testing]
    when: instances have room; requests in flight are twice the workers in the environment, or both
        they and latency doubled after the rate rose by a tenth, or a whole number of up to four CPUs
        is busy (within a tenth of one) and half as many requests more are in work (CPU and GPU idle:
        LLD108)
    path: ModelLatency high > instances not saturated > requests queue in the container
LLD112 Each request takes long on instances with room [medium, knowledge center]
    when: instances have room, and nothing else fits
    path: ModelLatency high > instances not saturated > the container itself
    change: containers[].image | a newer framework or a faster server
    change: containers[].environment | the server's and framework's settings
    besides: Measure the container outside of SageMaker with the same requests, and profile the
        inference script.
LLD113 Most requests are fast, some take far longer [low, load testing]
    when: p50 is within the threshold, p99 at least three times p50
    path: ModelLatency high > instances not saturated > only the tail is slow
    change: containers[].environment | limit the work of one request (length, batch)
    besides: Profile the inference script on the slowest requests: long inputs, garbage collection,
        calls to other services, batches that wait to be filled.
LLD115 The GPU does nothing [high, metrics]
    when: GPUUtilization below 3 % while slow
    path: ModelLatency high > instances not saturated > GPU idle
    change: containers[].image | one for GPUs (-gpu- or cu in its tag){now}
    change: containers[].environment | see that the model is moved to the GPU
    change: inference_ami | one whose driver the image's CUDA version runs on
    besides: The container's log says which device the framework took.
LLD117 Memory is full [medium, metrics]
    when: MemoryUtilization from 90 % while slow
    path: ModelLatency high > instances not saturated > memory full
    change: instance_type | one with more memory
    change: containers[].environment | fewer workers: each holds a copy of the model
LLD118 The disk is nearly full [high, metrics]
    when: DiskUtilization reaches 90 % (a risk)
    path: utilization > disk
    change: volume_size_gib | larger, on types without local storage
    change: instance_type | one with a larger local disk
    besides: Logs and temporary files of the container are the usual reason.
LLD119 No container has started: the driver may not fit the image's CUDA [medium, variants]
    when: the endpoint is Creating for 10 minutes, or Failed, without the log group
        `/aws/sagemaker/Endpoints/<name>`; the image's CUDA is 13 or newer on SageMaker's default
        AMI, or not the chosen AMI's. From public reports, not seen on AWS yet
    path: creation > no log > driver and CUDA differ
    change: containers[].image | or one with the CUDA of the instances' driver
    besides: An endpoint that is being created takes no update: delete it, or wait until it has
        failed.
LLD120 No container has started [low, deploying]
    when: as LLD119, for 30 minutes or Failed, without a doubt about the driver
    path: creation > no log
    change: instance_type | a type with more supply
    change: model_data_download_timeout | if the model did not arrive in time
    besides: SageMaker may still look for capacity, or fetch image and model: can the role pull the
        image and write logs, and do the subnets reach S3? `low-latency preflight` checks most of it.
LLD121 New instances answer slowly until they are warm [high, deploying]
    when: four fifths of the slow periods come within 10 minutes after instances start (by
        scale-out, deployment, or their count or first metrics), and none before
    path: ModelLatency high > instances not saturated > after new instances started
    change: containers[].environment | have the server load and compile before /ping
    besides: Warm the model before /ping answers, or send requests before callers do.
LLD122 Scaling goes out and in again and again [high, scaling]
    when: three turns from out to in or back within an hour of each other, with requests within 25 %
    path: patterns over time > scaling flaps
    change: instances.min = {most} | what this load needs, at all times
    change: scaling.scale_in_cooldown = 900s | longer: instances stay
    besides: Does a second policy or a scheduled action want another number? One instance more or
        less moves a small fleet past both alarms of target tracking.
LLD123 Requests wait for something other than the processor: a slow dependency [low, knowledge center]
    when: latency and requests in flight doubled while neither rate nor CPU nor GPU rose by a tenth;
        or CPUs work for less than half of the time of the requests in work, without an accelerator
    path: ModelLatency high > instances not saturated > the container waits
    change: containers[].environment | time limits of what the model calls
    besides: Measure what the container calls (a database, a feature store, another service), its
        locks, and how long batches wait to be filled. More in flight only follows from that: more or
        larger instances, and scaling by concurrency, send more to what is slow.
LLD124 A burstable type has used up its CPU credits [medium, credits]
    when: slow on a T2 whose CPU is within a tenth of its size's baseline, while more is in work
    path: ModelLatency high > instances not saturated > burstable > CPU at its baseline
    change: instance_type = ml.m5.large | one that is not burstable
LLD131 Slow at regular intervals [medium, knowledge center]
    when: at least four cycles, 70 % of them slow, twice as slow as otherwise, with a chance of at
        most 1 %
    path: patterns over time > slow at regular intervals
    change: containers[].environment | what works at this interval in the container: garbage
        collection, a checkpoint, a cache or model that is read anew, a timer's job
    besides: Compare the container's log at these times. More or larger instances do the same work
        at the same interval.
LLD132 Slow in the first minutes after a pause [high, knowledge center]
    when: slow after 70 % of the pauses of at least 5 minutes and five times the usual distance
        between requests, without new instances
    path: patterns over time > slow after a pause
    change: warm_up.keep_warm | requests in the pauses keep it warm
    change: containers[].environment | what is let go when nobody asks: idle workers, connections,
        caches, models
    besides: Another instance type does not help: with traffic the same instances are fast.
LLD133 Latency grows while the load stays the same [medium, metrics]
    when: latency at least doubles in many steps, with load per instance within 25 %
    path: patterns over time > grows at the same load
    change: containers[].image | the version before, if this one began to grow with its deployment
    change: containers[].environment | limits of caches and queues; the server's restart of a worker
        after so many requests
    besides: New instances begin afresh: deploy the same configuration again for the time being.
        {memory} A larger or faster type grows as well.
LLD134 Memory fills up and instances restart, again and again [high, metrics]
    when: memory rises by 20 points to at least 80 % and falls within three periods, at least twice;
        most times fewer instances serve or the container fails
    path: patterns over time > memory in saw-teeth
    change: containers[].environment | the server's restart of one worker after so many requests,
        limits of caches, until the leak is closed
    change: containers[].image | the version before, if this one leaks and it did not
    besides: Look for the leak: the container's log ends without a word where it was killed. More
        memory only makes the teeth longer.
LLD135 Instances went away while the load stayed the same [medium, deploying]
    when: at least a sixth of the fleet goes at once, with requests within 25 %, without scale-in or
        deployment; slow, full or failing only since then
    path: patterns over time > instances lost
    change: client_zones.ids | stack-level: if it was a zone: with one more, each takes a smaller
        part along{now}
    change: instances.min | only if the loss of a zone must not be felt: what it leaves has to hold
        the load
    besides: See AWS Health for the zone and the endpoint's events for who changed its capacity.
        Faster scaling would not have helped: the load did not change.
LLD136 Single periods are slow, again and again [medium, knowledge center]
    when: slow periods have no rhythm, are never three of five, and hold a tenth of all requests
    path: patterns over time > single slow periods
    change: containers[].environment | what stops the server for a while: garbage collection, long
        requests that hold a worker, a cache that is filled anew
    besides: Compare the container's log, and the callers' longest requests, at these times.
LLD137 First tokens wait: the KV cache is full [high, batching]
    when: time to first token above its threshold, requests wait, KV cache use from 90 %
    path: time to first token high > requests wait > KV cache full
    change: instances.min | more instances, each with a cache of its own
    change: scaling.concurrency_target | lower it: as many requests as the cache has room for
    change: containers[].environment | SM_VLLM_KV_CACHE_DTYPE: fp8 halves what a token needs;
        SM_VLLM_MAX_MODEL_LEN bounds it
    change: instance_type | one with more GPU memory
LLD138 First tokens wait for a place in the batch [high, batching]
    when: time to first token above its threshold, requests wait, and 1.2 times as many arrived or
        twice as many run as before
    path: time to first token high > requests wait > room in the KV cache
    change: instances.min | more instances
    change: scaling.concurrency_target | lower it: scaling then adds instances sooner
    change: containers[].environment | SM_VLLM_MAX_NUM_SEQS and SM_VLLM_MAX_NUM_BATCHED_TOKENS: more
        at a time, for slower tokens
LLD139 First tokens come late although the server has room [medium, batching]
    when: time to first token above its threshold; no request waits, or no more requests arrive and
        run than before
    path: time to first token high > no more requests than before
    change: routing | prefix_aware, where prompts begin alike: what is cached needs no prefill
    change: tokens.input | compare it with the prompts that callers send now
    besides: Time passes on the way into the batch or in the prefill: longer prompts, fewer hits in
        the prefix cache (vllm:prefix_cache_hits_total), or a slow tokenizer or proxy in the
        container.
LLD140 Tokens come slowly: too many sequences are decoded at a time [high, batching]
    when: inter-token latency above its threshold while at least 1.2 times as many requests arrived
    path: inter-token latency high > more requests arrived
    change: scaling.concurrency_target | lower it: scaling then adds instances sooner
    change: instances.min | more, where load comes faster than instances start
    change: containers[].environment | SM_VLLM_MAX_NUM_SEQS: fewer sequences at a time; others then
        wait for their first token
LLD141 Tokens come slowly: the KV cache is full [medium, batching]
    when: inter-token latency above its threshold, KV cache use from 97 %, and no more requests than
        before
    path: inter-token latency high > no more requests than before > KV cache full
    change: instances.min | more instances, each with a cache of its own
    change: scaling.concurrency_target | lower it: as many requests as the cache has room for
    change: containers[].environment | SM_VLLM_KV_CACHE_DTYPE: fp8 halves what a token needs;
        SM_VLLM_MAX_MODEL_LEN bounds it
    change: instance_type | one with more GPU memory
    besides: A server whose cache is full takes sequences out and computes them again: look at
        vllm:num_preemptions_total.
LLD142 Tokens come slowly at the usual load [medium, container metrics]
    when: inter-token latency above its threshold, and neither load nor KV cache explains it
    path: inter-token latency high > no more requests than before > room in the KV cache
    change: containers[].environment | chunked prefill, so that long prompts do not hold up the
        tokens of others
    change: instance_type | one with more memory bandwidth, where every instance is slow
    besides: Compare lengths of prompts with those before, and look at the server's log: a throttled
        GPU and another process on it show nowhere else.
LLD143 One instance is slow with its tokens [high, container metrics]
    when: one instance's p95 at least twice the median of the others'
    path: one instance apart
    change: routing | least_outstanding_requests sends less to an instance that answers slowly
    besides: Replace the instance: scale out by one and in again, or update the endpoint.
LLD201 OverheadLatency is high after new instances started [high, knowledge center]
    when: as LLD121, for OverheadLatency
    path: OverheadLatency high > after new instances started
    besides: Send requests to new instances before callers do.
LLD202 OverheadLatency is high because requests are infrequent [medium, knowledge center]
    when: up to 5 requests a minute
    path: OverheadLatency high > few requests
    besides: Nothing in endpoint.yaml changes it: send a request every few seconds to keep the path
        warm, and keep connections open in the callers.
LLD203 OverheadLatency is high under steady traffic [low, knowledge center]
    when: otherwise: payload sizes, authentication, data capture
    path: OverheadLatency high > steady traffic, no new instances
    change: alarms.overhead_latency | if what was measured is what your requests need
    besides: CloudWatch has no payload sizes: look at the size of requests and responses in the
        callers, compress or shorten them. Authentication and authorization count too: reuse
        credentials and connections.
LLD301 Requests wait for models that are not loaded [high, knowledge center]
    when: under 95 % of the requests find their model loaded, and the wait is at least a tenth of
        the threshold
    path: multi-model > requests wait for models
    change: instance_type | more memory holds more models
    change: instances.min | more instances: each holds some of the models
    change: alarms.cache_miss_rate = 0.05 | says so next time
    besides: Put models that are asked for most onto an endpoint of their own.
LLD302 Models take long to download [high, knowledge center]
    when: as LLD301; downloading takes twice as long as loading, and nothing is unloaded
    path: multi-model > requests wait for models > download dominates
    change: containers[].data | smaller artifacts in the endpoint's own region
    change: instance_type | more network bandwidth
    besides: Ask for each model once after a deployment, before callers do.
LLD401 Saturated instances answer with server errors [high, load testing]
    when: 1 % of 5XX (or the alarm's rate), instances full at the time
    path: errors > 5XX > instances saturated
    change: instances.max | more instances
    change: throughput.safety_factor | lower: instances stay emptier
LLD402 The container fails on instances with room [medium, load testing]
    when: 1 % of 5XX, instances with room
    path: errors > 5XX > instances not saturated
    change: containers[].environment | number of workers, memory of each
    change: containers[].image | the version before, if they began with it
    change: deployment.rollback_on_alarms = true
    besides: The container's log in /aws/sagemaker/Endpoints/<name> has the exception.
LLD403 Callers send what SageMaker or the model refuses [high, metrics]
    when: 1 % of 4XX otherwise
    path: errors > 4XX
    change: alarms.client_error_rate = 0.05 | says so next time
    besides: AWS counts the model's own 4xx here: look at what callers changed in what they send,
        and at the container's log. Is it 429 at an even load, the container may throttle. What
        SageMaker refuses itself is in no metric: names, sizes, permissions, 400 ThrottlingException,
        429 ModelNotReadyException of a model that is still loading.
LLD404 The container answers with errors or not at all [medium, metrics]
    when: 1 % of model errors beside 4XX and 5XX
    path: errors > model errors
    change: containers[].environment | what the log asks for
    change: alarms.model_error_rate = 0.01 | says so next time
    besides: Socket errors and malformed answers of the container count here, and time-outs: its log
        says which. On a multi-model endpoint so may a 429 ModelNotReadyException: the model is still
        loading.
LLD405 Requests reach the time limit of an invocation [high, options]
    when: model errors beside 4XX and 5XX, the longest ModelLatency in their periods 60 s (a stream:
        480 s)
    path: errors > model errors > at the time limit
    change: containers[].environment | limit the work of one request
    change: instance_type | a faster one
    besides: SageMaker ends an invocation after 60 s, a streamed one after 8 minutes; longer work
        belongs to asynchronous inference.
LLD406 Streamed responses break off [medium, metrics]
    when: 1 % of the streams
    path: errors > mid-stream
    besides: The container stopped in the middle of an answer: memory, its own timeouts, its log.
LLD407 More requests come than a limit lets in [medium, metrics]
    when: 1 % of 4XX, only in periods above some rate; accepted requests are then even (middle half
        within 6 %) while arrivals differ by 20 %
    path: errors > 4XX > only beyond a rate
    change: containers[].environment | the server's own limit of requests or of its queue, if its
        answer is 429
    change: alarms.client_error_rate = 0.05 | says so next time
    besides: Look at the error that callers get. A ModelError with OriginalStatusCode 429 is the
        container's: more instances let more in. SageMaker's own is 400 ThrottlingException, often
        without a message, which AWS names in no metric: reporters found a dynamic limit by number
        and type of instances, and a faster type or more of them ended it. Callers wait longer and
        longer between attempts (boto3 makes three), and come evenly.
LLD408 New instances answer with errors until their model is loaded [high, containers]
    when: four fifths of the failing periods (1 % of the requests) come within 10 minutes after
        instances start, none before, and they end
    path: errors > after new instances started
    change: containers[].environment | answer /ping with 200 once the model is loaded
LLD501 One instance is slower than the others [high, routing]
    when: one instance's metrics show twice the latency of the others; its first 10 minutes do not
        count unless most are as new
    path: ModelLatency high > instances differ
    besides: Replace the instance: a deployment of the same model starts new ones. If it comes back,
        look at what that instance is asked (sessions, prefixes) and at its log stream.
LLD502 Uneven latency under RANDOM routing [medium, routing]
    when: only the tail is slow, with RANDOM routing and without metrics per instance
    path: ModelLatency high > instances not saturated > only the tail is slow > RANDOM routing
    change: routing = least_outstanding_requests | requests pass by an instance that is busy or slow
LLD503 One Availability Zone is slower than the others [medium, zones]
    when: one zone's metrics show 1.5 times the latency of the others
    path: ModelLatency high > zones differ
    change: alarms.zone_imbalance = 1.5 | says so when it happens again
    besides: Callers that use the zonal names of one zone only send everything there.
LLD601 A spike of traffic is shorter than scaling can follow [high, scaling]
    when: slow for less than 10 minutes at three times the median traffic
    path: spike
LLD603 No request arrives, and an alarm expects some [high, metrics]
    when: an alarm on Invocations is in ALARM
    path: traffic > none
    change: private_link | stack-level: security group and private DNS
    besides: From a caller: does runtime.sagemaker.<region>.amazonaws.com resolve to an address of
        the VPC, and does port 443 answer? `low-latency verify` checks both.
LLD604 An alarm cannot be meant as it is written [high, metrics]
    when: its namespace, dimensions, variant, statistic, unit or period are none that SageMaker
        publishes; all but the fastest quarter of latencies are 32 times its threshold (10 times,
        below 1 ms), which is at most 60 s in the next unit and not the plan's; or it is above 60 s
        and 32 times the latencies
    path: contradicted by what was measured > alarms
    besides: CloudWatch's latencies are in microseconds, and an alarm without data never fires.
        Nothing here is judged by such an alarm: put it right.
LLD606 No request arrives, and the way to the endpoint is closed [high, interface endpoints]
    when: no request in the window, and the stack's interface endpoint is gone, not available,
        without the private DNS that the template states, or lets nobody in on port 443
    path: traffic > none
    besides: `low-latency verify {stack}` says what puts it back.
LLD701 The last deployment failed or was rolled back [high, guardrails]
    when: the endpoint is Failed, UpdateRollbackFailed or RollingBack, or names a reason
    path: deployments > failed
    change: startup_health_check_timeout | if the container did not answer in time
    change: model_data_download_timeout | if the model did not arrive in time
    change: deployment.rollback_on_alarms = true
    besides: The container's log in /aws/sagemaker/Endpoints/<name> says why it did not start.
LLD702 Slow since a deployment: the new version itself is slower [high, guardrails]
    when: slow from a deployment to the end of the window, not before; p50 at least 1.3 times higher
    path: ModelLatency high > instances not saturated > since a deployment
    change: containers[].image | back to the version before
    change: containers[].data | back to the model before
    change: alarms.model_latency | a threshold below what was missed, so that alarms roll back
    change: deployment.rollback_on_alarms = true
    change: deployment.canary.wait = 10m | longer than the alarm takes to see it
    besides: Roll back: deploy the version before. Then compare both versions outside of SageMaker
        with the same requests.
LLD703 Fewer instances serve than are wanted [medium, deploying]
    when: InService with fewer instances than wanted
    path: deployments > instances missing
    change: instance_type | a type with more supply
    change: capacity_reservation_arn | reserved instances come
    besides: Look again in some minutes: instances that are starting count as missing too.
LLD704 The account has drifted from what is deployed [high, drift]
    when: limits, policies or suspension of scaling, alarms, or the endpoint's configuration and
        weights are not as the stack's template says, and the stack is complete
    path: changed by hand > account beside the template
    besides: {repairs}What shall stay belongs into the settings: change them, and deploy.
LLD705 The endpoint is out of service [high, endpoints]
    when: its status is OutOfService
    path: deployments > out of service
    besides: Its log in /aws/sagemaker/Endpoints/<name> says why; then deploy again.
LLD801 The time is lost between the caller and SageMaker [medium, metrics]
    when: `--client-latency` exceeds model and overhead by a quarter and 5 ms
    path: client latency > more than model and overhead
    change: client_zones.ids | stack-level: the zones that callers really run in
    change: private_link | stack-level: callers that go around it cross the internet
    besides: Percentiles do not add up exactly; the share is an estimate. In the callers: as many
        connections as threads, kept open, in the caller's own zone (runtime_client does all three),
        and enough CPU.
"""


def read_rows(rows: str) -> dict[str, FindingKind]:
    found: dict[str, FindingKind] = {}
    for row in re.split(r"\n(?=LLD)", rows.strip()):
        head, *lines = (" ".join(text.split()) for text in re.split(r"\n {4}(?=\S)", row))
        match = re.fullmatch(r"(LLD\d{3}) (.+) \[(high|medium|low), (.+)\]", head)
        if match is None or match[1] in found:
            raise ValueError(f"no row of a cause, or one that is there already: {head}")
        parts = [text.partition(": ")[::2] for text in lines]
        one = dict(parts)
        found[match[1]] = FindingKind(
            id=match[1],
            title=match[2],
            when=one["when"],
            source=_SOURCES[match[4]],
            confidence=cast(Confidence, match[3]),
            path=tuple(one["path"].split(" > ")),
            changes=tuple(_remedy(text) for name, text in parts if name == "change"),
            besides=one.get("besides", ""),
        )
    return found


def _remedy(text: str) -> Remedy:
    setting, _, why = text.partition(" | ")
    key, _, value = setting.partition(" = ")
    return Remedy(key, why, value)


#: By their ids.
KINDS = read_rows(_ROWS)


def finding(
    id: str,
    *evidence: Evidence | str,
    variant: str = "",
    root: tuple[str, ...] = (),  # where the row's path begins
    confidence: Confidence | None = None,  # where it is not the row's
    first: Iterable[Remedy] = (),  # before the changes of the row
    more: Iterable[Remedy] = (),  # after them
    risk: bool = False,
    **filled: str,
) -> Finding:
    """A cause's row with what was measured; ``filled`` are the names in its changes and besides."""
    kind = KINDS[id]
    changes, besides = kind.changes, kind.besides
    if filled:
        besides = besides.format(**filled)
        changes = tuple(
            replace(each, why=each.why.format(**filled), value=each.value.format(**filled))
            for each in changes
        )
    return Finding(
        kind,
        variant,
        tuple(Evidence(each) if isinstance(each, str) else each for each in evidence),
        confidence or kind.confidence,
        (*root, *kind.path),
        (*first, *changes, *more),
        besides,
        risk,
    )


def kinds() -> Iterable[FindingKind]:
    """All causes, in the order of their ids."""
    return KINDS.values()
