"""How a server is told what to do: flags, else environment variables, else what suits the machine."""

import argparse
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kpu.machine import memory_bytes
from kpu.tensors.dtypes import dtype_name, item_bytes
from kpu.torch.logs import LEVELS, OTHER_LEVELS
from kpu.wire.limits import Limits
from kpu.wire.splitting import CHUNK_BYTES, LARGEST_CHUNK_BYTES, SMALLEST_CHUNK_BYTES

_BYTES = re.compile(r"([0-9]{1,18})\s*([KMGT]i)?", re.ASCII)
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
# The rest of the memory is Python's, torch's and gRPC's.
_SHARE_FOR_TENSORS = 0.6
# Memory that is used again is warm; what is kept for long makes each new tensor start with cold pages.
_STORE_BYTES = 256 << 20
_SECRETS = ("token", "token-file")


class SettingsError(ValueError):
    """A flag or a variable has a value that makes no sense."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing to be told. `variables` are looked at in their order, the first that is set wins."""

    flag: str
    variables: tuple[str, ...]
    default: str
    meaning: str


SETTINGS = (
    Setting("port", ("KPU_PORT",), "50051", "port of the tensor service; 0 takes a free one"),
    Setting("host", ("KPU_HOST",), "[::]", "address to listen on"),
    Setting("chunk-size", ("KPU_CHUNK_SIZE", "CHUNK_SIZE"), str(CHUNK_BYTES), "bytes of a chunk that the server sends"),
    Setting("log-level", ("KPU_LOG_LEVEL", "LOG_LEVEL"), "INFO", f"one of {', '.join(LEVELS)}"),
    Setting("token", ("KPU_TOKEN",), "", "what callers must send; without one, everybody may call"),
    Setting("token-file", ("KPU_TOKEN_FILE",), "", "a file that holds the token"),
    Setting("tls-cert", ("KPU_TLS_CERT",), "", "file of the certificate chain; turns TLS on"),
    Setting("tls-key", ("KPU_TLS_KEY",), "", "file of its private key"),
    Setting("metrics-port", ("KPU_METRICS_PORT",), "", "port for Prometheus; none without"),
    Setting("shared-socket", ("KPU_SHARED_SOCKET",), "", "socket for shared memory, in a directory that clients mount"),
    Setting("max-tensor-bytes", ("KPU_MAX_TENSOR_BYTES",), "", "largest tensor; by default all that tensors may take"),
    Setting("max-tensors", ("KPU_MAX_TENSORS",), "4096", "tensors kept, and tensors of one call"),
    Setting("store-bytes", ("KPU_STORE_BYTES",), "", "bytes of tensors kept; by default 256 MiB at most"),
    Setting(
        "memory-bytes", ("KPU_MEMORY_BYTES",), "", "bytes tensors may take; by default 60 % of the memory there is"
    ),
    Setting("max-dimensions", ("KPU_MAX_DIMENSIONS",), "64", "dimensions of a tensor"),
    Setting("dtypes", ("KPU_DTYPES",), "", "dtypes accepted, with commas between; all by default"),
    Setting("hooks", ("KPU_HOOKS",), "kpu.torch.hooks:TensorHooks", "module:Class that makes and processes tensors"),
    Setting("hook-seconds", ("KPU_HOOK_SECONDS",), "0", "how long a hook may take for one tensor; 0 is for ever"),
    Setting("idle-seconds", ("KPU_IDLE_SECONDS",), "300", "a call in which nothing moves for so long is ended"),
    Setting("wait-seconds", ("KPU_WAIT_SECONDS",), "30", "how long a tensor waits for room before it is refused"),
    Setting("keepalive-seconds", ("KPU_KEEPALIVE_SECONDS",), "20", "how often a silent peer is asked if it is there"),
    Setting("grace-seconds", ("KPU_GRACE_SECONDS",), "20", "how long calls may go on after SIGTERM"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """A server's settings, read and checked."""

    host: str
    port: int
    chunk_bytes: int
    log_level: str
    token: str | None
    tls: tuple[Path, Path] | None
    metrics_port: int | None
    shared_socket: str | None
    limits: Limits
    max_tensors: int
    memory_bytes: int
    store_bytes: int
    hooks: str
    hook_seconds: float
    idle_seconds: float
    wait_seconds: float
    keepalive_seconds: float
    grace_seconds: float


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    parser = argparse.ArgumentParser(prog="python -m kpu.torch.server", description="Serve tensors over gRPC.")
    for setting in SETTINGS:
        meaning = setting.meaning.replace("%", "%%")
        parser.add_argument(f"--{setting.flag}", help=f"{meaning} ({setting.variables[0]})")
    flags = vars(parser.parse_args(arguments))
    told: dict[str, str] = {}
    for setting in SETTINGS:
        candidates = (flags[setting.flag.replace("-", "_")], *map(environment.get, setting.variables))
        _refuse_blank_secret(setting, candidates)
        told[setting.flag] = next((value for value in candidates if value), setting.default)
    return _checked(told)


def _refuse_blank_secret(setting: Setting, candidates: Sequence[str | None]) -> None:
    """Who names a token wants one: one that came out blank must not open the server to everybody."""
    if setting.flag in _SECRETS and any(value is not None and not value.strip() for value in candidates):
        raise SettingsError(f"{setting.flag} is set but blank, expected a value; unset {setting.variables[0]} for none")


def _checked(told: Mapping[str, str]) -> Settings:
    for_tensors = _bytes(told, "memory-bytes", int(memory_bytes() * _SHARE_FOR_TENSORS))
    chunk_bytes = _bytes(told, "chunk-size", CHUNK_BYTES)
    if not SMALLEST_CHUNK_BYTES <= chunk_bytes <= LARGEST_CHUNK_BYTES:
        raise _wrong(told, "chunk-size", f"{SMALLEST_CHUNK_BYTES} to {LARGEST_CHUNK_BYTES} bytes")
    level = OTHER_LEVELS.get(told["log-level"].upper(), told["log-level"].upper())
    if level not in LEVELS:
        raise _wrong(told, "log-level", f"one of {', '.join(LEVELS)}")
    limits = Limits(
        tensor_bytes=min(for_tensors, _bytes(told, "max-tensor-bytes", for_tensors)),
        dimensions=_whole(told, "max-dimensions", 1, 64),
        dtypes=_dtypes(told),
    )
    return Settings(
        host=told["host"],
        port=_whole(told, "port", 0, 65535),
        chunk_bytes=chunk_bytes,
        log_level=level,
        token=_token(told),
        tls=_tls(told),
        metrics_port=_whole(told, "metrics-port", 0, 65535) if told["metrics-port"] else None,
        shared_socket=told["shared-socket"] or None,
        limits=limits,
        max_tensors=_whole(told, "max-tensors", 1, 2**31),
        memory_bytes=for_tensors,
        store_bytes=_bytes(told, "store-bytes", min(_STORE_BYTES, for_tensors)),
        hooks=told["hooks"],
        hook_seconds=_seconds(told, "hook-seconds"),
        idle_seconds=_some_seconds(told, "idle-seconds"),
        wait_seconds=_seconds(told, "wait-seconds"),
        keepalive_seconds=_some_seconds(told, "keepalive-seconds"),
        grace_seconds=_seconds(told, "grace-seconds"),
    )


def _token(told: Mapping[str, str]) -> str | None:
    token = _read_token(Path(told["token-file"])) if told["token-file"] else told["token"].strip()
    if not (token.isascii() and token.isprintable()):
        raise SettingsError("the token has characters that no call can carry, expected printable ASCII")
    return token or None


def _read_token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise SettingsError(f"token-file {path} cannot be read: {error.strerror}") from error
    if not token:
        raise SettingsError(f"token-file {path} is empty, expected a token")
    return token


def _tls(told: Mapping[str, str]) -> tuple[Path, Path] | None:
    named = [told["tls-cert"], told["tls-key"]]
    if not any(named):
        return None
    if not all(named):
        raise SettingsError("TLS takes a certificate and a key: set both KPU_TLS_CERT and KPU_TLS_KEY")
    missing = [name for name in named if not Path(name).is_file()]
    if missing:
        raise SettingsError(f"TLS file {missing[0]} does not exist")
    return Path(named[0]), Path(named[1])


def refuse_what_is_no_certificate(certificate: Path, key: Path) -> None:
    """For whoever could not use them: gRPC does not say why."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        raise SettingsError(
            f"tls-cert {certificate} and tls-key {key} cannot be used ({error.reason or 'no PEM'}), expected a chain "
            "of certificates and the private key of the first without a password, both as PEM"
        ) from None


def _dtypes(told: Mapping[str, str]) -> frozenset[str] | None:
    names = frozenset(dtype_name(name) for name in told["dtypes"].split(",") if name.strip())
    for name in names:
        item_bytes(name)
    return names or None


def _bytes(told: Mapping[str, str], flag: str, default: int) -> int:
    text = told[flag]
    if not text:
        return default
    match = _BYTES.fullmatch(text)
    if match is None:
        raise _wrong(told, flag, 'bytes such as "1048576" or "1Mi"')
    return int(match[1]) * _UNITS[match[2] or ""]


def _whole(told: Mapping[str, str], flag: str, least: int, most: int) -> int:
    text = told[flag]
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise _wrong(told, flag, f"a whole number from {least} to {most}")
    return int(text)


def _seconds(told: Mapping[str, str], flag: str) -> float:
    try:
        seconds = float(told[flag])
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise _wrong(told, flag, "seconds")
    return seconds


def _some_seconds(told: Mapping[str, str], flag: str) -> float:
    """No time at all would end every call as it begins, or ask a peer without end whether it is there."""
    seconds = _seconds(told, flag)
    if not seconds:
        raise _wrong(told, flag, "seconds, more than 0")
    return seconds


def _wrong(told: Mapping[str, str], flag: str, expected: str) -> SettingsError:
    return SettingsError(f'{flag} is "{told[flag]}", expected {expected}')
