"""A real server for tests, on a socket in a directory of its own, and states on it.

It is redis-server, or what the environment names: NEARDUP_TEST_SERVER=/path/of/valkey-server or …/kvrocks.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from scrapy_neardup.server.layout import lease_name
from tests.processes import wait_until

_NUMBERS = count()
PROGRAM = os.environ.get("NEARDUP_TEST_SERVER", "redis-server")
IS_KVROCKS = Path(PROGRAM).name.startswith("kvrocks")
_OF_REDIS = "Kvrocks is told of this otherwise, or has no such thing"
#: Of a test of what only Redis and Valkey do; one whose server has arguments of theirs is left out by itself.
as_redis_does = pytest.mark.skipif(IS_KVROCKS, reason=_OF_REDIS)


@dataclass
class Server:
    """One that runs; ``url`` names a state on it."""

    folder: Path
    arguments: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    clients: list[Any] = field(default_factory=list)
    password: str = ""

    @property
    def socket(self) -> Path:
        return self.folder / "s"

    def url(self, state: str) -> str:
        return f"unix://{self.socket}?db=0&state={state}"

    def start(self) -> None:
        command = self._kvrocks() if IS_KVROCKS else self._redis()
        self.process = started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.socket.exists() or started.poll() is not None)
        assert started.poll() is None, (self.folder / "log").read_text()
        self.client.ping()

    def _redis(self) -> list[str]:
        command = [PROGRAM, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
        command += ["--logfile", str(self.folder / "log"), "--save", "", *self.arguments]
        return [*command, *(["--requirepass", self.password, "--masterauth", self.password] if self.password else [])]

    def _kvrocks(self) -> list[str]:
        with socket.socket() as one:  # it wants a port, too
            one.bind(("127.0.0.1", 0))
            said = {"bind": "127.0.0.1", "port": one.getsockname()[1], "unixsocket": self.socket, "workers": 1}
        # What redis-py's own connections, as scrapy-redis has them, greet a server with.
        said |= {"dir": self.folder / "data", "log-dir": self.folder, "resp3-enabled": "yes"}
        said |= {"requirepass": self.password, "masterauth": self.password} if self.password else {}
        configured = self.folder / "kvrocks.conf"
        configured.write_text("".join(f"{name} {value}\n" for name, value in said.items()))
        return [PROGRAM, "-c", str(configured)]

    @property
    def client(self) -> Any:
        """That of redis-py, to look into the server."""
        import redis

        if not self.clients:
            self.clients.append(
                redis.Redis(unix_socket_path=str(self.socket), password=self.password or None, protocol=2)
            )
        return self.clients[0]

    def stop(self) -> None:
        for client in self.clients:
            client.close()
        self.clients.clear()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.socket.unlink(missing_ok=True)

    def pause(self, seconds: float) -> None:
        """Let it answer nothing for a while."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        threading.Timer(seconds, self.process.send_signal, [signal.SIGCONT]).start()

    def copy(self, state: str, to: str, on: Server | None = None) -> None:
        """All that is kept of a state, as another one that nobody is at work on; on another server, if one is named."""
        begin = b"{neardup:" + state.encode() + b"}"
        for key in list(self.client.scan_iter(match=begin + b"*", count=1000)):
            name = key[len(begin) :]
            if name[:1] in b"LN":
                continue
            copied, there = b"{neardup:" + to.encode() + b"}" + name, (on or self).client
            if self.client.type(key) == b"stream":  # which Kvrocks packs for nobody
                for id, fields in self.client.xrange(key):
                    there.xadd(copied, fields, id=id)
            elif (packed := self.client.dump(key)) is not None:
                there.restore(copied, 0, packed)

    def new_state(self) -> str:
        return f"state{next(_NUMBERS)}"


@contextmanager
def running(*arguments: str, files: Mapping[str, str] = {}, password: str = "") -> Iterator[Server]:
    """A server with more arguments, that ends with the block; skips the test where there is none to be had.

    ``files``: what it finds in its directory.
    """
    pytest.importorskip("redis", reason="redis-py is not installed")
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"there is no {PROGRAM}, so nothing is shown of states on one")
    if IS_KVROCKS and any(one.startswith("--") and not one.startswith("--append") for one in arguments):
        pytest.skip(_OF_REDIS)
    memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="neardup-", dir=memory if memory.is_dir() else None) as folder:
        server = Server(Path(folder), arguments, password=password)
        for name, content in files.items():
            (server.folder / name).write_text(content)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def certified(folder: Path) -> tuple[Path, list[str]]:
    """A certificate of this machine, and what a server is to be told to have it; skips the test without openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate")
    key, certificate = folder / "key", folder / "certificate"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*made, *files], check=True, capture_output=True)
    secured = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-ca-cert-file", str(certificate)]
    return certificate, [*secured, "--tls-auth-clients", "no"]


def client_of(store: Any) -> Any:
    """The client of redis-py that a store on a server uses."""
    return store.kv.link.call(lambda client: client.get(store.kv.link.prefix) or client)  # a former node says so


def end_leases(store: Any) -> None:
    """The leases of its crawls end, as after a long silence: nobody renews them."""
    store.leases.stop_renewing()
    names = [store.kv.link.prefix + lease_name(crawl.to_bytes(8, "big")) for crawl in store.leases.crawls]
    client_of(store).delete(*names)
