"""Random numbers of a call. Run with `python3 -m unittest`."""

import copy
import random
import unittest

from blockbase import _random


class Generators(unittest.TestCase):
    def test_what_the_build_left_to_chance_is_drawn_anew_in_a_call(self) -> None:
        _random.begin_build()
        try:
            chance, chosen, chosen_later = random.Random(), random.Random(7), random.Random()
            chosen_later.seed(7)
            system = random.SystemRandom()
        finally:
            _random.end_build()
        memory = chance.getstate(), chosen.getstate(), random.getstate()
        expected = copy.deepcopy(chosen).random()

        _random.begin_call()
        self.assertNotEqual(chance.getstate(), memory[0])
        self.assertEqual(chosen.getstate(), memory[1])
        self.assertNotEqual(random.getstate(), memory[2])
        self.assertEqual((chosen.random(), chosen_later.random()), (expected, expected))
        self.assertNotEqual(system.random(), system.random())

    def test_a_subclass_with_a_seed_of_its_own_is_seeded_without_it(self) -> None:
        class Chosen(random.Random):
            def seed(self, a: int) -> None:  # type: ignore[override]
                super().seed(a)

        class Chance(random.Random):
            seeds = 0

            def seed(self, a: int) -> None:  # type: ignore[override]
                self.seeds += 1
                super().seed()

        _random.begin_build()
        try:
            chosen, chance = Chosen(7), Chance(7)
        finally:
            _random.end_build()
        memory = chosen.getstate(), chance.getstate()
        _random.begin_call()
        self.assertEqual(chosen.getstate(), memory[0])
        self.assertNotEqual(chance.getstate(), memory[1])
        self.assertEqual(chance.seeds, 1)

    def test_a_state_that_the_author_sets_is_kept_as_a_seed_is(self) -> None:
        state = random.Random(7).getstate()
        _random.begin_build()
        try:
            restored, left_again = random.Random(), random.Random()
            restored.setstate(state)
            left_again.setstate(state)
            left_again.seed()
        finally:
            _random.end_build()
        memory = left_again.getstate()
        _random.begin_call()
        self.assertEqual(restored.getstate(), state)
        self.assertNotEqual(left_again.getstate(), memory)
        self.assertIs(random.Random.setstate, _random._setstate)

    def test_a_generator_that_a_call_makes_is_left_alone(self) -> None:
        _random.begin_build()
        _random.end_build()
        made = random.Random()
        state = made.getstate()
        _random.begin_call()
        self.assertEqual(made.getstate(), state)


if __name__ == "__main__":
    unittest.main()
