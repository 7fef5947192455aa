"""The secret of a profile without values: where it comes from, and what is stored of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model import concealment
from holdfast.model.errors import InputError

SECRET = "correct horse battery"


def test_a_secret_is_given_or_in_the_environment_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"from a file\r\n")
    everywhere = {"HOLDFAST_SECRET": "of the environment", "HOLDFAST_SECRET_FILE": str(file)}
    assert concealment.given(SECRET, everywhere) == SECRET.encode()
    assert concealment.given(b"\xff\n", everywhere) == b"\xff\n"
    assert concealment.given(None, everywhere) == b"of the environment"
    assert concealment.given(None, {**everywhere, "HOLDFAST_SECRET": ""}) == b"from a file"
    assert concealment.given(None, {}) is None
    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(InputError, match=f"{nowhere}: the file with the secret .*cannot be read"):
        concealment.given(None, {"HOLDFAST_SECRET_FILE": nowhere})


def test_the_key_is_known_by_its_secret_alone() -> None:
    record, key = concealment.made(SECRET.encode())
    assert concealment.opened(record, SECRET.encode(), "shop") == key
    assert len(key) == 16
    for wrong in (b"correct horse batterz", b"", SECRET.encode() + b"\n"):
        with pytest.raises(InputError, match=r"shop: the secret .*is not the one .*was made with"):
            concealment.opened(record, wrong, "shop")
    with pytest.raises(InputError, match=r"shop: .*set HOLDFAST_SECRET, or HOLDFAST_SECRET_FILE"):
        concealment.opened(record, None, "shop")


def test_what_is_stored_tells_neither_the_key_nor_that_two_profiles_have_one_secret() -> None:
    (one, key), (two, other) = (concealment.made(SECRET.encode()) for _ in range(2))
    assert (one.salt, one.check) != (two.salt, two.check)
    assert key != other
    assert key.hex() not in (one.salt, one.check)


@pytest.mark.parametrize(
    ("secret", "why"),
    [(None, "needs a secret: set HOLDFAST_SECRET"), (b"x" * 15, "has 15 bytes, and could be")],
)
def test_a_profile_needs_a_secret_that_is_hard_to_guess(secret: bytes | None, why: str) -> None:
    with pytest.raises(InputError, match=why):
        concealment.made(secret)
