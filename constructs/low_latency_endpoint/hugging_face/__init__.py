"""Models of the Hugging Face Hub: the lock file, how it is written, their way into S3."""

HUB = "https://huggingface.co"
