"""Archives of history, judged: the local engine, and the same work on Spark.

* `archives`: which files make one history, and what judging of it begins from.
* `audit`: judge them from beginning to end; `passes` is the work itself, as both engines do it.
* `fleet`: what is told beyond verdicts, in sums that stay small.
* `checkpoints`: what was judged before, for audits that go on where they were.
* `watch`: the same passes over logs that grow.
* `spark`: the passes spread over Spark, and tables of what they came to.
* `txnlog_source`: the transaction log as a data source of Spark.
"""
