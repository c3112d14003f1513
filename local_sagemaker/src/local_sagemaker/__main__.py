"""``python -m local_sagemaker`` is the command ``local-sagemaker``."""

from .cli import main

main()
