"""What goes wrong with a Redis server, as sentences with a cure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scrapy_neardup.errors import StoreError

#: What Kvrocks says of a password, and redis-py takes for any refusal.
_KVROCKS_TURNS_AWAY = "invalid password"


@contextmanager
def told(location: str) -> Iterator[None]:
    """What redis-py raises, in our words. What it says may hold what was sent, so of that the kind alone is told."""
    import redis
    from redis.exceptions import AuthenticationError, NoPermissionError, OutOfMemoryError, ReadOnlyError

    try:
        yield
    except (AuthenticationError, NoPermissionError) as error:
        raise _turned_away(location) from error
    except OutOfMemoryError as error:
        raise StoreError(
            f"The server of the state at {location} has reached its maxmemory and takes no more pages. Nothing in it "
            "is lost. Give it more memory, or limit the state with NEARDUP_TTL or NEARDUP_MAX_PAGES."
        ) from error
    except ReadOnlyError as error:
        raise StoreError(
            f"The server of the state at {location} is a replica, which only reads. Name the master in the URL; after "
            "a failover that is another server. To have it found, write redis+sentinel:// with Sentinels, or "
            "redis+cluster:// in a cluster."
        ) from error
    except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
        raise _not_answered(error, location) from error
    except redis.RedisError as error:
        raise _refused(error, location) from error


def _not_answered(error: Exception, location: str) -> StoreError:
    from scrapy_neardup.stores.redis_nodes import Relocated, Unlocated, lacks_replicas

    for one in (error, error.__cause__):  # redis-py has wrapped it, or not
        if isinstance(one, Unlocated):
            return StoreError(f"The server of the state at {location} {one}")
        if lacks_replicas(one):
            return _without_replicas(location)
    if isinstance(error, Relocated):
        return StoreError(
            f"The state at {location} cannot be used now ({_plain(error)}): it moves to another node, a node is being "
            "replaced, or part of the cluster is down. Try again later."
        )
    return StoreError(
        f"The server of the state at {location} does not answer ({type(error).__name__}: {_plain(error)}). Check that "
        "it runs and that this machine can reach it."
    )


def _refused(error: Exception, location: str) -> StoreError:
    from scrapy_neardup.stores.redis_nodes import is_of_cluster, lacks_replicas

    if _plain(error).lower() == _KVROCKS_TURNS_AWAY:
        return _turned_away(location)
    if lacks_replicas(error):
        return _without_replicas(location)
    if is_of_cluster(error):
        return StoreError(
            f"The server of the state at {location} is a node of a cluster ({_plain(error)}). Write redis+cluster:// "
            "with the same host."
        )
    return StoreError(
        f"The server of the state at {location} refuses a command ({type(error).__name__}: {_plain(error)})."
    )


def _turned_away(location: str) -> StoreError:
    return StoreError(
        f"The server of the state at {location} refuses this user or password. Check both in the URL "
        "(redis://user:password@host/0; write %40 for @ in a password), and let the user run EVALSHA and SCRIPT "
        "LOAD on the keys of the state."
    )


def _without_replicas(location: str) -> StoreError:
    return StoreError(
        f"The server of the state at {location} takes no pages, because it has fewer replicas than its "
        "min-replicas-to-write. Check the replicas. Nothing in the state is lost."
    )


def _plain(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]
