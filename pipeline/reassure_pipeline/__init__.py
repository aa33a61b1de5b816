"""Archives of history, judged: the local engine, and the same work on Spark.

* `audit`: judge transaction logs, whatever cluster left them; `report` is what that answers.
* `archive`: which files make one history, and what it begins from.
* `passes`: the work itself, route and track, as both engines do it.
* `fleet`, `first_findings` and `sums`: what is told beyond verdicts, in sums that stay small.
* `budget`, `resuming`, `kept_shares` and `keeping`: audits that end early, and go on where they
  were.
* `watched`, `watch_loop` and `watch_state`: the passes over logs that grow (`growing`), what they
  tell (`alerts`), and what survives an end.
* `spark`, `parts`, `addressing`, `tables` and `columns`: the passes spread over Spark, and tables
  of it.
* `watch_spark`: logs that grow, spread over Spark.
* `gateway`, `class_data` and `shipping`: Spark's Java started, sooner the next time, and what its
  workers are sent.
* `txnlog_source`: the transaction log as a data source of Spark.
"""
