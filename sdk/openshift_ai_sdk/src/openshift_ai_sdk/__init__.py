"""Python SDK for MPIJobs. What there is to use is in `openshift_ai_sdk.training`."""

__version__ = "1.0.0"
