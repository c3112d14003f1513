"""Copies files of a pinned model from the Hub into S3: in Lambda at a deploy, or from a machine.

It is a Lambda function's whole code, beside what Lambda's runtime brings (boto3), so it imports
nothing of ours; ``low-latency stage`` runs the same modules.
"""
