"""What the commands that send load take from their options and the settings file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .process import check_packages

if TYPE_CHECKING:
    from ..load_test.endpoint_settings import StatedEndpoint
    from ..load_test.payloads import Payloads

__all__ = [
    "check_installed", "check_writable", "content_type_of", "payloads_of", "region_of",
    "seconds_of", "stated_in",
]


def stated_in(settings: Path | None, endpoint: str) -> StatedEndpoint | None:
    if settings is None:
        return None
    from ..load_test.endpoint_settings import stated_endpoint

    return stated_endpoint(settings, endpoint)


def payloads_of(source: str | None, stated: StatedEndpoint | None) -> Payloads:
    from ..load_test.payloads import PAYLOAD_NEEDED, Payloads

    if source is None:
        if stated is not None and stated.payloads is not None:
            return stated.payloads
        raise PAYLOAD_NEEDED.error(got="none", allowed="--payload, or a warm-up payload")
    if source.lstrip().startswith(("{", "[", '"')) and not Path(source[:200]).exists():
        return Payloads.of_bytes(source.encode())
    return Payloads.of(source)


def region_of(profile: str | None, region: str | None, stated: StatedEndpoint | None) -> str:
    """The option's, else the settings', else the AWS CLI's."""
    from ..operations.sessions import open_clients

    return region or (stated.region if stated else None) or open_clients(profile, None)[1]


def seconds_of(text: str, option: str) -> float:
    from ..settings.breach import BreachError
    from ..settings.fields import parse_duration

    try:
        return parse_duration(text).total_seconds()
    except BreachError:
        raise typer.BadParameter(
            f"{option} {text}: write a number and a unit, such as 60s or 5m") from None


def check_installed(html: Path | None) -> None:
    """Say before anything is sent which package is missing."""
    check_packages("boto3", "locust", "geventhttpclient", "hdrh",
                   *(("jinja2", "plotly") if html is not None else ()))


def check_writable(files: list[Path]) -> None:
    from ..load_test.result_file import WRITTEN

    for file in files:
        if file.is_dir() or not file.parent.is_dir():
            raise WRITTEN.error(got=f"{file}: it is a folder" if file.is_dir() else
                                f"{file.parent} is no folder",
                                allowed="a file in a folder that exists")


def content_type_of(given: str | None, payload: str | None,
                    stated: StatedEndpoint | None) -> str:
    """The option's, else that of the settings' payload, else JSON."""
    settings = stated.content_type if stated is not None and payload is None else None
    return given or settings or "application/json"
