"""Python SDK for MPIJobs. What there is to use is in `openshift_ai_sdk.training`."""

__version__ = "0.1.0"
