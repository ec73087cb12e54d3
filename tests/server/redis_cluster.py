"""Real clusters and Sentinels for tests: servers of their own, on free ports of the loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.processes import wait_until
from tests.server.redis_server import PROGRAM, Server, running

#: Milliseconds after which a server that does not answer is taken for gone by the others.
_GONE = 2500
_AT_ONCE = ("--repl-diskless-sync-delay", "0")
_MASTERS = 3
_SLOTS = 16384


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on; another program may still take one before we do."""
    with ExitStack() as stack:
        found = []
        for _ in range(number):
            one = stack.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            found.append(int(one.getsockname()[1]))
        return found


def is_running(server: Server) -> bool:
    return server.process is not None


def lose_what_comes(master: Server, replica: Server) -> None:
    """From now on the replica hears nothing of its master; end that with ``hears_again``."""
    assert replica.process is not None
    os.kill(replica.process.pid, signal.SIGSTOP)
    master.client.client_kill_filter(_type="slave")


def hears_again(replica: Server) -> None:
    assert replica.process is not None
    os.kill(replica.process.pid, signal.SIGCONT)


def caught_up(master: Server) -> None:
    """Wait until a replica has all that the master has written by now, whoever had it written."""
    written = master.client.info("replication")["master_repl_offset"]

    def has_all() -> bool:
        master.client.wait(99, 50)  # there are no 99: so all that are there are asked how far they are
        about = master.client.info("replication")
        return any(about[f"slave{number}"]["offset"] >= written for number in range(about["connected_slaves"]))

    wait_until(has_all, "a replica has all")


@dataclass
class Cluster:
    """Three masters, and a replica of each."""

    ports: list[int]
    nodes: list[Server] = field(default_factory=list)

    def url(self, state: str, *, of: int = 6) -> str:
        """A state on it, by so many of the nodes that run."""
        ports = [port for port, node in zip(self.ports, self.nodes, strict=True) if is_running(node)]
        return f"redis+cluster://{','.join(f'127.0.0.1:{port}' for port in ports[:of])}?state={state}"

    def new_state(self) -> str:
        return self.nodes[0].new_state()

    def asked(self) -> Server:
        return next(node for node in self.nodes if is_running(node))

    def master(self, state: str) -> Server:
        return self._at(state)[0]

    def replica(self, state: str) -> Server:
        return self._at(state)[1]

    def _at(self, state: str) -> list[Server]:
        """Master and replicas of a state; nobody may have its slot for a moment."""
        slot = self.asked().client.execute_command("CLUSTER KEYSLOT", "{neardup:" + state + "}")
        found: list[Server] = []

        def is_found() -> bool:
            for low, high, *nodes in self.asked().client.execute_command("CLUSTER SLOTS"):
                if low <= slot <= high:
                    found.extend(self._by_port(node[1]) for node in nodes)
            return bool(found)

        wait_until(is_found, "somebody has the slot")
        return found

    def _by_port(self, port: int) -> Server:
        return self.nodes[self.ports.index(port)]

    def copy(self, state: str, to: str) -> None:
        """As of ``Server``, from the node of one state to that of the other."""
        self.master(state).copy(state, to, on=self.master(to))

    def replica_takes_over(self, state: str) -> Server:
        """Who is the master of a state now; nothing is lost by that."""
        import redis

        wait_until(lambda: len(self._at(state)) > 1, "there is a replica")
        other, asked = self.replica(state), 0.0

        def is_master() -> bool:
            nonlocal asked
            if asked < time.monotonic() - 1:  # others vote for two of one master only some seconds apart
                with suppress(redis.ResponseError):  # it is one by now
                    other.client.execute_command("CLUSTER FAILOVER")
                asked = time.monotonic()
            return self.master(state) is other

        wait_until(is_master, "the replica is the master")
        return other

    def move(self, state: str, to: Server, share: float = 1.0) -> None:
        """Move a share of the keys of a state to another node; with all of them, its slot."""
        begin = "{neardup:" + state + "}"
        source, slot = self.master(state), self.asked().client.execute_command("CLUSTER KEYSLOT", begin)
        from_id, to_id = (node.client.execute_command("CLUSTER MYID").decode() for node in (source, to))
        to.client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", from_id)
        source.client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", to_id)
        keys = sorted(source.client.scan_iter(match=f"{begin}*", count=1000))
        for key in keys[: round(len(keys) * share)]:
            port = self.ports[self.nodes.index(to)]
            source.client.execute_command("MIGRATE", "127.0.0.1", port, key, 0, 5000)
        if share == 1:
            for node in (to, source):
                node.client.execute_command("CLUSTER SETSLOT", slot, "NODE", to_id)

    def another_master(self, state: str) -> Server:
        first = self.master(state)
        return next(found for _ in range(99) if (found := self.master(self.new_state())) is not first)

    def is_whole(self) -> bool:
        """Whether each node sees all slots served, and by the same ones, and each replica hears its master."""
        for node in self.nodes:
            if node.client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
                return False
            about = node.client.info("replication")
            if about["role"] == "slave" and about["master_link_status"] != "up":
                return False
        maps = [node.client.execute_command("CLUSTER SLOTS") for node in self.nodes]
        masters = [sorted((low, high, nodes[0][1]) for low, high, *nodes in found) for found in maps]
        agree = all(found == masters[0] for found in masters)
        return agree and len(maps[0]) >= _MASTERS and all(len(nodes) > 1 for _, _, *nodes in maps[0])

    def mended(self) -> None:
        """Start whatever is gone, and wait until all is as it was, but for who is master and who replica."""
        for node in self.nodes:
            if not is_running(node):
                node.start()
        wait_until(self.is_whole, "the cluster is whole")


@contextmanager
def cluster_running() -> Iterator[Cluster]:
    """A cluster that ends with the block; skips the test where there is no server to be had."""
    ports = free_ports(4 * _MASTERS)
    cluster, buses = Cluster(ports[: 2 * _MASTERS]), ports[2 * _MASTERS :]
    with ExitStack() as stack:
        for number, (port, bus) in enumerate(zip(cluster.ports, buses, strict=True)):
            listens = ["--port", str(port), "--cluster-port", str(bus), "--bind", "127.0.0.1"]
            named = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(_GONE)]
            # A replica may always follow, however long ago it has heard of its master; it is told of once it is pinged.
            follows = ["--cluster-replica-validity-factor", "0", "--repl-ping-replica-period", "1", *_AT_ONCE]
            files = {"nodes.conf": _map(cluster.ports, buses, number)}
            cluster.nodes.append(stack.enter_context(running(*listens, *named, *follows, files=files)))
        wait_until(cluster.is_whole, "the cluster is whole")
        yield cluster


def _map(ports: list[int], buses: list[int], of: int) -> str:
    """The cluster as a node remembers it: so they know each other when they start, and need not be made to meet."""
    lines = []
    for number, (port, bus) in enumerate(zip(ports, buses, strict=True)):
        me = "myself," if number == of else ""
        begin = f"{_id(number)} 127.0.0.1:{port}@{bus} {me}"
        if number < _MASTERS:
            first, last = (_SLOTS * at // _MASTERS for at in (number, number + 1))
            lines.append(f"{begin}master - 0 0 {number + 1} connected {first}-{last - 1}")
        else:
            lines.append(f"{begin}slave {_id(number - _MASTERS)} 0 0 {number - _MASTERS + 1} connected")
    return "\n".join([*lines, f"vars currentEpoch {_MASTERS} lastVoteEpoch 0", ""])


def _id(number: int) -> str:
    return f"{number + 1:x}" * 40


@dataclass
class Watched:
    """A master with a replica, and three Sentinels."""

    ports: list[int]
    servers: list[Server] = field(default_factory=list)
    sentinels: list[Any] = field(default_factory=list)
    service = "news"

    def url(self, state: str) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports[2:])
        return f"redis+sentinel://{hosts}/{self.service}/0?state={state}"

    def sides(self) -> tuple[Server, Server]:
        """The master as the Sentinels have it, and the other one."""
        _, port = self.sentinels[0].execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", self.service)
        at = self.ports.index(port)
        return self.servers[at], self.servers[1 - at]

    def is_seen(self) -> bool:
        """Whether each Sentinel sees the others, the master, and its replica."""
        for one in self.sentinels:
            found, known = one.sentinel_master(self.service), one.sentinel_slaves(self.service)
            seen = found["num-other-sentinels"], found["flags"], [two["flags"] for two in known]
            if seen != (2, "master", ["slave"]):
                return False
        return True


@contextmanager
def watched_running() -> Iterator[Watched]:
    """Servers under Sentinels that end with the block; skips the test where there is no server to be had."""
    watched = Watched(free_ports(5))
    with ExitStack() as stack:
        for port in watched.ports[:2]:
            watched.servers.append(stack.enter_context(running("--port", str(port), "--bind", "127.0.0.1", *_AT_ONCE)))
        watched.servers[1].client.execute_command("REPLICAOF", "127.0.0.1", watched.ports[0])
        for port in watched.ports[2:]:
            watched.sentinels.append(stack.enter_context(sentinel_running(watched.servers[0], port, watched.ports[0])))
        wait_until(watched.is_seen, "the Sentinels see a master and a replica")
        yield watched


@contextmanager
def sentinel_running(server: Server, port: int, watches: int, *more: str) -> Iterator[Any]:
    """A Sentinel of a master by its port, that keeps its files beside a server; a client of redis-py to it."""
    configured = server.folder / f"sentinel{port}.conf"
    about = [
        f"port {port}",
        "bind 127.0.0.1",
        f"dir {server.folder}",
        f"logfile {configured}.log",
        f"sentinel monitor {Watched.service} 127.0.0.1 {watches} 2",
        f"sentinel down-after-milliseconds {Watched.service} {_GONE}",
        f"sentinel failover-timeout {Watched.service} 4000",
    ]
    configured.write_text("\n".join([*about, *more, ""]))
    process = subprocess.Popen([PROGRAM, str(configured), "--sentinel"], stdout=subprocess.DEVNULL)
    password = next((one.partition(" ")[2] for one in more if one.startswith("requirepass")), None)
    import redis

    client = redis.Redis(port=port, password=password, protocol=2, decode_responses=True)
    try:
        wait_until(lambda: _listens(port), "a Sentinel listens")
        yield client
    finally:
        client.close()
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
