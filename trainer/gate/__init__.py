"""The gate: which chunks of procedural text earn their place, told by a randomised experiment.

A frozen checkpoint works on the validation tasks under randomly masked skills; a regression of the
outcomes on the masks estimates what each chunk adds; a rule selects the next bank. Read in this
order:

``pool``        what is proposed: the current chunks and the candidates
``slots``       what is randomised: slots, their versions, the columns of the design
``assignment``  who sees what: deterministic masks
``runs`` ``pairing``   what was observed: masked against bare, on the same task and checkpoint
``regression``  what a chunk adds: least squares and its standard errors
``selection``   what stays: the published rule
``published``   the published profile from observations to verdicts
``ledger`` ``artefacts``   what is written down
``folder``      whose folder it is, and whether its gate has ended
``stage`` ``round`` ``run``   the whole as one resumable stage
``standard``    the sharper profile: its design, estimates and decisions
``cold_start``  the first selection of an experiment, from a draft
``planner``     what a gate can see
``finished`` ``refit``   an ended gate read back, and seen through another profile
"""
