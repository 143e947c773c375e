"""What a process is told about the webhook on its command line, read and checked before anything starts.

A flag that would change nothing, or that contradicts another, is refused: whoever set it believes otherwise.
"""

from tessera.admission.certificates import Place
from tessera.apps.addresses import read_address
from tessera.apps.secure_listener import SecureAddress
from tessera.apps.webhook_flags import WebhookFlags
from tessera.errors import InvalidRequest
from tessera.kube.objects import ObjectKey


def read_webhook(flags: WebhookFlags) -> SecureAddress | None:
    """None where the webhook is not served."""
    address, directory, place = (
        read_address("--webhook", flags["webhook"]),
        flags["webhook_tls_dir"],
        _read_place(flags),
    )
    if address is None and (directory or place):
        raise InvalidRequest("the webhook has a certificate and no address, expected --webhook too; name the address")
    if address is None:
        return None
    if directory is not None and place is not None:
        raise InvalidRequest(
            f'--webhook-tls-dir is "{directory}" beside --webhook-secret "{place.secret}", expected one of them,'
            " because either others keep the certificate or we do; drop one"
        )
    certificate = directory or place
    if certificate is None:
        raise InvalidRequest(
            f'--webhook is "{flags["webhook"]}" without a certificate, expected --webhook-tls-dir, or --webhook-secret'
            " with --webhook-configuration and --webhook-host; name one"
        )
    return SecureAddress(address, certificate)


def read_key(flag: str, text: str) -> ObjectKey | None:
    """None for an empty text."""
    if not text:
        return None
    namespace, slash, name = text.partition("/")
    if not namespace or not slash or not name or "/" in name:
        raise InvalidRequest(f'{flag} is "{text}", expected a namespace and a name such as kube-system/hami-scheduler')
    return ObjectKey(namespace, name)


def _read_place(flags: WebhookFlags) -> Place | None:
    secret = read_key("--webhook-secret", flags["webhook_secret"])
    configuration, names = flags["webhook_configuration"], flags["webhook_host"]
    parts = {"--webhook-secret": secret, "--webhook-configuration": configuration, "--webhook-host": names}
    missing = [flag for flag, value in parts.items() if not value]
    if len(missing) == len(parts):
        return None
    if secret is None or missing:
        there = next(flag for flag, value in parts.items() if value)
        raise InvalidRequest(
            f"{there} is set without {' and '.join(missing)}, expected all three; name what is missing"
        )
    return Place(secret=secret, configuration=configuration, names=names)
