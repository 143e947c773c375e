"""Log lines: constant text, then facts as key=value, on standard error."""

import logging

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
OTHER_LEVELS = {"WARN": "WARNING", "FATAL": "CRITICAL"}
"""As other programs call them: LOG_LEVEL is a variable of many."""


def facts(**values: object) -> str:
    return " ".join(f"{key}={_shown(value)}" for key, value in values.items())


def set_up_logging(level: str) -> None:
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def _shown(value: object) -> str:
    text = str(value)
    return text if text and text.isprintable() and not any(mark in text for mark in ' ="') else repr(text)
