"""The method: train, analyse, gate, in rounds. Imports neither Django nor rq."""
