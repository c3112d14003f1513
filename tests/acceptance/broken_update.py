"""A pytest plugin: the step `update` deploys, and then fails with an error that names the account."""

from __future__ import annotations

from typing import NoReturn

from botocore.exceptions import ClientError

from tools.acceptance import steps


def pytest_configure() -> None:
    steps._by_fleet = _refused  # what the step reads last


def _refused(run: steps.Run) -> NoReturn:
    message = f"User: arn:aws:iam::{run.world.account}:user/alice is not authorized, {run.name}"
    error = {"Error": {"Code": "AccessDenied", "Message": message}}
    raise ClientError(error, "DescribeStacks")
