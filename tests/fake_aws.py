"""boto3 clients that answer from a table; requests and answers are held to botocore's models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from boto3.session import Session
from botocore.validate import validate_parameters

from local_sagemaker.pages import page

REGION = "us-east-1"
ACCOUNT = "123456789012"


class Refused:
    """An answer that is an error."""

    def __init__(
        self,
        code: str = "AccessDeniedException",
        message: str = "not authorized",
        status: int = 403,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code, self.message, self.status = code, message, status
        self.headers = dict(headers or {})

    def answer(self) -> tuple[Any, Any]:
        """As a client's handler before a call gives it."""
        return Http(self.status), {
            "Error": {"Code": self.code, "Message": self.message},
            "ResponseMetadata": {"HTTPStatusCode": self.status, "HTTPHeaders": self.headers},
        }


REFUSED = Refused()
Answer = Mapping[str, Any] | Refused | Exception | list[Any] | Callable[[Mapping[str, Any]], Any]


class FakeAws:
    """A client factory; ``answers`` maps ``ec2.DescribeSubnets`` to an answer or a function.

    A list has answers that are given one after the other. Members that the service always gives
    need not be stated. What the table lacks fails the test. ``asked`` has every operation that was
    called, and ``denied`` the codes with which operations are refused.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.requests: list[tuple[str, Mapping[str, Any]]] = []
        self.denied: dict[str, str] = {}

    @property
    def asked(self) -> list[str]:
        return [name for name, _ in self.requests]

    def sent(self, operation: str) -> list[Mapping[str, Any]]:
        """The requests of one operation."""
        return [request for name, request in self.requests if name == operation]

    def __call__(self, service: str) -> Any:
        global _answering
        _answering = self
        return _client(service)

    def answer(self, name: str, model: Any, params: Mapping[str, Any]) -> tuple[Any, Any]:
        self.requests.append((name, params))
        found = self.answers.get(name, [])
        if isinstance(found, list):
            assert found, f"nobody expected {name} with {params}"
            found = found.pop(0)
        operation = name.partition(".")[2]
        if operation in self.denied:
            found = Refused(self.denied[operation], f"refused {operation}")
        if callable(found):
            found = found(params)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Refused):
            return found.answer()
        if model.output_shape is not None:
            found = _whole(found, model.output_shape)
            validate_parameters(found, model.output_shape)
            whole = {key: value for key, value in params.items() if not key.endswith("Token")}
            assert page(*name.split("."), whole, found) == found, f"AWS gives {name} by the page"
        return Http(200), {**found, "ResponseMetadata": {"HTTPStatusCode": 200}}


def _whole(answer: Any, shape: Any) -> Any:
    """An answer with the members that the service always gives."""
    if shape.type_name == "structure":
        members = shape.members
        given = {
            name: _whole(value, members[name]) if name in members else value
            for name, value in answer.items()
        }
        return {name: _any(members[name]) for name in shape.required_members} | given
    if shape.type_name == "list" and shape.member.type_name == "structure":
        return [_whole(each, shape.member) for each in answer]
    return answer


def _any(shape: Any) -> Any:
    """A value of a shape that no test looks at."""
    if shape.type_name == "string":
        return shape.enum[0] if shape.enum else "x" * shape.metadata.get("min", 1)
    if shape.type_name == "timestamp":
        return datetime(2026, 1, 1, tzinfo=UTC)
    return {"structure": lambda: _whole({}, shape), "list": list, "map": dict}.get(
        shape.type_name, lambda: 1
    )()


class Http:
    raw = None

    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


_answering: FakeAws


@cache
def _session() -> Any:
    return Session("testing", "testing", region_name=REGION)  # tests patch boto3.Session


@cache
def _client(service: str) -> Any:
    # Made once: the models of EC2 and SageMaker are large.
    client = _session().client(service)

    def remember(params: Any, model: Any, context: Any, **_: Any) -> None:
        context["asked_with"] = params

    def answer(model: Any, context: Any, **_: Any) -> tuple[Any, Any]:
        return _answering.answer(f"{service}.{model.name}", model, context["asked_with"])

    client.meta.events.register("before-parameter-build", remember)
    client.meta.events.register("before-call", answer)
    return client


def page_of(key: str, items: Sequence[Any], params: Mapping[str, Any], size: int = 7) -> Any:
    """A small page of an answer, so that every reader must follow ``NextToken``."""
    at = int(params.get("NextToken", 0))
    more = {"NextToken": str(at + size)} if at + size < len(items) else {}
    return {key: items[at : at + size], **more}


def merged(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables over one another."""
    found: dict[str, Any] = {}
    for table in tables:
        found |= table
    return found


def filtered(params: Mapping[str, Any], name: str) -> Iterator[str]:
    """The values of one of EC2's filters."""
    for each in params.get("Filters", ()):
        if each["Name"] == name:
            yield from each["Values"]
