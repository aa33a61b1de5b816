"""The theorems: what is claimed of the model's functions, under which hypotheses, up to where.

A theorem is a claim about a *subject*, a function of the model together with the shapes of its
arguments. Only lengths are bounded. What is expected of each is recorded: some are expected to be
refuted, because they state a promise under a reading that cannot keep it.

One module or folder for each protocol, named like it, found by being here
(`engine.register`); what protocols share, controllers and selectors, likewise.
"""
