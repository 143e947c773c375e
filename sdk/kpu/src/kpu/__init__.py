"""A GPU in the cluster that you talk to in tensors: `kpu.client` is for programs, `kpu.torch` is the server."""

__version__ = "0.1.0"
