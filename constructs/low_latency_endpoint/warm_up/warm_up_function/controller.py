"""Decides when the sender sends, and answers CloudFormation. Runs outside the VPC.

Three events reach it: a request of CloudFormation's (the custom resource), SageMaker's news of a
deployment, and the keep-warm schedule.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.config import Config

from .measurements import Zone, embedded

DEPLOYMENT_EVENT = "SageMaker Endpoint Deployment State Change"
BAKING = "Baking"  # traffic is on the new capacity, and its alarms are watched

SLICE_SECONDS = 60  # one call of the sender: no connection may stay silent for 350 s
SENDER_SECONDS = 150  # the slice, a last request of 70 s, and a cold start
GIVE_UP_SECONDS = 180  # for so long the sender may be out of reach: see SenderUnavailable
RETRY_SECONDS = 2
KEEP_WARM_SECONDS = 10
REASON_LIMIT = 1500  # bytes, of the answer's
ANSWER_LIMIT = 4096  # bytes, CloudFormation's

MET, SENT, MISSED, REFUSED, SKIPPED = "met", "sent", "missed", "refused", "skipped"


class SenderUnavailable(Exception):
    """Lambda did not run the sender (new role, throttle, idle for weeks); trying again may help."""


def handler(event: Mapping[str, Any], context: Any) -> Any:
    """Tell the three events apart."""
    if "RequestType" in event:
        return custom_resource(event, context)
    if event.get("detail-type") == DEPLOYMENT_EVENT:
        return deployment(event)
    if "keep_warm" in event:
        return keep_warm(event["keep_warm"])
    raise ValueError("neither a custom resource, nor a deployment, nor the keep-warm schedule")


# ---------------------------------------------------------------------------------- CloudFormation


def custom_resource(event: Mapping[str, Any], context: Any) -> None:
    """Warm up on create and update, and answer; deletes and rollbacks always succeed."""
    succeeded, reason, rolling_back = True, "", False
    data: dict[str, Any] = {}
    try:
        if event["RequestType"] != "Delete":
            rolling_back = event["RequestType"] == "Update" and _rolling_back(event["StackId"])
            report = warm_up(event["ResourceProperties"], relaxed=rolling_back)
            _log({"event": "warm-up", **report}, event["ResourceProperties"].get("Metrics"))
            succeeded, reason, data = _verdict(report, event["ResourceProperties"], rolling_back)
    except Exception as error:
        succeeded = event["RequestType"] == "Delete" or rolling_back
        reason = _shortened(f"{type(error).__name__}: {error}")
        _log({"event": "warm-up broke", "reason": reason})
    log = f" (log: {context.log_group_name} {context.log_stream_name})"
    _answer(event, succeeded, _shortened(reason) + log, data)


def _shortened(reason: str) -> str:
    """Cut a reason to its limit in bytes of JSON, where a letter such as "é" takes six."""
    while (size := len(json.dumps(reason))) > REASON_LIMIT:
        reason = reason[: len(reason) * REASON_LIMIT // size]
    return reason


def warm_up(
    properties: Mapping[str, Any],
    *,
    relaxed: bool = False,
    invoke: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Have the sender send, slice by slice, until the target is met or the time is over."""
    invoke = invoke or call_sender
    target = {} if relaxed else {k: float(v) for k, v in properties.get("Target", {}).items()}
    run = {
        "requests": int(properties["RequestsPerZone"]),
        "concurrency": int(properties["ConcurrencyPerZone"]),
        "keep": int(properties["Last"]),
        "target": target,
    }
    began = time.monotonic()
    ends = began + float(properties["TimeoutSeconds"])
    zones: dict[str, Any] = {}
    reached = began
    settled, refused, message = False, "", ""
    while not settled and not refused and (left := ends - time.monotonic()) > 0:
        event = {"run": {**run, "seconds": min(SLICE_SECONDS, left)}, "zones": zones}
        try:
            answer = invoke(event)
        except SenderUnavailable as error:
            message = f"the sender could not be called: {error}"
            if time.monotonic() - reached > GIVE_UP_SECONDS:
                raise
            _log({"event": "the sender cannot be called yet", "reason": str(error)})
            time.sleep(RETRY_SECONDS)
            continue
        reached, message = time.monotonic(), ""
        zones, settled, refused = answer["zones"], answer["settled"], answer["refused"]
    outcome = REFUSED if refused else MISSED if not settled else MET if target else SENT
    counted = {name: Zone(**zone) for name, zone in zones.items()}
    return {
        "endpoint": properties["EndpointName"],
        "configuration": properties["EndpointConfigName"],
        "outcome": outcome,
        "message": refused or message,
        "requests": sum(zone.sent for zone in counted.values()),
        "failed": sum(zone.failed for zone in counted.values()),
        "seconds": round(time.monotonic() - began, 1),
        "target_ms": target,
        "zones": {name: zone.report() for name, zone in counted.items()},
    }


def _verdict(
    report: Mapping[str, Any], properties: Mapping[str, Any], rolling_back: bool
) -> tuple[bool, str, dict[str, Any]]:
    """Whether CloudFormation is told of success, why, and the attributes."""
    data = {
        "Outcome": report["outcome"],
        "Requests": str(report["requests"]),
        "FailedRequests": str(report["failed"]),
        "Seconds": str(report["seconds"]),
        "Zones": json.dumps(
            {name: _compact(zone) for name, zone in report["zones"].items()}, separators=(",", ":")
        ),
    }
    if report["outcome"] in (MET, SENT):
        return True, "", data
    if report["outcome"] == REFUSED:
        reason = f"Warm-up refused: {report['message']}"
    else:
        wanted = ", ".join(f"{k} {v:g} ms" for k, v in report["target_ms"].items())
        reason = (
            f"Warm-up missed: within {properties['TimeoutSeconds']} s the last "
            f"{properties['Last']} requests of each zone did not all succeed"
            + (f" and meet {wanted}" if wanted else "")
            + f"; last: {_lasts(report['zones'])}"
            + (f"; {report['message']}" if report["message"] else "")
        )
    return rolling_back or properties["OnMiss"] == "WARN", reason, data


def _compact(zone: Mapping[str, Any]) -> dict[str, Any]:
    """A zone's report without what only the log has room for."""
    return {
        "requests": zone["requests"],
        "failed": zone["failed"],
        **{
            part: {name: zone[part][name] for name in ("p50", "p99") if name in zone[part]}
            for part in ("first", "last")
        },
    }


def _lasts(zones: Mapping[str, Any]) -> str:
    parts = []
    for name, zone in zones.items():
        times = ", ".join(f"{k} {v:g} ms" for k, v in zone["last"].items()) or "none succeeded"
        failed = f", {zone['failed']} of {zone['requests']} failed" if zone["failed"] else ""
        error = f" ({zone['error']})" if zone.get("error") else ""
        parts.append(f"{name} {times}{failed}{error}")
    return "; ".join(parts) or "nothing was sent"


def _rolling_back(stack_id: str) -> bool:
    """Whether the stack is going back: nothing in the request says so, the stack's status does."""
    try:
        stacks = boto3.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
        return "ROLLBACK" in stacks[0]["StackStatus"]
    except Exception as error:
        _log({"event": "stack status unknown", "reason": str(error)})
        return False


def _answer(event: Mapping[str, Any], succeeded: bool, reason: str, data: dict[str, Any]) -> None:
    """PUT the answer to CloudFormation; the URL is a credential and is never logged."""
    answer = {
        "Status": "SUCCESS" if succeeded else "FAILED",
        "Reason": reason,
        # The same for good: another one would make CloudFormation delete the former.
        "PhysicalResourceId": event.get("PhysicalResourceId") or event["LogicalResourceId"],
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": data,
    }
    body = json.dumps(answer).encode()
    if len(body) > ANSWER_LIMIT:
        answer["Data"] = {**data, "Zones": "{}"}  # they are in the log
        body = json.dumps(answer).encode()
    request = urllib.request.Request(
        event["ResponseURL"], data=body, method="PUT", headers={"Content-Type": ""}
    )
    for attempt in range(3):
        try:
            urllib.request.urlopen(request, timeout=10).close()
            return
        except OSError as error:
            _log({"event": "CloudFormation did not take the answer", "reason": str(error)})
            time.sleep(2**attempt)
    raise RuntimeError("CloudFormation did not take the answer")


# -------------------------------------------------------------------------------------- deployments


def deployment(event: Mapping[str, Any]) -> str:
    """Send while a deployment bakes: a share of what is sent reaches the new fleet."""
    detail = event.get("detail") or {}
    pending = detail.get("PendingDeploymentSummary") or {}
    statuses = [
        status.get("Status")
        for variant in pending.get("ProductionVariants") or []
        for status in variant.get("VariantStatus") or []
    ]
    outcome = SENT if BAKING in statuses else SKIPPED
    if outcome == SENT:
        settings = json.loads(os.environ["WARM_UP"])
        # One request at a time in each zone: most of them reach the fleet that serves callers.
        start_sender({"seconds": SLICE_SECONDS, "requests": settings["requests_per_zone"]})
    _log(
        {
            "event": "deployment",
            "outcome": outcome,
            "statuses": statuses,
            "configuration": pending.get("EndpointConfigName"),
        }
    )
    return outcome


# ---------------------------------------------------------------------------------------- keep-warm


def keep_warm(order: Mapping[str, Any]) -> str:
    """Send a few requests to each zone, unless callers keep the endpoint warm themselves."""
    settings = json.loads(os.environ["WARM_UP"])
    tps = traffic(settings["endpoint"], settings["variants"], int(order["window_seconds"]))
    outcome = SENT if tps < float(order["below_tps"]) else SKIPPED
    if outcome == SENT:
        start_sender({"seconds": KEEP_WARM_SECONDS, "requests": int(order["requests_per_zone"])})
    _log(
        {
            "event": "keep-warm",
            "outcome": outcome,
            "tps": round(tps, 3),
            "below_tps": order["below_tps"],
        }
    )
    return outcome


def traffic(endpoint: str, variants: list[str], window_seconds: int) -> float:
    """Requests per second over the last whole minutes; no metric means no traffic."""
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    cloudwatch = boto3.client("cloudwatch")
    total = 0.0
    for variant in variants:
        answer = cloudwatch.get_metric_statistics(
            Namespace="AWS/SageMaker",
            MetricName="Invocations",
            Dimensions=[
                {"Name": "EndpointName", "Value": endpoint},
                {"Name": "VariantName", "Value": variant},
            ],
            StartTime=end - timedelta(seconds=window_seconds),
            EndTime=end,
            Period=60,
            Statistics=["Sum"],
        )
        total += sum(point["Sum"] for point in answer["Datapoints"])
    return total / window_seconds


# --------------------------------------------------------------------------------------- the sender


def call_sender(event: dict[str, Any]) -> dict[str, Any]:
    """Call the sender and wait for what it measured."""
    client = boto3.client(
        "lambda", config=Config(read_timeout=SENDER_SECONDS + 30, retries={"total_max_attempts": 1})
    )
    try:
        answer = client.invoke(
            FunctionName=os.environ["SENDER"], Payload=json.dumps(event).encode()
        )
    except Exception as error:
        raise SenderUnavailable(f"{type(error).__name__}: {error}") from error
    result = json.loads(answer["Payload"].read())
    if answer.get("FunctionError"):
        raise RuntimeError(f"the sender failed: {result.get('errorMessage', result)}")
    return dict(result)


def start_sender(run: dict[str, Any]) -> None:
    """Start the sender without waiting for it."""
    boto3.client("lambda").invoke(
        FunctionName=os.environ["SENDER"],
        InvocationType="Event",
        Payload=json.dumps({"run": run}).encode(),
    )


def _log(entry: dict[str, Any], metrics: Any = None) -> None:
    """One JSON line; with metrics also in CloudWatch's embedded metric format."""
    if metrics == "true":
        entry = {**entry, **_embedded(entry)}
    print(json.dumps(entry))


def _embedded(report: Mapping[str, Any]) -> dict[str, Any]:
    zones = report["zones"].values()
    values = {
        "WarmUpRequests": (report["requests"], "Count"),
        "WarmUpFailedRequests": (report["failed"], "Count"),
        "WarmUpMissed": (int(report["outcome"] in (MISSED, REFUSED)), "Count"),
        "WarmUpDuration": (report["seconds"], "Seconds"),
    }
    for part in ("first", "last"):
        slowest = max((zone[part].get("p99", 0.0) for zone in zones), default=0.0)
        values[f"WarmUp{part.title()}P99"] = (slowest, "Milliseconds")
    place = {"EndpointName": report["endpoint"]}
    return embedded("LowLatencyEndpoint", place, values, time.time())
