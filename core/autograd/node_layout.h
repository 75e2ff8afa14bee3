/// Layout of a node's block: Node, then output slots, edges and lambda. Internal to autograd.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>

#include <rill/core/autograd/node.h>
#include <rill/core/tensor.h>

namespace rill {

/// Destination of the gradient of an input: the producing node, a leaf, or none.
struct Edge {
  Ref<Node> node;
  Ref<TensorImpl> leaf;
  std::uint32_t output = 0;
  DType dtype = float32;  ///< of the input at the time of recording
};

/// One output of a node; `grad` accumulates its gradient during a backward pass.
struct OutputSlot {
  Shape shape;
  DType dtype = float32;
  Tensor grad;
  Hooks* hooks = nullptr;
};

/// The hooks of one tensor. A hook runs only in passes that begin after its registration, so it stores the
/// number of passes begun by then.
struct Hooks {
  Tensor pending;  ///< for a leaf: the gradient of the running pass, until the hooks have run

  void add(std::function<Tensor(const Tensor&)> function);
  /// Whether a hook must run in this pass.
  bool due(std::uint64_t pass) const noexcept;
  /// The gradient after all due hooks.
  Tensor apply(Tensor gradient, std::uint64_t pass) const;

 private:
  struct Hook {
    std::function<Tensor(const Tensor&)> function;
    std::uint64_t passes_begun;
  };
  std::deque<Hook> hooks_;  // references stay valid when a hook adds another
};

namespace detail {
/// Number of backward passes begun in this process; also the number of the latest pass.
inline constinit std::atomic<std::uint64_t> passes_begun{0};
static_assert(alignof(OutputSlot) <= sizeof(Node) && sizeof(Node) % alignof(OutputSlot) == 0);
/// Offset of the lambda in a node's block.
constexpr std::size_t lambda_offset(std::size_t outputs, std::size_t inputs) noexcept {
  return (sizeof(Node) + outputs * sizeof(OutputSlot) + inputs * sizeof(Edge) + 15) / 16 * 16;
}
/// Destroys a node's lambda, edges and hooks; header and output slots remain.
void release_node(Node& node) noexcept;
/// Whether elements share memory, as in an expanded tensor.
bool repeats(const Tensor& t) noexcept;
/// Whether t is floating and contains a NaN.
bool has_nan(const Tensor& t);
/// Whether t is floating and contains a NaN or infinity.
bool has_nonfinite(const Tensor& t);
}  // namespace detail

inline OutputSlot* Node::output_slots() noexcept { return reinterpret_cast<OutputSlot*>(this + 1); }
inline Edge* Node::edges() noexcept { return reinterpret_cast<Edge*>(output_slots() + outputs); }

}  // namespace rill
