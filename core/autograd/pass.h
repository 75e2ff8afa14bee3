/// The state of a backward pass. Internal to autograd.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/autograd/node_layout.h>

namespace rill {

/// One backward pass over a graph. The deepest queued node runs first, nodes of equal depth in the order in
/// which they were reached; since consumers are deeper than producers, a node runs after all its consumers.
///
/// A pass owns the leaves that it reaches until it ends, on behalf of its thread's outermost pass (a hook may
/// run a nested pass). The gradient of a leaf owned by another thread is postponed until the outermost pass
/// owns no leaf, so that threads cannot deadlock.
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
  void accumulate(Edge& edge, const Tensor& gradient);
  bool adopt(Edge& edge, Tensor& gradient);
  Slot slot(Edge& edge);
  Slot in_place_slot(Edge& edge, const Tensor& dy);
  Tensor zeroed(Edge& edge);
  void run();
  void abandon() noexcept;
  bool retains_graph() const noexcept { return options_.retain_graph; }

 private:
  struct Queued {
    std::uint64_t depth;
    std::uint64_t order;
    Node* node;
    bool operator<(const Queued& other) const noexcept {
      return depth != other.depth ? depth < other.depth : order > other.order;
    }
  };

  void enqueue(Node* node);
  static void retain_queued(Edge& edge, bool take_edge) noexcept;
  static void retain_producers(Node& node, bool take_edges) noexcept;
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
  std::vector<Queued> heap_;
  std::vector<Ref<TensorImpl>> owned_;
  std::unordered_map<TensorImpl*, std::pair<Ref<TensorImpl>, Tensor>> postponed_;
  std::uint64_t reached_ = 0;
};

}  // namespace rill
