"""Is it so? What boto3 reads from an account, set against what was planned."""
