// The backward pass: scheduling of nodes and accumulation of gradients.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <rill/core/autograd/pass.h>
#include <rill/core/parallel.h>

namespace rill {

/// A queued node is kept alive by the edge through which it was reached until retain_queued() is called.
void Backward::enqueue(Node* node) {
  if (node->queued) return;
  check(!node->released,
        "backward: the graph of '{}' was freed by an earlier backward; pass {{.retain_graph = true}} to it",
        node->name);
  heap_.push_back({node->depth, reached_++, node});
  node->queued = true;
  std::push_heap(heap_.begin(), heap_.end());
}

/// Makes the queue own a reference to the queued node of `edge`; `take_edge` moves the edge's own reference.
void Backward::retain_queued(Edge& edge, bool take_edge) noexcept {
  Node* node = edge.node.get();
  if (!node || !node->queued || node->owned) return;
  node->owned = true;
  if (take_edge) {
    std::ignore = edge.node.release();
  } else {
    node->retain();
  }
}

/// Called after a node ran or failed: the queued producers must outlive it.
void Backward::retain_producers(Node& node, bool take_edges) noexcept {
  for (int i = 0; i < node.inputs; ++i) retain_queued(node.edges()[i], take_edges);
}

namespace {
/// The slot that accumulates the gradient for the producer of an input.
OutputSlot& producer_slot(Edge& edge) {
  Node& node = *edge.node;
  check(!node.running, "backward: '{}' is running; its hooks and its backward function must not run it again",
        node.name);
  return node.output_slots()[edge.output];
}
}  // namespace

Slot Backward::slot(Edge& edge) {
  if (edge.leaf) return leaf_slot(edge);
  OutputSlot& out = producer_slot(edge);
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
/// Whether a gradient has a single reference and spans its whole storage.
bool uniquely_owned(const TensorImpl& t) noexcept {
  return t.use_count() == 1 && t.storage->use_count() == 1 &&
         t.storage->bytes() == static_cast<std::size_t>(t.numel) * item_size(t.dtype);
}
}  // namespace

Slot Backward::in_place_slot(Edge& edge, const Tensor& dy) {
  const TensorImpl& incoming = dy.impl();
  if (!edge.node || !incoming.contiguous || !uniquely_owned(incoming)) return slot(edge);
  OutputSlot& out = producer_slot(edge);
  if (out.grad.defined() || out.shape != incoming.shape || out.dtype != incoming.dtype) return slot(edge);
  enqueue(edge.node.get());
  incoming.storage->bump_version();
  out.grad = dy;
  return {out.grad, 0};
}

Tensor Backward::zeroed(Edge& edge) {
  Slot s = slot(edge);
  if (s.beta == 0) s.to.zero_();
  return s.to;
}

void Backward::accumulate(Edge& edge, const Tensor& gradient) {
  if (edge.node) {
    OutputSlot& out = producer_slot(edge);
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

/// Seeds the gradient of a root. `root` is a temporary edge of the caller.
void Backward::start(Edge& root, const Tensor& gradient) {
  accumulate(root, gradient);
  retain_queued(root, true);
}

/// Moves a contiguous, uniquely owned gradient into a leaf that has none; otherwise returns false.
bool Backward::adopt(Edge& edge, Tensor& gradient) {
  if (!edge.leaf) return false;
  TensorImpl& leaf = *edge.leaf;
  check_not_converted(leaf, edge.dtype);
  if (!uniquely_owned(gradient.impl()) || !gradient.impl().contiguous) return false;
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
    check(!detail::has_nonfinite(grad), "{}: the gradient of input {} of shape {} has a non-finite value",
          node.name, i, grad.shape());
  }
}

void Backward::clear_outputs(Node& node) noexcept {
  for (int i = 0; i < node.outputs; ++i) node.output_slots()[i].grad = Tensor();
}

/// A backward function that failed may have consumed its saved state, so its node is released as well.
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
    retain_producers(node, false);
    if (started && !options_.retain_graph) detail::release_node(node);
    throw;
  }
  clear_outputs(node);
  retain_producers(node, !options_.retain_graph);
  if (!options_.retain_graph) detail::release_node(node);
}

void Backward::run() {
  const NoGrad no_grad;
  const FlushDenormals flush;  // gradients that vanish over many time steps become denormal
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
Tensor root_gradient(const Tensor& root, const Tensor& gradient) {
  check(root.requires_grad(),
        "backward: the tensor of shape {} has no history; call set_requires_grad() on a leaf and compute it "
        "while recording is enabled (gradients of gradients are not supported)",
        root.shape());
  if (!gradient.defined()) {
    check(
        root.numel() == 1,
        "backward: a tensor of shape {} needs a gradient of that shape; only a single element defaults to 1",
        root.shape());
    return ones(root.shape(), root.dtype());
  }
  check(gradient.shape() == root.shape() && gradient.dtype() == root.dtype(),
        "backward: the gradient is {} {}, but the tensor is {} {}", name(gradient.dtype()), gradient.shape(),
        name(root.dtype()), root.shape());
  return gradient.detach();
}
}  // namespace

void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, BackwardOptions options) {
  check(gradients.empty() || gradients.size() == roots.size(), "backward: {} tensors but {} gradients",
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
