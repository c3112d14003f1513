"""InvokeEndpoint, InvokeEndpointWithResponseStream, and the OpenAI-compatible path beside them.

Errors are in the words that AWS's own answers have been reported with; where none are known, in
ours. Limits: SageMaker Runtime API reference, InvokeEndpoint. The OpenAI-compatible path: SageMaker
developer guide, "Invoke endpoints with OpenAI-compatible APIs"; what comes from the container goes
to the caller as it comes.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import unquote

from ..admission import Credentials, access_key
from ..connections import ACCOUNT
from ..permissions.evaluator import NotJudged
from ..permissions.gate import check_invocation
from ..permissions.judge import Denied
from ..signatures import OPENAI_PATH, key_and_session
from .answers import Answers, Kind, RuntimeCall
from .blueprints import instance_dimensions
from .clock import Clock
from .endpoints import RuntimeEndpoint
from .fleet import Fleet, Variant
from .http_client import OutOfFiles, Unreachable
from .http_server import Connection, Nobody, Request
from .instances import Instance
from .meter import INVOCATIONS, Meter
from .options import LARGEST_PAYLOAD, LARGEST_SERVERLESS, RuntimeOptions
from .refusals import (
    COMPONENT_NOT_ALLOWED,
    COMPONENT_REQUIRED,
    NO_COPY,
    PREFIX,
    ModelFailed,
    Refusal,
    check_lengths,
    check_stream_session,
    invalid,
    refuse,
    region_of,
)
from .routing import choose_instance, prefix_key

_KINDS: dict[str, Kind] = {"invocations": "whole", "invocations-response-stream": "events"}
_ACTIONS: dict[Kind, str] = {
    "whole": "InvokeEndpoint",
    "events": "InvokeEndpointWithResponseStream",
    "openai": "CallWithBearerToken",
}


def _operation(request: Request) -> tuple[str, Kind, str | None]:
    """Read the endpoint's name, the kind of call, and the inference component that it is for."""
    path = request.target.partition("?")[0]
    openai = OPENAI_PATH.fullmatch(path)
    if openai and openai["rest"] == "chat/completions" and request.method == "POST":
        component = openai["component"]
        return unquote(openai["endpoint"]), "openai", component and unquote(component)
    parts = path.split("/")
    if parts[-1] == "async-invocations":
        raise invalid("Asynchronous invocations are not emulated by the local AWS")
    known = len(parts) == 4 and parts[1] == "endpoints" and parts[3] in _KINDS
    if not known or request.method != "POST":
        raise Refusal(404, "UnknownOperationException", "")
    header = request.headers.get(PREFIX + "inference-component")
    return unquote(parts[2]), _KINDS[parts[3]], header


Find = Callable[[str, str], Awaitable["RuntimeEndpoint | None"]]
"""Gives the endpoint in service of a Region and name."""


class Invocations:
    """Answers the runtime's listeners."""

    def __init__(
        self,
        find: Find,
        meter: Meter,
        clock: Clock,
        options: RuntimeOptions,
        region: str,
        credentials: Credentials,
    ) -> None:
        self._find = find
        self._credentials = credentials
        self._meter = meter
        self._clock = clock
        self.options = options
        self._region = region
        self._random = random.Random(options.seed)
        self._recent: deque[float] = deque()
        self._copies: set[asyncio.Task[None]] = set()
        self._answers = Answers(meter, clock, options)

    def handler(self, zone: str | None) -> Callable[[Request, Connection], Awaitable[None]]:
        """Give the handler of a zone's listener; None is the regional one."""

        async def answer(request: Request, connection: Connection) -> None:
            try:
                await self._invoke(request, connection, zone)
            except Refusal as refusal:
                refuse(connection, refusal)

        return answer

    async def _invoke(self, request: Request, connection: Connection, zone: str | None) -> None:
        name, kind, component = _operation(request)
        if request.too_large:
            connection.send(
                413,
                [("content-type", "text/plain")],
                f"HTTP content length exceeded {LARGEST_PAYLOAD} bytes.".encode(),
            )
            return
        headers = request.headers
        region = region_of(headers.get("authorization", "")) or self._region
        if self.options.permissions == "enforced":
            self._judge(request, name, kind, component, region, zone)
        check_lengths(headers)
        if kind == "events":
            check_stream_session(headers)
        self._throttle()
        endpoint = await self._find(region, name)
        if endpoint is None or not endpoint.in_service:
            raise invalid(f"Endpoint {name} of account {ACCOUNT} not found.")
        chosen = self._choose(endpoint, headers, component)
        call = RuntimeCall(request, connection, zone, kind, endpoint, *chosen)
        self._copy(call)
        variant = call.variant
        serverless = variant.settings.get("ServerlessConfig")
        if serverless and len(request.body) > LARGEST_SERVERLESS:
            # In AWS's words: sagemaker-python-sdk issue 4271.
            raise invalid(f"Request {uuid.uuid4()} has oversize body.")
        if serverless and variant.under_way >= serverless["MaxConcurrency"]:
            raise Refusal(400, "ThrottlingException", "Rate exceeded")
        variant.under_way += 1
        try:
            await self._serve(call)
        finally:
            variant.under_way -= 1

    def _judge(
        self,
        request: Request,
        name: str,
        kind: Kind,
        component: str | None,
        region: str,
        zone: str | None,
    ) -> None:
        """Refuse a caller whom no policy allows the call."""
        headers = request.headers
        key = (
            key_and_session(headers.get("authorization", ""))[0]
            if kind == "openai"
            else access_key(request.target, headers)
        )
        model = headers.get(PREFIX + "target-model")
        try:
            check_invocation(
                key, self._credentials, _ACTIONS[kind], name, component, region, zone, model
            )
        except Denied as denied:
            raise Refusal(403, "AccessDeniedException", str(denied)) from None
        except NotJudged as unknown:
            raise Refusal(
                400,
                "NotEmulated",
                f"The local AWS cannot judge this request: it does not know {unknown}.",
            ) from None

    def _copy(self, call: RuntimeCall) -> None:
        """Send a copy to the shadow variant, if it is one of those; nobody waits for it."""
        # AWS: the shadow variant "receives a percentage of the incoming requests, replicated from
        # the production variant, but does not return any responses" (SageMaker developer guide,
        # "Create a shadow test"). How weights make that percentage it does not write down; its one
        # example has equal weights ("Testing models with shadow variants"). Here it is the shadow's
        # weight over the production variant's.
        shadow, weight = call.fleet.shadow, call.variant.weight
        if shadow is None or shadow.weight <= 0:
            return
        if shadow.weight < weight and self._random.random() * weight >= shadow.weight:
            return
        copy = replace(
            call, connection=Nobody(call.connection.number), variant=shadow, session=None
        )
        task = asyncio.get_running_loop().create_task(self._serve(copy))
        self._copies.add(task)
        task.add_done_callback(self._copies.discard)

    # ------------------------------------------------------------------------ before a model is met

    def _throttle(self) -> None:
        limit = self.options.requests_per_second
        if limit is None:
            return
        now = time.monotonic()
        while self._recent and self._recent[0] <= now - 1.0:
            self._recent.popleft()
        if len(self._recent) >= limit:  # in these words: opensearch-project/ml-commons#2429
            raise Refusal(400, "ThrottlingException", None)
        self._recent.append(now)

    def _choose(
        self, endpoint: RuntimeEndpoint, headers: dict[str, str], component: str | None
    ) -> tuple[Fleet, Variant, Instance | None]:
        """Choose fleet and variant, and the instance when the request belongs to a session."""
        header = "target-container-hostname"
        if PREFIX + header in headers:  # is not here; AWS refuses it on other endpoints
            raise invalid(f"Endpoint {endpoint.name} takes no {header} header.")
        fleet = endpoint.choose_fleet(self._random)
        if component is not None and not fleet.hosts_components:
            raise invalid(COMPONENT_NOT_ALLOWED)
        if component is None and fleet.hosts_components and not fleet.variants:
            raise invalid(COMPONENT_REQUIRED)
        session_id = headers.get(PREFIX + "session-id")
        if session_id and session_id != "NEW_SESSION":
            session = endpoint.session(session_id)
            if session is None or component not in (None, session[1].name):
                raise invalid(f"Session {session_id} not found.")
            return session
        if component is not None:
            return *self._component(endpoint, component), None
        variant_name = headers.get(PREFIX + "target-variant")
        variant = endpoint.choose_variant(fleet, variant_name, self._random)
        if variant is None and variant_name is not None:
            raise invalid(
                f"Variant {variant_name} of endpoint {endpoint.name} of account {ACCOUNT} not found."
            )
        if variant is None:
            raise Refusal(503, "ServiceUnavailable", "No production variant has a weight above 0.")
        if (PREFIX + "target-model" in headers) != variant.multi_model:
            verb = "requires the" if variant.multi_model else "does not support"
            is_or_not = "a" if variant.multi_model else "not a"
            raise invalid(
                f"Endpoint {endpoint.name} is {is_or_not} multi-model endpoint and {verb} target "
                "model header."
            )
        return fleet, variant, None

    def _component(self, endpoint: RuntimeEndpoint, name: str) -> tuple[Fleet, Variant]:
        """Find an inference component with a copy that serves."""
        record = endpoint.hosting.components.get(name)
        if record is None or record["EndpointName"] != endpoint.name:
            raise invalid(  # the words are ours
                f"Inference component {name} of endpoint {endpoint.name} not found."
            )
        fleet = endpoint.components.get(name)
        if fleet is None or not fleet.variants[name].ready:
            raise self._no_copy(endpoint, name)
        return fleet, fleet.variants[name]

    def _no_copy(self, endpoint: RuntimeEndpoint, name: str) -> Refusal:
        """Count a request that found no copy, which an alarm may scale out on, and refuse it."""
        # Source: SageMaker developer guide, "Scale an endpoint to zero instances".
        metric = {"MetricName": "NoCapacityInvocationFailures", "Unit": "None", "Value": 1.0}
        dimensions = (("InferenceComponentName", name),)
        self._meter.put(endpoint.place, INVOCATIONS, dimensions, self._clock.now(), [metric])
        return invalid(NO_COPY)

    def _instance(self, call: RuntimeCall, router: int) -> Instance:
        """Choose the instance; a session has its own."""
        if call.session is not None:
            return call.session
        variant, request = call.variant, call.request
        ready = variant.ready
        if call.zone is not None and self.options.zone_affinity:
            ready = [instance for instance in ready if instance.zone == call.zone] or ready
        if not ready:
            if variant.component:
                raise self._no_copy(call.endpoint, variant.name)
            if "ServerlessConfig" in variant.settings:
                raise Refusal(
                    429,
                    "ModelNotReadyException",
                    "The serverless endpoint variant's resources are still being provisioned.",
                )
            raise Refusal(
                503, "ServiceUnavailable", f"No instance of variant {variant.name} is in service."
            )
        prefix_id = request.headers.get(PREFIX + "prefix-aware-id", "")
        key = prefix_key(variant.routing, request.body, prefix_id)
        return choose_instance(ready, variant.routing, router, key, self._random)

    # --------------------------------------------------------------------------------- with a model

    async def _serve(self, call: RuntimeCall) -> None:
        """Call the model, answer, and count."""
        router = call.connection.number % self.options.routers
        model_seconds: float | None = None
        status = 0
        instance: Instance | None = None
        try:
            while True:
                instance = self._instance(call, router)
                instance.begin(router)
                began = time.perf_counter()
                try:
                    status, ended = await self._answers.answer(call, instance)
                    model_seconds = ended - began
                    return
                except OutOfFiles as full:
                    raise Refusal(
                        503,
                        "ServiceUnavailable",
                        f"The local AWS may open no more files ({full}): raise ulimit -n.",
                    ) from None
                except Unreachable:
                    # It took no request, so that the next one may have it.
                    instance.recover()
                    call.session = None
                except ModelFailed as failed:
                    model_seconds = time.perf_counter() - began
                    status = failed.status
                    raise failed.refusal from None
                finally:
                    instance.end(router)
        except Refusal as refusal:
            if model_seconds is None:
                status, instance = refusal.status, None
            refuse(call.connection, refusal)
        finally:
            self._count(call, instance, status, model_seconds)

    def _count(
        self, call: RuntimeCall, instance: Instance | None, status: int, model_seconds: float | None
    ) -> None:
        total = time.perf_counter() - call.request.received
        endpoint, variant, dimensions = call.endpoint, call.variant, call.dimensions
        if instance is not None and (endpoint.enhanced or not variant.component):
            dimensions += instance_dimensions(
                variant, instance.id, instance.zone, endpoint.place[1], enhanced=endpoint.enhanced
            )
        model = None if model_seconds is None else round(model_seconds * 1e6)
        overhead = max(0, round((total - (model_seconds or 0.0)) * 1e6))
        in_service = len(variant.in_service)
        variant.was_asked = True
        self._meter.count(
            endpoint.place, dimensions, self._clock.now(), in_service, status, model, overhead
        )
