"""Whether what was asked for may be, and what is made of it first: the chain between decoding and storing.

Mutating comes first and may change the object: what the server itself adds, then webhooks. Validating comes last and
may only refuse: policies, then webhooks. What decides is pure; other objects are read through `Reader`, and webhooks
are called through `Call`, so that nothing here knows a store, and nothing but `calling` a socket.

What an object is on its own, without a look at others, belongs in `resources`.
"""

from tessera.embedded.admitting.calling import Answered, Call, CallFailed, Endpoint, post
from tessera.embedded.admitting.chain import Admission
from tessera.embedded.admitting.requests import Admitted, Reader, Request
from tessera.embedded.admitting.reviewing import Resolve

__all__ = [
    "Admission",
    "Admitted",
    "Answered",
    "Call",
    "CallFailed",
    "Endpoint",
    "Reader",
    "Request",
    "Resolve",
    "post",
]
