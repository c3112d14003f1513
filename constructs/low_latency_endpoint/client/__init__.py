"""Callers of the endpoint, synchronous and asyncio: retries, zones, hedging, signing, HTTP.

It imports boto3, ``plan`` and ``errors``; never ``aws_cdk``.
"""
