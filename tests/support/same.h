/// Tests a fused op against its definition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rill/core/gradcheck.h>

#include <support/threads.h>

namespace test {

struct SameOptions {
  double tolerance64 = 1e-10;  ///< largest |a - b| / max(1, |a|, |b|) in float64; of expanded
                               ///< inputs' gradients 10 times that
  double tolerance32 = 1e-4;   ///< the same in float32
  bool strided = true;         ///< repeat with all floating inputs as transposed, sliced and expanded views
  std::uint64_t seed = 1;      ///< of the gradients fed into the outputs
};

/// What differs between two functions, or nothing. Both are called with the same inputs, given in float64
/// (integer inputs are passed on); an input that requires a gradient gets one. Compared are all results and,
/// under a random gradient of each result, all gradients, also when they are added to earlier ones: in
/// float64 and float32, on 1 and 4 threads (where `fused` must give the same bits), with strided inputs, and
/// with each input as the only one that wants a gradient.
std::string difference(const rill::GradcheckFunction& fused, const rill::GradcheckFunction& composed,
                       const std::vector<rill::Tensor>& inputs, const SameOptions& options = {});

/// Checks that there is no difference.
void same(const rill::GradcheckFunction& fused, const rill::GradcheckFunction& composed,
          const std::vector<rill::Tensor>& inputs, const SameOptions& options = {});

}  // namespace test
