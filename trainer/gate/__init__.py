"""The gate: which chunks of procedural text earn their place, told by a randomised experiment.

A frozen checkpoint works on the validation tasks under randomly masked skills; a regression of the
outcomes on the masks estimates what each chunk adds; a rule selects the next bank. Whoever knows
regression learns the method by reading these files in this order.

The published method, step by step:

``pool``          what is proposed: the current chunks and the candidates
``slots``         what is randomised: slots, their versions, the columns of the design
``assignment``    who sees what: masks drawn from a hash
``evaluations``   what was played: plans, traces and outcomes read back, each checked
``pairing``       what was observed: masked against bare, on the same task and checkpoint
``regression``    what a chunk adds: least squares and its standard errors
``selection``     what stays: the largest of a family, then the positive, then the best few
``published``     these steps as one profile

The sharper method:

``standard``      two complementary rollouts a task, estimates with their uncertainty, decisions on
                  evidence; begin with its own reading order
``planner``       what a gate will be able to see, before anything is played

What surrounds a method:

``ledger`` ``artefacts``      what is written down
``config`` ``folder``         a gate's settings; whose folder it is, and whether its gate has ended
``stage`` ``round`` ``run``   a gate as one resumable stage; the gate of a round; the door to all
``cold_start``                the first selection of an experiment, from a draft
``finished`` ``refit``        an ended gate read back, and judged by other rules
``untested``                  the next bank of an experiment that tests nothing

Choices and measured numbers: docs/design/gate.md.
"""
