/// Umbrella header of rill: tensors, autograd, ops, layers, models and optimisers. Link against rill::rill.
#pragma once

#include <rill/core/core.h>
#include <rill/nn/nn.h>
#include <rill/optim/optim.h>
