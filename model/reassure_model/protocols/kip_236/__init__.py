"""KIP-236: requests by sequential znodes, a record of what is in flight, the drop rule.

| the document | here |
|---|---|
| what the old znode holds besides | `kip_236_legacy.fill_originals` |
| going back | `kip_236_legacy.compute_rollback` |
| the idea: a record is which reassignment | `identity.compare_identity`, `identity.follow_record` |
| the old znode | `kip_236_legacy.next_for_znode` |
| the new znodes, 3: check the request | `requests.find_refusal`, `requests.decide_request` |
| the new znodes, 3: record it | `requests.make_record`, `obligations.next_for_request` |
| a partition catches up: the old znode first | `kip_236_legacy.remove_completed` |
| a partition catches up: the record goes | `obligations.next_for_reassignment` |
| failover: what is found, in order | `kip_236_legacy.next_effect`, `rules.apply_failover` |
| the change of a reassignment | `requests.take_up`, `obligations.next_for_change` |
| drop rule, 1: top | `requests.compute_top` |
| drop rule, 2: rank the replicas | `drop.compute_existing` |
| drop rule, 2: what is dropped | `drop.compute_kept`, `drop.compute_drop` |
| to drop, 1: the replicas' states | `state_machines.DROP_PATH` |
| to drop, 2: the assignment | `drop.find_drop`, `assignment_rules.accept_drop` |
| compatibility: writes by another route | `kip_236_legacy.find_refused_route` |

The obligations say what is due, and the rules what is allowed, whoever writes (`rules`,
`assignment_rules`, `record_rules`).
"""
