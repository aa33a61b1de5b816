"""Proofs: the model's own functions, run on symbolic values.

The reference model is ordinary Python. `reassure_proofs.symex` runs it on symbolic integers and
follows every path; `reassure_proofs.prover` asks the solver whether a claim can fail at the end of
one, and certifies that no path was left out. `reassure_proofs.theorems` says what is claimed, under
which hypotheses and up to which bound; `reassure_proofs.runner` proves it all and reports.

What a document promises of a function and cannot keep is a theorem as well, refuted by its smallest
instance (`reassure_proofs.refutations`); what it promises of whole stories is the explorer's.
`reassure_proofs.counterexamples` tells refutations as scenarios, `reassure_proofs.replays` puts a
controller in them, and `reassure_proofs.sweep` asks every theorem under every other reading.

Nothing here repeats a rule: what is proved is what the model runs. The solver is imported only by
the modules that ask it.
"""
