"""The messages of service.proto, written and read by hand, and tensors cut into them and put together again.

Byte for byte what protobuf would write, so stock clients and servers understand it. By hand, because generated classes
copy a payload twice on each side; here it is copied once, behind a header on the way out and into the tensor's own
memory on the way in. Nothing here does I/O.
"""
