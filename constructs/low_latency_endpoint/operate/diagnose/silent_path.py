"""No requests: is the interface endpoint through which they come as the template has it?"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ...account.calls import Account
from ...account.network import adopted_interface_endpoint, https_sources
from ...account.stacks import stack_ids, template_resources
from .causes import finding
from .findings import Finding
from .measurements import Measurements


def broken_paths(account: Account, stack: str) -> list[str]:
    """What is wrong with each of the stack's interface endpoints for SageMaker's runtime."""
    resources = template_resources(account, stack)
    ids = stack_ids(account, stack, "AWS::EC2::VPCEndpoint")
    return [text for name, link in ids.items() for text in _broken(account, link, resources[name])]


def _broken(account: Account, id: str, resource: object) -> Iterator[str]:
    stated = json.dumps(resource)
    if "sagemaker.runtime" not in stated:
        return
    link = adopted_interface_endpoint(account, id)
    if link is None:
        yield f"{id} is gone"
    elif link["State"].lower() != "available":
        yield f"{id} is {link['State']}"
    elif '"PrivateDnsEnabled": true' in stated and not link.get("PrivateDnsEnabled"):
        yield f"{id} has no private DNS: the runtime's name goes around it"
    elif not https_sources(account, [each["GroupId"] for each in link.get("Groups", ())]):
        yield f"the security groups of {id} let nobody in on port 443"


def no_path(m: Measurements) -> Iterator[Finding]:
    """At most one finding."""
    if m.broken_paths:
        yield finding("LLD606", *m.broken_paths, stack=m.plan.stack if m.plan else "STACK")
