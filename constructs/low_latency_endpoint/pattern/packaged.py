"""Synthesis for ``low-latency package``, in a process of its own: ``python -m``, with a request.

The template that comes out needs no ``cdk bootstrap``: its assets lie in a bucket that is a
parameter of the stack, and nothing in it refers to the CDK's own roles.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import App, CfnParameter, DefaultStackSynthesizer

from ..errors import LowLatencyEndpointError
from .low_latency_endpoint_stack import LowLatencyEndpointStack

BUCKET_PARAMETER = "AssetBucket"


def synthesise(
    settings: Path, folder: Path, *, context: Mapping[str, Any], bucket: str | None, prefix: str
) -> None:
    """Write the cloud assembly of a settings file into a folder.

    Parameters
    ----------
    settings, folder : pathlib.Path
    context : mapping
        Feature flags, and what was looked up.
    bucket : str or None
        Default of the parameter; ``None`` leaves it to whoever deploys.
    prefix : str
        Of the assets' keys; empty, or with a slash at its end.
    """
    app = App(outdir=str(folder), context=dict(context))
    stack = LowLatencyEndpointStack.from_settings(
        app,
        settings,
        synthesizer=DefaultStackSynthesizer(
            file_assets_bucket_name=f"${{{BUCKET_PARAMETER}}}",
            bucket_prefix=prefix,
            generate_bootstrap_version_rule=False,
        ),
    )
    CfnParameter(
        stack,
        BUCKET_PARAMETER,
        default=bucket,
        description="The bucket, in the stack's Region, with the assets of this package",
    )
    app.synth()


if __name__ == "__main__":
    request = json.loads(sys.stdin.read())
    try:
        synthesise(Path(request.pop("settings")), Path(request.pop("folder")), **request)
    except (LowLatencyEndpointError, RuntimeError) as error:  # the CDK's own refusals
        sys.exit(str(error))
