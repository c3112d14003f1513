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
        "What to serve: text-classification on CPUs, language-model on a GPU with vLLM, "
        "hugging-face with a model from the Hub, or inferentia2 with a model compiled for Neuron.",
        TemplateName.TEXT_CLASSIFICATION,
        metavar="TEMPLATE",
    )
    model_data: str | None = option(
        "Model in S3: a .tar.gz file, or the prefix of its files for language-model.",
        metavar="S3_URI",
    )
    model: str | None = option(
        "With hugging-face: name of the model on the Hub, such as Qwen/Qwen3-8B.", metavar="MODEL"
    )
    vpc_id: str | None = option("VPC that the callers run in. Default: a new VPC.", metavar="VPC")
    zones: str | None = option(
        "Availability Zones that the callers run in, by ID or name, at least two: "
        "use1-az1,use1-az2. Default: the zones of the VPC; for a new VPC the first two of the Region.",
        metavar="LIST",
    )
    subnets: str | None = option(
        "With --vpc-id: one subnet per zone, in the order of the zones. Default: looked up in the "
        "account, or at synthesis for zones given by name.",
        metavar="LIST",
    )
    name: str | None = option(
        "Name of the endpoint. Default: sentiment, chat, hub or scorer, depending on the template.",
        metavar="NAME",
    )
    account: str | None = option(
        "AWS account ID, 12 digits. Default: the account of the credentials.", metavar="ACCOUNT"
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
    snapshot test. If the folder has a cdk.json, it writes only the settings file and the test, and
    prints the lines to add to the app. It never overwrites a file.

    With AWS credentials it looks up the Region, account, zones and subnets that you do not give
    (ec2:DescribeAvailabilityZones, DescribeSubnets, DescribeRouteTables and
    sts:GetCallerIdentity). It lists what is still missing.

    \b
    Exit codes:
      0  written
      2  usage error, something is missing, or a file exists; nothing is written

    \b
    Examples:
      low-latency init --model-data s3://my-bucket/model.tar.gz
      low-latency init serving --vpc-id vpc-0123456789abcdef0 --profile production
      low-latency init --template language-model --model-data s3://my-bucket/qwen/
      low-latency init --template hugging-face --model Qwen/Qwen3-8B
      low-latency init --zones use1-az1,use1-az2 --model-data s3://bucket/m.tar.gz
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
