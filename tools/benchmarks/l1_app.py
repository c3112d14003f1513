"""An app with the resources of ``pattern_app.py``, read from its template: what the CDK alone takes.

The template's path is the only argument. Each resource is a generic ``CfnResource`` with finished
properties. Prints the same seconds as ``pattern_app.py``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from aws_cdk import App, CfnCondition, CfnResource, Environment, Fn, Stack

from .measure import peak_megabytes


def main() -> None:
    """Build the app and synthesise it."""
    template = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    started = time.perf_counter()
    app = App()
    stack = Stack(app, "Benchmark", env=Environment(account="123456789012", region="us-east-1"))
    for name, condition in template.get("Conditions", {}).items():
        CfnCondition(stack, name, expression=Fn.condition_equals(*condition["Fn::Equals"]))
    for logical_id, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        generic = CfnResource(stack, logical_id, type=resource["Type"], properties=properties)
        for attribute in resource.keys() - {"Type", "Properties"}:
            generic.add_override(attribute, resource[attribute])
    built = time.perf_counter()
    app.synth()
    ended = time.perf_counter()
    print(json.dumps({"build": built - started, "synth": ended - built, "peak": peak_megabytes()}))


if __name__ == "__main__":
    main()
