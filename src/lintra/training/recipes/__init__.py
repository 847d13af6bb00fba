"""How to train: settings that become stages."""
