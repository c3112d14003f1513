"""Locust's command line for :class:`.users.SageMakerUser`: options, environment, web form."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

#: Setting, option as `low-latency load-test` has it, its argument or "" for a flag, help.
OPTIONS = (
    ("endpoint_name", "--endpoint-name", "NAME", "SageMaker endpoint to invoke"),
    ("region", "--region", "REGION", "its Region; by default as boto3 finds it"),
    # Locust has a --profile of its own.
    ("aws_profile", "--aws-profile", "NAME", "profile of the AWS CLI; by default as boto3 does"),
    (
        "payload",
        "--payload",
        "SOURCE",
        "file, .jsonl file with a body per line, folder, "
        "module:function, or JSON itself; on every worker",
    ),
    (
        "endpoint_urls",
        "--zonal",
        "URL,...",
        "base URLs such as PrivateLink's zonal ones, taken in "
        "turn; by default the one that boto3 would use",
    ),
    ("content_type", "--content-type", "TYPE", "of the requests"),
    ("accept", "--accept", "TYPE", "form of the answers"),
    ("target_variant", "--variant", "NAME", "production variant to invoke"),
    ("target_model", "--target-model", "FILE", "model of a multi-model endpoint"),
    ("inference_component", "--inference-component", "NAME", "inference component to invoke"),
    ("streaming", "--stream", "", "ask for response streams and list the time to the first part"),
    ("timeout_seconds", "--timeout", "SECONDS", "for a whole request"),
    ("expected", "--expect", "REGEX", "must occur in every good answer"),
    (
        "allow_plain_http",
        "--allow-plain-http",
        "",
        "let http:// URLs lead to other machines, requests and signatures in clear",
    ),
)


def add_options(parser: Any) -> None:
    """Add the options to Locust's parser, each with its ``LOCUST_`` environment variable."""
    # Not in a group: Locust's page shows only what its parser itself was given.
    for name, option, argument, text in OPTIONS:
        kind: dict[str, Any] = (
            {"action": "store_true"} if not argument else {"metavar": argument, "default": ""}
        )
        variable = option.removeprefix("--").replace("-", "_").upper()
        parser.add_argument(
            option,
            dest=f"sagemaker_{name}",
            env_var=f"LOCUST_{variable}",
            help=f"SageMakerUser: {text}",
            **kind,
        )


def settings_of(parsed_options: Any) -> dict[str, Any]:
    """The settings that were given; empty ones, as a web form sends, were not."""
    settings: dict[str, Any] = {}
    for name, *_ in OPTIONS:
        value = getattr(parsed_options, f"sagemaker_{name}", None)
        if not value:
            continue
        if name == "timeout_seconds":
            with suppress(ValueError):  # the rule on timeouts says what is wrong with it
                value = float(value)
        elif name == "endpoint_urls":
            value = tuple(url.strip() for url in value.split(",") if url.strip())
        settings[name] = value
    return settings
