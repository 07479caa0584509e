"""Rules that many kinds share, by what they are about: names, numbers, network, quantities, selectors, defaults."""
