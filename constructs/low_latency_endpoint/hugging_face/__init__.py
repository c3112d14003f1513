"""Models of the Hugging Face Hub: the lock file, how it is written, and their way into S3.

Nothing here is a construct, and reading a lock file needs no network.
"""

HUB = "https://huggingface.co"
