"""How a command's end is told on the error channel: a Status, from which clients take the exit code. Pure."""

from http import HTTPStatus

from tessera.embedded.documents import Document
from tessera.embedded.refusals import ApiRefusal

SUCCESS: Document = {"metadata": {}, "status": "Success"}


def ending_of(exit_code: int) -> Document:
    if exit_code == 0:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {exit_code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(exit_code)}]},
    }


def not_begun(why: str) -> Document:
    """The command could not be started."""
    message = f"Internal error occurred: error executing command in container: {why}"
    return ApiRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message).status()
