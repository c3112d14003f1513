"""``low-latency package``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from .options import ENDPOINT_YAML, Json, SettingsFile, grouped, option
from .output import print_json


@dataclass
class PackageOptions:
    """Where the package and its assets go."""

    output: Path = option(
        "The folder to write; it must be empty.", Path("package"), metavar="FOLDER", short="-o"
    )
    bucket: str | None = option(
        "The bucket, in the stack's region, that will hold the assets. Without it whoever deploys "
        "names it.",
        metavar="BUCKET",
    )
    prefix: str = option(
        "Prefix of the assets' keys in the bucket.", "low-latency-endpoint/", metavar="PREFIX"
    )
    json: Json = False


@grouped
def package(options: PackageOptions, settings: SettingsFile = ENDPOINT_YAML) -> None:
    """Write template and assets, for anyone to deploy with the AWS CLI: no CDK, no bootstrap.

    Two commands deploy it, which its README.md has; the bucket is a parameter of the stack. Feature
    flags are those of a cdk.json beside the settings file, and an existing VPC is what its
    cdk.context.json says; needs Node.js, as any synthesis. The bytes are the same each time.

    \b
    Exit codes:
      0  written
      2  usage, or the settings file is wrong; nothing is written

    \b
    Examples:
      low-latency package -o dist/
      low-latency package chat.yaml -o chat/ --bucket my-assets --prefix releases/7/
    """
    from .package_files import write_package

    lines = write_package(settings, options.output, options.bucket, options.prefix)
    if options.json:
        print_json({"output": str(options.output), "written": list(lines)})
        return
    for line in lines:
        typer.echo(line)
