"""SageMaker jobs about a model: Inference Recommender's jobs, and optimization jobs."""
