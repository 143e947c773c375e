"""Pods on their way in: what they ask for is checked, completed and sent to our scheduler, or refused in one sentence.

`review` decides and is pure; `Webhook` puts it behind bytes in and bytes out, for whichever web server. `manifests`
are the objects that make the API server ask us, and about our pods only; `guarding` is the policy that keeps people's
hands off what the scheduler writes; `certificates` keeps the webhook's TLS fresh. Which card a pod gets is decided
elsewhere, and nothing here knows a node.
"""

from tessera.admission.handling import Webhook
from tessera.admission.reviewing import Denial, Mutation, Untouched, review
from tessera.admission.settings import DEFAULT_SETTINGS, NO_QUOTAS, Quotas, Settings

__all__ = [
    "DEFAULT_SETTINGS",
    "NO_QUOTAS",
    "Denial",
    "Mutation",
    "Quotas",
    "Settings",
    "Untouched",
    "Webhook",
    "review",
]
