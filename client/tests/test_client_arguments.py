"""Whatever somebody passes to a client: taken if the signature says so, else an error that names it.

The calls are made from the signatures, so a new argument is tried as soon as it exists.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Required, get_origin, get_type_hints

import boto3
import botocore.session
import pytest
from botocore.exceptions import ParamValidationError

import low_latency_client
from low_latency_client import ConfigurationError, call_parameters
from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_client.bearer_tokens import BearerTokens, bearer_token, openai_base_url
from low_latency_client.blocking_client import RuntimeClient
from low_latency_client.boto3_client import runtime_client
from low_latency_client.call_parameters import (
    EventsParameters,
    GenerationParameters,
    InvokeParameters,
)
from low_latency_client.generation_requests import prefix_aware_id
from low_latency_client.hedging import Hedging
from low_latency_client.zone import ClientZone, find_client_zone

from .callers import Caller, options, session
from .refusals import refused

SECRET = "hunter2"
#: What people pass by mistake, and the words of annotations that it fits.
BATTERY: dict[str, tuple[Any, tuple[str, ...]]] = {
    "text": (SECRET, ("str",)),
    "a duration": ("200ms", ("str",)),
    "True": (True, ("bool",)),
    "None": (None, ("None",)),
    "a number": (3, ("int", "float")),
    "a timedelta": (timedelta(seconds=1), ("timedelta",)),
    "bytes": (b"a", ()),
    "a list": ([], ("Iterable",)),
    "a mapping": ({"use1-az1": 3}, ()),
    "a mapping of numbers": ({1: "https://localhost"}, ()),
    "an object": (object(), ()),
    "a class": (Hedging, ()),
}
MADE: dict[Callable[..., Any], dict[str, Any]] = {
    RuntimeClient: options(),
    AsyncRuntimeClient: options(),
    runtime_client: {"latency_target": timedelta(seconds=1), "session": session()},
    Hedging: {},
    ClientZone: {},
    find_client_zone: {"environment": {"AWS_EC2_METADATA_DISABLED": "true"}},
    bearer_token: {"credentials": session(), "region": "us-east-1"},
    BearerTokens: {"session": session()},
    openai_base_url: {"endpoint_name": "chat", "region": "us-east-1"},
    prefix_aware_id: {"messages": []},
}
#: Limits that are asked about the value first, and ask for what the argument is.
ELSEWHERE = ("LLC125", "LLC124", "LLC101", "LLC107", "LLC120")


def arguments() -> Iterator[Any]:
    """Each argument of everything that is made or called, with each value that it does not take."""
    for function in MADE:
        for name, parameter in inspect.signature(function).parameters.items():
            for words, (value, fits) in BATTERY.items():
                if not any(kind in parameter.annotation for kind in fits):
                    yield pytest.param(
                        function, name, value, id=f"{function.__name__}-{name}-{words}"
                    )


@pytest.mark.parametrize(("function", "name", "value"), list(arguments()))
def test_a_value_of_another_kind_is_refused_by_its_name(
    function: Callable[..., Any], name: str, value: object
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        function(**{**MADE[function], name: value})
    error = caught.value
    assert error.code in ELSEWHERE
    assert error.where.startswith(f"{function.__name__}, {name}")
    assert all([error.what, error.got, error.allowed, error.fix])
    assert SECRET not in str(error) or error.code in ("LLC125", "LLC124", "LLC107")


def test_everything_public_is_tried() -> None:
    public = {getattr(low_latency_client, name) for name in low_latency_client.__all__}
    public.remove(low_latency_client.CallRecord)  # clients make it, callers read it
    assert {each for each in public if not issubclass_of_exception(each)} <= {*MADE}


def issubclass_of_exception(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, Exception)


DURATIONS = [
    (function, name)
    for function in MADE
    for name, parameter in inspect.signature(function).parameters.items()
    if "timedelta" in parameter.annotation
]


@pytest.mark.parametrize(("function", "name"), DURATIONS)
@pytest.mark.parametrize("value", ["70s", timedelta(seconds=70)])
def test_each_duration_is_taken_in_each_form_that_its_annotation_says(
    function: Callable[..., Any], name: str, value: object
) -> None:
    annotation = inspect.signature(function).parameters[name].annotation
    assert annotation.startswith("timedelta | str")
    made = function(**{**MADE[function], name: value})
    assert repr(made)
    if not isinstance(made, AsyncRuntimeClient):
        getattr(made, "close", str)()


@pytest.mark.parametrize("value", ["50ms", timedelta(milliseconds=50)])
def test_a_client_calculates_with_each_form(value: Any) -> None:
    client = RuntimeClient(**options(latency_target=value, hedging=Hedging(delay=value)))
    assert client._hedging is not None
    assert client._hedging.delay_seconds == 0.05
    client.close()


# ---------------------------------------------------------------------------------- of each call

PER_CALL = [
    ("stream", {"first_token_timeout": 5}, "stream, first_token_timeout"),
    ("stream", {"gap_timeout": "soon"}, "stream, gap_timeout"),
    ("stream", {"total_timeout": b"1m"}, "stream, total_timeout"),
    ("stream", {"conversation": 7}, "stream, conversation"),
    ("stream", {"hedge_generations": "no"}, "stream, hedge_generations"),
    ("stream", {"hedge_generations": 0}, "stream, hedge_generations"),
    ("stream", {"Idempotent": "no"}, "Idempotent"),
    ("invoke_endpoint", {"Idempotent": "no"}, "Idempotent"),
    ("invoke_endpoint_with_response_stream", {"Idempotent": 0}, "Idempotent"),
]


@pytest.mark.parametrize(("method", "given", "where"), PER_CALL)
def test_a_call_refuses_by_name_what_is_of_another_kind(
    kind: str, method: str, given: dict[str, Any], where: str
) -> None:
    with Caller(kind) as caller, pytest.raises(ConfigurationError) as caught:
        caller.call(method, EndpointName="any", Body=b"{}", **given)
    assert (caught.value.where, bool(caught.value.fix)) == (where, True)


@pytest.mark.parametrize("value", [True, "3", None, 2.5, -1])
def test_connections_are_a_whole_number(kind: str, value: object) -> None:
    with Caller(kind) as caller, refused("LLC102", where="preconnect, connections") as caught:
        caller.call("preconnect", value)
    assert "0 for none" in caught.value.fix


def test_a_session_is_text(kind: str) -> None:
    with Caller(kind) as caller, refused("LLC120", where="close_session, session"):
        caller.call("close_session", 7, EndpointName="any")


TYPED = {
    "invoke_endpoint": InvokeParameters,
    "invoke_endpoint_with_response_stream": EventsParameters,
    "stream": GenerationParameters,
}
BOTO3S = [
    (method, name)
    for method, parameters in TYPED.items()
    for name in get_type_hints(parameters)
    if name != "Idempotent"
]


@pytest.mark.parametrize(("method", "name"), BOTO3S)
def test_boto3s_parameters_are_botocores_to_judge(kind: str, method: str, name: str) -> None:
    given = {"EndpointName": "any", "Body": b"{}", name: 3}
    with Caller(kind) as caller, pytest.raises(ParamValidationError, match=name):
        caller.call(method, **given)


@pytest.mark.parametrize(
    ("operation", "parameters", "answer"),
    [
        ("InvokeEndpoint", InvokeParameters, call_parameters.InvokeAnswer),
        ("InvokeEndpoint", InvokeParameters, call_parameters.AsyncInvokeAnswer),
        ("InvokeEndpointWithResponseStream", EventsParameters, call_parameters.EventsAnswer),
        ("InvokeEndpointWithResponseStream", EventsParameters, call_parameters.AsyncEventsAnswer),
    ],
)
def test_the_types_are_those_of_botocores_model(
    operation: str, parameters: Any, answer: Any
) -> None:
    service = botocore.session.get_session().get_service_model("sagemaker-runtime")
    model = service.operation_model(operation)
    assert {*get_type_hints(parameters)} == {*model.input_shape.members, "Idempotent"}
    hints = get_type_hints(parameters, include_extras=True)
    required = {name for name, hint in hints.items() if get_origin(hint) is Required}
    assert required == {*model.input_shape.required_members}
    assert {*model.output_shape.members} <= {*get_type_hints(answer)}


# -------------------------------------------------------------------------------- names of things


@pytest.mark.parametrize("client", [RuntimeClient, AsyncRuntimeClient])
def test_errors_and_help_name_the_class_that_was_called(client: Any) -> None:
    for given, says in (({}, "latency_target"), ({"latency_traget": 1}, "latency_target?")):
        with pytest.raises(TypeError, match="LLC121") as caught:
            client(**given)
        assert says in str(caught.value)
        assert "ClientBase" not in str(caught.value)
    with pytest.raises(TypeError, match="positional"):
        client("us-east-1", timedelta(seconds=1))
    assert client.__init__.__qualname__ == f"{client.__name__}.__init__"
    assert "zone_timeout : timedelta or str" in inspect.getdoc(client.__init__)


@pytest.mark.parametrize("name", low_latency_client.__all__)
def test_every_public_name_is_imported_from_the_package(name: str) -> None:
    assert getattr(low_latency_client, name).__name__ == name


# ----------------------------------------------------------------------------------- Region, zone


@pytest.mark.parametrize(
    ("region", "fix"),
    [
        ("us-east-1a", "Write us-east-1: us-east-1a is an Availability Zone."),
        ("us-west-2-lax-1a", "Write us-west-2: us-west-2-lax-1a is an Availability Zone."),
        ("use1-az1", "Write the Region of use1-az1, which is an Availability Zone."),
        ("US-EAST-1", "Write us-east-1."),
        ("us_east_1", "Write us-east-1."),
    ],
)
@pytest.mark.parametrize("function", [RuntimeClient, AsyncRuntimeClient, runtime_client])
def test_what_is_no_region(function: Any, region: str, fix: str) -> None:
    with refused("LLC124", where=f"{function.__name__}, region", fix=fix):
        function(region, **MADE[function])
    given = boto3.Session("a", "b", region_name=region)
    with refused("LLC124", where=f"{function.__name__}, region"):
        function(**{**MADE[function], "session": given})


@pytest.mark.parametrize("function", [RuntimeClient, AsyncRuntimeClient, runtime_client])
def test_a_region_that_nobody_knows_is_told_and_taken(
    function: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A private one, or one that is newer than botocore."""
    with caplog.at_level(logging.WARNING):
        function("us-eest-1", **MADE[function])
        assert "no Region us-eest-1. Did you mean us-west-1 or us-east-1?" in caplog.text
        caplog.clear()
        function("us-east-1", **MADE[function])
        function("xx-own-1", url="https://localhost", **MADE[function])
    assert not caplog.text


VPCE = "https://vpce-0a-us-east-1a.runtime.sagemaker.{}.vpce.amazonaws.com"
AWS = "https://runtime{}.sagemaker.{}.amazonaws.com"


@pytest.mark.parametrize(
    "url", [VPCE.format("eu-west-1"), AWS.format("", "eu-west-1"), AWS.format("-fips", "eu-west-1")]
)
def test_a_url_of_another_region_is_refused(url: str) -> None:
    for function in (RuntimeClient, AsyncRuntimeClient, runtime_client):
        with refused("LLC122", where=f"{function.__name__}, url"):
            function("us-east-1", url=url, **MADE[function])
        assert function("eu-west-1", url=url, **MADE[function])
    with refused("LLC122", where="RuntimeClient, zonal_urls['use1-az1']"):
        RuntimeClient("us-east-1", zonal_urls={"use1-az1": url}, **options())


@pytest.mark.parametrize("url", ["https://runtime.example", "https://eu-west-1.corp.example"])
def test_a_name_of_ones_own_is_in_any_region(url: str) -> None:
    RuntimeClient("us-east-1", url=url, **options()).close()


@pytest.mark.parametrize("client", [RuntimeClient, AsyncRuntimeClient])
def test_a_zone_is_nothing_without_urls(client: Any) -> None:
    for urls in ({}, {"zonal_urls": {}}):
        with refused("LLC123", where=f"{client.__name__}, zone"):
            client(zone="use1-az1", **urls, **options())


def test_a_closed_client_says_whose_it_is(kind: str) -> None:
    caller = Caller(kind)
    caller.close()
    with refused("LLC111", where=type(caller.client).__name__):
        asyncio.run(caller.client._invoke({"EndpointName": "a", "Body": b""}))
