"""Shared memory between two processes of one host: the payload of a tensor is handed over and not sent.

A region is an anonymous file of the kernel (memfd), passed over a Unix socket. It has no name in any file system, so a
crash of either side leaves nothing behind. Who may connect to the socket is settled over the authenticated gRPC
connection; what belongs to a tensor (its dtype, its shape) stays on that connection too. Nothing here knows tensors:
bytes go in and out as arrays of uint8. A way that is closed is never an error: `lend` answers None, and the payload
goes over gRPC.
"""
