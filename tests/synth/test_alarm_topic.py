"""The encrypted topic that alarms publish to."""

from __future__ import annotations

from low_latency_endpoint import AlarmTopic


def test_cloudwatch_of_this_account_may_publish_and_use_the_key(stack, template_of):
    AlarmTopic(stack, "OnCall", emails=["on-call@example.com"])
    template = template_of(stack)

    key = template.only("AWS::KMS::Key")
    assert key["EnableKeyRotation"] is True
    by_cloudwatch = [
        statement
        for statement in key["KeyPolicy"]["Statement"]
        if statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    ]
    assert [statement["Action"] for statement in by_cloudwatch] == [
        ["kms:Decrypt", "kms:GenerateDataKey*"]
    ]
    assert "aws:SourceAccount" in by_cloudwatch[0]["Condition"]["StringEquals"]

    topic = template.only("AWS::SNS::Topic")
    assert topic["KmsMasterKeyId"]
    policy = template.only("AWS::SNS::TopicPolicy")
    statements = policy["PolicyDocument"]["Statement"]
    assert {statement["Action"] for statement in statements} == {"sns:Publish"}
    denied = [statement for statement in statements if statement["Effect"] == "Deny"]
    assert denied[0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    allowed = [statement for statement in statements if statement["Effect"] == "Allow"]
    assert allowed[0]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert "ArnLike" in allowed[0]["Condition"]

    subscription = template.only("AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "on-call@example.com")


def test_a_key_that_is_passed_is_used_as_it_is(stack, template_of):
    from aws_cdk import aws_kms as kms

    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    )
    AlarmTopic(stack, "OnCall", encryption_key=key)
    template = template_of(stack)
    assert not template.of_type("AWS::KMS::Key")
    topic = template.only("AWS::SNS::Topic")
    assert topic["KmsMasterKeyId"].startswith("arn:aws:kms:")
