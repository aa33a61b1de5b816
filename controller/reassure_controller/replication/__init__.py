"""Replication: how the brokers of a partition come to hold the same log, and what that promises.

Read it in this order:

* `followers`: the four values that a leader keeps of each follower, and how a fetch is credited;
* `leading`: what a leader concludes of them: pseudo-ISR, high watermark, in-sync set;
* `truncation`: where a follower cuts its log before it fetches;
* `replica`: one broker's replica of one partition, which leads, follows, or waits to be told;
* `hosting`: all replicas of one broker, behind one door for messages.

The first three are values and functions of values: no log, no clock, no message. What they decide
is said by `observing` before anybody can see it. Time is asked of a `clock`, and of nobody else.
"""
