// The interface of a backward function to the running pass.
#include <rill/core/autograd/pass.h>

namespace rill {

GradRef Grads::operator[](int i) const {
  check(i >= 0 && i < node_.inputs, "{}: input {} is out of range; the number of inputs is {}", node_.name, i,
        node_.inputs);
  Edge& edge = node_.edges()[i];
  return GradRef(edge.node || edge.leaf ? &edge : nullptr, pass_);
}

bool Grads::retains_graph() const noexcept { return pass_->retains_graph(); }

Slot GradRef::slot() { return pass_->slot(*edge_); }
Slot GradRef::in_place_slot(const Tensor& dy) { return pass_->in_place_slot(*edge_, dy); }
Tensor GradRef::zeroed() { return pass_->zeroed(*edge_); }

const Shape& GradRef::shape() const {
  return edge_->leaf ? edge_->leaf->shape : edge_->node->output_slots()[edge_->output].shape;
}
DType GradRef::dtype() const { return edge_->dtype; }

namespace {
void check_gradient(const Tensor& gradient, const Shape& shape, DType dtype) {
  check(gradient.shape() == shape && gradient.dtype() == dtype,
        "backward: the gradient of an input {} {} is {} {}", name(dtype), shape, name(gradient.dtype()),
        gradient.shape());
  check(!gradient.impl().node, "backward: a gradient has history; gradients of gradients are not supported");
}
}  // namespace

void GradRef::give(const Tensor& gradient) {
  check_gradient(gradient, shape(), dtype());
  pass_->accumulate(*edge_, gradient);
}

void GradRef::give(Tensor&& gradient) {
  check_gradient(gradient, shape(), dtype());
  if (!pass_->adopt(*edge_, gradient)) pass_->accumulate(*edge_, gradient);
}

const Tensor& detail::only_gradient(Node& node) noexcept { return node.output_slots()->grad; }
namespace {
const OutputSlot& output_slot(Node& node, int i) {
  check(i >= 0 && i < node.outputs, "{}: output {} is out of range; the number of outputs is {}", node.name,
        i, node.outputs);
  return node.output_slots()[i];
}
}  // namespace

bool Outputs::has(int i) const { return output_slot(node_, i).grad.defined(); }
Tensor Outputs::operator[](int i) const {
  const OutputSlot& out = output_slot(node_, i);
  return out.grad.defined() ? out.grad : zeros(out.shape, out.dtype);
}

}  // namespace rill
