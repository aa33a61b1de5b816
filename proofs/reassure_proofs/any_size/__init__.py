"""The second engine: the model's own functions on sets and lists of any number of brokers.

The bounded engine gives a list a length and each of its members a symbolic integer. Here a list has
any length, so that no member can be gone through; what code may do with it instead is what its
authors meant: ask who is in it, take those that qualify, ask whether all do, take the first.

* `regions`: every set and every named broker is a part of a Venn diagram; the solver is told how
  many brokers each region has, and so speaks of sizes only, never of members.
* `opaque_brokers`: what code meets in place of brokers and their lists. A broker can be compared
  with another one and looked for; it refuses order, arithmetic, literals, hashing and indexing by
  name.
* `broker_numbers`: a number for each broker of a list, known by who has at least how much.
* `contracts`: what builtin functions and the formulas of theorems mean there, and functions that a
  theorem stands for (`engine.statement.REORDERINGS`).
* `twins`: the source of each function that runs, with its comprehensions, loops and starred
  lists handed over. A comprehension is asked about one generic member of each region, a loop is
  known by its body on an arbitrary accumulator; every other one is refused by its line.
* `exploration`: one theorem for any number of brokers. A refutation is built of the sizes that the
  solver finds and run by plain Python; without that run nothing is called refuted.

A list has an order, of which only this much is known: what comes first stays first in whatever is
left of it. So the abstraction allows more than the code does. It may fail to prove; it proves
nothing that plain lists do not keep.
"""
