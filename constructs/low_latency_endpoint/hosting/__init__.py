"""What SageMaker hosts: images, models, variants, configuration, endpoint, deployment, scaling.

It imports ``network`` and what that may import.
"""
