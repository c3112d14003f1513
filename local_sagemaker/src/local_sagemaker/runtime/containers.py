"""What an instance's container finds around it: its variables, its model's data, its log."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moto.logs.models import logs_backends

from ..admission import Session
from ..permissions.hosting import ModelRole
from .model_data import ModelData
from .server_output import ServerOutput

_MODEL = "/opt/ml/model"
"""Where SageMaker puts a model's data. Source: developer guide, "Custom inference code"."""
_MOST_LINES = 10_000  # lines of one instance's output in CloudWatch Logs; its file has more
_OF_PLACES = re.compile(r"\$\{?(SAGEMAKER_BIND_TO_PORT|SM_MODEL_DIR)\}?")


@dataclass(frozen=True)
class Site:
    """What the containers of one endpoint have in common."""

    endpoint: str
    account: str
    region: str
    folder: Callable[[], Path]
    variables: Callable[[Session | None], Mapping[str, str]]
    now: Callable[[], float] | None
    component: str = ""

    def log(self, role: ModelRole | None, stream: str = "", lines: Sequence[str] = ()) -> None:
        """Put lines into the endpoint's log group, which AWS keeps, if the role may write it."""
        if self.now is None:
            return
        backend = logs_backends[self.account][self.region]
        name = f"/aws/sagemaker/Endpoints/{self.endpoint}"
        if self.component:
            name = f"/aws/sagemaker/InferenceComponents/{self.component}"
        if role is not None and not role.may_log(name, group_exists=name in backend.groups):
            return
        backend.ensure_log_group(name)
        if lines:
            group = backend.groups[name]
            if stream not in group.streams:
                backend.create_log_stream(name, stream)
            moment = round(self.now() * 1000)
            events = [{"timestamp": moment, "message": line} for line in lines]
            group.streams[stream].put_log_events(events)
            del group.streams[stream].events[:-_MOST_LINES]


@dataclass(frozen=True)
class Container:
    """One container of a model, on one instance."""

    site: Site
    variant: str
    instance: str
    environment: Mapping[str, str] = field(default_factory=dict)
    model_data: ModelData | None = None
    role: ModelRole | None = None

    @property
    def _name(self) -> str:
        return re.sub(r"[^\w.-]", "_", f"{self.site.endpoint}-{self.variant}-{self.instance}")

    @property
    def _base(self) -> Path:
        return self.site.folder() / self._name

    def output(self) -> ServerOutput:
        """Give the log of what the server writes: a file, and the stream that AWS would have."""
        stream = f"{self.variant}/{self.instance}"
        return ServerOutput(
            self.site.folder() / f"{self._name}.log",
            lambda lines: self.site.log(self.role, stream, lines),
        )

    def load(self, is_stopped: Callable[[], bool]) -> None:
        folder = self._base / "model"
        folder.mkdir(parents=True, exist_ok=True)
        if self.model_data is not None:
            self.model_data.unpack(folder, self.site.account, self.site.region, is_stopped)

    def remove(self) -> None:
        """Remove the model's data; the log stays as long as the local AWS."""
        shutil.rmtree(self._base, ignore_errors=True)

    def variables(self, port: int, place: int, own: Mapping[str, str]) -> dict[str, str]:
        """Give the environment of the server's process."""
        model = str(self._base / "model")
        inherited = {n: v for n, v in os.environ.items() if not n.startswith("AWS_")}
        given = {
            name: model + value[len(_MODEL) :] if _is_in_model(value) else value
            for name, value in self.environment.items()
        }
        return {
            "PYTHONUNBUFFERED": "1",  # what it printed before it died is worth most
            **inherited,
            **self.site.variables(self.role.session() if self.role else None),
            **given,
            "SM_MODEL_DIR": model,
            "SAGEMAKER_BASE_DIR": str(self._base),  # of SageMaker's inference toolkit
            **own,
            "SAGEMAKER_BIND_TO_PORT": str(port),
            "LOCAL_INSTANCE_PLACE": str(place),
        }


def _is_in_model(value: str) -> bool:
    return value == _MODEL or value.startswith(f"{_MODEL}/")


def with_places(argument: str, variables: Mapping[str, str]) -> str:
    """Put port and folder into an argument, for servers that take them nowhere else.

    Examples
    --------
    >>> with_places("--port=$SAGEMAKER_BIND_TO_PORT", {"SAGEMAKER_BIND_TO_PORT": "8080"})
    '--port=8080'
    """
    return _OF_PLACES.sub(lambda found: variables[found[1]], argument)
