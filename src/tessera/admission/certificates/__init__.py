"""TLS for the webhook: an authority and a certificate of our own, made, renewed and put in force without a pause.

`renewal` decides, `authorities` makes, `keeping` reads and writes the Secret and the webhook configuration, `serving`
shows new connections the newest certificate. With cert-manager only `serving` is needed: it follows the files.
"""

from tessera.admission.certificates.keeping import Keeper, Place
from tessera.admission.certificates.renewal import DEFAULT_LIFETIMES, Lifetimes
from tessera.admission.certificates.serving import ServingContext, follow_files

__all__ = ["DEFAULT_LIFETIMES", "Keeper", "Lifetimes", "Place", "ServingContext", "follow_files"]
