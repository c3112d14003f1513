"""A model's data, from the local AWS's S3 to a folder."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from moto.s3.exceptions import S3ClientError
from moto.s3.models import s3_backends
from moto.utilities.utils import get_partition

from ..archives import MOST_ENTRIES, Unpackable, check_stopped, unpack_model_data


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
            if (name.startswith(key) if self.prefix else name == key) and not name.endswith("/")
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
