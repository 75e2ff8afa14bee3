/// Additive attention of one query over one source (one row of a batch), single-threaded.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// The source of one query: `positions` keys [positions, size] and values [positions, width], with row
/// strides `key_stride` and `value_stride`, in elements.
template <class T>
struct AttentionSource {
  std::int64_t positions;
  std::int64_t size;
  std::int64_t width;
  const T* keys;
  std::int64_t key_stride;
  const T* values;
  std::int64_t value_stride;
};

/// weights[s] = softmax_s(v · tanh(query + keys[s])); context [width] = Σ_s weights[s] values[s].
///
/// Without positions the context is 0. The result depends on the positions alone, not on the rest of the
/// batch.
template <class T>
void attend(const AttentionSource<T>& source, const T* query, const T* v, T* weights, T* context) noexcept;

/// The destinations of the gradients of `attend`. `keys` may be null; the values' gradient is
/// weights ⊗ dcontext.
template <class T>
struct AttentionGradients {
  T* query;  ///< [size], overwritten
  T* v;      ///< [size], added to
  T* keys;   ///< [positions, size], added to
  std::int64_t key_stride;
};

/// The gradients of `attend` from those of its context [width] and its weights [positions] (or null). The
/// tanh is recomputed. `dscores` [positions] is workspace.
template <class T>
void attend_backward(const AttentionSource<T>& source, const T* query, const T* v, const T* weights,
                     const T* dcontext, const T* dweights, T* dscores,
                     const AttentionGradients<T>& to) noexcept;

}  // namespace rill::kernels
