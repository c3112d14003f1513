"""Tests of what aws-cdk-lib has learnt since the oldest release that pyproject.toml lets in."""

from __future__ import annotations

import importlib
import importlib.metadata
from functools import cache

import pytest

from tests.pinned import DEPLOY, pins_of


@cache
def pinned() -> bool:
    """Whether aws-cdk-lib is the one that the requirements file pins."""
    installed = importlib.metadata.version("aws-cdk-lib")
    return pins_of(DEPLOY)["aws-cdk-lib"].requirement.specifier.contains(installed)


def needs_cdk(feature: str) -> pytest.MarkDecorator:
    """Skips where aws-cdk-lib has no such name, for example ``aws_cloudwatch.PromQLAlarm``.

    With the pinned aws-cdk-lib no test is skipped: a name that the pinned one lacks is an error.
    """
    module, _, name = f"aws_cdk.{feature}".rpartition(".")
    missing = not hasattr(importlib.import_module(module), name)
    if missing and pinned():
        raise ValueError(f"The pinned aws-cdk-lib has no {feature}")
    return pytest.mark.skipif(missing, reason=f"this aws-cdk-lib has no {feature}")
