"""Options that several commands have, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Accept", "Adopt", "AllowedErrors", "Constant", "ContentType", "Expect", "Html", "Job",
    "JobName", "Json", "ListJobs", "NoWait", "Payload", "PlainHttp", "Profile", "Quiet", "Region",
    "Seed", "SettingsRegion", "StopJob", "Stream", "Strict", "Timeout", "Verbose", "Yes", "Zonal",
]

Html = Annotated[Path | None, typer.Option(
    metavar="FILE", help="Write one self-contained page with charts.")]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Profile = Annotated[str | None, typer.Option(
    help="Profile of the AWS CLI.", show_default=False)]

Region = Annotated[str | None, typer.Option(
    help="Region; default: the profile's.", show_default=False)]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Leave out what passes.")]

Strict = Annotated[bool, typer.Option(
    "--strict", help="Fail on a warning, and on what could not be read.")]

Verbose = Annotated[bool, typer.Option(
    "--verbose", "-v", help="Name the page behind each check.")]

# What a load test sends.

Payload = Annotated[str | None, typer.Option(
    metavar="SOURCE", help="File (.jsonl: a request per line), folder, module:function, or a JSON "
    "text. Default: the settings' warm-up payload.")]

ContentType = Annotated[str | None, typer.Option(help="Default: application/json.")]

Accept = Annotated[str | None, typer.Option(help="Form of the answer.")]

Expect = Annotated[str | None, typer.Option(
    metavar="REGEX", help="Must occur in every good answer.")]

Stream = Annotated[bool, typer.Option("--stream", help="Ask for response streams.")]

Timeout = Annotated[str, typer.Option(metavar="TIME", help="For a whole request.")]

Zonal = Annotated[list[str] | None, typer.Option(
    metavar="URL", help="Base URL, such as the interface endpoint's of a zone; repeat it, they are "
    "taken in turn.")]

PlainHttp = Annotated[bool, typer.Option(
    "--allow-plain-http", help="Let http:// URLs lead to other machines, requests and signatures "
    "in clear.")]

Constant = Annotated[bool, typer.Option(
    "--constant/--poisson", help="Open loop: send at equal gaps, or at random as many independent "
    "callers do.")]

Seed = Annotated[int, typer.Option(help="The same seed sends at the same times.")]

AllowedErrors = Annotated[float, typer.Option(help="Share of requests that may fail.")]

# Jobs that AWS runs.

JobName = Annotated[str | None, typer.Option(
    metavar="NAME", help="Name of the new job. Default: made from endpoint and time.")]

Job = Annotated[str | None, typer.Option(
    metavar="NAME", help="Come back to a job: follow it, show its results.")]

ListJobs = Annotated[bool, typer.Option("--list", help="List the newest jobs.")]

StopJob = Annotated[bool, typer.Option("--stop", help="With --job: stop it.")]

Adopt = Annotated[int | None, typer.Option(
    metavar="N", help="With --job: write result N into the settings file, after showing the "
    "difference.")]

NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not follow the job to its end.")]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

SettingsRegion = Annotated[str | None, typer.Option(
    "--region", help="Region; default: the settings', else the profile's.", show_default=False)]
