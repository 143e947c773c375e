"""Every error a user can meet, in one tree.

TesseraError
├── InvalidInput          something written by a person or a peer cannot be used
│   ├── InvalidQuantity   a number with a unit
│   ├── InvalidRequest    what a pod asks for
│   ├── InvalidAnnotation what a node or pod annotation says
│   ├── InvalidInventory  what a node reports about its cards
│   ├── InvalidCatalogue  a vendor file
│   ├── InvalidPolicy     a scheduling policy or its weights
│   ├── InvalidTrace      a trace file or a simulation option
│   ├── InvalidKubeconfig how to reach a cluster
│   ├── InvalidTarget     which Kubernetes object is meant
│   ├── ClaimUnmet        a pod's claim to cards that is not there, is another's, or cannot be used
│   ├── InvalidRegion     what the processes of a container tell of themselves
│   └── InvalidStore      the embedded engine's state file: damaged, of another layout, or no state file
├── KubeError             talking to a Kubernetes API server
│   ├── Unreachable       no whole answer came: refused, reset, cut, TLS, too late
│   ├── UnreadableReply   an answer came that is not what the API promises
│   ├── CredentialsFailed nothing to show to the API server: a file, an exec plugin
│   ├── Unrecoverable     a reconciler need not try again until its object changes
│   └── ApiError          the API server answered, and the answer is no
│       ├── BadRequest, Unauthorized, Forbidden, NotFound, AlreadyExists, Conflict, Expired, Invalid
│       └── TooManyRequests, ServerFailed, ServerUnavailable
├── DiscoveryFailed       the hardware or its driver did not answer
├── KubeletFailed         the kubelet of this node did not answer
├── StartRefused          a container must not start, or not yet
├── SimulationFailed      the machine did not let a simulation end
├── StoreInUse            another process has the state file
├── StoreFailed           the disk did not keep or give what it was asked to
├── NotReady              asked before the cluster's state was read
├── BindRefused           the pod cannot be put on that node, or not yet
└── LedgerConflict        the ledger was asked for what would over-commit or contradict it

The message is one sentence: what failed, on which object, with which value, what was expected, what to do.
`code` is stable; programs match on it, people read the sentence.
"""

from collections.abc import Mapping
from typing import ClassVar


class TesseraError(Exception):
    code: ClassVar[str] = "Error"


class InvalidInput(TesseraError):
    code = "InvalidInput"


class InvalidQuantity(InvalidInput):
    code = "InvalidQuantity"


class InvalidRequest(InvalidInput):
    code = "InvalidRequest"


class InvalidAnnotation(InvalidInput):
    code = "InvalidAnnotation"


class InvalidInventory(InvalidInput):
    code = "InvalidInventory"


class InvalidCatalogue(InvalidInput):
    code = "InvalidCatalogue"


class InvalidPolicy(InvalidInput):
    code = "InvalidPolicy"


class InvalidTrace(InvalidInput):
    code = "InvalidTrace"


class InvalidKubeconfig(InvalidInput):
    code = "InvalidKubeconfig"


class ClaimUnmet(InvalidInput):
    code = "ClaimUnmet"


class InvalidTarget(InvalidInput):
    code = "InvalidTarget"


class InvalidRegion(InvalidInput):
    code = "InvalidRegion"


class InvalidStore(InvalidInput):
    code = "InvalidStore"


class KubeError(TesseraError):
    code = "KubeError"


class Unreachable(KubeError):
    code = "Unreachable"


class UnreadableReply(KubeError):
    code = "UnreadableReply"


class CredentialsFailed(KubeError):
    code = "CredentialsFailed"


class Unrecoverable(KubeError):
    code = "Unrecoverable"


class ApiError(KubeError):
    """What the API server's Status said. `target` is the object or collection, as in `pods default/web-0`."""

    code = "ApiError"
    advice: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        verb: str,
        target: str,
        status: int,
        reason: str,
        details: Mapping[str, object] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        advice = f"; {self.advice}" if self.advice else ""
        super().__init__(f"{verb} {target}: the API server answered {status} {reason}: {message}{advice}")
        self.message = message
        self.verb = verb
        self.target = target
        self.status = status
        self.reason = reason
        self.details = details or {}
        self.retry_after_s = retry_after_s


class BadRequest(ApiError):
    code = "BadRequest"


class Unauthorized(ApiError):
    code = "Unauthorized"
    advice = "renew the credentials that the kubeconfig or the service account gives"


class Forbidden(ApiError):
    code = "Forbidden"
    advice = "grant this verb with a Role or ClusterRole"


class NotFound(ApiError):
    code = "NotFound"


class AlreadyExists(ApiError):
    code = "AlreadyExists"


class Conflict(ApiError):
    code = "Conflict"
    advice = "read the object again and decide anew"


class Expired(ApiError):
    """The resourceVersion or continue token is older than what the API server remembers."""

    code = "Expired"
    advice = "list again"


class Invalid(ApiError):
    code = "Invalid"


class TooManyRequests(ApiError):
    code = "TooManyRequests"


class ServerFailed(ApiError):
    """The API server or something behind it (a webhook, etcd) failed; a write may or may not have happened."""

    code = "ServerFailed"


class ServerUnavailable(ServerFailed):
    code = "ServerUnavailable"


class DiscoveryFailed(TesseraError):
    code = "DiscoveryFailed"


class KubeletFailed(TesseraError):
    code = "KubeletFailed"


class StartRefused(TesseraError):
    code = "StartRefused"


class SimulationFailed(TesseraError):
    code = "SimulationFailed"


class StoreInUse(TesseraError):
    code = "StoreInUse"


class StoreFailed(TesseraError):
    code = "StoreFailed"


class NotReady(TesseraError):
    code = "NotReady"


class BindRefused(TesseraError):
    code = "BindRefused"


class LedgerConflict(TesseraError):
    code = "LedgerConflict"
