"""Call ``InvokeEndpoint`` from threads, with boto3's parameters, answers and errors.

:class:`RuntimeClient` is the class. It shares everything but waiting with
:class:`~low_latency_client.async_client.AsyncRuntimeClient`, through
:class:`~low_latency_client.client_base.ClientBase`. A proxy is refused (LLC119).
"""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any, Self, Unpack

from botocore.response import StreamingBody

from .blocking_http import BlockingPool
from .call_parameters import (
    EventsAnswer,
    EventsParameters,
    GenerationParameters,
    InvokeAnswer,
    InvokeParameters,
    SessionParameters,
)
from .client_base import ClientBase
from .event_loops import run_without_loop
from .generation_requests import closing, opening, session_id
from .generations import limits_of
from .hedging import ThreadRace
from .response_streams import Generation, ResponseStream

__all__ = ["Generation", "ResponseStream", "RuntimeClient"]


class RuntimeClient(ClientBase):
    """Invokes SageMaker endpoints from any number of threads.

    Threads beyond ``concurrency`` are served too; their connections are closed afterwards. Arguments
    and attributes are those of :class:`~low_latency_client.client_base.ClientBase`.

    Raises
    ------
    ConfigurationError
        ``LLC101`` to ``LLC110``, ``LLC119`` to ``LLC123``, ``LLC125``, ``LLC124``; calls after ``close()``: ``LLC111``.

    Examples
    --------
    >>> from datetime import timedelta
    >>> import boto3
    >>> session = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    >>> client = RuntimeClient(latency_target=timedelta(milliseconds=200), session=session,
    ...                        preconnect=0)
    >>> client.timing.longest_call
    datetime.timedelta(seconds=4, microseconds=900000)
    >>> client.close()

    A call, then, as with boto3::

        answer = client.invoke_endpoint(EndpointName="sentiment", Body=b'{"inputs": "fine"}',
                                        ContentType="application/json")
        print(answer["Body"].read())
    """

    _pool: BlockingPool

    def _begin(self) -> None:
        self._credentials.start()
        self._find_route()
        self._race = ThreadRace()
        self._pool = BlockingPool(self.timing, self._sockets, self._tls, self._connections)
        if self._opened_ahead:
            self.preconnect(self._opened_ahead)

    def start_anew(self) -> None:
        """In a forked child, where neither the parent's threads nor its connections are ours."""
        super().start_anew()
        self._pool.leave_to_parent()
        self._race = ThreadRace()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, for good; calls under way end with an error."""
        self._pool.close()
        self._credentials.close()
        self._race.close()

    def preconnect(self, connections: int) -> int:
        """Open connections now, to the zone and one to the Region; returns how many are open."""
        return run_without_loop(self._preconnect(connections))

    def invoke_endpoint(self, **parameters: Unpack[InvokeParameters]) -> InvokeAnswer:
        """Invoke an endpoint.

        Parameters
        ----------
        **parameters
            boto3's (``EndpointName``, ``Body``, ``ContentType``, ...), and ``Idempotent=False``
            for a call that must not be served twice, as which generations count by default.

        Returns
        -------
        dict
            As boto3's. ``Body`` is botocore's ``StreamingBody``; all of it is here already.

        Raises
        ------
        botocore.exceptions.ClientError
            What AWS answers, as in boto3.
        botocore.exceptions.ConnectionError
            ``EndpointConnectionError``, ``ConnectTimeoutError`` or ``SSLError``, as in boto3.
        botocore.exceptions.HTTPClientError
            ``ReadTimeoutError`` or ``ConnectionClosedError``, as in boto3;
            ``ResponseStreamingError`` for an answer above SageMaker's 25 MB.
        botocore.exceptions.CredentialRetrievalError
            No credentials are valid, and the provider failed or gave none within ``longest_call``.
        botocore.exceptions.ParamValidationError
            As in boto3.
        """
        answer: InvokeAnswer = run_without_loop(self._invoke(parameters))
        content: Any = answer["Body"]
        answer["Body"] = StreamingBody(io.BytesIO(content), len(content))
        return answer

    def invoke_endpoint_with_response_stream(
        self, **parameters: Unpack[EventsParameters]
    ) -> EventsAnswer:
        """Invoke an endpoint and get its answer part by part; never hedged.

        Returns
        -------
        dict
            As boto3's; ``Body`` is a :class:`ResponseStream`. Use it as a context manager, or
            read it to the end, so that its connection is free again.

        Raises
        ------
        botocore.exceptions.ClientError
            What AWS answers, as in boto3; while reading, its ``EventStreamError``.
        botocore.exceptions.ConnectionError, botocore.exceptions.HTTPClientError
            As of :meth:`invoke_endpoint`, also while reading. ``ResponseStreamingError`` is told of a
            damaged event, an end inside an event, and an answer that is no response stream;
            ``ReadTimeoutError`` after a silence, and after 8 minutes of waiting, AWS's limit.
        """
        answer: EventsAnswer = run_without_loop(self._events(ResponseStream, parameters))
        return answer

    def stream(
        self,
        *,
        first_token_timeout: timedelta | str | None = None,
        gap_timeout: timedelta | str | None = None,
        total_timeout: timedelta | str | None = None,
        conversation: str | None = None,
        hedge_generations: bool = False,
        **parameters: Unpack[GenerationParameters],
    ) -> Generation:
        """Have a language model generate, and get its tokens as they come.

        For servers that stream as OpenAI's chat and completions APIs do (vLLM, SGLang), and for
        LMI's and TGI's own forms; a whole JSON answer of these is one part. Other answers are a
        ``GenerationFailedError`` that tells how they begin. Returns with the first token. A call
        that was sent is not sent again,
        unless ``Idempotent=True`` allows it before the head of its answer; after the first token
        never.

        Parameters
        ----------
        first_token_timeout : timedelta or str, optional
            From the sending of the request to the first chunk with content; by default the
            client's read timeout.
        gap_timeout : timedelta or str, optional
            Between two chunks with content; by default the client's read timeout. The caller's own
            time between them does not count.
        total_timeout : timedelta or str, optional
            From the sending to the end; by default 8 minutes, AWS's limit.
        conversation : str, optional
            Any text that names the conversation; its hash goes out as ``PrefixAwareId``, and
            endpoints with ``PREFIX_AWARE`` routing keep the conversation on one instance.
        hedge_generations : bool, optional
            Have a second instance begin the same generation when the first token is late, by the
            client's ``hedging``. When one's first token comes, the other's connection is closed
            (``counts.generations_cancelled``). By default no generation is hedged.
        **parameters
            boto3's (``EndpointName``, ``Body``, ...). ``Body`` may be a mapping, which becomes
            JSON with ``"stream": true``; ``ContentType`` is ``application/json`` by default.

        Raises
        ------
        ConfigurationError
            ``LLC101``, ``LLC111``, ``LLC114`` to ``LLC116``, ``LLC118``, ``LLC120``, ``LLC125``.
        GenerationTimeoutError, GenerationCutError, GenerationFailedError
            Each says how many tokens had come; also while the generation is read.
        botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError
            As of :meth:`invoke_endpoint`.
        """
        limits = limits_of(self.timing, first_token_timeout, gap_timeout, total_timeout)
        return run_without_loop(
            self._generate(Generation, limits, conversation, hedge_generations, parameters)
        )

    def open_session(self, **parameters: Unpack[SessionParameters]) -> str:
        """Have a container open a session, whose requests all go to its instance.

        Give the ID as ``SessionId`` to :meth:`stream` and the other calls. Only for containers that
        keep sessions: AWS's images for vLLM and SGLang with
        ``SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true``. There a session ends by itself after 20 minutes
        (``SAGEMAKER_SESSIONS_EXPIRATION``, seconds). Not seen on AWS yet.

        Neither hedged nor, once sent, retried: each call opens a session.

        Parameters
        ----------
        **parameters
            boto3's (``EndpointName``, ``InferenceComponentName``, ...). ``Body`` is by default what
            AWS's images take.

        Returns
        -------
        str
            The session's ID.

        Raises
        ------
        ConfigurationError
            ``LLC111``; ``LLC117`` where the answer names no session.
        botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError
            As of :meth:`invoke_endpoint`; ``ModelError`` of AWS's images without sessions.
        """
        return session_id(self.invoke_endpoint(**opening(parameters)).get("NewSessionId"))

    def close_session(self, session: str, **parameters: Unpack[SessionParameters]) -> None:
        """Have the container forget a session, as :meth:`open_session` opened it.

        Parameters
        ----------
        session : str
            The session's ID.
        **parameters
            boto3's (``EndpointName``, ``InferenceComponentName``, ...).

        Raises
        ------
        botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError
            As of :meth:`invoke_endpoint`.
        """
        self.invoke_endpoint(**closing(session, parameters))

    def _open_pool(self) -> BlockingPool:
        self._pool.check_open()
        return self._pool
