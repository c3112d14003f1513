"""Write `resource_types.json` from cfn-lint's copy of CloudFormation's schemas (`make docs`)."""

from __future__ import annotations

from .extract import FILE, extracted, written

FILE.write_text(written(extracted()))
