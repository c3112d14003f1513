"""Copies a pinned model's files into S3, in Lambda too: imports boto3 and nothing of ours."""
