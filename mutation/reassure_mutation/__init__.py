"""Which mistakes a run would have caught: mutants of the model's reference controllers.

A clause that was exercised a thousand times, in states in which right and wrong look alike, was not
put to the test. So every function that a reference controller reaches is changed in one place
(`operators`), in a copy that nobody else calls (`linked`). A run is asked of each mutant: in the
states in which the implementation acted, came to rest or took over, what would this controller have
done, and would the judge have refused it (`kills`)? What can be killed at all is found by exploring
small clusters, and kept as a table (`table`).
"""
