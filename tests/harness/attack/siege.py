"""The siege of a door: a Hypothesis state machine that draws shots and restarts."""

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from common.sequence import MASK
from tests.harness.attack.door import Door

_SEEDS = st.integers(0, MASK)


def siege(make: Callable[[int], Door], most: int, count: Callable[[int], None] = lambda shots: None) -> type[Any]:
    """Return the state machine that attacks a door with up to `most` shots a step; `count` is told of each step's."""

    class Siege(RuleBasedStateMachine):
        door: Door | None = None

        @initialize(seed=_SEEDS)
        def begin(self, seed: int) -> None:
            self.door = make(seed)

        @rule(seed=_SEEDS, shots=st.integers(1, most))
        def shoot(self, seed: int, shots: int) -> None:
            door, self.door = self.door, None
            assert door is not None
            rng = Random(seed)
            for _ in range(shots):
                door.shoot(rng)
            count(shots)
            # a door that broke a rule is not looked at again
            self.door = door

        @rule()
        def forget(self) -> None:
            if self.door is not None:
                self.door.forget()

        @invariant()
        def hold(self) -> None:
            door, self.door = self.door, None
            if door is not None:
                door.check()
                self.door = door

        def teardown(self) -> None:
            if self.door is not None:
                self.door.finish()

    return Siege
