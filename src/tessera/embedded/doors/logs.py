"""The log of a container: whether there is one, and the part of it that is asked for."""

from collections.abc import Mapping
from datetime import UTC, datetime

from tessera.embedded.documents import Frozen
from tessera.embedded.doors.containers import choose_container, told_of
from tessera.embedded.doors.log_queries import is_asked, read_log_query
from tessera.embedded.refusals import ApiRefusal, bad_request
from tessera.embedded.resources.parts import inside
from tessera.embedded.runtime.runtime import Runtime
from tessera.embedded.runtime.states import Record, Waiting
from tessera.embedded.serving.answers import TEXT, Stream, Write

_IMAGE_TROUBLE = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def stream_log(runtime: Runtime, pod: Frozen, query: Mapping[str, str]) -> Stream:
    """Raises ApiRefusal, if the container is not clear or has written nothing yet."""
    name, pod_name = choose_container(pod, query), pod["metadata"]["name"]
    request = read_log_query(query, pod_name, datetime.now(UTC))
    container = runtime.container(pod["metadata"]["uid"], name)
    if container is None:
        reason = inside(inside(told_of(pod, name), "state"), "waiting").get("reason", "ContainerCreating")
        raise _waits(name, pod_name, reason)
    previous = is_asked(query, "previous")
    wants_older = previous and _has_earlier_log(container.record, pod_name)
    if not previous:
        _check_started(container.record, pod_name)

    async def run(write: Write) -> None:
        follow = is_asked(query, "follow") and not previous
        async for piece in runtime.read_log(container, request, previous=wants_older, follow=follow):
            await write(piece)

    return Stream(run, content_type=TEXT)


def _has_earlier_log(record: Record, pod_name: str) -> bool:
    """Whether the log before the present run is that of another run: one that waits to be restarted has none since."""
    if record.last is None:
        raise bad_request(f'previous terminated container "{record.name}" in pod "{pod_name}" not found')
    return not isinstance(record.state, Waiting)


def _check_started(record: Record, pod_name: str) -> None:
    if isinstance(record.state, Waiting) and record.last is None:
        raise _waits(record.name, pod_name, record.state.reason)


def _waits(container: str, pod_name: str, reason: str) -> ApiRefusal:
    why = _IMAGE_TROUBLE.get(reason, reason)
    return bad_request(f'container "{container}" in pod "{pod_name}" is waiting to start: {why}')
