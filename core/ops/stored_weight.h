/// Linear maps by a weight in the layout that a layer stores it in. For those who write layers; a weight
/// [out, in] is multiplied by `linear` of core/ops.h.
#pragma once

#include <cstdint>

#include <rill/core/ops.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

/// A weight as it is stored, so that no view of it has to be recorded: [in, out], in which products are
/// fastest, or [out, in].
struct StoredWeight {
  Tensor array;            ///< [in, out], or [out, in] if `out_first`
  bool out_first = false;  ///< the array is [out, in], as where it is shared with an embedding

  // --- sizes
  std::int64_t in_size() const { return array.size(out_first ? 1 : 0); }
  std::int64_t out_size() const { return array.size(out_first ? 0 : 1); }
  Tensor in_out() const { return turned(out_first); }   ///< [in, out], outside the graph
  Tensor out_in() const { return turned(!out_first); }  ///< [out, in], outside the graph

 private:
  Tensor turned(bool turn) const;
};

/// x·W + bias: x [.., in], bias [out] or undefined → [.., out]. The same op as `linear` of a weight [out,
/// in]; the gradient of the weight is written in the layout of its array.
Tensor linear(const Tensor& x, const StoredWeight& weight, const Tensor& bias);

/// linear_cross_entropy, likewise.
Tensor linear_cross_entropy(const Tensor& x, const StoredWeight& weight, const Tensor& bias,
                            const Tensor& target, const CrossEntropyOptions& options = {});

}  // namespace rill

#pragma GCC visibility pop
