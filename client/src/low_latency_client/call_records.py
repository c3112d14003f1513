"""What a client tells of each call, for metrics and traces of your own.

A client's ``on_call`` is called with a :class:`CallRecord` after each call, in the thread or task
that made it.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from botocore.exceptions import ClientError

Call = TypeVar("Call", bound=Callable[..., Coroutine[Any, Any, Any]])
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of a client, after its answer or its error.

    Parameters
    ----------
    operation : str
        ``InvokeEndpoint`` or ``InvokeEndpointWithResponseStream``. Sessions are opened and closed by
        ``InvokeEndpoint``.
    endpoint_name : str
        The endpoint, as the call names it.
    seconds : float
        From the call to its answer, retries and the wait for a connection included. Of a response
        stream to the head of the answer, of ``stream()`` to the first token.
    retries : int or None
        Attempts after the first one; None for an error without an answer, which does not tell them.
    status : int or None
        HTTP status of the answer; None if none came.
    variant : str or None
        The production variant that answered, as SageMaker names it.
    error : str or None
        Code of an error of AWS's, such as ``ModelError``, else the class of the error, such as
        ``ReadTimeoutError``; None for a good answer.

    Examples
    --------
    A counter of errors::

        errors = collections.Counter()
        client = RuntimeClient("us-east-1", latency_target="50ms",
                               on_call=lambda record: errors.update([record.error]))
    """

    operation: str
    endpoint_name: str
    seconds: float
    retries: int | None = None
    status: int | None = None
    variant: str | None = None
    error: str | None = None


class Recording(Protocol):
    """A client whose calls are recorded if ``on_call`` is set."""

    on_call: Callable[[CallRecord], None] | None


def recorded(operation: str) -> Callable[[Call], Call]:
    """Decorate a call of a client, whose last argument is the parameters, to pass on its record.

    An error of ``on_call`` is logged, and the call goes on: a metric must not fail a request.
    """

    def decorate(call: Call) -> Call:
        @functools.wraps(call)
        def with_record(client: Recording, *arguments: Any) -> Any:
            coroutine = call(client, *arguments)
            if client.on_call is None:
                return coroutine
            endpoint_name = str(arguments[-1].get("EndpointName"))
            return _with_record(coroutine, client.on_call, operation, endpoint_name)

        return cast(Call, with_record)

    return decorate


async def _with_record(
    call: Coroutine[Any, Any, Any],
    on_call: Callable[[CallRecord], None],
    operation: str,
    endpoint_name: str,
) -> Any:
    """Return what a call returns, after its record was passed on."""
    started = time.perf_counter()
    details: dict[str, Any] = {}
    try:
        result = await call
        details = _details_of_answer(result)
        return result
    except BaseException as error:
        details = _details_of_error(error)
        raise
    finally:
        seconds = time.perf_counter() - started
        record = CallRecord(
            operation=operation, endpoint_name=endpoint_name, seconds=seconds, **details
        )
        try:
            on_call(record)
        except Exception:
            _log.exception("on_call failed for a call of endpoint %s", endpoint_name)


def _details_of_answer(result: Any) -> dict[str, Any]:
    """Return what boto3's answer tells; a generation has its answer as an attribute."""
    answer = getattr(result, "response", result)
    return {**_details_of_metadata(answer), "variant": answer.get("InvokedProductionVariant")}


def _details_of_error(error: BaseException) -> dict[str, Any]:
    if not isinstance(error, ClientError):
        return {"error": _public_class(error)}
    code = error.response.get("Error", {}).get("Code")
    return {**_details_of_metadata(error.response), "error": code or _public_class(error)}


def _public_class(error: BaseException) -> str:
    """Return the class that a caller can catch: of a private one of this package its parent."""
    package = str(__package__)
    public = import_module(package).__all__
    for kind in type(error).__mro__:
        if kind.__name__ in public or not kind.__module__.startswith(package):
            return kind.__name__
    return type(error).__name__


def _details_of_metadata(response: Mapping[str, Any]) -> dict[str, Any]:
    metadata = response.get("ResponseMetadata", {})
    return {"status": metadata.get("HTTPStatusCode"), "retries": metadata.get("RetryAttempts")}
