"""What SageMaker serves is held against the stack: the resource, its rights, its code at work."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from .conftest import by_action
from .inline_functions import loaded

CHECK = "Custom::EndpointServingCheck"
NEW, OLD = "configuration-new", "configuration-old"


# ------------------------------------------------------------------------------------ template


def test_comes_after_the_endpoint_and_concerns_its_configuration(smallest):
    template = smallest("endpoint")
    check = template.only(CHECK)
    assert check["EndpointName"] == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::Endpoint"), "EndpointName"]
    }
    assert check["EndpointConfigName"] == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::EndpointConfig"), "EndpointConfigName"]
    }
    assert int(check["ServiceTimeout"]) > _functions(template)[0]["Timeout"]


def test_two_endpoints_share_one_function_that_may_describe_these_two_only(
    stack, parts, template_of
):
    for name in ("first", "Second"):
        variants = [parts.variant(stack, model=parts.model(stack, f"Model-{name}"))]
        configuration = parts.configuration(stack, f"Configuration-{name}", variants=variants)
        parts.endpoint(stack, f"Endpoint-{name}", configuration=configuration, endpoint_name=name)
    template = template_of(stack)
    (function,) = _functions(template)
    tokens = [check["ServiceToken"] for check in template.of_type(CHECK).values()]
    (function_id,) = [
        logical_id
        for logical_id, each in template.of_type("AWS::Lambda::Function").items()
        if each == function
    ]
    assert tokens == [{"Fn::GetAtt": [function_id, "Arn"]}] * 2
    role_id = function["Role"]["Fn::GetAtt"][0]
    role = template["Resources"][role_id]["Properties"]
    assert "ManagedPolicyArns" not in role
    logs = {"Fn::GetAtt": [function["LoggingConfig"]["LogGroup"]["Ref"], "Arn"]}
    rights = by_action(template.rights_of(role_id))
    del rights["sagemaker:DescribeEndpoint"]
    assert {action: statement["Resource"] for action, statement in rights.items()} == {
        "cloudformation:DescribeStacks": {"Ref": "AWS::StackId"},
        "logs:CreateLogStream": logs,
        "logs:PutLogEvents": logs,
    }
    described = []
    for policy_id, policy in template.of_type("AWS::IAM::Policy").items():
        if policy["Roles"] != [{"Ref": role_id}]:
            continue
        (statement,) = policy["PolicyDocument"]["Statement"]
        assert statement["Action"] == ["sagemaker:DescribeEndpoint"]
        described.append(statement["Resource"]["Fn::Join"][1][-1])
        (user,) = [
            each for each in template.of_type(CHECK) if policy_id in template.depends_on(each)
        ]
        assert user.startswith("Endpoint")
    # ARNs of endpoints are in lower case.
    assert sorted(resource.rpartition(":")[2] for resource in described) == [
        "endpoint/first",
        "endpoint/second",
    ]


def _functions(template):
    return [
        each
        for each in template.of_type("AWS::Lambda::Function").values()
        if "Confirms" in each["Description"]
    ]


def test_its_code_needs_no_asset(smallest):
    (function,) = _functions(smallest("endpoint"))
    assert len(function["Code"]["ZipFile"]) < 4096  # Lambda's limit for inline code


def test_can_be_left_out(stack, parts, template_of):
    endpoint = parts.endpoint(stack, confirm_updates=False)
    assert endpoint.confirmation is None
    template = template_of(stack)
    assert CHECK not in template.types
    assert not _functions(template)


# --------------------------------------------------------------------------------------- code


class SageMaker:
    """DescribeEndpoint: one answer after the other, the last one for good."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    def describe_endpoint(self, *, EndpointName):
        assert EndpointName == "sentiment"
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def endpoint(status="InService", config=NEW, **more):
    return {
        "EndpointName": "sentiment",
        "EndpointStatus": status,
        "EndpointConfigName": config,
        **more,
    }


@pytest.fixture
def run(stack, parts, template_of, monkeypatch):
    """Run the handler as it stands in the template; returns what it sent to CloudFormation."""
    parts.endpoint(stack)
    source = _functions(template_of(stack))[0]["Code"]["ZipFile"]

    def run(*answers, request="Update", stack_status="UPDATE_IN_PROGRESS", seconds=300):
        left = [seconds]

        class CloudFormation:
            def describe_stacks(self, *, StackName):
                assert StackName == "arn:stack"
                return {"Stacks": [{"StackStatus": stack_status}]}

        class Context:
            def get_remaining_time_in_millis(self):
                return left[0] * 1000

        def sleep(pause):
            left[0] -= pause
            assert left[0] > 0, "Lambda would have stopped the function"

        sagemaker = SageMaker(*answers)
        clients = {"sagemaker": sagemaker, "cloudformation": CloudFormation()}
        handler, sent = loaded(source, clients, SimpleNamespace(sleep=sleep), monkeypatch)
        names = {"EndpointName": "sentiment", "EndpointConfigName": NEW}
        event = {"RequestType": request, "StackId": "arn:stack", "ResourceProperties": names}
        handler(event, Context())
        ((status, name, reason),) = sent  # exactly one, or CloudFormation waits for its time-out
        assert name == "sentiment"
        return (status, reason), sagemaker.asked

    return run


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_an_endpoint_that_serves_its_configuration_passes(run, request_type):
    assert run(endpoint(), request=request_type) == (("SUCCESS", None), 1)


@pytest.mark.parametrize("reason", ["", "The container did not pass the ping health check."])
def test_a_rolled_back_update_fails_and_says_what_serves_why_and_what_to_do(run, reason):
    told = {"FailureReason": reason} if reason else {}
    (status, text), asked = run(endpoint(config=OLD, **told))
    assert (status, asked) == ("FAILED", 1)
    for words in (
        OLD,
        NEW,
        "rolled the update back",
        reason or "none given",
        "deploy again",
        "/aws/sagemaker/Endpoints/sentiment",
        "--resources-to-skip",
    ):
        assert words in text


def test_a_failure_beside_the_right_configuration_fails_and_says_the_way_out(run):
    (status, text), _ = run(endpoint(FailureReason="no capacity"))
    assert status == "FAILED"
    for words in ("no capacity", "any change of the configuration", "confirm_updates"):
        assert words in text


@pytest.mark.parametrize("status", ["Failed", "OutOfService", "UpdateRollbackFailed", "Deleting"])
def test_an_endpoint_out_of_service_fails_at_once(run, status):
    (answer, text), asked = run(endpoint(status, FailureReason="mixed fleets"))
    assert (answer, asked) == ("FAILED", 1)
    assert status in text
    assert "mixed fleets" in text


def test_it_waits_while_something_is_going_on(run):
    busy = [endpoint("Updating"), endpoint("SystemUpdating"), endpoint("Updating")]
    assert run(*busy, endpoint()) == (("SUCCESS", None), 4)
    (status, _), asked = run(
        endpoint("Updating", OLD), endpoint("RollingBack", OLD), endpoint(config=OLD)
    )
    assert (status, asked) == ("FAILED", 3)


def test_scaling_that_takes_longer_does_not_fail_but_another_configuration_does(run):
    assert run(endpoint("Updating"))[0] == ("SUCCESS", None)
    (status, text), _ = run(endpoint("Updating", OLD))
    assert status == "FAILED"
    assert OLD in text


@pytest.mark.parametrize("stack_status", ["UPDATE_ROLLBACK_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"])
def test_a_rollback_passes_whatever_serves(run, stack_status):
    answer = endpoint("Failed", OLD, FailureReason="x")
    assert run(answer, stack_status=stack_status) == (("SUCCESS", None), 0)


def test_a_delete_asks_nothing(run):
    assert run(RuntimeError("gone"), request="Delete", stack_status="x") == (("SUCCESS", None), 0)


def test_a_right_that_is_seconds_old_is_waited_for(run):
    denied = RuntimeError("An error occurred (AccessDeniedException) when calling ...")
    assert run(denied, denied, endpoint()) == (("SUCCESS", None), 3)
    (status, text), _ = run(denied)
    assert status == "FAILED"
    assert "AccessDenied" in text


def test_what_else_goes_wrong_reaches_cloudformation(run):
    (status, text), asked = run(RuntimeError("Could not find endpoint"))
    assert (status, asked) == ("FAILED", 1)
    assert "Could not find endpoint" in text


def test_the_reason_fits_into_cloudformation_s_answer(run):
    (_, text), _ = run(endpoint(config=OLD, FailureReason="x" * 5000))
    assert len(text) <= 2000  # of 4,096 bytes
    assert "--resources-to-skip" in text
