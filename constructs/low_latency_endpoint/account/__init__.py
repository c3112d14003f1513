"""Reads an AWS account as it is: calls, endpoints, scaling, alarms, metrics, stacks and networks.

Each operation of AWS's is called in one module here, for preflight, verify, diagnose, recommend and
load tests alike; what they make of the answers is theirs. It imports boto3, ``plan`` and ``errors``.
"""
