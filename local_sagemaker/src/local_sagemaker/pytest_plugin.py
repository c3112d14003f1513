"""The pytest fixture ``local_aws``: a local AWS with model servers, for tests of your own.

pytest finds it by itself wherever the package is installed. It costs nothing until a test asks for
the fixture. In pytest's settings:

``local_aws_model_servers``
    Lines ``IMAGE=SERVER``, as ``local-sagemaker --model-server`` takes them; relative files
    and commands are those of pytest's root folder. By default none.
``local_aws_scope``
    ``session`` (the default), ``package``, ``module``, ``class`` or ``function``: for how long one
    local AWS stays, with all that is in it.
``local_aws_region``
    By default us-east-1.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

if TYPE_CHECKING:
    from .server import LocalAws

__all__ = ["local_aws", "pytest_addoption"]

_Scope = Literal["session", "package", "module", "class", "function"]
_SCOPES = ("session", "package", "module", "class", "function")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings."""
    parser.addini("local_aws_model_servers", "IMAGE=SERVER, one on each line", type="linelist")
    parser.addini("local_aws_scope", "how long one local AWS stays", default="session")
    parser.addini("local_aws_region", "region of the local AWS", default="us-east-1")


def _scope(fixture_name: str, config: pytest.Config) -> _Scope:
    try:
        scope = config.getini("local_aws_scope")
    except ValueError:  # imported, and not as a plugin: nobody asks for the fixture
        return "session"
    if scope not in _SCOPES:
        raise pytest.UsageError(f"local_aws_scope is one of {', '.join(_SCOPES)}: {scope}")
    return cast("_Scope", scope)


@pytest.fixture(scope=_scope)
def local_aws(request: pytest.FixtureRequest) -> Iterator[LocalAws]:
    """Give a local AWS, to which the environment's AWS variables point as long as it is there.

    Clients that tests make by themselves (``boto3.client("s3")``) and programs that they start
    reach it, and no account: the user's own AWS variables, profile and keys are out of sight.
    """
    config = request.config
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        try:
            import_module("moto")  # which only the local AWS's own process loads otherwise
            from .model_servers import parse_model_server
            from .server import LocalAws
        except ModuleNotFoundError as error:
            pytest.fail(
                f"the fixture local_aws needs {error.name}, which its wheel brings", pytrace=False
            )
        servers: dict[str, Any] = {}
        with contextlib.chdir(config.rootpath):
            for line in config.getini("local_aws_model_servers"):
                try:
                    servers.update([parse_model_server(line)])
                except ValueError as error:
                    raise pytest.UsageError(f"local_aws_model_servers: {error}") from None
        aws = stack.enter_context(
            LocalAws.start(config.getini("local_aws_region"), model_servers=servers)
        )
        _point_to(aws, patch)
        yield aws


def _point_to(aws: LocalAws, patch: pytest.MonkeyPatch) -> None:
    """Have the environment lead to a local AWS and nowhere else."""
    import boto3

    environment = aws.environment()
    for name in [name for name in os.environ if name not in environment]:
        patch.delenv(name)
    for name, value in aws.exports().items():
        patch.setenv(name, value)
    # boto3 keeps the session of its first client, with the credentials that it found then.
    patch.setattr(boto3, "DEFAULT_SESSION", None)
