/// All of rill: tensors, autograd and ops, layers and models, optimisers. Link rill::rill.
#pragma once

#include <rill/core/core.h>
#include <rill/nn/nn.h>
#include <rill/optim/optim.h>
