"""Offer files as AWS's Price List has them, cut down to a few lines; prices of public copies.

The heads are those of files of 2026: five lines about the file, then the columns. Where AWS writes
a column's name in several ways, these do too.
"""

from __future__ import annotations

import csv
import io

_DISCLAIMER = (
    "This pricing list is for informational purposes only. All prices are subject to the "
    "additional terms included in the pricing pages on http://aws.amazon.com."
)
_TERM = ["SKU", "OfferTermCode", "RateCode", "TermType", "PriceDescription", "EffectiveDate"]
_TERM += ["StartingRange", "EndingRange", "Unit", "PricePerUnit", "Currency"]

Row = tuple[str, str, str, str]  # term, start of the tier, price, usage type


def offer(
    code: str, rows: list[Row], *, usage: str = "usageType", region: str = "us-east-1"
) -> str:
    """The text of an offer file."""
    text = io.StringIO()
    write = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow
    write(["FormatVersion", "v1.0"])
    write(["Disclaimer", _DISCLAIMER])
    write(["Publication Date", "2026-09-20T17:05:12Z"])
    write(["Version", "20260920170512"])
    write(["OfferCode", code])
    write([*_TERM, "Product Family", "serviceCode", "Location", usage, "Region Code"])
    for number, (term, start, usd, usage_type) in enumerate(rows):
        sku = f"SKU{number}"
        about = f'${usd} per "unit", {usage_type}'
        write(
            [
                *(sku, "JRTCKXETXF", f"{sku}.JRTCKXETXF.6YS6EN2CT7", term, about, "2026-09-01"),
                *(start, "Inf", "Hrs", usd, "USD", "ML Instance", code),
                *("US East (N. Virginia)", usage_type, region),
            ]
        )
    return text.getvalue()


SAGEMAKER = offer(
    "AmazonSageMaker",
    [
        ("OnDemand", "0", "1.4080000000", "USE1-Host:ml.g5.xlarge"),
        ("OnDemand", "0", "1.4080000000", "USE1-AsyncInf:ml.g5.xlarge"),
        ("OnDemand", "0", "1.2000000000", "USE1-Train:ml.g5.xlarge"),
        ("Reserved", "0", "0.9000000000", "USE1-Host:ml.g5.xlarge"),
        ("OnDemand", "0", "0.2300000000", "USE1-Host:ml.m5.xlarge"),
        ("OnDemand", "0", "0.1400000000", "USE1-Host:VolumeUsage.gp2"),
    ],
)
VPC = offer(
    "AmazonVPC",
    [
        ("OnDemand", "0", "0.0100000000", "USE1-VpcEndpoint-Hours"),
        ("OnDemand", "0", "0.0100000000", "USE1-VpcEndpoint-Bytes"),
        ("OnDemand", "1048576", "0.0060000000", "USE1-VpcEndpoint-Bytes"),
        ("OnDemand", "0", "0.0125000000", "USE1-VpcEndpoint-GWLBE-Hours"),
    ],
    usage="Usage Type",
)
CLOUDWATCH = offer(
    "AmazonCloudWatch",
    [
        ("OnDemand", "0", "0.1000000000", "USE1-CW:AlarmMonitorUsage"),
        ("OnDemand", "0", "0.3000000000", "USE1-CW:HighResAlarmMonitorUsage"),
        ("OnDemand", "0", "0.5000000000", "USE1-CW:CompositeAlarmMonitorUsage"),
        ("OnDemand", "0", "0.3000000000", "USE1-CW:MetricMonitorUsage"),
        ("OnDemand", "10000", "0.1000000000", "USE1-CW:MetricMonitorUsage"),
        ("OnDemand", "0", "0.5000000000", "USE1-DataProcessing-Bytes"),
    ],
)
LAMBDA = offer(
    "AWSLambda",
    [
        ("OnDemand", "0", "0.0000002000", "USE1-Request-ARM"),
        ("OnDemand", "0", "0.0000133334", "USE1-Lambda-GB-Second-ARM"),
        ("OnDemand", "7500000000", "0.0000120001", "USE1-Lambda-GB-Second-ARM"),
        ("OnDemand", "0", "0.0000166667", "USE1-Lambda-GB-Second"),
    ],
)
OFFERS = {
    "AmazonSageMaker": SAGEMAKER,
    "AmazonVPC": VPC,
    "AmazonCloudWatch": CLOUDWATCH,
    "AWSLambda": LAMBDA,
}
