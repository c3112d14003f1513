"""A Locust user for SageMaker endpoints."""

from __future__ import annotations

from locust import User, events, task  # isort: skip  # first: it patches the standard library
import logging
import time
from dataclasses import fields
from typing import Any

import gevent
from locust.exception import StopUser

from low_latency_client.runtime_wire import body_bytes

from ...account.sessions import aws_errors_in_words, open_session
from ...errors import LowLatencyEndpointError
from .invoking import SageMakerInvoker
from .locust_options import add_options, settings_of
from .measurement import CHECK_FAILED, MANY_MORE, MOST_KINDS, Invocation, brief
from .payloads import PAYLOAD_SOURCE, Payloads
from .sending import keep_for_good
from .target import INVOKE, Target, TokenLimits

_log = logging.getLogger(__name__)

_REQUEST_TYPE = "InvokeEndpoint"


class InvocationFailed(Exception):
    """What Locust counts as a failure; its text is the kind of error, the same for all alike."""

    def __repr__(self) -> str:  # what Locust lists
        return str(self)


class SageMakerUser(User):
    """Invokes a SageMaker endpoint, one request after the other, as fast as Python allows.

    Subclass it and set the attributes, or give Locust the options of
    :mod:`~low_latency_endpoint.load_test.engine.locust_options` (``--endpoint-name``,
    ``--payload``, ...) or their environment variables (``LOCUST_ENDPOINT_NAME``, ...); an
    option wins over the attribute. The users of one class share an invoker: the prepared request, the TLS state and
    the kept connections, one for each request under way.

    Attributes
    ----------
    region, aws_profile : str, optional
        By default as boto3 finds them.
    payloads : Payloads
        Bodies of the requests, in turn over all users of the process.
    endpoint_urls : tuple of str, optional
        Zonal URLs, taken in turn; by default the URL that boto3 would use.
    content_type : str
        ``application/json`` by default.
    accept : str, optional
        The form of the answer; by default the model's own.
    target_variant : str, optional
        The variant that answers all requests; by default SageMaker chooses by weight.
    target_model : str, optional
        The model of a multi-model endpoint; by default none.
    inference_component : str, optional
        The inference component; by default none.
    streaming : bool
        Stream the answers; the time to the first part of each is listed as ``first byte``.
    timeout_seconds : float
        For a whole request; 60 by default.
    expected : str, optional
        Regular expression that must occur in every good answer; see also :meth:`check`.
    allow_plain_http : bool
        Whether ``http://`` may lead to another machine: requests and signatures in clear.
    api, tokens
        As in :class:`.target.Target`.
    request_name : str, optional
        What Locust's table calls the requests; the endpoint's name by default.

    Examples
    --------
    ::

        from low_latency_endpoint.load_test import Payloads, SageMakerUser

        class Sentiment(SageMakerUser):
            endpoint_name = "sentiment"
            payloads = Payloads.of_folder("requests")
            expected = '"label"'
    """

    abstract = True

    endpoint_name: str | None = None
    region: str | None = None
    aws_profile: str | None = None
    payloads: Payloads | None = None
    endpoint_urls: tuple[str, ...] = ()
    content_type: str = "application/json"
    accept: str | None = None
    target_variant: str | None = None
    target_model: str | None = None
    inference_component: str | None = None
    streaming: bool = False
    timeout_seconds: float = 60.0
    expected: str | None = None
    allow_plain_http: bool = False
    api: str = INVOKE
    tokens: TokenLimits | None = None
    request_name: str | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Locust would mix inherited tasks with the class's own.
        own = [one for one in cls.tasks if one is not SageMakerUser.invoke_next]
        if own:
            cls.tasks = own

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._fire = environment.events.request.fire
        self._checks = type(self).check is not SageMakerUser.check
        try:
            shared: _Shared | None = _shared_by(type(self), settings_of(environment.parsed_options))
        except LowLatencyEndpointError as error:
            _refuse(environment, error)
            shared = None  # its first request stops the user
        self._shared = shared

    def check(self, body: bytes) -> bool | str | None:
        """Look at the body of a good answer; override it.

        Returns
        -------
        bool, str or None
            ``False`` or the reason to count the request as failed; anything else is good.
        """

    @task
    def invoke_next(self) -> None:
        """Send the next payload; the task of a class that has no other."""
        self.invoke()

    def invoke(
        self, body: bytes | str | None = None, name: str | None = None, **overrides: Any
    ) -> Invocation:
        """Send one request, count it in Locust's statistics, and return what came of it.

        Parameters
        ----------
        body : bytes or str, optional
            By default the next of ``payloads``; text is sent as UTF-8.
        name : str, optional
            What Locust's table calls it; by default ``request_name``.
        **overrides
            Parameters of this request by boto3's names: ``SessionId``, ``TargetModel``,
            ``TargetVariant``, ``InferenceComponentName``, ``CustomAttributes``, ...
        """
        shared = self._shared
        if shared is None:
            raise StopUser()
        number = shared.sent
        shared.sent = number + 1
        if body is None:
            body = shared.payloads.next(number)
            overrides = {**(shared.payloads.parameters(number) or {}), **overrides}
        else:
            body = body_bytes(body)
        begun = time.time()
        answer = shared.send(body, overrides)
        answer = self._checked(answer)
        self._count(shared, name or shared.name, answer, begun)
        return answer

    def _checked(self, answer: Invocation) -> Invocation:
        """The answer after the class's own look at its body."""
        if self._checks and answer.error is None:
            check = self.check(answer.body)
            if check is False or (isinstance(check, str) and check):
                return answer._replace(error=CHECK_FAILED, message=check or "")
        return answer

    def _count(self, shared: _Shared, name: str, answer: Invocation, begun: float) -> None:
        """In Locust's statistics; the first byte beside the requests, and not in their total."""
        self._fire(
            request_type=_REQUEST_TYPE,
            name=name,
            start_time=begun,
            response_time=1000 * (answer.ended - answer.started),
            response_length=answer.length,
            response=answer,
            context=self.context(),
            exception=None if answer.error is None else shared.failure(answer),
        )
        first_byte = answer.first_byte
        if first_byte is None and answer.unanswered and shared.invoker.target.streaming:
            first_byte = answer.ended  # it took at least that
        if first_byte is not None:
            self.environment.stats.get(name, "first byte").log(
                1000 * (first_byte - answer.started), 0
            )


class _Shared:
    """What the users of one class have in common: the invoker, the payloads, their numbers."""

    def __init__(self, cls: type[SageMakerUser], options: dict[str, Any]) -> None:
        settings = {name: getattr(cls, name) for name in _SETTINGS} | options
        payloads = settings["payloads"]
        if "payload" in options:
            payloads = Payloads.of(options["payload"])
        if payloads is None:
            raise PAYLOAD_SOURCE.error(
                got="none",
                allowed="a file, a folder, module:function",
                fix="Set payloads in the class, or give --payload.",
            )
        with aws_errors_in_words():
            session = open_session(settings["aws_profile"], settings["region"])
            target = Target(
                endpoint_name=settings["endpoint_name"],
                region=session.region_name or "",
                **{name: settings[name] for name in _OF_TARGET},
            )
            self.invoker = SageMakerInvoker(target, session=session)
        self.send = self.invoker.invoke
        self.payloads: Payloads = payloads
        self.sent = 0
        self.name = cls.request_name or target.endpoint_name
        self._failures: dict[str, InvocationFailed] = {}

    def failure(self, answer: Invocation) -> InvocationFailed:
        """The kind of an answer's error, with the first message of its status."""
        kind = str(answer.error)
        if kind not in self._failures:
            kind = kind if len(self._failures) < MOST_KINDS else MANY_MORE
            said = brief(answer.message) if kind[:3].isdigit() else ""
            self._failures[kind] = InvocationFailed(f"{kind}: {said}" if said else kind)
        return self._failures[kind]


_OF_TARGET = tuple(
    field.name for field in fields(Target) if field.name not in ("endpoint_name", "region")
)
_SETTINGS = ("endpoint_name", "region", "aws_profile", "payloads", *_OF_TARGET)
_known: dict[Any, _Shared] = {}


def _shared_by(cls: type[SageMakerUser], options: dict[str, Any]) -> _Shared:
    key = (cls, *sorted(options.items()))
    if key not in _known:
        _known[key] = _Shared(cls, options)
    return _known[key]


def _refuse(environment: Any, error: Exception) -> None:
    """Say once what is wrong, and end Locust."""
    if getattr(environment, "sagemaker_refused", False):
        return
    environment.sagemaker_refused = True
    environment.process_exit_code = 2
    _log.error("%s", error)
    if environment.runner is not None:
        gevent.spawn_later(0.1, environment.runner.quit)


def _end_with_client_bound(environment: Any, **_: Any) -> None:
    """Let Locust end with 1 if a process used nearly a whole core: it measured itself."""
    runner = environment.runner
    if not (runner.cpu_warning_emitted or runner.worker_cpu_warning_emitted):
        return
    _log.error(
        "the result is invalid: client-bound: a process used more than 90%% of a core, so the "
        "latency is partly its own; use --processes, more workers or fewer users"
    )
    if not environment.process_exit_code:
        environment.process_exit_code = 1


def _keep_for_good(**_: Any) -> None:
    keep_for_good()


_events: Any = events
_events.init_command_line_parser.add_listener(add_options)
_events.test_start.add_listener(_keep_for_good)
_events.quitting.add_listener(_end_with_client_bound)
