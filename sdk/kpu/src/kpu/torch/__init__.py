"""The tensor server: `python -m kpu.torch.server`.

It speaks service.proto over gRPC, keeps what it is sent within bounds, and leaves to two hooks what tensors it makes
and what it does with those that pass through. Torch is used where it is installed; without it numpy does.
"""
