"""What SageMaker hosts: images, models, variants, configuration, endpoint, scaling."""
