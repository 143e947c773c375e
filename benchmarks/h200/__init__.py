"""Libtessera on a real card: what it holds, and what it costs, beside no library and beside HAMi-core as recorded.

Runs on a machine with an NVIDIA card, PyTorch and a C compiler. Whoever judges stands outside the library: CUPTI, NVML,
and the throughput of a kernel whose speed nothing but its share changes. README.md says how to run it.
"""
