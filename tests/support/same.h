/// Tests a fused op against its definition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rill/core/gradcheck.h>

#include <support/threads.h>

namespace test {

struct SameOptions {
  double tolerance64 = 1e-10;  ///< bound on |a - b| / max(1, |a|, |b|) in float64; 10 times that for
                               ///< gradients of expanded inputs
  double tolerance32 = 1e-4;   ///< the same in float32
  bool strided = true;         ///< repeat with all floating inputs as transposed, sliced and expanded views
  std::uint64_t seed = 1;      ///< of the cotangents
};

/// Describes the first difference between two functions of the same float64 inputs (integer inputs are passed
/// on), or returns "". Compares all results and, under random cotangents, the gradients of all inputs that
/// require one, also accumulated over two passes: in float64 and float32, on 1 and 4 threads (where `fused`
/// must give the same bits), with strided inputs, and with each input alone requiring a gradient.
std::string difference(const rill::GradcheckFunction& fused, const rill::GradcheckFunction& composed,
                       const std::vector<rill::Tensor>& inputs, const SameOptions& options = {});

/// Checks that there is no difference.
void same(const rill::GradcheckFunction& fused, const rill::GradcheckFunction& composed,
          const std::vector<rill::Tensor>& inputs, const SameOptions& options = {});

}  // namespace test
