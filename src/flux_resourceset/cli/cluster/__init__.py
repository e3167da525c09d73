"""The commands on the cluster's side of the API: bootstrap, render, simulate, and what they share."""
