"""`make setup`: from three names to an inventory, with every login tried before anything is installed."""
