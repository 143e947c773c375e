"""HTTP: a request comes in, passes who may do what, is carried out on the store, and is answered.

Only what a request means lives here. What a kind demands belongs in `resources`, who may do what in `access`, who else
is asked in `admitting`. A request is parsed by pure code (`paths`, `options`, `selectors`, `forms`), and each verb is a
module of its own.
"""

from tessera.embedded.serving.app import ApiServer
from tessera.embedded.serving.bootstrap import bootstrap
from tessera.embedded.serving.reader import StoreReader
from tessera.embedded.serving.site import Site

__all__ = ["ApiServer", "Site", "StoreReader", "bootstrap"]
