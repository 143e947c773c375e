"""SPDY/3.1 as far as `kubectl port-forward` speaks it, inside a WebSocket: several streams over one connection.

Pure: bytes come in, frames and events go out. There is no flow control: neither kubectl nor a kubelet keeps any.
"""
