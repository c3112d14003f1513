"""The skips for older releases of aws-cdk-lib: none with the pinned release."""

from __future__ import annotations

import pytest

from tests import cdk_features
from tests.cdk_features import needs_cdk


def test_what_every_release_has_is_never_skipped():
    for feature in ("App", "aws_cloudwatch.Alarm"):
        assert needs_cdk(feature).args == (False,)


def test_what_an_older_release_lacks_is_skipped_with_its_name(monkeypatch):
    monkeypatch.setattr(cdk_features, "pinned", lambda: False)
    skip = needs_cdk("aws_cloudwatch.NotYet")
    assert skip.args == (True,)
    assert skip.kwargs == {"reason": "this aws-cdk-lib has no aws_cloudwatch.NotYet"}


def test_with_the_pinned_release_such_a_skip_is_an_error(monkeypatch):
    monkeypatch.setattr(cdk_features, "pinned", lambda: True)
    with pytest.raises(ValueError, match=r"pinned aws-cdk-lib has no aws_cloudwatch\.NotYet"):
        needs_cdk("aws_cloudwatch.NotYet")
