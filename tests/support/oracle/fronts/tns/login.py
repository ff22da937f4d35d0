"""Login with a password, which both sides prove to know: O5LOGON with the verifier of Oracle 12c and later.

As python-oracledb's ``impl/thin/messages/auth.pyx`` and ``crypto.pyx`` do it from the other side.
"""

from __future__ import annotations

import hashlib
import secrets

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.support.oracle.fronts.tns.messages import number, pair

VERIFIER_12C = 18453
ROUNDS = 4096
KEY_ROUNDS = 3
BLOCK = 16
NAMES = {
    "AUTH_VERSION_NO": str(0x13160000 | 0x1000),
    "AUTH_SESSION_ID": "7",
    "AUTH_SERIAL_NUM": "11",
    "AUTH_MAX_OPEN_CURSORS": "300",
    "AUTH_SC_DB_DOMAIN": "",
    "AUTH_VERSION_STRING": "- stand-in",
    "AUTH_MAX_IDEN_LENGTH": "128",
}


class Login:
    """One login.

    Args:
        password: what the client must know.
    """

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        salt = secrets.token_bytes(16)
        self._salt = salt
        self._key_salt = secrets.token_bytes(16)
        key = _derived(self._password, salt + b"AUTH_PBKDF2_SPEEDY_KEY", 64, ROUNDS)
        self._verifier = hashlib.sha512(key + salt).digest()[:32]
        self._own = secrets.token_bytes(32)

    def challenge(self) -> bytes:
        """Return what the client needs to prove that it knows the password."""
        pairs = [
            pair("AUTH_SESSKEY", _encrypted(self._verifier, self._own, padded=False).hex().upper()),
            pair("AUTH_VFR_DATA", self._salt.hex().upper(), VERIFIER_12C),
            pair("AUTH_PBKDF2_CSK_SALT", self._key_salt.hex().upper()),
            pair("AUTH_PBKDF2_VGEN_COUNT", str(ROUNDS)),
            pair("AUTH_PBKDF2_SDER_COUNT", str(KEY_ROUNDS)),
        ]
        return b"\x08" + number(len(pairs)) + b"".join(pairs)

    def answer(self, given: dict[str, bytes], database: str) -> bytes | None:
        """Return the answer to the client's proof; None: it doesn't know the password."""
        theirs = _decrypted(self._verifier, bytes.fromhex(given["AUTH_SESSKEY"].decode()))[:32]
        key = _derived((theirs + self._own).hex().upper().encode(), self._key_salt, 32, KEY_ROUNDS)
        password = _decrypted(key, bytes.fromhex(given["AUTH_PASSWORD"].decode()))
        if password[BLOCK : -password[-1]] != self._password:
            return None
        proof = _encrypted(key, secrets.token_bytes(BLOCK) + b"SERVER_TO_CLIENT").hex().upper()
        names = {
            **NAMES,
            "AUTH_DBNAME": database,
            "AUTH_SC_DBUNIQUE_NAME": database,
            "AUTH_SC_SERVICE_NAME": database,
            "AUTH_INSTANCENAME": database,
            "AUTH_SC_INSTANCE_NAME": database,
            "AUTH_SVR_RESPONSE": proof,
        }
        return b"\x08" + number(len(names)) + b"".join(pair(name, value) for name, value in names.items())


def _derived(secret: bytes, salt: bytes, length: int, rounds: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha512", secret, salt, rounds, length)


def _encrypted(key: bytes, raw: bytes, padded: bool = True) -> bytes:
    if padded:
        missing = BLOCK - len(raw) % BLOCK
        raw += bytes([missing]) * missing
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(BLOCK))).encryptor()
    return encryptor.update(raw) + encryptor.finalize()


def _decrypted(key: bytes, raw: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.CBC(bytes(BLOCK))).decryptor().update(raw)
