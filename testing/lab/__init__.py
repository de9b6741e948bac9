"""The laboratory: run a test many times, each time with a controller disturbed in another way, until the test fails.

`schedule` draws a schedule from a seed: a few disturbances, each of the n-th request that an API gets of a broker (its
answer is late, lost, refused as by a standby, or fences the broker). A schedule is a list of stubs, so that a stub file
repeats it anywhere. `trial` runs the command once under a schedule. `search` looks for a schedule under which the
command fails and makes it smaller, `story` tells what happened.

The first trial has no disturbance. It must pass, and its journal says which requests there are to disturb. Schedules
count requests and not time, so that a seed disturbs the same requests on a slow machine too. What the command itself
does at random is its own: a schedule that fails now and then is reported with how often.

The command reaches the laboratory's controller by MOCKRAFT_BOOTSTRAP. In pytest, fixtures of the plugin start
controllers of their own: each gets the same schedule (`MOCKRAFT_LAB`).
"""
