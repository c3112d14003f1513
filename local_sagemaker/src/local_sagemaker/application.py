"""The WSGI application: our own services first, moto's for everything else."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moto import backends
from moto.moto_server import werkzeug_app

from . import bodies, cloudtrail, protocols
from .admission import access_key
from .cloudwatch.state import state_at
from .connections import ACCOUNT
from .controls import control
from .corrections.lambda_functions import CONCURRENT_EXECUTIONS
from .pages import page
from .permissions import gate
from .permissions.evaluator import NotJudged
from .permissions.principals import ADMINISTRATOR, Identity
from .permissions.requests import SIGNED_AS, body_of, call_of
from .promql import http_api
from .protocols import ServiceError
from .runtime.forwarding import forward, is_invocation
from .runtime.service import Runtime

logger = logging.getLogger(__name__)

# Every answer of moto's would tell browsers that any page may read it.
werkzeug_app.DISABLE_GLOBAL_CORS = True

# For each request moto lists its own folder, which takes longer than most requests: once is enough.
_MOTO_MODULES = tuple(backends.list_of_moto_modules())
backends.list_of_moto_modules = lambda: _MOTO_MODULES


def _not_emulated(what: str) -> ServiceError:
    """The refusal of what neither this package nor moto answers."""
    return ServiceError(f"{what} is not emulated by the local AWS", "InvalidAction")


class _Dispatcher(werkzeug_app.DomainDispatcherApplication):
    """Moto's, which prints services that it does not know to standard output, and fails."""

    def get_backend_for_host(self, host: str | None) -> Any:
        known = host in (None, "moto_api", *_MOTO_MODULES)
        if not known and not any(p.match(f"http://{host}") for _, p in self.backend_url_patterns):
            raise _not_emulated(f"the service {str(host).partition('.')[0]}")
        return super().get_backend_for_host(host)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer, but for a path that no operation of moto's has: it has a web page for those."""
        held: list[Any] = []
        answer = super().__call__(environ, lambda *given: held.append(given))
        (begun,) = held
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        if begun[0].startswith("404") and method != "HEAD":
            answer = [b"".join(answer)]
            if not answer[0] or answer[0].lower().startswith(b"<!doctype html"):
                raise _not_emulated(f"{method} {path} of this service")
        start_response(*begun)
        return answer


_MOTO = _Dispatcher(werkzeug_app.create_backend_app)
"""One for the process, whose state moto keeps: it makes a Flask application for each service."""

_SCOPE = re.compile(r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/")
_SCOPE_IN_QUERY = re.compile(
    r"X-Amz-Credential=[^&%/]+(?:%2F|/)\d+(?:%2F|/)([\w-]+)(?:%2F|/)([\w-]+)"
)
"""Region and service of a signature."""

_WITHOUT_POLICIES = {"monitoring", "logs", "sqs", "ecr", "ssm", "application-autoscaling"}
"""Services whose requests change no policy that InvokeEndpoint is judged by."""

Operation = Callable[["Caller", dict[str, Any]], "dict[str, Any] | None"]
"""One API operation: takes who calls and the parameters, gives the result."""


class PassOn(Exception):
    """Raised by an operation that leaves this one request to moto."""


@dataclass(frozen=True)
class Caller:
    """Where a request belongs, and who made it."""

    region: str
    runtime: Runtime
    key: str | None  # the access key that the request is signed with
    who: Identity

    @property
    def account(self) -> str:
        return self.who.principal.account

    @property
    def place(self) -> tuple[str, str]:
        return self.account, self.region

    @property
    def url(self) -> str:
        return self.runtime.aws_url

    def now(self) -> datetime:
        """Give the present by the runtime's clock, so that records lie on the metrics' axis."""
        return self.runtime.clock.moment()


@dataclass(frozen=True)
class OwnService:
    """A service (or part of one) that is answered here and not by moto."""

    name: str
    operations: Mapping[str, Operation]
    complete: bool = False


class Application:
    """Answers AWS requests."""

    def __init__(
        self,
        services: Iterable[OwnService],
        on_reset: Sequence[Callable[[], None]],
        runtime: Runtime,
    ) -> None:
        self.runtime = runtime
        self._services = {service.name: service for service in services}
        self._on_reset = on_reset

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        path = "/" + environ.get("PATH_INFO", "").lstrip("/")
        environ[CONCURRENT_EXECUTIONS] = self.runtime.options.concurrent_executions
        if is_invocation(path):
            return forward(self.runtime, environ, start_response)
        if path.startswith("/_local"):
            return self._controlled(path, environ, start_response)
        if path == "/moto-api/reset":
            return self._reset(environ, start_response)
        return self._judged(environ, start_response)

    def _judged(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a request that its caller is allowed to make."""
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        target = environ.get("REQUEST_URI", "")
        scope = _SCOPE.search(authorization) or _SCOPE_IN_QUERY.search(target)
        region, service = scope.groups() if scope else ("us-east-1", "s3")
        try:
            bodies.expand(environ, service)
        except ServiceError as error:
            return _refused_to(environ, start_response, service, error)
        key = access_key(target, {"authorization": authorization} if authorization else {})
        who, refused = ADMINISTRATOR, None
        call = cloudtrail.change_asked_for(environ, service)
        told: list[str] = []

        def begin(status: str, headers: Any, *more: Any) -> Any:
            told.append(status)
            return start_response(status, headers, *more)

        if self.runtime.options.permissions == "enforced":
            who = gate.identity_of(key, self.runtime.credentials)
            refused = gate.refusal(environ, who, service, region)
        try:
            if refused is not None:
                logger.info("%s: %s", who.principal.arn, refused.body.decode())
                kind = refused.content_type
                answer = _answered(begin, refused.status, kind, refused.body, refused.headers)
            else:
                own = self._own(environ, begin, key, who)
                answer = own or _by_moto(environ, begin, service)
            if call is not None:
                refusal = b"".join(answer) if told[0] >= "4" else None
                caller = Caller(region, self.runtime, key, who)
                cloudtrail.record(caller, environ, service, call, refusal)
                answer = answer if refusal is None else [refusal]
            return answer
        finally:
            if service not in _WITHOUT_POLICIES:
                gate.forget()

    def _reset(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Forget everything, moto's part included."""
        for forget in self._on_reset:
            forget()
        gate.forget()
        self.runtime.reset()
        return _MOTO(environ, start_response)

    def _controlled(
        self, path: str, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer what is no part of AWS."""
        body = environ["wsgi.input"].read()
        status, answer = control(self.runtime, path, environ.get("QUERY_STRING", ""), body)
        return _answered(start_response, status, "application/json", answer)

    def _own(
        self,
        environ: dict[str, Any],
        start_response: Callable[..., Any],
        key: str | None,
        who: Identity,
    ) -> Iterable[bytes] | None:
        """Answer a request to one of our own services; None for what is moto's."""
        scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
        path = "/" + environ.get("PATH_INFO", "").lstrip("/")
        if scope and scope[2] == http_api.SERVICE and path.startswith(http_api.PATH):
            return self._queried(environ, start_response, scope[1], path)
        service = self._services.get(SIGNED_AS.get(scope[2], scope[2])) if scope else None
        if service is None or scope is None:
            return None
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        operation = target.rpartition(".")[2]
        rest = (
            not target and protocols.service_model(service.name).metadata["protocol"] == "rest-json"
        )
        is_json = bool(target) or rest
        body = body_of(environ)  # moto may still read it
        if not is_json:
            operation = protocols.queried_operation(body, environ.get("QUERY_STRING", ""))
        if not service.complete and operation not in service.operations:
            return None
        caller = Caller(scope[1], self.runtime, key, who)
        try:
            request: dict[str, Any] = {}
            if rest:
                call = call_of(environ, service.name)
                operation, request = call.operation, call.request
            elif not target:
                query = environ.get("QUERY_STRING", "")
                operation, request = protocols.parse_query(body, query, service.name)
            if operation not in service.operations:
                raise _not_emulated(f"{service.name}:{operation}")
            if rest:
                protocols.check(service.name, operation, request)
            elif target:
                request = protocols.parse_json(body, service.name, operation)
            result = service.operations[operation](caller, request) or {}
            result = page(service.name, operation, request, result)
            answer = protocols.write(service.name, operation, result, is_json)
            return _answered(start_response, 200, protocols.content_type(is_json), answer)
        except PassOn:
            return None
        except NotJudged as unknown:
            refusal = ServiceError(f"The local AWS does not know {unknown}", "InvalidAction")
        except ServiceError as error:
            logger.info("%s %s refused: %s", service.name, operation, error.message)
            refusal = error
        except Exception as error:
            # A mistake of ours must look like one (500), never like a service's refusal.
            logger.exception("%s %s failed", service.name, operation)
            refusal = ServiceError(f"{type(error).__name__}: {error}", "InternalFailure", 500)
        return _refused(start_response, refusal, is_json)

    def _queried(
        self, environ: dict[str, Any], start_response: Callable[..., Any], region: str, path: str
    ) -> Iterable[bytes]:
        """Answer a PromQL query."""
        state = state_at((ACCOUNT, region))
        body = environ["wsgi.input"].read()
        with state.lock:
            status, answer = http_api.answer(
                state.queryable(),
                environ["REQUEST_METHOD"],
                path.removeprefix(http_api.PATH),
                environ.get("QUERY_STRING", ""),
                body,
                self.runtime.clock.now(),
            )
        return _answered(start_response, status, "application/json", answer)


def _by_moto(
    environ: dict[str, Any], start_response: Callable[..., Any], service: str
) -> Iterable[bytes]:
    """Answer a request by moto, unless AWS's documentation excludes it."""
    refused = gate.excluded(environ, service)
    if refused is not None:
        return _answered(
            start_response, refused.status, refused.content_type, refused.body, refused.headers
        )
    try:
        body = bodies.checked(environ, service)
        return _MOTO(environ, start_response)
    except ServiceError as error:
        refusal = error
    except UnicodeDecodeError as error:
        if bodies.is_text(body):
            raise
        refusal = ServiceError(f"The request is no UTF-8: {error}", protocols.UNREADABLE)
    return _refused_to(environ, start_response, service, refusal)


def _refused_to(
    environ: dict[str, Any], start_response: Callable[..., Any], service: str, refusal: ServiceError
) -> Iterable[bytes]:
    """Refuse a request in the form that its sender reads."""
    logger.info("%s", refusal.message)
    is_json = protocols.reads_json(service, environ.get("CONTENT_TYPE", ""))
    return _refused(start_response, refusal, is_json)


def _refused(
    start_response: Callable[..., Any], refusal: ServiceError, is_json: bool
) -> Iterable[bytes]:
    body, kind = protocols.write_error(refusal, is_json), protocols.content_type(is_json)
    headers = [("x-amzn-errortype", refusal.code)]
    return _answered(start_response, refusal.status, kind, body, headers)


def _answered(
    start_response: Callable[..., Any],
    status: int,
    kind: str,
    answer: bytes,
    more: Iterable[tuple[str, str]] = (),
) -> Iterable[bytes]:
    headers = [
        *more,
        ("Content-Type", kind),
        ("Content-Length", str(len(answer))),
        ("x-amzn-RequestId", str(uuid.uuid4())),
    ]
    start_response(f"{status} {'OK' if status == 200 else 'Error'}", headers)
    return [answer]
