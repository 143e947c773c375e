"""Client for Compute resources: a GPU in the cluster that you talk to in tensors.

The package holds its version so far. `kpu.client`, with `Compute` and `init`, comes with the Compute operator.
"""

__version__ = "0.1.0"
