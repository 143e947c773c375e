"""Images without a registry and without Docker: made here, from Debian's packages and our own wheels.

`debian` unpacks packages, also for programs that run on the machine itself; `entries`, `layers` and `oci` turn files
into an image that `ctr images import` takes; `recipes` say what goes into which image. What runs an image does not
belong here. `python -m testbed.images list` shows the images, `build` writes them.
"""
