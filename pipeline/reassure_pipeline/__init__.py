"""Archives of history, judged: the local engine, and the same work on Spark.

* `audit`: judge transaction logs, whatever cluster left them; `report` is what that answers.
* `archive`: which files make one history, and what it begins from.
* `passes`: the work itself, route and track, as both engines do it.
* `facts` and `measures`: what is told beyond verdicts, in sums that stay small.
* `spark`, `addressing` and `tables`: the passes spread over Spark, and tables of it.
* `spreading`: explorations spread over Spark.
* `gateway` and `class_data`: Spark's Java started, and started sooner the next time.
* `txnlog_source`: the transaction log as a data source of Spark.
* `sample` and `planted`: histories made to measure, correct ones and such with known faults.
"""
