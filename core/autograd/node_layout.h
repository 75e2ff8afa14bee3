/// Layout of a node's block: output slots, edges and lambda behind the Node. Internal to autograd.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>

#include <rill/core/autograd/node.h>
#include <rill/core/tensor.h>

namespace rill {

/// Destination of an input's gradient: a producing node, a leaf, or none.
struct Edge {
  Ref<Node> node;
  Ref<TensorImpl> leaf;
  std::uint32_t output = 0;
  DType dtype = float32;  ///< of the input when it was recorded
};

/// One result of a node: its layout, and its gradient while a backward pass is under way.
struct OutputSlot {
  Shape shape;
  DType dtype = float32;
  Tensor grad;
  Hooks* hooks = nullptr;
};

/// Hooks of one tensor, and for a leaf the gradient that waits for them. A hook registered during a pass
/// begins with the next, so it knows how many passes had begun by then.
struct Hooks {
  Tensor pending;

  void add(std::function<Tensor(const Tensor&)> function);
  /// Whether a hook is to be called in the pass with this number.
  bool due(std::uint64_t pass) const noexcept;
  /// The gradient after all hooks that are due.
  Tensor apply(Tensor gradient, std::uint64_t pass) const;

 private:
  struct Hook {
    std::function<Tensor(const Tensor&)> function;
    std::uint64_t passes_begun;
  };
  std::deque<Hook> hooks_;  // elements stay where they are when a hook adds another
};

namespace detail {
/// Count of backward passes begun in this process; each takes the next number.
inline constinit std::atomic<std::uint64_t> passes_begun{0};
static_assert(alignof(OutputSlot) <= sizeof(Node) && sizeof(Node) % alignof(OutputSlot) == 0);
/// Offset of the lambda in a node's block.
constexpr std::size_t lambda_offset(std::size_t outputs, std::size_t inputs) noexcept {
  return (sizeof(Node) + outputs * sizeof(OutputSlot) + inputs * sizeof(Edge) + 15) / 16 * 16;
}
/// Drops what a node needed to run backward, and its hooks; its header and output slots stay.
void release_node(Node& node) noexcept;
/// Whether several elements share memory, as in an expanded tensor.
bool repeats(const Tensor& t) noexcept;
/// Whether a floating tensor has a NaN.
bool has_nan(const Tensor& t);
/// Whether a floating tensor has a NaN or an infinity.
bool has_nonfinite(const Tensor& t);
}  // namespace detail

inline OutputSlot* Node::output_slots() noexcept { return reinterpret_cast<OutputSlot*>(this + 1); }
inline Edge* Node::edges() noexcept { return reinterpret_cast<Edge*>(output_slots() + outputs); }

}  // namespace rill
