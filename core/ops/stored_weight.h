/// Linear maps by a weight in its stored layout. For custom layers; `linear` of core/ops.h takes a weight
/// [out, in].
#pragma once

#include <cstdint>

#include <rill/core/ops.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

/// A weight in its stored layout, so that no view of it has to be recorded: [in, out], for which products are
/// fastest, or [out, in].
struct StoredWeight {
  Tensor array;            ///< [in, out], or [out, in] if `out_first`
  bool out_first = false;  ///< the array is [out, in], as when tied to an embedding

  // --- sizes
  std::int64_t in_size() const { return array.size(out_first ? 1 : 0); }
  std::int64_t out_size() const { return array.size(out_first ? 0 : 1); }
  Tensor in_out() const { return turned(out_first); }   ///< [in, out], outside the graph
  Tensor out_in() const { return turned(!out_first); }  ///< [out, in], outside the graph

 private:
  Tensor turned(bool turn) const;
};

/// x·W + bias: x [.., in], bias [out] or undefined → [.., out]. The same op as `linear` with a weight [out,
/// in]; the gradient of the weight has the layout of its array.
Tensor linear(const Tensor& x, const StoredWeight& weight, const Tensor& bias);

/// linear_cross_entropy with a stored weight.
Tensor linear_cross_entropy(const Tensor& x, const StoredWeight& weight, const Tensor& bias,
                            const Tensor& target, const CrossEntropyOptions& options = {});

}  // namespace rill

#pragma GCC visibility pop
