"""The canary: a function in each zone, its order, its alarms, its cost."""

from __future__ import annotations

import json

import pytest
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns

from low_latency_endpoint import (
    AlarmOptions,
    CanaryOptions,
    KeepWarmOptions,
    RuntimePrivateLink,
    WarmUpOptions,
    WarmUpPayload,
    ZoneCanary,
)
from low_latency_endpoint.facts.canary_metrics import NAMESPACE, PUBLISHED
from low_latency_endpoint.warm_up.warm_up_function import canary as function
from tests.refusals import refused

PAYLOAD = WarmUpPayload(data={"inputs": "I like you."})


def canary_in(stack, parts, link=None, **options):
    network = parts.network(stack)
    private_link = link(stack, network) if link else parts.link(stack, network)
    return ZoneCanary(
        stack,
        "Canary",
        endpoint=parts.endpoint(stack),
        private_link=private_link,
        network=network,
        options=CanaryOptions(payload=PAYLOAD, **options),
    )


@pytest.fixture(scope="module")
def template(new_stack, parts, template_of):
    stack = new_stack()
    canary_in(stack, parts, zone_difference="20ms")
    return template_of(stack)


def orders_of(template):
    """By zone: the function's settings, tokens as their names."""
    found = {}
    for made in template.of_type("AWS::Lambda::Function").values():
        variables = made.get("Environment", {}).get("Variables", {})
        if "CANARY" in variables:
            joined = variables["CANARY"]["Fn::Join"][1]
            text = "".join(part if isinstance(part, str) else "TOKEN" for part in joined)
            order = json.loads(text)
            found[order["zone"]] = (order, made)
    return found


def test_each_zone_has_a_function_in_its_own_subnet_and_no_other(template):
    orders = orders_of(template)
    assert sorted(orders) == ["use1-az1", "use1-az2"]
    subnets = {
        properties["AvailabilityZoneId"]: logical_id
        for logical_id, properties in template.of_type("AWS::EC2::Subnet").items()
    }
    for zone, (_, made) in orders.items():
        assert made["VpcConfig"]["SubnetIds"] == [{"Ref": subnets[zone]}]
        assert made["Handler"] == "warm_up_function.canary.handler"


def test_a_function_runs_once_a_minute_after_the_endpoint_serves(template):
    rules = template.of_type("AWS::Events::Rule")
    assert [rule["ScheduleExpression"] for rule in rules.values()] == ["rate(1 minute)"] * 2
    (endpoint,) = template.of_type("AWS::SageMaker::Endpoint")
    for logical_id in rules:
        assert endpoint in template["Resources"][logical_id]["DependsOn"]


def test_it_may_invoke_this_endpoint_and_nothing_else_of_sagemaker(template):
    for _, made in orders_of(template).values():
        statements = template.rights_of(made["Role"]["Fn::GetAtt"][0])
        rights = {
            action: statement["Resource"]
            for statement in statements
            if statement["Effect"] == "Allow"
            for action in statement["Action"]
            if action.startswith("sagemaker:")
        }
        assert list(rights) == ["sagemaker:InvokeEndpoint"]
        assert "endpoint/serving-endpoint-" in json.dumps(rights).lower()


def test_every_metric_that_an_alarm_watches_is_one_that_the_function_publishes(template):
    """And under the same dimensions, or the alarm would wait for ever."""
    order, _ = orders_of(template)["use1-az1"]
    path = {"status": 200, "connect_ms": 1.0, "answer_ms": 30.0}
    entry = {"out_of_zone": False, "paths": {"zonal": path, "callers": path}}
    published = function.published_metrics(order, entry)["_aws"]["CloudWatchMetrics"][0]
    names = {each["Name"] for each in published["Metrics"]}
    assert names == set(PUBLISHED.values())
    watched = 0
    for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
        stats = [
            query["MetricStat"]["Metric"]
            for query in alarm.get("Metrics", [])
            if "MetricStat" in query
        ]
        for metric in stats or [alarm]:
            if metric["Namespace"] != NAMESPACE:
                continue
            watched += 1
            dimensions = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
            assert metric["MetricName"] in names
            assert [list(dimensions)] == published["Dimensions"]
            assert dimensions["EndpointName"] == order["endpoint"]
            assert dimensions["Zone"] in ("use1-az1", "use1-az2")
    assert watched == 2 * 3 + 2


def test_what_pages_and_what_does_not(new_stack, parts, template_of):
    stack = new_stack()
    made = canary_in(stack, parts, zone_difference="20ms")
    rule = json.dumps(stack.resolve(made.composites[""].node.default_child.alarm_rule))
    ids = {
        key: stack.resolve(alarm.node.default_child.logical_id)
        for key, alarm in made.alarms.items()
    }
    paging = {key for key, logical_id in ids.items() if logical_id in rule}
    assert paging == {
        *(f"{kind}/use1-az{n}" for kind in ("path", "unreachable") for n in (1, 2)),
        "difference",
    }
    assert ids.keys() - paging == {"out-of-zone/use1-az1", "out-of-zone/use1-az2"}


def test_each_alarm_of_a_zone_names_it(template):
    for logical_id, alarm in template.of_type("AWS::CloudWatch::Alarm").items():
        for zone in ("use1-az1", "use1-az2"):
            if zone.replace("-", "") in logical_id:
                assert zone in alarm["AlarmDescription"]


def test_without_private_dns_only_the_zonal_name_is_called(new_stack, parts, template_of):
    stack = new_stack()
    canary_in(
        stack,
        parts,
        lambda s, network: RuntimePrivateLink(s, "Link", network=network, private_dns=False),
    )
    template = template_of(stack)
    order, _ = orders_of(template)["use1-az1"]
    assert list(order["names"]) == ["zonal"]
    assert not [x for x in template.of_type("AWS::CloudWatch::Alarm") if "outofzone" in x]


def test_an_adopted_interface_endpoint_whose_name_is_not_known(new_stack, parts, template_of):
    stack = new_stack()

    def adopted(stack, network):
        group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
        return RuntimePrivateLink.from_interface_endpoint(
            stack,
            "Link",
            network=network,
            interface_endpoint=ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
                stack,
                "Adopted",
                vpc_endpoint_id="vpce-0123456789abcdef0",
                port=443,
                security_groups=[group],
            ),
        )

    canary_in(stack, parts, adopted)
    order, _ = orders_of(template_of(stack))["use1-az2"]
    assert list(order["names"]) == ["callers"]


def test_a_canary_has_something_to_send(stack, parts):
    network = parts.network(stack)
    link, endpoint = parts.link(stack, network), parts.endpoint(stack)
    with refused("LLE928"):
        ZoneCanary(
            stack,
            "Canary",
            endpoint=endpoint,
            private_link=link,
            network=network,
            options=CanaryOptions(),
        )


class TestPattern:
    def test_it_sends_the_warm_ups_payload_and_tells_whom_the_alarms_tell(
        self, stack, parts, template_of
    ):
        topic = sns.Topic(stack, "OnCall")
        made = parts.pattern(
            stack,
            warm_up=WarmUpOptions(payload=PAYLOAD, requests=10),
            canary=CanaryOptions(),
            alarms=AlarmOptions(
                actions=[cloudwatch_actions.SnsAction(topic)], quiet_during_deployments=True
            ),
        )
        # The target's share for overhead: 20 % of 200 ms.
        assert made.canary.alarms["difference"].node.default_child.threshold == 40
        composites = template_of(stack).of_type("AWS::CloudWatch::CompositeAlarm")
        (paging,) = [each for name, each in composites.items() if "Canary" in name]
        assert paging["AlarmActions"] == [
            {"Ref": stack.resolve(topic.node.default_child.logical_id)}
        ]
        assert "ActionsSuppressor" in paging

    def test_the_dashboard_draws_callers_after_the_target(self, stack, parts):
        made = parts.pattern(stack, canary=CanaryOptions(payload=PAYLOAD))
        titles = [widget["properties"].get("title") for widget in made.dashboard.body["widgets"]]
        assert (
            titles.index("What do callers in each zone see?")
            == titles.index("Where does the time go?") + 1
        )

    def test_without_a_payload(self, stack, parts):
        with refused("LLE928"):
            parts.pattern(stack, canary=CanaryOptions())

    def test_a_model_is_named_where_there_is_one(self, stack, parts):
        with refused("LLE929"):
            parts.pattern(
                stack, canary=CanaryOptions(payload=WarmUpPayload(text="x", target_model="a"))
            )

    def test_nor_beside_keep_warm(self, stack, parts):
        with refused("LLE929"):
            parts.pattern(
                stack,
                warm_up=WarmUpOptions(payload=PAYLOAD, keep_warm=KeepWarmOptions()),
                alarms=AlarmOptions(expect_traffic=True),
            )

    def test_an_alarm_on_silence_would_never_go_off(self, stack, parts):
        with refused("LLE929"):
            parts.pattern(
                stack,
                canary=CanaryOptions(payload=PAYLOAD),
                alarms=AlarmOptions(expect_traffic=True),
            )
