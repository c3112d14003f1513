"""Local AWSs with model servers behind their endpoints, mostly on a clock that stands still."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hosting_site import Site

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import ModelServer, SimulatedModelServer


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalAws]:
    """One local AWS for all tests that are content with the default options."""
    default = {"model": SimulatedModelServer()}
    options = RuntimeOptions(clock_speed=0.0, seed=1)
    with LocalAws.in_process(model_servers=default, runtime=options) as running:
        yield running


@pytest.fixture
def site(shared: LocalAws) -> Iterator[Callable[..., Site]]:
    """Give a local AWS with model servers; its clock stands still unless told otherwise."""
    with contextlib.ExitStack() as stack:

        def start(servers: Mapping[str, ModelServer] | None = None, **options: Any) -> Site:
            chosen = {"model": SimulatedModelServer()} if servers is None else servers
            if options:
                settings = RuntimeOptions(**{"clock_speed": 0.0, "seed": 1, **options})
                aws = LocalAws.in_process(model_servers=chosen, runtime=settings)
                stack.callback(aws.stop)
            else:
                shared.set_model_servers(chosen)
                aws = shared
            here = Site(aws)
            stack.callback(here.delete)
            return here

        yield start


@pytest.fixture
def served(site: Callable[..., Site]) -> Callable[..., tuple[Site, str]]:
    """Give a local AWS and an endpoint in it; what is in lower case are options of the runtime."""

    def start(
        *variants: Mapping[str, Any], model: ModelServer | None = None, **given: Any
    ) -> tuple[Site, str]:
        options = {name: value for name, value in given.items() if name.islower()}
        more = {name: value for name, value in given.items() if name not in options}
        here = site({"model": model} if model else None, **options)
        return here, here.endpoint(*variants, **more)

    return start
