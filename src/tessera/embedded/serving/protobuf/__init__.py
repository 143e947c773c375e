"""Bodies in protobuf, as kubectl and programs in Go send built-in kinds. They are read; answers are always JSON.

`field_numbers.json` says which number is which field. build_field_numbers.py, in the repository's root, has written it.
"""

from tessera.embedded.serving.protobuf.decoding import MEDIA_TYPE, Undecodable, decode_message

__all__ = ["MEDIA_TYPE", "Undecodable", "decode_message"]
