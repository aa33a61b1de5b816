"""Archives of history, judged: the local engine, and the same work on Spark.

* `audit`: judge transaction logs, whatever cluster left them; `report` is what that answers.
* `archive`: which files make one history, and what it begins from.
* `passes`: the work itself, route and track, as both engines do it.
* `spark` and `gateway`: the passes spread over Spark, and its Java started.
* `sample` and `planted`: histories made to measure, correct ones and such with known faults.
"""
