"""Errors of redis-py: what they mean for a state, and the sentences that users see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import redis
from redis import exceptions

from scrapy_neardup.errors import StoreError

_OF_CLUSTER = re.compile(r"(?:^|[ -])(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN) ")
#: What Kvrocks says of a password; redis-py takes it for any refusal.
_KVROCKS_REFUSAL = "invalid password"
_REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)


class Unlocated(redis.ConnectionError):
    """Nobody says where the node is. The message goes on after the location of the state."""


class Relocated(redis.ConnectionError):
    """The server does not hold the state any more, or cannot serve it now."""


def is_of_cluster(error: BaseException) -> bool:
    """Whether a node of a cluster says that it does not serve a key now."""
    kinds = (exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)
    return isinstance(error, kinds) or bool(_OF_CLUSTER.search(str(error)))


def lacks_replicas(error: BaseException | None) -> bool:
    """Whether a server does not write because it has fewer replicas than its min-replicas-to-write."""
    return "NOREPLICAS " in str(error)


def is_elsewhere(error: Exception) -> bool:
    """Whether an error means that another node may hold the state. The script has done nothing then."""
    is_replica = isinstance(error, exceptions.ReadOnlyError) or "-READONLY " in str(error)
    return is_replica or is_of_cluster(error) or lacks_replicas(error)


def is_refusal(error: BaseException) -> bool:
    """Whether a server refuses the user or password; redis-py may have wrapped that error."""
    return isinstance(error, _REFUSED) or isinstance(error.__cause__, _REFUSED)


def is_no_answer(error: Exception) -> bool:
    """Whether nobody knows if the server did something; so it may be sent again."""
    return isinstance(error, (redis.ConnectionError, redis.TimeoutError, OSError)) and not is_refusal(error)


@contextmanager
def translate_errors(location: str) -> Iterator[None]:
    """Raise errors of redis-py as StoreError: a sentence with a cure."""
    try:
        yield
    except (redis.RedisError, OSError) as error:
        raise StoreError(_describe(error, location)) from error


def _describe(error: Exception, location: str) -> str:
    begin, reason = f"The server of the state at {location}", str(error).partition("\n")[0][:200]
    if is_refusal(error) or reason.lower() == _KVROCKS_REFUSAL:
        return (
            f"{begin} refuses this user or password. Check both in the URL (redis://user:password@host/0; write %40 "
            "for @ in a password), and let the user run EVALSHA and EVAL on the keys of the state."
        )
    if isinstance(error, exceptions.OutOfMemoryError):
        return (
            f"{begin} has reached its maxmemory and takes no more pages. Nothing in it is lost. Give it more memory, "
            "or limit the state with NEARDUP_TTL or NEARDUP_MAX_PAGES."
        )
    if isinstance(error, exceptions.ReadOnlyError):
        return (
            f"{begin} is a replica, which only reads. Name the master in the URL; after a failover that is another "
            "server. To have it found, write redis+sentinel:// with Sentinels, or redis+cluster:// in a cluster."
        )
    if isinstance(error, Unlocated):
        return f"{begin} {error}"
    if lacks_replicas(error):
        return (
            f"{begin} takes no pages, because it has fewer replicas than its min-replicas-to-write. Check the "
            "replicas. Nothing in the state is lost."
        )
    if isinstance(error, Relocated):
        return (
            f"The state at {location} cannot be used now ({reason}): it moves to another node, a node is being "
            "replaced, or part of the cluster is down. Try again later."
        )
    if is_no_answer(error):
        return (
            f"{begin} does not answer ({type(error).__name__}: {reason}). Check that it runs and that this machine "
            "can reach it."
        )
    if is_of_cluster(error):
        return f"{begin} is a node of a cluster ({reason}). Write redis+cluster:// with the same host."
    return f"{begin} refuses a command ({type(error).__name__}: {reason})."
