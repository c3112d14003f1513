"""Lambda: functions run here, and within the account's concurrency."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask import request
from moto.awslambda import urls
from moto.awslambda.exceptions import InvalidParameterValueException, LambdaClientError
from moto.awslambda.models import LambdaBackend, LambdaFunction
from moto.awslambda.responses import LambdaResponse
from moto.ec2.models import ec2_backends

from .. import lambda_runner
from ..admission import Session, runtime_at
from ..archives import Unpackable, check_code
from ..cloudwatch.embedded_metrics import put_embedded
from ..cloudwatch.state import state_at
from ..function_networks import network_of
from ..permissions import service_roles
from ..permissions.evaluator import NotJudged
from ..permissions.gate import is_enforced
from ..permissions.judge import subnets_of
from ..permissions.principals import Origin, service_session
from .replacing import around

# Lambda invocations: moto needs Docker; here the function runs in a subprocess.
#
# And archives that Lambda refuses are refused.


_OF_THE_CODE = ("code_bytes", "code_digest", "code_sha_256", "code_size")


def as_function(
    found: Any, url: str, session: Session | None = None
) -> lambda_runner.PythonFunction:
    return lambda_runner.PythonFunction(
        name=found.function_name,
        arn=found.function_arn,
        runtime=str(found.run_time),
        handler=found.handler,
        code=found.code_bytes,
        timeout=int(found.timeout or 3),
        memory=int(found.memory_size or 128),
        environment={k: str(v) for k, v in (found.environment_vars or {}).items()},
        region=found.region,
        url=url,
        log_group=found.logs_group_name,
        session=session,
    )


def run(found: Any, url: str, event: Any) -> lambda_runner.InvocationResult:
    """Run moto's function with its role, and write its output to its log group if that may."""
    session, logs, region = None, True, found.region
    if is_enforced(url):
        key = found.kms_key_arn if found.environment_vars else None
        group = found.logs_group_name
        try:
            service_roles.check_assumable(found.role)
            service_roles.check_key(
                region, found.function_name, found.function_arn, found.role, key
            )
            exists = group in found.logs_backend.groups
            logs = service_roles.may_log(
                region, found.function_name, found.role, group, group_exists=exists
            )
        except service_roles.FunctionRoleLacks as lacks:
            return lambda_runner.failure("AccessDeniedException", str(lacks))
        except NotJudged as unknown:
            return lambda_runner.failure("NotEmulated", f"the local AWS does not know {unknown}")
        subnets = (found._vpc_config or {}).get("SubnetIds") or ()
        session = service_session(
            found.role, found.function_name, Origin(tuple(subnets), found.function_arn)
        )
    function, runtime = as_function(found, url, session), runtime_at(url)
    if runtime is not None:
        function = replace(function, network=network_of(found, runtime))
    outcome = lambda_runner.run(function, event)
    if logs:
        found.logs_backend.ensure_log_group(found.logs_group_name)
        found.save_logs(outcome.log or " ")
        # Functions see this machine's clock; metrics lie on the runtime's, which tests advance.
        ahead = runtime.clock.now() - time.time() if runtime is not None else 0.0
        put_embedded(state_at((found.account_id, region)), outcome.log, ahead)
    return outcome


_LARGEST_ENVIRONMENT = 4096
"""https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
_KEPT = ("DeadLetterConfig", "LoggingConfig", "VpcConfig", "Role")
"""What of a function's configuration its role is judged by; moto drops half of it."""


def _check_role(region: str, name: str, settings: dict[str, Any]) -> None:
    if not is_enforced(f"http://{request.host}"):
        return
    try:
        service_roles.check_configuration(region, name, settings)
    except service_roles.FunctionRoleLacks as lacks:
        raise InvalidParameterValueException(str(lacks)) from None


def _check_environment(given: dict[str, Any]) -> None:
    variables = (given.get("Environment") or {}).get("Variables") or {}
    measured = json.dumps(variables, separators=(",", ":"))
    if len(measured.encode()) > _LARGEST_ENVIRONMENT:
        raise InvalidParameterValueException(
            "Lambda was unable to configure your environment variables because the environment "
            f"variables you have provided exceeded the 4KB limit. String measured: {measured}"
        )


def _check_network(region: str, account: str, given: dict[str, Any]) -> None:
    """Refuse subnets and groups that are not there, or not of one VPC.

    Lambda's words as its users report them: motdotla/node-lambda#162,
    smoketurner/serverless-vpc-plugin#765, appleboy/lambda-action#72; those about subnets are like them.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
    """
    network = given.get("VpcConfig") or {}
    subnets, groups = (network.get(name) or () for name in ("SubnetIds", "SecurityGroupIds"))
    if bool(subnets) != bool(groups):
        raise InvalidParameterValueException(
            "SubnetIds and SecurityIds must coexist or be both empty list."
        )
    by_subnet, backend = subnets_of(account, region), ec2_backends[account][region]
    by_group = {name: backend.get_security_group_from_id(name) for name in groups}
    for name in subnets:
        if name not in by_subnet:
            raise _absent("DescribeSubnets", "InvalidSubnetID.NotFound", f"subnet ID '{name}'")
    for name in groups:
        if by_group[name] is None:
            words = f"security group '{name}'"
            raise _absent("DescribeSecurityGroups", "InvalidGroup.NotFound", words)
    vpcs = {by_subnet[name].vpc_id for name in subnets}
    if len(vpcs) > 1:
        raise InvalidParameterValueException("Subnets are required to be in the same VPC.")
    if any(group.vpc_id not in vpcs for group in by_group.values()):
        raise InvalidParameterValueException("Security Groups are required to be in the same VPC.")


def _absent(operation: str, code: str, what: str) -> InvalidParameterValueException:
    return InvalidParameterValueException(
        f"Error occurred while {operation}. EC2 Error Code: {code}. "
        f"EC2 Error Message: The {what} does not exist"
    )


def _keep(found: Any, settings: dict[str, Any]) -> None:
    found.kept = settings
    group = (settings.get("LoggingConfig") or {}).get("LogGroup")
    found.logs_group_name = group or f"/aws/lambda/{found.function_name}"


@around(LambdaBackend)
def create_function(original: Callable[..., Any], self: Any, spec: dict[str, Any]) -> Any:
    """Refuse a role that cannot run the function."""
    _check_environment(spec)
    _check_network(self.region_name, self.account_id, spec)
    settings = {name: spec[name] for name in _KEPT if spec.get(name)}
    _check_role(self.region_name, str(spec.get("FunctionName")), settings)
    made = original(self, spec)
    _keep(made, settings)
    return made


@around(LambdaFunction)
def update_configuration(
    original: Callable[..., Any], self: Any, config_updates: dict[str, Any]
) -> Any:
    """Refuse a role that cannot run the function any more."""
    _check_environment(config_updates)
    _check_network(self.region, self.account_id, config_updates)
    changed = {name: value for name, value in config_updates.items() if name in _KEPT}
    settings = {**getattr(self, "kept", {"Role": self.role}), **changed}
    _check_role(self.region, self.function_name, settings)
    answer = original(self, config_updates)
    _keep(self, settings)
    return answer


class _Throttled(LambdaClientError):
    """Source: Lambda API reference, Invoke, TooManyRequestsException."""

    code = 429

    def __init__(self) -> None:
        super().__init__("TooManyRequestsException", "Rate Exceeded.")


class _TooLarge(LambdaClientError):
    """Source: Lambda API reference, Invoke, RequestTooLargeException."""

    code = 413

    def __init__(self, most: int) -> None:
        super().__init__(
            "RequestTooLargeException",
            f"Request must be smaller than {most} bytes for the InvokeFunction operation",
        )


_LARGEST_PAYLOAD, _LARGEST_EVENT = 6 * 1024 * 1024, 1024 * 1024
"""Of an invocation that is waited for, and of one of the type Event.

https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
"""
_LARGEST_LOG = 4096
"""Of what an answer has of the log. Source: API reference, Invoke, X-Amz-Log-Result."""


@around(LambdaFunction)
def invoke(
    _: Callable[..., Any], self: Any, body: Any, request_headers: Any, response_headers: Any
) -> Any:
    """Run the function and give its answer; of an invocation of the type Event, answer before it ends.

    https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
    """
    kind = request_headers.get("x-amz-invocation-type")
    most = _LARGEST_EVENT if kind == "Event" else _LARGEST_PAYLOAD
    payload = body.encode() if isinstance(body, str) else body or b""
    if len(payload) > most:
        raise _TooLarge(most)
    try:
        event = json.loads(payload or b"{}")
    except (ValueError, RecursionError) as error:
        raise LambdaClientError(
            "InvalidRequestContentException", f"Could not parse request body into json: {error}"
        ) from None
    if kind == "DryRun":
        return ""
    if str(self.reserved_concurrency) == "0":
        if kind == "Event":
            return ""  # it waits in the function's queue, where nothing is taken from
        raise _Throttled
    url = f"http://{request.host}"
    if kind == "Event":
        lambda_runner.in_background(self.function_arn, lambda: run(self, url, event))
        return ""
    outcome = run(self, url, event)
    if outcome.failed:
        response_headers["x-amz-function-error"] = "Unhandled"
    log = outcome.log.encode()[-_LARGEST_LOG:]
    response_headers["x-amz-log-result"] = base64.b64encode(log).decode()
    return outcome.payload.encode()


@around(LambdaBackend, "invoke")
def invoke_version(
    original: Callable[..., Any], self: Any, name: str, qualifier: str | None, *given: Any
) -> Any:
    """Run the version or alias that a request names: moto reads it under another name."""
    return original(self, name, qualifier or request.args.get("Qualifier"), *given)


@around(LambdaFunction)
def _set_function_code(original: Callable[..., Any], self: Any, spec: dict[str, Any]) -> None:
    before = {name: getattr(self, name, None) for name in _OF_THE_CODE}
    original(self, spec)
    if not self.code_bytes or "ImageUri" in spec:
        return
    try:
        check_code(self.code_bytes)
    except Unpackable as error:
        vars(self).update(before)
        raise InvalidParameterValueException(str(error)) from None


CONCURRENT_EXECUTIONS = "local_sagemaker.concurrent_executions"
"""Where a request's environment has the account's quota."""

_LEAST_UNRESERVED = 100
"""Source: Lambda API reference, "PutFunctionConcurrency". Accounts with a smaller quota cannot
reserve any: their users report a minimum of [10] or [50], the quota itself."""


def _quota() -> int:
    return int(request.environ[CONCURRENT_EXECUTIONS])


def _unreserved(backend: Any, but: str = "") -> int:
    """Give what is left of the quota, without the reservation of one function."""
    return _quota() - sum(
        int(function.reserved_concurrency or 0)
        for function in backend.list_functions()
        if function.function_name != but
    )


@around(LambdaBackend)
def put_function_concurrency(
    original: Callable[..., str], self: Any, function_name: str, reserved_concurrency: str
) -> str:
    """Refuse what leaves too little unreserved."""
    name = self.get_function(function_name).function_name
    least = min(_LEAST_UNRESERVED, _quota())
    if _unreserved(self, but=name) - int(reserved_concurrency) < least:
        raise InvalidParameterValueException(
            "Specified ReservedConcurrentExecutions for function decreases account's "
            f"UnreservedConcurrentExecution below its minimum value of [{least}]."
        )
    return original(self, function_name, reserved_concurrency)


def _get_account_settings(self: Any) -> tuple[int, dict[str, str], str]:
    limit = {
        "ConcurrentExecutions": _quota(),
        "UnreservedConcurrentExecutions": _unreserved(self.backend),
    }
    usage = {"FunctionCount": len(self.backend.list_functions())}
    return 200, {}, json.dumps({"AccountLimit": limit, "AccountUsage": usage})


LambdaResponse.get_account_settings = _get_account_settings
urls.url_paths["{0}/(?P<api_version>[^/]+)/account-settings/?$"] = LambdaResponse.dispatch


@around(LambdaBackend)
def put_function_event_invoke_config(
    original: Callable[..., Any], self: Any, function_name: str, config: dict[str, Any]
) -> Any:
    """Refuse destinations that Lambda does not send to: API reference, DestinationConfig."""
    for outcome, destination in (config.get("DestinationConfig") or {}).items():
        arn = (destination or {}).get("Destination") or ""
        if arn.endswith(".fifo") or (outcome == "OnSuccess" and ":s3:" in arn):
            raise InvalidParameterValueException(
                f"The provided destination config DestinationConfig({outcome}={arn}) is invalid."
            )
    return original(self, function_name, config)
