"""States that move from server to server: on a cluster, and on the master that Sentinels name."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
import redis

from scrapy_neardup.errors import StoreError
from scrapy_neardup.maintenance.verify import check as check_state
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import parse_url
from tests.build import put as put_url
from tests.processes import wait_until
from tests.server.redis_cluster import Cluster, Watched, caught_up, free_ports, sentinel_running, watched_running
from tests.server.redis_server import as_redis_does, certified, running
from tests.server.test_redis import RECIPE, pages_of

URL = "https://ferry.example"


def store_at(url: str) -> RedisStore:
    kind, location = parse_url(url)
    store = open_at(kind, location, RECIPE)
    assert isinstance(store, RedisStore)
    return store


def put(store: RedisStore, path: str, *keys: int) -> Record:
    return put_url(store, f"{URL}/{path}", *keys)


def paths(store: RedisStore) -> list[str]:
    return sorted(record.url.rpartition("/")[2] for record in store.records())


@pytest.fixture
def watched() -> Iterator[Watched]:
    with watched_running() as found:
        yield found


@pytest.fixture
def tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not answer is not tried again, as that takes its time."""
    monkeypatch.setattr("scrapy_neardup.server.connection.Link.tries", 0)


# Clusters


def test_states_lie_on_several_nodes_and_each_is_found_by_any_of_them(cluster: Cluster) -> None:
    states = [cluster.new_state() for _ in range(12)]
    assert len({id(cluster.master(state)) for state in states}) == 3
    for state in states[:4]:
        with closing(store_at(cluster.url(state, of=1))) as store:
            put(store, "1", 5)
            assert asyncio.run(pages_of(store.location)) == store.pages == 1


@pytest.mark.slow
def test_a_store_goes_on_when_its_node_is_killed_and_is_opened_by_the_others(cluster: Cluster) -> None:
    """Even by a URL that names no node but the one that was killed."""
    state = cluster.new_state()
    master, other = cluster.master(state), cluster.replica(state)
    port = cluster.ports[cluster.nodes.index(master)]
    with closing(store_at(f"redis+cluster://127.0.0.1:{port}?state={state}")) as store:
        put(store, "before", 5)
        caught_up(master)
        master.stop()
        with pytest.raises(StoreError, match=r"does not answer|cannot be used now"):
            put(store, "while nobody is there")
        wait_until(lambda: cluster.master(state) is other, "the replica is the master")
        put(store, "after", 5)
        assert (paths(store), len(store.postings(5, 9))) == (["after", "before"], 2)
        assert store.kv.link.breaks >= 1
        with closing(store_at(cluster.url(state, of=2))) as again:
            assert again.rolled_back.pages == 0
            assert check_state(again).sound
            assert paths(again) == ["after", "before"]


@pytest.mark.slow
def test_while_a_slot_moves_nothing_is_done_by_halves_or_missed(cluster: Cluster) -> None:
    state = cluster.new_state()
    to = cluster.another_master(state)
    with closing(store_at(cluster.url(state))) as store:
        for number in range(20):
            put(store, f"{number:02}", number % 4)
        there = paths(store)
        cluster.move(state, to, share=0.5)
        for use in (
            lambda: put(store, "late"),
            lambda: list(store.records()),
            lambda: list(store.rows(b"k")),
            lambda: list(store.rows(b"u")),
        ):
            with pytest.raises(StoreError, match=r"cannot be used now \(.*moves to another node"):
                use()
        cluster.move(state, to)
        wait_until(lambda: cluster.master(state) is to, "every node knows the new place")
        assert paths(store) == there
        put(store, "late", 3)
        assert sorted(store.postings(3, 99)) == [record.id for record in store.records() if 3 in record.keys]
        assert check_state(store).sound


# Sentinels


@pytest.mark.slow
def test_a_store_is_where_the_sentinels_say(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working master learns seconds later that it is none any more: until then one asks the Sentinels."""

    url = watched.url("a")
    with closing(store_at(url)) as store:
        put(store, "before", 5)
        master, other = watched.sides()
        caught_up(master)
        watched.sentinels[0].execute_command("SENTINEL FAILOVER", watched.service)
        wait_until(lambda: watched.sides()[0] is other, "the replica is the master")
        store.kv.link._located -= 1.5
        put(store, "after", 5)
        assert store.kv.link.breaks == 1
        with monkeypatch.context() as patched:
            patched.setattr("redis.Redis.sentinel_get_master_addr_by_name", Mock(side_effect=redis.ConnectionError))
            store.kv.link._located -= 1.5
            assert store.pages == 2, "nobody says where it is, so it is where it was"
        assert paths(store) == ["after", "before"]
        assert other.client.get("{neardup:a}~#") == b"2"
        assert asyncio.run(pages_of(store.location)) == 2
        with closing(store_at(url)) as again:
            assert check_state(again).sound


@pytest.mark.slow
def test_sentinels_make_another_the_master_when_it_is_killed(watched: Watched) -> None:
    with closing(store_at(watched.url("a"))) as store:
        put(store, "before", 5)
        master, other = watched.sides()
        caught_up(master)
        master.stop()
        with pytest.raises(StoreError, match="does not answer"):
            put(store, "while nobody is there")
        wait_until(lambda: watched.sides()[0] is other and other.client.info("replication")["role"] == "master")
        put(store, "after", 5)
        assert paths(store) == ["after", "before"]


# Over TLS


@pytest.mark.usefixtures("tried_once")
def test_a_cluster_over_tls(tmp_path: Path) -> None:
    """Of one node, as what is asked of it is the same."""
    certificate, secured = certified(tmp_path)
    port, tls, bus = free_ports(3)
    listens = ["--port", str(port), "--tls-port", str(tls), "--cluster-port", str(bus), "--bind", "127.0.0.1"]
    listens += ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1", "--tls-cluster", "yes"]
    with running(*listens, *secured) as server:
        server.client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: server.client.execute_command("CLUSTER INFO")["cluster_state"] == "ok", "it has its slots")
        url = f"rediss+cluster://127.0.0.1:{tls}?state=a&ssl_ca_certs={certificate}"
        with closing(store_at(url)) as store:
            put(store, "1")
            assert asyncio.run(pages_of(store.location)) == 1
            assert str(certificate) not in str(store.location)
        with pytest.raises(StoreError, match="no node of the cluster names it"):
            store_at(url.partition("&")[0])


def test_sentinels_over_tls(tmp_path: Path) -> None:
    certificate, secured = certified(tmp_path)
    port, tls, plain, watching = free_ports(4)
    listens = ["--port", str(port), "--tls-port", str(tls), "--bind", "127.0.0.1"]
    said = [" ".join(secured[at : at + 2])[2:] for at in range(0, len(secured), 2)]
    with (
        running(*listens, *secured) as server,
        sentinel_running(server, plain, tls, f"tls-port {watching}", "tls-replication yes", *said),
    ):
        url = f"rediss+sentinel://127.0.0.1:{watching}/news?state=a&ssl_ca_certs={certificate}"
        with closing(store_at(url)) as store:
            put(store, "1")
            assert asyncio.run(pages_of(store.location)) == 1


# What is wrong


@pytest.mark.usefixtures("tried_once")
def test_what_is_wrong_with_sentinels_is_told_with_the_cure() -> None:
    port, one, other, closed = free_ports(4)
    with (
        running("--port", str(port), "--bind", "127.0.0.1") as server,
        sentinel_running(server, one, port),
        sentinel_running(server, other, port, "requirepass right-one"),
    ):
        begin = "redis+sentinel://127.0.0.1"
        with pytest.raises(StoreError, match=r"no Sentinel names a master 'sport'.*'sentinel monitor'"):
            store_at(f"{begin}:{one}/sport?state=a")
        with pytest.raises(StoreError, match=r"no Sentinel names a master .*Check that the Sentinels run"):
            store_at(f"{begin}:{closed}/news?state=a")
        with pytest.raises(StoreError, match=r"unknown command.*26379"):
            store_at(f"{begin}:{port}/news?state=a")
        for given in ("", "&sentinel_password=wrong-one"):
            with pytest.raises(StoreError, match=r"no Sentinel .*sentinel_password=") as refused:
                store_at(f"{begin}:{other}/news?state=a{given}")
            assert "wrong-one" not in str(refused.value)
        server.client.config_set("requirepass", "the-server")
        with pytest.raises(StoreError, match="refuses this user or password") as refused:
            store_at(f"redis+sentinel://:wrong-one@127.0.0.1:{one}/news?state=a")
        assert "wrong-one" not in str(refused.value)
        given = f"127.0.0.1:{closed},127.0.0.1:{other}/news?state=a&sentinel_password=right-one"
        with closing(store_at(f"redis+sentinel://:the-server@{given}")) as store:
            put(store, "1")
            assert "the-server" not in store.location
            assert "right-one" not in store.location


@pytest.mark.usefixtures("tried_once")
def test_what_is_wrong_with_a_cluster_is_told_with_the_cure(cluster: Cluster) -> None:
    state, closed = cluster.new_state(), free_ports(1)[0]
    with pytest.raises(StoreError, match=r"no node of the cluster names it.*Check the cluster"):
        store_at(f"redis+cluster://127.0.0.1:{closed}?state={state}")
    foreign = next(node for node in cluster.nodes if node is not cluster.master(state))
    with pytest.raises(StoreError, match=r"node of a cluster.*Write redis\+cluster://"):
        store_at(f"redis://127.0.0.1:{cluster.ports[cluster.nodes.index(foreign)]}/0?state={state}")


@pytest.mark.usefixtures("tried_once")
def test_one_server_is_no_cluster_and_a_cluster_without_slots_is_none() -> None:
    port, bus = free_ports(2)
    with running("--port", str(port), "--bind", "127.0.0.1") as server:
        url = f"redis+cluster://127.0.0.1:{port}?state=a"
        with pytest.raises(StoreError, match=r"write redis:// instead"):
            store_at(url)
        server.client.config_set("requirepass", "right-one")
        with pytest.raises(StoreError, match=r"Check the cluster with .*password in the URL") as refused:
            store_at(url.replace("//", "//u:wrong-one@"))
        assert "wrong-one" not in str(refused.value)
    listens = ("--port", str(port), "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", str(bus))
    with running(*listens), pytest.raises(StoreError, match="no node of the cluster names it"):
        store_at(url)


@pytest.mark.usefixtures("tried_once")
@as_redis_does
def test_a_server_that_lacks_replicas_or_disk_space_is_told_of() -> None:
    with running() as server, closing(store_at(server.url("a"))) as store:
        server.client.config_set("min-replicas-to-write", 1)
        with pytest.raises(StoreError, match="fewer replicas than its min-replicas-to-write"):
            put(store, "1")
        server.client.config_set("min-replicas-to-write", 0)
        (server.folder / "dump.rdb").mkdir()  # as where the disk is full
        server.client.config_set("save", "3600 1")
        server.client.bgsave()
        wait_until(lambda: server.client.info("persistence")["rdb_last_bgsave_status"] == "err")
        with pytest.raises(StoreError, match=r"cannot write to its disk\. Free space there"):
            put(store, "2")
        waits, store.kv.link.patient_thread = threading.Thread(target=put, args=(store, "3")), threading.get_ident()
        waits.start()
        time.sleep(0.5)
        assert paths(store) == []
        server.client.config_set("save", "")
        waits.join()
        assert paths(store) == ["3"]


def test_a_server_that_runs_the_script_of_somebody_else_is_asked_again() -> None:
    with running("--busy-reply-threshold", "10") as server, closing(store_at(server.url("a"))) as store:
        until_then = "local ends = redis.call('TIME')[1] + 2 while redis.call('TIME')[1] + 0 < ends do end"
        other = threading.Thread(target=server.client.eval, args=(until_then, 0))
        store.kv.link.tries = 9

        def is_busy() -> bool:
            with suppress(redis.ResponseError):
                return not server.client.ping()
            return True

        other.start()
        wait_until(is_busy, "the script runs")
        put(store, "1")
        other.join()
        assert (paths(store), store.kv.link.breaks > 0) == (["1"], True)
