"""TLS of connections: modes, keystores and truststores.

Stores are PEM files, or PKCS 12 files, which Java's keytool writes by default. Java's older format JKS is
refused.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from floodmark.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

JKS = b"\xfe\xed\xfe\xed"
PEM = b"-----BEGIN"
VERIFIED = ("verify_ca", "verify_identity")

T = TypeVar("T")


def tls_context(
    mode: str,
    keystore: str | None = None,
    keystore_password: str | None = None,
    truststore: str | None = None,
    truststore_password: str | None = None,
) -> ssl.SSLContext:
    """Return a context for a mode other than ``disabled``.

    Args:
        mode: ``database.ssl.mode``; ``verify_ca`` and ``verify_identity`` check the server's certificate, with the
            system's authorities if there is no truststore.
        keystore: file with the client's certificate and key.
        truststore: file with the accepted authorities' certificates.

    Raises:
        ConfigError: a store cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Certificates that MySQL generates don't pass the strict checks of newer versions of Python.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = mode == "verify_identity"
    context.verify_mode = ssl.CERT_REQUIRED if mode in VERIFIED else ssl.CERT_NONE
    if truststore is None and mode in VERIFIED:
        # Loading them takes longer than a login.
        context.load_default_certs()
    if truststore is not None:
        _store("database.ssl.truststore", truststore, lambda data: _trust(context, data, truststore_password))
    if keystore is not None:
        _store("database.ssl.keystore", keystore, lambda data: _show(context, data, keystore_password))
    return context


def _store(option: str, path: str, use: Callable[[bytes], T]) -> T:
    try:
        data = Path(path).read_bytes()
        if data.startswith(JKS):
            raise ConfigError(
                f"Option '{option}': '{path}' is a JKS file.",
                "Convert it: keytool -importkeystore -srckeystore <file> -destkeystore <new file> -deststoretype "
                "pkcs12.",
            )
        return use(data)
    except (OSError, ValueError) as exc:
        reason: str | None = "it is neither PEM nor PKCS 12, or has another password"
        if isinstance(exc, OSError) and not isinstance(exc, ssl.SSLError):
            reason = exc.strerror
        raise ConfigError(
            f"Option '{option}': '{path}' cannot be read: {reason}.",
            f"Check the file, and {option}.password if it is a PKCS 12 file or holds an encrypted key.",
        ) from None


def _trust(context: ssl.SSLContext, data: bytes, password: str | None) -> None:
    text = data.decode("ascii", "replace")
    if PEM not in data:
        from cryptography.hazmat.primitives.serialization import Encoding

        store = _pkcs12(data, password)
        owned = [store.cert] if store.cert else []
        found = [*owned, *store.additional_certs]
        text = "".join(one.certificate.public_bytes(Encoding.PEM).decode() for one in found)
    context.load_verify_locations(cadata=text)


def _show(context: ssl.SSLContext, data: bytes, password: str | None) -> None:
    if PEM not in data:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        store = _pkcs12(data, password)
        if store.key is None or store.cert is None:
            raise ValueError
        key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = [store.cert, *store.additional_certs]
        data = key + b"".join(one.certificate.public_bytes(Encoding.PEM) for one in chain)
        password = None
    # The ssl module reads certificates and keys from files only.
    with tempfile.NamedTemporaryFile(prefix="floodmark-") as file:
        file.write(data)
        file.flush()
        context.load_cert_chain(file.name, password=password or "")


def _pkcs12(data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    return load_pkcs12(data, password.encode() if password else None)
