"""AWS::SNS::Topic: its inline subscriptions."""

from __future__ import annotations

from .calls import Known
from .resource_type import Place, Properties, ResourceType


class Topic(ResourceType):
    """A topic, whose subscriptions SNS names by ARNs that the template does not have."""

    def settle(self, at: Place, known: Known, old: Properties, new: Properties) -> None:
        super().settle(at, known, old, new)
        kept = new.get("Subscription") or []
        gone = [each for each in old.get("Subscription") or [] if each not in kept]
        sns = at.client("sns")
        found = sns.list_subscriptions_by_topic(TopicArn=known[""])["Subscriptions"] if gone else []
        for each in found:
            if {"Protocol": each["Protocol"], "Endpoint": each["Endpoint"]} in gone:
                sns.unsubscribe(SubscriptionArn=each["SubscriptionArn"])
