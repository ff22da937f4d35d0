"""Logging in to MySQL and MariaDB: ways to authenticate, TLS, and clear errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_key_and_certificates
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_java_truststore as java_truststore
from cryptography.x509 import load_pem_x509_certificate
from pydantic import SecretStr

from floodmark.connectors.mysql.server.connection import connect, connection, run
from floodmark.errors import ConfigError, ConnectError, SourceStateError
from tests.support.binlog import Follower, Login
from tests.support.mysql import MysqlServer

SECRET = SecretStr("store-secret")


def version(login: Login) -> str:
    with connection(login) as conn:
        return str(run(conn, "SHOW SESSION STATUS LIKE 'Ssl_version'", "asking for TLS")[0][1])


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with certificates of a server and a client, in all forms."""
    directory = tmp_path_factory.mktemp("stores")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    for name, subject in (("server", "127.0.0.1"), ("client", "client.example")):
        made = authority.issue_cert(subject)
        made.private_key_pem.write_to_path(directory / f"{name}.key")
        made.cert_chain_pems[0].write_to_path(directory / f"{name}.pem")
        made.private_key_and_cert_chain_pem.write_to_path(directory / f"{name}-all.pem")
    trustme.CA().cert_pem.write_to_path(directory / "other.pem")
    certificate = load_pem_x509_certificate((directory / "client.pem").read_bytes())
    key = load_pem_private_key((directory / "client.key").read_bytes(), None)
    ca = load_pem_x509_certificate(authority.cert_pem.bytes())
    encryption = BestAvailableEncryption(SECRET.get_secret_value().encode())
    packed = serialize_key_and_certificates(b"client", key, certificate, [ca], encryption)  # type: ignore[arg-type]
    (directory / "client.p12").write_bytes(packed)
    (directory / "trust.p12").write_bytes(java_truststore([PKCS12Certificate(ca, b"ca")], encryption))
    (directory / "old.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\x02")
    return directory


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def tls_server(request: pytest.FixtureRequest, stores: Path) -> Iterator[MysqlServer]:
    server = MysqlServer(request.param)
    for name, file in (("ssl_ca", "ca.pem"), ("ssl_cert", "server.pem"), ("ssl_key", "server.key")):
        server.settings[name] = str(shutil.copy(stores / file, server.directory))
    with server:
        server.execute(
            "CREATE USER 'shown'@'%' IDENTIFIED BY 'shown-secret' REQUIRE X509", "GRANT SELECT ON *.* TO 'shown'@'%'"
        )
        yield server


def test_tls_modes(tls_server: MysqlServer, stores: Path) -> None:
    login = Login(tls_server.port)
    trusted = replace(login, ssl_truststore=str(stores / "ca.pem"))
    assert version(replace(login, ssl_mode="disabled")) == ""
    for accepted in (
        replace(login, ssl_mode="preferred"),
        replace(login, ssl_mode="required"),
        replace(trusted, ssl_mode="verify_ca"),
        replace(trusted, ssl_mode="verify_identity"),
        replace(
            login,
            ssl_mode="verify_identity",
            ssl_truststore=str(stores / "trust.p12"),
            ssl_truststore_password=SECRET,
        ),
    ):
        assert version(accepted).startswith("TLSv1.")
    with pytest.raises(ConnectError, match=r"(?i)certificate.*database\.ssl\.truststore"):
        connect(replace(login, ssl_mode="verify_ca", ssl_truststore=str(stores / "other.pem")))
    named = replace(trusted, hostname="localhost", ssl_mode="verify_identity")
    with pytest.raises(ConnectError, match=r"(?i)hostname mismatch|match"):
        connect(named)
    assert version(replace(named, ssl_mode="verify_ca"))


def test_client_certificates(tls_server: MysqlServer, stores: Path) -> None:
    login = Login(tls_server.port, user="shown", password=SecretStr("shown-secret"), ssl_mode="required")
    with pytest.raises(ConnectError, match=r"Access denied.*database\.user"):
        connect(login)
    assert version(replace(login, ssl_keystore=str(stores / "client-all.pem")))
    packed = replace(login, ssl_keystore=str(stores / "client.p12"), ssl_keystore_password=SECRET)
    assert version(packed)
    with pytest.raises(ConfigError, match=r"database\.ssl\.keystore.*password"):
        connect(replace(packed, ssl_keystore_password=SecretStr("wrong")))


def test_the_binlog_comes_over_tls_as_it_does_without(tls_server: MysqlServer, stores: Path) -> None:
    followers = [Follower(tls_server), Follower(tls_server)]
    followers[0].login = replace(followers[0].login, ssl_mode="disabled")
    followers[1].login = replace(followers[1].login, ssl_mode="verify_identity", ssl_truststore=str(stores / "ca.pem"))
    tls_server.execute(
        "CREATE DATABASE secured", "CREATE TABLE secured.a (id INT NOT NULL PRIMARY KEY, pad VARCHAR(6000))"
    )
    with tls_server.connect("secured") as session, session.cursor() as cursor:
        cursor.executemany("INSERT INTO a VALUES (%s, REPEAT('x', 5000))", [(number,) for number in range(400)])
    for follower in followers:
        follower.to_end()
        assert follower.rows() == [("c", number) for number in range(400)]
        follower.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ssl_truststore": "no-such-file"}, "No such file"),
        ({"ssl_truststore": "old.jks"}, "keytool"),
        ({"ssl_truststore": "client.key"}, "neither PEM nor PKCS 12"),
        ({"ssl_keystore": "ca.pem"}, "database.ssl.keystore"),
        ({"ssl_truststore": "trust.p12"}, "database.ssl.truststore.password"),
    ],
)
def test_stores_that_cannot_be_read(stores: Path, change: dict[str, str], words: str) -> None:
    login = replace(
        Login(1),
        ssl_mode="verify_ca",
        **{name: str(stores / file) for name, file in change.items()},  # type: ignore[arg-type]
    )
    with pytest.raises(ConfigError, match=words):
        connect(login)


@pytest.mark.parametrize(
    ("binlog_server", "plugin"),
    [
        ("mysql", "caching_sha2_password"),
        ("mysql", "sha256_password"),
        ("mariadb", "mysql_native_password"),
        ("mariadb", "ed25519"),
    ],
    indirect=["binlog_server"],
)
@pytest.mark.parametrize("mode", ["preferred", "disabled"])
def test_ways_to_log_in(binlog_server: MysqlServer, plugin: str, mode: str) -> None:
    mariadb = binlog_server.flavor == "mariadb"
    if plugin == "ed25519":
        binlog_server.execute("INSTALL PLUGIN IF NOT EXISTS ed25519 SONAME 'auth_ed25519'")
    password = "pä$$word"
    identified = f"VIA {plugin} USING PASSWORD('{password}')" if mariadb else f"WITH {plugin} BY '{password}'"
    binlog_server.execute("DROP USER IF EXISTS 'odd'@'%'", f"CREATE USER 'odd'@'%' IDENTIFIED {identified}")
    login = Login(binlog_server.port, user="odd", password=SecretStr(password), ssl_mode=mode)
    for _ in range(2):  # the second time the server may know the password
        with connection(login) as conn:
            assert run(conn, "SELECT CURRENT_USER()", "asking who it is") == [("odd@%",)]


def test_refused_logins(binlog_server: MysqlServer) -> None:
    login = Login(binlog_server.port)
    for change, words in (
        ({"password": SecretStr("not-it-at-all")}, r"as 'cdc': Access denied.*database\.password"),
        ({"user": "nobody"}, "Access denied"),
        ({"port": 1}, r"Connection refused.*database\.port"),
        ({"hostname": "no-such-host.invalid"}, r"not known.*database\.hostname"),
    ):
        with pytest.raises(ConnectError, match=words) as refused:
            connect(replace(login, **change))
        assert "not-it-at-all" not in str(refused.value)
        assert "cdc-secret" not in str(refused.value)


def test_a_server_without_tls(mariadb: MysqlServer) -> None:
    login = Login(mariadb.port)
    assert version(login) == ""
    with pytest.raises(ConnectError, match=r"has no TLS.*database\.ssl\.mode"):
        connect(replace(login, ssl_mode="required"))


def test_refused_statements_and_lost_connections(binlog_server: MysqlServer) -> None:
    conn = connect(Login(binlog_server.port))
    assert run(conn, "SELECT 1 % 2, @@session.time_zone, @@session.sql_mode", "asking") == [(1, "+00:00", "")]
    with pytest.raises(SourceStateError, match=r"refused setting it: .*REPLICATION SLAVE"):
        run(conn, "SET GLOBAL max_connections = 100", "setting it")
    with pytest.raises(SourceStateError, match=r"refused reading it: .*error 1146.* Do this\."):
        run(conn, "SELECT * FROM mysql.no_such_table", "reading it", "Do this.")
    [(thread,)] = run(conn, "SELECT CONNECTION_ID()", "asking who it is")
    binlog_server.execute(f"KILL {thread}")
    with pytest.raises(ConnectError, match="while asking again"):
        run(conn, "SELECT 1", "asking again")
