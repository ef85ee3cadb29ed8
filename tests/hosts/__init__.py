"""The control machine's part in the role tests under molecule/; pytest collects nothing here."""
