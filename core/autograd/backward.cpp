// The backward pass: the order of its nodes and the flow of gradients between them.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <rill/core/autograd/pass.h>
#include <rill/core/parallel.h>

namespace rill {

/// A queued node is kept alive by the edge that it was reached through until hold() takes a reference.
void Backward::enqueue(Node* node) {
  if (node->queued) return;
  check(!node->released,
        "backward: the graph of '{}' was freed by an earlier backward; pass {{.keep = true}} there to run it "
        "again",
        node->name);
  heap_.push_back({node->depth, reached_++, node});
  node->queued = true;
  std::push_heap(heap_.begin(), heap_.end());
}

/// Keeps a queued node reached through `edge` alive: by the reference of the edge if the edge is being
/// destroyed.
void Backward::hold(Edge& edge, bool edge_goes) noexcept {
  Node* node = edge.node.get();
  if (!node || !node->queued || node->owned) return;
  node->owned = true;
  if (edge_goes) {
    std::ignore = edge.node.let_go();
  } else {
    node->retain();
  }
}

/// Called after a node has run or failed: the nodes it reached must not be destroyed with it.
void Backward::hold_reached(Node& node, bool edges_go) noexcept {
  for (int i = 0; i < node.inputs; ++i) hold(node.edges()[i], edges_go);
}

namespace {
/// The slot that stores the gradient of a result until its node runs.
OutputSlot& waiting_slot(Edge& edge) {
  Node& node = *edge.node;
  check(!node.running, "backward: '{}' is running; neither its hooks nor its backward function may run it",
        node.name);
  return node.output_slots()[edge.output];
}
}  // namespace

Slot Backward::slot(Edge& edge) {
  if (edge.leaf) return leaf_slot(edge);
  OutputSlot& out = waiting_slot(edge);
  if (!out.grad.defined()) {
    enqueue(edge.node.get());
    out.grad = empty(out.shape, out.dtype);
    return {out.grad, 0};
  }
  const bool shared = out.grad.impl().storage->use_count() > 1 || out.grad.ref()->use_count() > 1;
  if (shared || detail::repeats(out.grad)) out.grad = out.grad.clone();
  out.grad.impl().storage->bump_version();
  return {out.grad, 1};
}

namespace {
/// Whether a single handle refers to the gradient, and it covers its whole storage.
bool held_once(const TensorImpl& t) noexcept {
  return t.use_count() == 1 && t.storage->use_count() == 1 &&
         t.storage->bytes() == static_cast<std::size_t>(t.numel) * item_size(t.dtype);
}
}  // namespace

Slot Backward::in_place_slot(Edge& edge, const Tensor& dy) {
  const TensorImpl& given = dy.impl();
  if (!edge.node || !given.contiguous || !held_once(given)) return slot(edge);
  OutputSlot& out = waiting_slot(edge);
  if (out.grad.defined() || out.shape != given.shape || out.dtype != given.dtype) return slot(edge);
  enqueue(edge.node.get());
  given.storage->bump_version();
  out.grad = dy;
  return {out.grad, 0};
}

Tensor Backward::zeroed(Edge& edge) {
  Slot s = slot(edge);
  if (s.beta == 0) s.to.zero_();
  return s.to;
}

void Backward::deliver(Edge& edge, const Tensor& gradient) {
  if (edge.node) {
    OutputSlot& out = waiting_slot(edge);
    if (!out.grad.defined()) {
      enqueue(edge.node.get());
      out.grad = gradient;
      return;
    }
  }
  Slot s = slot(edge);
  if (s.beta == 0) {
    s.to.copy_(gradient);
  } else {
    s.to.add_(gradient);
  }
}

/// Delivers the gradient of a root, through a temporary edge of the caller.
void Backward::start(Edge& root, const Tensor& gradient) {
  deliver(root, gradient);
  hold(root, true);
}

/// Moves a contiguous gradient that nothing else refers to into a leaf without one.
bool Backward::adopt(Edge& edge, Tensor& gradient) {
  if (!edge.leaf) return false;
  TensorImpl& leaf = *edge.leaf;
  check_not_converted(leaf, edge.dtype);
  if (!held_once(gradient.impl()) || !gradient.impl().contiguous) return false;
  Tensor& target = leaf_target(leaf);
  if (target.defined()) return false;
  target = std::move(gradient);
  return true;
}

void Backward::check_finite(Node& node) {
  for (int i = 0; i < node.inputs; ++i) {
    Edge& edge = node.edges()[i];
    Tensor grad;
    if (edge.node) grad = edge.node->output_slots()[edge.output].grad;
    if (edge.leaf) {
      if (edge.leaf->pass.load(std::memory_order_relaxed)) grad = leaf_target(*edge.leaf);
    }
    if (!grad.defined()) continue;
    check(!detail::has_nonfinite(grad),
          "{}: the gradient of input {} of shape {} has a value that is not finite", node.name, i,
          grad.shape());
  }
}

void Backward::clear_outputs(Node& node) noexcept {
  for (int i = 0; i < node.outputs; ++i) node.output_slots()[i].grad = Tensor();
}

/// A backward function that failed may have overwritten what it saved, so its node cannot run again either.
void Backward::run_node(Node& node) {
  bool started = false;
  node.running = true;
  try {
    for (int i = 0; i < node.outputs; ++i) {
      OutputSlot& out = node.output_slots()[i];
      if (out.hooks && out.grad.defined()) out.grad = out.hooks->apply(out.grad, pass_);
    }
    started = true;
    Grads grads(node, this);
    node.run(node, grads);
    if (detail::thread_modes.anomaly) check_finite(node);
    node.running = false;
  } catch (...) {
    node.running = false;
    clear_outputs(node);
    hold_reached(node, false);
    if (started && !options_.keep) detail::release_node(node);
    throw;
  }
  clear_outputs(node);
  hold_reached(node, !options_.keep);
  if (!options_.keep) detail::release_node(node);
}

void Backward::run() {
  const NoGrad no_grad;
  const FlushDenormals flush;  // gradients vanish into denormals over many steps
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Ref<Node> node = Ref<Node>::adopt(heap_.back().node);
    heap_.pop_back();
    node->queued = node->owned = false;
    run_node(*node);
  }
  finish_leaves();
  if (this == outermost) add_postponed();
}

// --- entry points

namespace {
Tensor root_gradient(const Tensor& root, const Tensor& given) {
  check(root.requires_grad(),
        "backward: the tensor of shape {} has no history; set_requires_grad() on a leaf before computing it, "
        "while recording (gradients themselves are not recorded: there are no gradients of gradients)",
        root.shape());
  if (!given.defined()) {
    check(root.numel() == 1,
          "backward: a tensor of shape {} needs a gradient of that shape; only one element has the default 1",
          root.shape());
    return ones(root.shape(), root.dtype());
  }
  check(given.shape() == root.shape() && given.dtype() == root.dtype(),
        "backward: the gradient is {} {}, the tensor {} {}", name(given.dtype()), given.shape(),
        name(root.dtype()), root.shape());
  return given.detach();
}
}  // namespace

void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, BackwardOptions options) {
  check(gradients.empty() || gradients.size() == roots.size(), "backward: {} tensors, but {} gradients",
        roots.size(), gradients.size());
  Backward pass(options);
  try {
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const Tensor gradient = root_gradient(roots[i], gradients.empty() ? Tensor() : gradients[i]);
      const TensorImpl& root = roots[i].impl();
      Edge edge{root.node, root.node ? nullptr : roots[i].ref(), root.output, root.dtype};
      const NoGrad no_grad;
      pass.start(edge, gradient);
    }
    pass.run();
  } catch (...) {
    pass.abandon();
    throw;
  }
}

void backward(const Tensor& root, BackwardOptions options) { backward(std::span(&root, 1), {}, options); }
void Tensor::backward() const { rill::backward(*this); }
void Tensor::backward(const Tensor& gradient) const {
  rill::backward(std::span(this, 1), std::span(&gradient, 1));
}

}  // namespace rill
