/// What lies behind a Node in its block. Internal to autograd.
#pragma once

#include <deque>
#include <functional>

#include <rill/core/autograd/node.h>
#include <rill/core/tensor.h>

namespace rill {

/// Where an input's gradient goes: to a producing node, to a leaf, or nowhere.
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

/// Hooks of one tensor, and for a leaf the gradient that waits for them.
struct Hooks {
  std::deque<std::function<Tensor(const Tensor&)>> functions;  // one may add another while it runs
  Tensor pending;

  /// The gradient after all hooks that there are now; those that they register come with the next pass.
  Tensor apply(Tensor gradient) const;
};

namespace detail {
static_assert(alignof(OutputSlot) <= sizeof(Node) && sizeof(Node) % alignof(OutputSlot) == 0);
/// Where in a node's block its lambda begins.
constexpr std::size_t lambda_offset(std::size_t outputs, std::size_t inputs) noexcept {
  return (sizeof(Node) + outputs * sizeof(OutputSlot) + inputs * sizeof(Edge) + 15) / 16 * 16;
}
/// Throws when a leaf's numbers have another dtype than the op `name` recorded: Module::to came between.
void check_not_converted(const char* name, const TensorImpl& owner, DType recorded);
/// Drops what a node needed to run backward; its header and output slots stay.
void release_node(Node& node) noexcept;
/// Whether several elements are one place in memory, as in an expanded tensor.
bool repeats(const Tensor& t) noexcept;
/// True for other than floating dtypes.
bool all_finite(const Tensor& t);
}  // namespace detail

inline OutputSlot* Node::output_slots() noexcept { return reinterpret_cast<OutputSlot*>(this + 1); }
inline Edge* Node::edges() noexcept { return reinterpret_cast<Edge*>(output_slots() + outputs); }

}  // namespace rill
