/// A running backward pass. Internal to autograd.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/autograd/node_layout.h>

namespace rill {

/// One run over a graph. A node runs after all its consumers: consumers are deeper, the deepest waiting one
/// goes first, equals in the order they were reached.
///
/// A pass owns the leaves that it reaches, until it ends, in the name of its thread's outermost pass (hooks
/// may run others within). The gradient of a leaf that another thread owns is postponed until the outermost
/// pass owns no leaf, so that threads do not wait for each other in a circle.
class Backward {
 public:
  explicit Backward(BackwardOptions options) noexcept : options_(options) {
    if (!outermost) outermost = this;
  }
  ~Backward() {
    if (outermost == this) outermost = nullptr;
  }
  Backward(const Backward&) = delete;

  void start(Edge& root, const Tensor& gradient);
  void deliver(Edge& edge, const Tensor& gradient);
  bool adopt(Edge& edge, Tensor& gradient);
  Slot slot(Edge& edge);
  Slot in_place_slot(Edge& edge, const Tensor& dy);
  Tensor zeroed(Edge& edge);
  void run();
  void abandon() noexcept;
  bool keeps_graph() const noexcept { return options_.keep; }

 private:
  struct Waiting {
    std::uint64_t depth;
    std::uint64_t order;
    Node* node;
    bool operator<(const Waiting& other) const noexcept {
      return depth != other.depth ? depth < other.depth : order > other.order;
    }
  };

  void enqueue(Node* node);
  static void hold(Edge& edge, bool edge_goes) noexcept;
  static void hold_reached(Node& node, bool edges_go) noexcept;
  bool claim(TensorImpl& leaf);
  Tensor& leaf_target(TensorImpl& leaf);
  Slot leaf_slot(const Edge& edge);
  static void check_not_converted(const TensorImpl& leaf, DType recorded);
  static void clear_outputs(Node& node) noexcept;
  void run_node(Node& node);
  void check_finite(Node& node);
  void finish_leaves();
  void add_postponed();
  void disown() noexcept;

  static constinit thread_local Backward* outermost;

  BackwardOptions options_;
  std::uint64_t pass_ = ++detail::passes_begun;
  std::vector<Waiting> heap_;
  std::vector<Ref<TensorImpl>> owned_;
  std::unordered_map<TensorImpl*, std::pair<Ref<TensorImpl>, Tensor>> postponed_;
  std::uint64_t reached_ = 0;
};

}  // namespace rill
