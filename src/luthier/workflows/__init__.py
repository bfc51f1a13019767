"""Ensembles at work: plan, machine, record and runner."""
