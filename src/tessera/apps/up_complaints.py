"""What the HTTP server complains of and nobody needs to hear.

kubectl and others ask first for protocols that are not spoken here, such as SPDY, and go on without. The server has a
line for each time, and a log that fills with them hides what matters.
"""

import logging


def leave_out_upgrades() -> None:
    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Unsupported upgrade request")
