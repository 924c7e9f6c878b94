"""Generators of random numbers that the block makes at the build.

Every instance begins with the memory of the build. Without a new seed, such a generator would draw the same numbers in all of
them.
"""

import os
import random
from typing import Any

#: So much that no two calls begin with the same seed, and so little that the host is asked once.
_SEED_BYTES = 64

_seed = random.Random.seed
_setstate = random.Random.setstate
#: The generators that got their last seed from the randomness of the build, by `id`. The list keeps them, so no id is used twice.
_of_build: dict[int, random.Random] = {}


def _noted_seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
    _seed(generator, a, version)
    if a is None:
        _of_build[id(generator)] = generator
    else:
        # The author chose the seed, and wants the numbers that belong to it.
        _of_build.pop(id(generator), None)


def _noted_setstate(generator: random.Random, state: tuple[Any, ...]) -> None:
    _setstate(generator, state)
    # The author chose the state, as with a seed.
    _of_build.pop(id(generator), None)


def begin_build() -> None:
    """Notes the generators that are made, seeded or given a state from now on."""
    random.Random.seed = _noted_seed  # type: ignore[method-assign]
    random.Random.setstate = _noted_setstate  # type: ignore[method-assign]


def end_build() -> None:
    random.Random.seed = _seed  # type: ignore[method-assign]
    random.Random.setstate = _setstate  # type: ignore[method-assign]


def begin_call() -> None:
    """Gives a new seed to the functions of `random` and to the noted generators."""
    # By itself, `seed` would get 2.5 KB of randomness from the host, in several requests.
    random.seed(int.from_bytes(os.urandom(_SEED_BYTES), "little"))
    for generator in _of_build.values():
        # A subclass may have a `seed` of its own that needs an argument.
        _seed(generator)
    _of_build.clear()
