"""Error codes of whatever reads an account."""

from __future__ import annotations

from ..errors import rule

ENDPOINT_EXISTS = rule(
    "LLE581",
    "the endpoint must exist in this account and region",
    mend="Check the name (aws sagemaker list-endpoints), --region and --profile.",
    source="/sagemaker/latest/APIReference/API_DescribeEndpoint.html",
)
CREDENTIALS = rule(
    "LLE583",
    "AWS needs credentials and a region",
    mend="Give --profile and --region, or set AWS_PROFILE and AWS_REGION; aws configure makes a "
    "profile.",
    source="/cli/latest/userguide/cli-configure-quickstart.html",
)
STACK_EXISTS = rule(
    "LLE591",
    "The stack must exist in this account and region.",
    mend="Deploy it first, or name another: --stack-name, AWS_REGION, AWS_PROFILE.",
)
