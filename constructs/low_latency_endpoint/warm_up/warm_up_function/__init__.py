"""The code of the functions that send to the endpoint, deployed as it stands: standard library and boto3.

``sender`` runs in the network's subnets and does one thing: send requests to the endpoint, in each
zone by its zonal name. ``controller`` runs outside the VPC, where CloudFormation, CloudWatch and
Lambda can be reached without a NAT gateway: it answers CloudFormation, decides, and starts the
sender. ``canary`` measures the path from one zone. ``measurements`` is what they count with, and
``exchanges`` how they send: with bounds on what comes back.
"""
