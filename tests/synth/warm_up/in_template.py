"""The warm-up's functions as the template has them."""

from __future__ import annotations

from low_latency_endpoint import WarmUpPayload

PAYLOAD = WarmUpPayload(data={"inputs": "I like you."})


def function_of(template, name):
    (found,) = [
        properties
        for logical_id, properties in template.of_type("AWS::Lambda::Function").items()
        if logical_id.startswith(f"WarmUp{name}Function")
    ]
    return found


def statements_of(template, name):
    """Effect, actions and resource of everything that a function may do."""
    role = function_of(template, name)["Role"]["Fn::GetAtt"][0]
    assert "ManagedPolicyArns" not in template["Resources"][role]["Properties"]
    return template.rights_of(role)


def may(template, name):
    """Action -> resource, of what is allowed."""
    return {
        action: statement["Resource"]
        for statement in statements_of(template, name)
        if statement["Effect"] == "Allow"
        for action in statement["Action"]
    }
