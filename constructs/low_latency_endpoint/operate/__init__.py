"""Is it so? An account set against what was planned; never imports ``aws_cdk``."""
