"""What several rooms compute with: roots on the safe side, limits of proportions and means, noise around a shift."""
