"""SageMaker's jobs about a model, asked from the settings file and read back into it."""
