"""Questions about access, and what is answered to them. Nothing of it is kept."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from tessera.embedded import causes
from tessera.embedded.access.authorizer import Authorizer
from tessera.embedded.access.rules import Attributes
from tessera.embedded.access.tokens import AUDIENCE, Tokens
from tessera.embedded.access.users import User
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import bad_request, invalid
from tessera.embedded.resources import table
from tessera.embedded.resources.parts import each, inside

TOKEN_REQUEST = Kind(group=table.AUTHENTICATION, version="v1", kind="TokenRequest", plural="tokenrequests")
SHORTEST_S = 600
USUAL_S = 3600
LONGEST_S = 1 << 32


class Asking(NamedTuple):
    """Who asks, where, and whom we ask."""

    user: User
    namespace: str
    authorizer: Authorizer
    tokens: Tokens
    now: str


def answer(kind: Kind, body: Document, asking: Asking) -> Document:
    """The review with its answer, as it goes back."""
    answered = _ANSWERS[kind.resource](body, asking)
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": inside(body, "metadata"), **answered}


def request_token(
    body: Document, account: Frozen, tokens: Tokens, *, token_id: str, now: str, pod: Frozen | None = None
) -> Document:
    """The TokenRequest with its token. `pod` is what it shall be bound to."""
    spec = inside(body, "spec")
    lasting_s = spec.get("expirationSeconds") or USUAL_S
    for is_wrong, bound in (
        (lasting_s < SHORTEST_S, "less than 10 minutes"),
        (lasting_s > LONGEST_S, "larger than 2^32 seconds"),
    ):
        if is_wrong:
            detail = f"may not specify a duration {bound}"
            raise invalid(TOKEN_REQUEST, "", [causes.invalid("spec.expirationSeconds", lasting_s, detail)])
    audiences = list(each(spec, "audiences")) or [AUDIENCE]
    issued = tokens.issue(account, audiences=audiences, lasting_s=lasting_s, token_id=token_id, pod=pod)
    expires = datetime.fromtimestamp(issued.expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {name: account["metadata"][name] for name in ("name", "namespace", "uid")}
    return {
        "kind": TOKEN_REQUEST.kind,
        "apiVersion": TOKEN_REQUEST.api_version,
        "metadata": metadata | {"creationTimestamp": now},
        "spec": {
            "audiences": audiences,
            "expirationSeconds": lasting_s,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": issued.token, "expirationTimestamp": expires},
    }


def _token_review(body: Document, asking: Asking) -> Document:
    spec = inside(body, "spec")
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    reviewed = asking.tokens.review(spec["token"], each(spec, "audiences"))
    if reviewed.user is None:
        return {"spec": spec, "status": {"user": {}, "error": reviewed.error}}
    told = {"authenticated": True, "user": reviewed.user.told(), "audiences": list(reviewed.audiences)}
    return {"spec": spec, "status": told}


def _self_review(body: Document, asking: Asking) -> Document:
    metadata = {**inside(body, "metadata"), "creationTimestamp": asking.now}
    return {"metadata": metadata, "status": {"userInfo": asking.user.told()}}


def _access_review(body: Document, asking: Asking) -> Document:
    spec = inside(body, "spec")
    found = _about(spec)
    if not spec.get("user") and not each(spec, "groups"):
        found.append(causes.invalid("spec.user", "", "at least one of user or group must be specified"))
    if found:
        raise invalid(Kind(group=table.AUTHORIZATION, version="v1", kind="", plural=""), "", found)
    user = User(name=spec.get("user") or "", uid=spec.get("uid") or "", groups=tuple(each(spec, "groups")))
    return {"spec": spec, "status": _decided(spec, user, asking)}


def _local_access_review(body: Document, asking: Asking) -> Document:
    wanted = inside(inside(body, "spec"), "resourceAttributes")
    if wanted.get("namespace") != asking.namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {asking.namespace}")
    return _access_review(body, asking) | {"metadata": {**inside(body, "metadata"), "namespace": asking.namespace}}


def _self_access_review(body: Document, asking: Asking) -> Document:
    spec = inside(body, "spec")
    if found := _about(spec):
        raise invalid(Kind(group=table.AUTHORIZATION, version="v1", kind="", plural=""), "", found)
    return {"spec": spec, "status": _decided(spec, asking.user, asking)}


def _self_rules_review(body: Document, asking: Asking) -> Document:
    namespace = inside(body, "spec").get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    rules = asking.authorizer.rules_for(asking.user, namespace)
    told = {"resourceRules": rules.resources, "nonResourceRules": rules.paths, "incomplete": False}
    return {"spec": {}, "status": told}


def _about(spec: Frozen) -> list[causes.Cause]:
    wanted, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if wanted is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [causes.invalid("spec.nonResourceAttributes", path, detail)]
    if wanted is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [causes.invalid("spec.resourceAttributes", None, detail)]
    return []


def _decided(spec: Frozen, user: User, asking: Asking) -> Document:
    wanted, path = inside(spec, "resourceAttributes"), inside(spec, "nonResourceAttributes")
    if spec.get("nonResourceAttributes") is not None:
        attributes = Attributes(user=user, verb=path.get("verb", ""), path=path.get("path") or "/")
    else:
        fields = ("verb", "group", "resource", "subresource", "namespace", "name")
        attributes = Attributes(user=user, **{field: wanted.get(field) or "" for field in fields})
    decision = asking.authorizer.decide(attributes)
    return {"allowed": decision.is_allowed} | ({"reason": decision.reason} if decision.reason else {})


_ANSWERS: Mapping[str, Callable[[Document, Asking], Document]] = {
    table.TOKEN_REVIEWS.resource: _token_review,
    table.SELF_SUBJECT_REVIEWS.resource: _self_review,
    table.ACCESS_REVIEWS.resource: _access_review,
    table.LOCAL_ACCESS_REVIEWS.resource: _local_access_review,
    table.SELF_ACCESS_REVIEWS.resource: _self_access_review,
    table.SELF_RULES_REVIEWS.resource: _self_rules_review,
}
