"""Proofs: the model's own functions, run on symbolic values.

The reference model is ordinary Python. The `engine` runs it on symbolic integers and follows every
path (`engine.symex`), asks the solver whether a claim can fail at the end of one, and certifies
that no path was left out (`engine.prover`); it knows no protocol. `protocols` says what is claimed
of each, under which hypotheses and up to which bound, in a module or folder for each protocol;
`engine.runner` proves it all and reports.

What a document promises of a function and cannot keep is a theorem as well, refuted by its smallest
instance; what it promises of whole stories is the explorer's. `engine.counterexamples` tells
refutations as scenarios, `engine.replays` puts a controller in them, and `engine.sweep` asks every
theorem under every other reading.

Nothing here repeats a rule: what is proved is what the model runs. The solver is imported only by
the modules that ask it.
"""
