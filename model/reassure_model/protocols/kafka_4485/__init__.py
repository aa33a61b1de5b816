"""KAFKA-4485: lag in time, the in-sync set and the high watermark, and what elections break.

| the document | here |
|---|---|
| the two problems: the rule as it was | `leader.evaluate_before`, `leader.enter_before` |
| definition of replica lag | `lag.compute_replica_lag` |
| definition of the pseudo-ISR | `insync.compute_pseudo_isr` |
| definition of the high watermark | `insync.compute_high_watermark` |
| definition of the ISR | `insync.compute_isr` |
| guarantees 1, 2: who counts, who leaves | `lag.compute_views`, `replication.define_isr` |
| guarantee 3: the mark never decreases | `invariants.find_watermark_gone_back` |
| guarantee 4: the ISR has all below the mark | `invariants.find_member_without_committed` |
| implementation 1: what a leader notes of a fetch | `leader.Follower`, `leader.record_fetch` |
| implementation 2: when a follower had caught up | `leader.record_fetch`, `leader.estimate_lag` |
| implementation 3: the leader evaluates the definitions | `leader.evaluate` |

What the document does not speak of, elections and logs, is in `replication`.
"""
