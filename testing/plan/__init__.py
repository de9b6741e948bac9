"""Plans: steps carried out on a twin in virtual time, to see what they would do.

`steps` reads the plan: YAML or JSON, or a list in Python. `runner` does each step as an operator would, by requests to
the controller and by what happens to brokers, and lets time pass until nothing changes any more. `availability` counts
partitions without a leader, below min.insync.replicas and under-replicated, twice a virtual second. `placement`
chooses brokers where Kafka leaves the choice to its user. `outcome` is the result: per step the controller's answer,
the counts, and the records that were written; as a table or JSON.
"""

from mockraft.testing.plan.outcome import PlanOutcome, StepOutcome
from mockraft.testing.plan.runner import run_plan
from mockraft.testing.plan.steps import PlanError, Step, read_plan, steps_of

__all__ = ["PlanError", "PlanOutcome", "Step", "StepOutcome", "read_plan", "run_plan", "steps_of"]
