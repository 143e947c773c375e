"""Messages of the kubelet's protocols and of our own inventory service.

The `.proto` files are the source; the Python modules beside them are generated when the package is built or installed
(`build_protocols.py`) and are not kept in the repository.
"""
