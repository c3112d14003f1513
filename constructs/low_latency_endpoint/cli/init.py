"""``low-latency init``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import ENDPOINT_YAML, Json, Profile, Region, grouped, option
from .output import print_json


class TemplateName(StrEnum):
    """What is served, and on what."""

    TEXT_CLASSIFICATION = "text-classification"
    LANGUAGE_MODEL = "language-model"
    HUGGING_FACE = "hugging-face"
    INFERENTIA2 = "inferentia2"


@dataclass
class InitOptions:
    """What is served, and where; the account has what is not given."""

    template: TemplateName = option(
        "text-classification on CPUs, language-model on a GPU with vLLM, hugging-face with a "
        "model of the Hub, inferentia2 with one compiled for Neuron.",
        TemplateName.TEXT_CLASSIFICATION,
    )
    model_data: str | None = option(
        "The model in S3: one .tar.gz; for language-model the prefix of its files.",
        metavar="S3_URI",
    )
    model: str | None = option(
        "With hugging-face: its name on the Hub, such as Qwen/Qwen3-8B.", metavar="MODEL"
    )
    vpc_id: str | None = option(
        "The VPC that the callers run in. Without it a new one is made.", metavar="VPC"
    )
    zones: str | None = option(
        "Where the callers run, IDs or names of two zones or more: use1-az1,use1-az2. Default: "
        "the VPC's; for a new VPC the region's first two.",
        metavar="LIST",
    )
    subnets: str | None = option(
        "With --vpc-id: the subnet of each of the zones, in their order. Default: found with "
        "credentials; zones by name are looked up at synthesis.",
        metavar="LIST",
    )
    name: str | None = option(
        "What callers invoke. Default: sentiment, chat, hub or scorer, by the template.",
        metavar="NAME",
    )
    account: str | None = option(
        "Account, twelve digits. Default: that of the credentials.", metavar="ACCOUNT"
    )
    profile: Profile = None
    region: Region = None
    file: str = option(
        "Settings file to write. Give another name if the app already has one.",
        str(ENDPOINT_YAML),
        names="--settings",
        metavar="FILE",
    )
    json: Json = False


@grouped
def init(
    options: InitOptions,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            show_default=False,
            help="Folder to write to. Default: the current folder.",
        ),
    ] = Path("."),
) -> None:
    """Start a CDK app with an endpoint, or add one to an app that exists.

    Writes app.py, cdk.json, endpoint.yaml, requirements.txt, package.json (the CDK CLI) and a
    snapshot test. Where a cdk.json is, only the settings file and the test, and says which lines to
    add. Overwrites nothing.

    With credentials, region, account, zones and subnets that no option states are read from the
    account (ec2:DescribeAvailabilityZones, DescribeSubnets, DescribeRouteTables and
    sts:GetCallerIdentity). What is still missing is listed.

    \b
    Exit codes:
      0  written
      2  usage, or something is missing or in the way; nothing is written

    \b
    Examples:
      low-latency init --model-data s3://my-bucket/model.tar.gz
      low-latency init serving --vpc-id vpc-0123456789abcdef0 --profile production
      low-latency init --template language-model --model-data s3://my-bucket/qwen/
      low-latency init --template hugging-face --model Qwen/Qwen3-8B
      low-latency init --region us-east-1 --zones use1-az1,use1-az2 --model-data s3://my-bucket/m.tar.gz
    """
    from .init_files import check_room, has_app, next_steps, write
    from .init_values import init_values

    app = has_app(folder)
    check_room(folder, options.file, app)
    values = init_values(options)
    written = write(folder, options.file, values, app)
    if options.json:
        print_json({"written": [str(path) for path in written]})
        return
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo(next_steps(folder, options.file, values, app))
