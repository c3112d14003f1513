"""Is it so? Preflight, verify, diagnose and recommend: an account set against what was planned.

It imports ``settings``, ``account``, ``client``, ``report`` and ``plan``; never ``aws_cdk``.
"""
