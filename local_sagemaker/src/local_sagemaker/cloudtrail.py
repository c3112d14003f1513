"""CloudTrail's event history: who called what changed something, newest first; no data events."""

from __future__ import annotations

import json
import re
import uuid
from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.model import ListShape, MapShape, Shape, StructureShape

from .connections import OF_CLOUDFORMATION
from .permissions.requests import Call, body_of, call_of
from .protocols import Invalid, service_model

if TYPE_CHECKING:
    from .application import Caller

_KEPT = 10_000
_events: defaultdict[str, deque[dict[str, Any]]] = defaultdict(lambda: deque(maxlen=_KEPT))
_DATA = {"s3", "logs", "sqs", "dynamodb", "sts", "kms"}
_READS = re.compile(
    r"(Batch)?(Get|Describe|List|Head|Lookup|Query|Scan|Validate|Estimate|Put\w*Data$)"
)
_CODE = re.compile(rb"(?:<Code>|\"__type\": ?\"(?:[^\"]*#)?)([\w.]+)")


#: CloudTrail's words for the principal types of IAM's conditions.
_TYPES = {"User": "IAMUser", "Account": "Root"}
_SECRETS = {"SecretString", "SecretBinary", "Password", "OldPassword", "NewPassword"}
_HIDDEN = "HIDDEN_DUE_TO_SECURITY_REASONS"


def reset() -> None:
    _events.clear()


def change_asked_for(environ: dict[str, Any], service: str) -> Call | None:
    """Read a request that may change something; None for what is no such event of management."""
    if service in _DATA or environ["REQUEST_METHOD"] == "GET":
        return None
    named = re.search(rb"(?:^|&)Action=(\w+)", body_of(environ))
    operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2] or (
        named[1].decode() if named else ""
    )
    if _READS.match(operation):
        return None
    try:
        call = call_of(environ, service)
    except Exception:
        return None  # what cannot be read the service itself refuses
    return None if _READS.match(call.operation) else call


def record(
    caller: Caller, environ: Mapping[str, Any], service: str, call: Call, refused: bytes | None
) -> None:
    """Keep what was called, and with which error."""
    now, who, source = caller.now(), caller.who, f"{service}.amazonaws.com"
    named = who.keys.get("aws:username") or who.principal.arn.rpartition("/")[2]
    code = _CODE.search(refused) if refused is not None else None
    kind = who.keys.get("aws:principaltype")
    user = {"type": _TYPES.get(str(kind), kind), "arn": who.principal.arn, "userName": named}
    if OF_CLOUDFORMATION in str(environ.get("HTTP_USER_AGENT")):
        user["invokedBy"] = "cloudformation.amazonaws.com"
    asked = service_model(call.service).operation_model(call.operation)
    event = {
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": source,
        "eventName": call.operation,
        "awsRegion": caller.region,
        "sourceIPAddress": user.get("invokedBy", "127.0.0.1"),
        "userIdentity": user,
        "requestParameters": _spelled(call.request, asked.input_shape),
        "readOnly": False,
        **({} if refused is None else {"errorCode": code[1].decode() if code else "Unknown"}),
    }
    named_in = [
        v for k, v in call.request.items() if isinstance(v, str) and k.endswith(("Name", "Id"))
    ]
    _events[caller.region].appendleft(
        {
            "EventId": str(uuid.uuid4()),
            "EventName": call.operation,
            "EventTime": now,
            "EventSource": source,
            "ReadOnly": "false",
            "Username": named,
            "Resources": [{"ResourceName": each} for each in named_in],
            "CloudTrailEvent": json.dumps(event, default=str),
        }
    )


def _spelled(value: Any, shape: Shape | None) -> Any:
    """Begin the names of members in lower case, as CloudTrail does, and hide secrets."""
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        return {
            f"{name[:1].lower()}{name[1:]}": _HIDDEN
            if name in _SECRETS
            else _spelled(inner, shape.members.get(name))
            for name, inner in value.items()
        }
    if isinstance(shape, MapShape) and isinstance(value, dict):
        return {key: _spelled(inner, shape.value) for key, inner in value.items()}
    if isinstance(shape, ListShape) and isinstance(value, list):
        return [_spelled(inner, shape.member) for inner in value]
    return value


_ATTRIBUTES = ("EventId", "EventName", "EventSource", "ReadOnly", "Username", "ResourceName")


def _has(event: dict[str, Any], name: str, value: str) -> bool:
    resources = [resource["ResourceName"] for resource in event["Resources"]]
    return value in resources if name == "ResourceName" else bool(event[name] == value)


def lookup_events(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    wanted = request.get("LookupAttributes") or []
    if len(wanted) > 1 or any(each["AttributeKey"] not in _ATTRIBUTES for each in wanted):
        raise Invalid(f"The local AWS looks up one attribute, of {', '.join(_ATTRIBUTES)}")
    first, last = (_moment(request.get(key)) for key in ("StartTime", "EndTime"))
    found = [
        event
        for event in _events[caller.region].copy()  # other threads add to it
        if (first is None or event["EventTime"] >= first)
        and (last is None or event["EventTime"] <= last)
        and all(_has(event, e["AttributeKey"], e["AttributeValue"]) for e in wanted)
    ]
    return {"Events": found}


def _moment(seconds: Any) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC)
