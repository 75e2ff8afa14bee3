/// Umbrella header of rill::core: tensors, autograd, ops, gradient checks, files, random numbers, threads.
#pragma once

#include <rill/core/about.h>
#include <rill/core/autograd.h>
#include <rill/core/dtype.h>
#include <rill/core/error.h>
#include <rill/core/format.h>
#include <rill/core/gradcheck.h>
#include <rill/core/io/checkpoint.h>
#include <rill/core/io/safetensors.h>
#include <rill/core/memory.h>
#include <rill/core/ops.h>
#include <rill/core/parallel.h>
#include <rill/core/random.h>
#include <rill/core/tensor.h>
