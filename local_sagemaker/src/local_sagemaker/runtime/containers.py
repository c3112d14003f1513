"""What an instance's container finds around it: variables, its model's data from S3, its log."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from moto.logs.models import logs_backends
from moto.s3.exceptions import S3ClientError
from moto.s3.models import FakeKey, s3_backends
from moto.utilities.utils import get_partition

from ..admission import Session
from ..archives import MOST_ENTRIES, Unpackable, check_stopped, unpack_model_data
from ..permissions.service_roles import ModelRole


class ModelDataError(Exception):
    """A model's data is not there or cannot be unpacked; the message says which, and what to do."""


@dataclass(frozen=True)
class ModelData:
    """Where a model's data is."""

    uri: str
    prefix: bool = False
    archive: bool = True

    @classmethod
    def of(cls, container: Mapping[str, Any]) -> ModelData | None:
        """Read a container as CreateModel took it; None for a multi-model's, which load by call."""
        if container.get("Mode") == "MultiModel":
            return None
        source = (container.get("ModelDataSource") or {}).get("S3DataSource")
        if source:
            return cls(
                source["S3Uri"],
                prefix=source.get("S3DataType") == "S3Prefix",
                archive=source.get("CompressionType") == "Gzip",
            )
        uri = container.get("ModelDataUrl")
        return cls(uri) if uri else None

    def unpack(
        self, target: Path, account: str, region: str, is_stopped: Callable[[], bool]
    ) -> None:
        """Put the data into a folder."""
        bucket, _, key = self.uri.removeprefix("s3://").partition("/")
        try:
            objects = s3_backends[account][get_partition(region)].get_bucket(bucket).keys
        except S3ClientError:
            raise self._missing() from None
        found = {
            name: objects[name]
            for name in list(objects)
            if (name.startswith(key) if self.prefix else name == key)
            and not name.endswith("/")
            and isinstance(objects[name], FakeKey)  # no delete marker of a versioned bucket
        }
        if not found:
            raise self._missing()
        try:
            if self.archive:
                for each in found.values():
                    data = each.value
                    unpack_model_data(io.BytesIO(data), len(data), target, is_stopped)
            else:
                _copy(found, key, target, is_stopped)
        except (OSError, Unpackable) as error:
            raise ModelDataError(
                f"Failed to extract model data from {self.uri}: {error}."
            ) from None

    def _missing(self) -> ModelDataError:
        # AWS's first sentence: CreateModel's ValidationException (aws-ia/ecs-blueprints#223). Here
        # data may come after the model, and is missed only by a server that would need it.
        return ModelDataError(
            f"Could not find model data at {self.uri}. Put it into the local "
            f"AWS: aws s3 cp FILE {self.uri}"
        )


def _copy(
    objects: Mapping[str, Any], key: str, target: Path, is_stopped: Callable[[], bool]
) -> None:
    """Write objects below a folder, by what their keys have beyond the prefix's last slash."""
    if len(objects) > MOST_ENTRIES:
        raise Unpackable(f"it has more than {MOST_ENTRIES} objects")
    base = key.rpartition("/")[0]
    for name, each in objects.items():
        check_stopped(is_stopped)
        path = PurePosixPath(name[len(base) :].lstrip("/"))
        if ".." in path.parts or "\0" in name:
            raise Unpackable(f"the object {name} would lie outside of the model's folder")
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.value)


_LARGEST_FILE = 4 * 2**20
"""Bytes; beyond it the file becomes the former one (`.1`), and the one before goes."""
_LONGEST_LINE = 64 * 1024
_ENDING = 4096


class ServerOutput:
    """The output of one instance's server, of all processes that it has been."""

    def __init__(self, path: Path, tell: Callable[[list[str]], None]) -> None:
        self.path = path
        self._tell = tell
        self._reader: threading.Thread | None = None
        path.parent.mkdir(parents=True, exist_ok=True)

    def follow(self, pipe: IO[bytes]) -> None:
        """Keep what comes through a pipe, until it ends."""
        self._reader = threading.Thread(
            target=self._read, args=[pipe], name=f"output {self.path.stem}", daemon=True
        )
        self._reader.start()

    def settle(self) -> None:
        """Wait until everything that an ended process wrote is here."""
        if self._reader is not None:
            self._reader.join(2)

    def _read(self, pipe: IO[bytes]) -> None:
        rest = b""
        with pipe:
            while data := pipe.read1(65536):  # type: ignore[attr-defined]
                self._keep(data)
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    lines, rest = [*lines, rest], b""
                self._pass_on(lines)
            self._pass_on([rest])

    def _keep(self, data: bytes) -> None:
        # A full disk, or a folder that a stopping local AWS has removed, must not block the server
        # on its pipe.
        with contextlib.suppress(OSError):
            with self.path.open("ab") as file:
                file.write(data)
                full = file.tell() > _LARGEST_FILE
            if full:
                self.path.replace(self._former)

    @property
    def _former(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")

    def _pass_on(self, lines: list[bytes]) -> None:
        texts = [line.decode("utf-8", "replace").rstrip("\r") for line in lines]
        parts = [
            text[begin : begin + _LONGEST_LINE]
            for text in texts
            for begin in range(0, len(text), _LONGEST_LINE)
        ]
        with contextlib.suppress(Exception):  # logs are not worth failing for
            if parts:
                self._tell(parts)

    def ending(self, longest: int) -> str:
        """Give the last lines, with so many characters at most."""
        data = b""
        for path in (self._former, self.path):
            with contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - _ENDING))
                data += file.read()
        text = data.decode("utf-8", "replace").strip()
        if len(text) <= longest:
            return text
        return "..." + text[3 - longest :]


_MODEL = "/opt/ml/model"
"""Where SageMaker puts a model's data. Source: developer guide, "Custom inference code"."""
_MOST_LINES = 10_000  # lines of one instance's output in CloudWatch Logs; its file has more
_OF_PLACES = re.compile(
    r"\$(?:\{({0})\}|({0})\b)".replace("{0}", "SAGEMAKER_BIND_TO_PORT|SM_MODEL_DIR")
)


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
    >>> with_places('{"port":$SAGEMAKER_BIND_TO_PORT}', {"SAGEMAKER_BIND_TO_PORT": "8080"})
    '{"port":8080}'
    >>> with_places("$SM_MODEL_DIR_CACHE ${SM_MODEL_DIR}", {"SM_MODEL_DIR": "/m"})
    '$SM_MODEL_DIR_CACHE /m'
    """
    return _OF_PLACES.sub(lambda found: variables[found[1] or found[2]], argument)
