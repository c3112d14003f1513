"""Judges the requests of the local AWS's main URL and InvokeEndpoint, and writes refusals as each service does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import protocols
from ..admission import SERVED, Credentials, error_xml, runtime_at
from .evaluator import NotJudged
from .judge import Denied, bucket_has_policy, check, check_call, check_role_exists, zonal_endpoints
from .principals import ADMINISTRATOR, Identity, identify
from .requests import Call, bucket_of_host, call_of, rights

DENIED_OBJECTS = "local_sagemaker.denied_objects"
"""Where a DeleteObjects request has the ARNs of those that its caller may not delete."""


def is_enforced(url: str | None = None) -> bool:
    """Whether the server at a URL judges rights; without one, whether all of this process do."""
    asked = list(SERVED.values()) if url is None else [runtime_at(url)]
    return not any(each and each.options.permissions == "ignored" for each in asked)


class Answer(NamedTuple):
    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def identity_of(key: str | None, credentials: Credentials) -> Identity:
    """Give who has an access key; the one that the local AWS made at its start is the user's."""
    return ADMINISTRATOR if key in (None, credentials.access_key) else identify(str(key))


def refusal(environ: dict[str, Any], who: Identity, service: str, region: str) -> Answer | None:
    """Judge a WSGI request; gives the refusal, None for what is allowed."""
    # The administrator is asked only what a bucket's policy denies all, and whether a role exists.
    if who.administrator and (
        service not in ("s3", "sts")
        or (service == "s3" and not any(map(bucket_has_policy, _buckets(environ))))
    ):
        return None
    call: Call | None = None
    try:
        call = call_of(environ, service)
        if call.operation == "AssumeRole":
            check_role_exists(who, call)
        if who.administrator and (service == "sts" or call.operation in _ALWAYS):
            return None
        if call.operation == "DeleteObjects":
            environ[DENIED_OBJECTS] = _denied_objects(who, call, region)
        else:
            check_call(who, call, region)
    except Denied as denied:
        protocol = call.protocol if call else "json"
        code = _CODES.get(service) or _CODES.get(protocol, "AccessDeniedException")
        return _written(service, protocol, code, str(denied))
    except NotJudged as unknown:
        message = f"The local AWS cannot judge this request: it does not know {unknown}."
        protocol = call.protocol if call else _guessed(service, environ)
        return _written(service, protocol, "NotEmulated", message)
    return None


def excluded(environ: dict[str, Any], service: str) -> Answer | None:
    """Hold a WSGI request against AWS's documentation; gives the refusal, None for what is in it."""
    try:
        call = call_of(environ, service)
    except NotJudged:
        return None
    try:
        protocols.check(call.service, call.operation, call.request)
    except protocols.ServiceError as error:
        code = error.code
        if code in _OF_MODEL:
            code = _INVALID.get(call.service, "ValidationException")
        return _written(service, call.protocol, code, error.message)
    return None


_OF_MODEL = ("ValidationException", "SerializationException")
_INVALID = {
    **dict.fromkeys(("cloudwatch", "iam", "sts"), "ValidationError"),
    **dict.fromkeys(("ec2", "sqs"), "InvalidParameterValue"),
    **dict.fromkeys(("ecr", "logs"), "InvalidParameterException"),
    "route53": "InvalidInput",
    "s3": "InvalidArgument",
    "sns": "InvalidParameter",
}
"""What a service calls a request that its model excludes, if not ValidationException."""


_ALWAYS = {"DeleteBucketPolicy", "GetBucketPolicy", "PutBucketPolicy"}
"""What an account's root may do whatever the policy denies. Source: S3 API reference."""


def _buckets(environ: Mapping[str, Any]) -> list[str]:
    """Give the buckets that a request to S3 names, in its path, its host or as a source."""
    host = str(environ.get("HTTP_HOST", ""))
    paths = (environ.get("PATH_INFO", ""), environ.get("HTTP_X_AMZ_COPY_SOURCE", ""))
    return [bucket_of_host(host), *(str(p).lstrip("/").partition("/")[0] for p in paths)]


def _denied_objects(who: Identity, call: Call, region: str) -> set[str]:
    """Give the objects that may not be deleted: the others of the request are."""
    denied = set()
    for each in (call.request.get("Delete") or {}).get("Objects") or []:
        one = Call("s3", "DeleteObject", call.protocol, {"Bucket": call.request["Bucket"], **each})
        try:
            check_call(who, one, region)
        except Denied as refused:
            denied.add(refused.resource)
    return denied


def _guessed(service: str, environ: Mapping[str, Any]) -> str:
    """Say how a request of an unknown operation is answered."""
    if environ.get("HTTP_X_AMZ_TARGET"):
        return "json"
    return {"s3": "rest-xml", "ec2": "ec2", "lambda": "rest-json"}.get(service, "query")


_CODES = {
    "sns": "AuthorizationError",
    "ec2": "UnauthorizedOperation",
    **dict.fromkeys(("sqs", "rest-xml", "query"), "AccessDenied"),
}
"""What a denial is called, by service or else by protocol."""


def _written(service: str, protocol: str, code: str, message: str) -> Answer:
    denies = code in ("AccessDeniedException", *_CODES.values())
    if service == "s3":
        status = 403 if denies else 501 if code == "NotEmulated" else 400
        return Answer(status, "application/xml", error_xml("s3", code, message))
    if protocol in ("ec2", "query", "rest-xml"):
        form = "ec2" if protocol == "ec2" else "query"
        lead = "You are not authorized to perform this operation. "
        told = f"{lead}{message}" if protocol == "ec2" and denies else message
        return Answer(403 if denies else 400, "text/xml", error_xml(form, code, told))
    if protocol == "rest-json":
        document = json.dumps({"Message": message}).encode()
        headers = (("x-amzn-errortype", code),)
        return Answer(403 if denies else 400, "application/json", document, headers)
    document = json.dumps({"__type": code, "message": message, "Message": message}).encode()
    queried = (("x-amzn-query-error", f"{code};Sender"),) if service == "sqs" else ()
    status = 403 if service == "sqs" and denies else 400
    return Answer(status, "application/x-amz-json-1.1", document, queried)


_kept: set[tuple[str | None, ...]] = set()
"""What was allowed, and stays so until something is changed."""
_MOST = 10_000
_version = 0


def forget() -> None:
    """Forget what was allowed: something has changed that it may depend on."""
    global _version
    _version += 1
    _kept.clear()


def check_invocation(
    key: str | None,
    credentials: Credentials,
    operation: str,
    endpoint: str,
    component: str | None,
    region: str,
    zone: str | None,
    model: str | None = None,
) -> None:
    asked = (key, operation, endpoint, component, region, zone, model)
    if asked in _kept:
        return
    version, who = _version, identity_of(key, credentials)
    # The account's administrator may do everything, but through an endpoint what that lets through.
    if who is not ADMINISTRATOR or (zone is not None and zonal_endpoints(zone, region)):
        parameters = {
            "EndpointName": endpoint,
            "InferenceComponentName": component,
            "TargetModel": model,
        }
        wanted = rights("sagemaker-runtime", operation, parameters, region, who.principal.account)
        if check(who, wanted, "sagemaker-runtime", region, zone=zone):
            return  # a policy knows the time
    if version == _version and len(_kept) < _MOST:
        _kept.add(asked)
