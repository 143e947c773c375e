"""Where the embedded engine's objects are: durable, ordered and watched.

One SQLite file is a log of versions. A write gets the next version and is seen at once by whoever reads; at the end of
the event loop's tick all writes of the tick are committed together. Only then are followers told, and whoever awaited
`settled`. Nothing here knows what an object means: a body is bytes of JSON with a `metadata.resourceVersion`.

    record = store.put(Key("pods", "default", "web-0"), pod, expected=None)
    await store.settled()

Everything runs on the event loop's thread.
"""

from tessera.embedded.store.following import Following
from tessera.embedded.store.records import Change, Forgotten, Key, Record, Stale
from tessera.embedded.store.retention import Retention
from tessera.embedded.store.store import Store

__all__ = ["Change", "Following", "Forgotten", "Key", "Record", "Retention", "Stale", "Store"]
