"""Values on both sides of a limit, made from its declaration."""

from __future__ import annotations

from typing import Any

from low_latency_endpoint.facts.limit_kinds import Choice, Limit, Pattern, Range

#: Text that people write by mistake; a form that allows one of them is not asked about it.
TEXTS = ("", " ", "a b", "a_b", "-a", "a-", "é", "other", "OTHER", "a\nb", "../a", "7")


KEY_ARN = "arn:aws:kms:us-east-1:123456789012"
#: What each limit must refuse, by its code, beside what is made from its declaration.
REFUSED: dict[str, tuple[Any, ...]] = {
    "LLE101": ("us-east-1a", "use1-az", "USE1-AZ1", "use1-az2 ", "dummy1a"),
    "LLE102": ("use1-az1", "us-east-1", "us east 1a", "dummy1d"),
    "LLE302": ("a b",),
    "LLE304": ("model.tar.gz", "ftp://x/y", "s3://", "bucket/model.tar.gz"),
    "LLE306": ("1A", "A-B"),
    "LLE309": ("SERIAL", "Parallel"),
    "LLE311": ("amd64",),
    "LLE312": ("linux/riscv",),
    "LLE341": (f"{KEY_ARN}:alias/models",),  # in IAM's policies an alias is no key
    "LLE374": ("fraud:7", "-"),
    "LLE405": ("g5.xlarge", "ml.g5", "ml.G5.xlarge", " ml.g5.xlarge"),
    "LLE409": ("al2-ami-sagemaker-inference-gpu-9",),
    "LLE410": ("KV_AWARE", "random"),
    "LLE418": ("bucket", "http://b", "s3://", "https://b.s3.amazonaws.com/x"),
    "LLE419": ("reserved", "arn:aws:s3:::reserved"),
    "LLE417": (0, 15, 301),
    "LLE427": ("Input", "InputAndOutput"),
    "LLE429": ("json", "a/b; charset=utf-8"),
    "LLE510": ("aws:team", "AWS:team", "a;b"),
    "LLE511": ("a;b",),
    "LLE513": (
        "arn:aws:sagemaker:us-east-1:123456789012:model/sentiment",
        "arn:aws:sagemaker:us-east-1:123456789012:endpoint/",
    ),
    "LLE560": (1000, 65_536),
    "LLE564": (0, 31),
    "LLE570": ("low-latency", "/low-latency/", "/aws/mine", "/SSM", "/a b", "/a" * 13),
    "LLE611": (" a", "a ", "a:b", "a/b"),
    "LLE882": ("m5.large", "nat_gateway"),
    "LLE912": ("1st",),
    "LLE913": ("Virginia",),
    "LLE914": ("12345",),
    "LLE916": ("Team/Model",),
    "LLE920": ("vpc-1",),
    "LLE922": ("vpce-9",),
    "LLE926": ("alias/mine",),
    **dict.fromkeys(("LLE303", "LLE373", "LLE375", "LLE402", "LLE439", "LLE501"), ("a_b", "-a")),
}


def outside(limit: Limit) -> list[Any]:
    """The nearest numbers outside, and a fraction where none may be; text of other forms."""
    if isinstance(limit, Range):
        least, most = limit.minimum, limit.maximum
        below = [] if least is None else [least - 1 if limit.whole or least <= 0 else least / 2]
        above = [] if most is None else [most + 1 if limit.whole else most * 1.01]
        fraction = [(least or 0) + 1.5] if limit.whole else []
        return [*below, *above, *fraction]
    long = ["x" * (limit.max_length + 1)] if isinstance(limit, Pattern) and limit.max_length else []
    refused = REFUSED.get(limit.rule.code, ())
    if isinstance(limit, Choice) and not isinstance(limit.values[0], str):
        return list(refused)
    return [*refused, *(each for each in (*TEXTS, *long) if not limit.holds(each))]


def inside(limit: Limit) -> list[Any]:
    """The outermost values that are allowed, where the declaration names them."""
    if isinstance(limit, Range):
        return [each for each in (limit.minimum, limit.maximum) if each is not None]
    return list(limit.values) if isinstance(limit, Choice) else []
