"""The shop in the conventions of other trainers. Each adapter needs the package it is named
after."""
