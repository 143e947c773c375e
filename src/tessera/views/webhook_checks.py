"""What the doctor says of the webhook: is it there, can the API server verify us, what if we do not answer?"""

import re
from collections.abc import Iterator

from tessera.views.findings import Finding, ok, problem, warning
from tessera.views.installed import NAMESPACE, SCHEDULER, WEBHOOKS_OF_OURS, Webhook
from tessera.views.observing import Observed

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_UNCALLED = "so the API server cannot call it and pods that ask for cards are refused"


def our_webhooks(seen: Observed) -> list[Webhook]:
    return [hook for each in seen.webhooks or () for hook in each.webhooks or () if hook.name in WEBHOOKS_OF_OURS]


def check_webhook(seen: Observed) -> Iterator[Finding]:
    if seen.webhooks is None:
        return
    ours = our_webhooks(seen)
    for missing in sorted({*WEBHOOKS_OF_OURS} - {hook.name for hook in ours}):
        advice = "apply what `tessera manifests` prints, or run helm upgrade"
        yield problem("webhook", f"no webhook {missing} is configured, so pods reach us unchecked", advice)
    for hook in ours:
        yield _judge(hook, seen)


def _judge(hook: Webhook, seen: Observed) -> Finding:
    trusted = _certificates(hook.authorities)
    if not trusted:
        advice = f"see whether the scheduler may write it: kubectl logs -n {NAMESPACE} deployment/{SCHEDULER}"
        return problem("webhook", f"webhook {hook.name} has no authority to verify us with, {_UNCALLED}", advice)
    ours = _certificates("".join(secret.authorities for secret in seen.secrets or ()))
    if ours and not trusted & ours:
        advice = f"kubectl rollout restart -n {NAMESPACE} deployment/{SCHEDULER}"
        return problem("webhook", f"webhook {hook.name} trusts another authority than ours, {_UNCALLED}", advice)
    if hook.failure_policy not in (None, "Fail"):
        said = (
            f"failurePolicy of webhook {hook.name} is {hook.failure_policy}: pods pass unchecked while we do not answer"
        )
        return warning("webhook", said, "set it to Fail")
    compared = "its authority is ours" if ours else "its authority could not be compared with ours"
    return ok("webhook", f"webhook {hook.name} is configured to fail closed, {compared}")


def _certificates(bundle: str) -> set[str]:
    return {"".join(body.split()) for body in _CERTIFICATE.findall(bundle)}
