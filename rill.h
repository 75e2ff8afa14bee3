/// The whole library: tensors, autograd, ops, layers, models and optimisers. Link rill::rill.
#pragma once

#include <rill/core/core.h>
#include <rill/nn/nn.h>
#include <rill/optim/optim.h>
