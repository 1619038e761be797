"""The exponential mechanism: a softmax of summed losses, exactly over all data sets or certified by sampling."""
