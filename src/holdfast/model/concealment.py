"""The secret of a profile that keeps no values: what its cells are hashed with.

A profile stores a salt, which is its own, and a check value, which tells whether a secret is the
one that it was made with. Both the key of the hashes and the check value are derived from the
secret by scrypt, which makes guessing secrets slow.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from holdfast.model.errors import InputError

SECRET, SECRET_FILE = "HOLDFAST_SECRET", "HOLDFAST_SECRET_FILE"
"""Environment variables: a secret, or the file that holds it."""

SHORTEST = 16
"""Bytes that a secret has at least."""

_COST = {"n": 1 << 14, "r": 8, "p": 1}


@dataclass(frozen=True)
class SecretRecord:
    """What a commit stores, as hexadecimal text."""

    salt: str
    check: str


def given(secret: str | bytes | None, environment: Mapping[str, str] = os.environ) -> bytes | None:
    """The secret that is given, or else that of the environment: in a variable, or in a file that
    another one names, without the line break at its end."""
    if secret is None:
        secret = environment.get(SECRET) or None
    if secret is not None:
        return secret.encode() if isinstance(secret, str) else secret
    if not (file := environment.get(SECRET_FILE)):
        return None
    try:
        return Path(file).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise InputError(
            f"{file}: the file with the secret ({SECRET_FILE}) cannot be read ({error.strerror})"
        ) from error


def expected(secret: bytes | None) -> bytes:
    """A secret that a profile can be made with; an error if there is none."""
    if secret is None:
        raise InputError(
            f"a profile without values needs a secret: set {SECRET} to one of at least {SHORTEST} "
            f"bytes, or {SECRET_FILE} to a file that holds it; keep it, because batches need it"
        )
    if len(secret) < SHORTEST:
        raise InputError(
            f"the secret has {len(secret)} bytes, and could be guessed; it needs at least "
            f"{SHORTEST}, such as what `openssl rand -hex 16` prints"
        )
    return secret


def made(secret: bytes | None) -> tuple[SecretRecord, bytes]:
    """What a new profile stores of a secret, and the key of its hashes."""
    salt = os.urandom(16)
    key, check = _derived(expected(secret), salt)
    return SecretRecord(salt.hex(), check), key


def opened(record: SecretRecord, secret: bytes | None, profile: str) -> bytes:
    """The key of a profile's hashes; an error if the secret is not the one that it was made
    with."""
    if secret is None:
        raise InputError(
            f"{profile}: this profile keeps no values but hashes, and rows are compared with them "
            f"by the secret that it was made with: set {SECRET}, or {SECRET_FILE} to a file that "
            "holds it"
        )
    key, check = _derived(secret, bytes.fromhex(record.salt))
    if not hmac.compare_digest(check, record.check):
        raise InputError(
            f"{profile}: the secret ({SECRET} or {SECRET_FILE}) is not the one that this profile "
            "was made with; nothing was read or written"
        )
    return key


@lru_cache(maxsize=16)
def _derived(secret: bytes, salt: bytes) -> tuple[bytes, str]:
    """The key of the hashes, and the check value."""
    derived = hashlib.scrypt(secret, salt=salt, dklen=32, **_COST)
    return derived[:16], derived[16:].hex()
