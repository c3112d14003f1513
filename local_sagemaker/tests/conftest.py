"""One local AWS for all tests of this folder, and a stack of its own for each test."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from hypothesis import HealthCheck, settings
from roles_under_test import HOSTING, document
from stacks_under_test import TRUST, TestStack, resource_of

from local_sagemaker import LocalAws, RuntimeOptions

# How long an example takes says nothing on a machine that does other work.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Programs that tests interrupt inherit what a job in the background has: SIGINT ignored, for good.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test may reach an account, not even one that forgets to ask for the local AWS.
for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ.update(
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
    BOTO_CONFIG=os.devnull,  # in place of /etc/boto.cfg and ~/.boto, which botocore still reads
)
# Nobody starts EC2 instances: moto need not make its images anew for each local AWS.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"


@pytest.fixture(autouse=True)
def own_default_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test call with the credentials of the test before.

    boto3 keeps the session of its first client, with what that found in the environment.
    """
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS in a thread of the test process."""
    # What outlives endpoints has tests of its own (test_drained_interfaces.py); here nobody waits.
    options = RuntimeOptions(interfaces_stay=0)
    with LocalAws.in_process(region="us-east-1", runtime=options) as running:
        yield running


@pytest.fixture
def stack(aws: LocalAws) -> Iterator[TestStack]:
    """A stack with a name of its own, deleted after the test."""
    under_test = TestStack(aws, f"Test{next(_numbers)}")
    yield under_test
    under_test.delete()


@pytest.fixture
def role() -> dict[str, Any]:
    """A role to run models and functions with."""
    policy = {"PolicyName": "rights", "PolicyDocument": document(*HOSTING)}
    properties = {"AssumeRolePolicyDocument": TRUST, "Policies": [policy]}
    return resource_of("AWS::IAM::Role", **properties)


@pytest.fixture
def vpc() -> dict[str, Any]:
    """A VPC in which private DNS works."""
    return resource_of(
        "AWS::EC2::VPC", CidrBlock="10.0.0.0/16", EnableDnsSupport=True, EnableDnsHostnames=True
    )


@pytest.fixture
def cloudwatch(aws: LocalAws) -> Iterator[Any]:
    """A client, in a CloudWatch that knows nothing yet; there is a topic for pages."""
    aws.reset()
    aws.client("sns").create_topic(Name="pages")
    yield aws.client("cloudwatch")
    aws.reset()
