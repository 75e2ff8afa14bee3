#include <rill/core/autograd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <rill/core/autograd/node_layout.h>

namespace rill {

using detail::thread_modes;

namespace {
constinit thread_local RecordObserver* observer = nullptr;
}  // namespace

bool detail::repeats(const Tensor& t) noexcept {
  const TensorImpl& impl = *t.ref();
  if (impl.contiguous) return false;
  for (int d = 0; d < impl.shape.size(); ++d) {
    if (impl.strides[d] == 0 && impl.shape[d] > 1) return true;
  }
  return false;
}

namespace {

/// The check itself may copy a tensor, which is not to be checked again.
struct AnomalyOff {
  bool previous = std::exchange(thread_modes.anomaly, false);
  ~AnomalyOff() { thread_modes.anomaly = previous; }
};

bool shares_storage(const Tensor& y, Inputs inputs) noexcept {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].impl().storage.get() == y.impl().storage.get()) return true;
  }
  return false;
}

template <class F>
bool any_element(const Tensor& t, const F& f) {
  if (!is_floating(t.dtype())) return false;
  const AnomalyOff off;
  const Tensor dense = t.detach().contiguous();
  return visit_floating("anomaly", t.dtype(), [&]<class T>(Type<T>) {
    const auto elements = dense.span<T>();
    return std::any_of(elements.begin(), elements.end(), f);
  });
}
}  // namespace

bool detail::has_nan(const Tensor& t) {
  return any_element(t, [](auto v) { return std::isnan(v); });
}
bool detail::has_nonfinite(const Tensor& t) {
  return any_element(t, [](auto v) { return !std::isfinite(v); });
}

NoGrad::NoGrad() noexcept : previous_(std::exchange(thread_modes.recording, false)) {}
NoGrad::~NoGrad() { thread_modes.recording = previous_; }
bool grad_enabled() noexcept { return thread_modes.recording; }

DetectAnomaly::DetectAnomaly() noexcept : previous_(std::exchange(thread_modes.anomaly, true)) {}
DetectAnomaly::~DetectAnomaly() { thread_modes.anomaly = previous_; }

RecordObserver::RecordObserver(std::function<void(const char*)> on_record)
    : on_record_(std::move(on_record)), previous_(std::exchange(observer, this)) {
  thread_modes.observed = true;
}
RecordObserver::~RecordObserver() {
  observer = previous_;
  thread_modes.observed = previous_ != nullptr;
}

// --- nodes

void detail::release_node(Node& node) noexcept {
  if (node.released) return;
  node.released = true;
  node.drop(node);
  for (int i = 0; i < node.inputs; ++i) node.edges()[i] = Edge{};
  for (int i = 0; i < node.outputs; ++i) delete std::exchange(node.output_slots()[i].hooks, nullptr);
}

namespace {

void destroy_one(Node* node) noexcept {
  detail::release_node(*node);
  for (int i = 0; i < node->inputs; ++i) node->edges()[i].~Edge();
  for (int i = 0; i < node->outputs; ++i) node->output_slots()[i].~OutputSlot();
  const std::size_t bytes = node->block_bytes;
  node->~Node();
  memory::deallocate(node, bytes);
}

/// Nodes that became unreferenced while another was being destroyed, linked through `depth`.
thread_local Node* doomed = nullptr;
thread_local bool destroying = false;
}  // namespace

void Node::destroy(Node* node) noexcept {
  node->depth = reinterpret_cast<std::uint64_t>(doomed);
  doomed = node;
  if (destroying) return;
  destroying = true;
  while (doomed) {
    Node* next = doomed;
    doomed = reinterpret_cast<Node*>(next->depth);
    destroy_one(next);
  }
  destroying = false;
}

namespace detail {

Node* create_node(const char* name, Inputs inputs, std::span<const Tensor> outputs, std::size_t lambda_bytes,
                  void (*run)(Node&, Grads&), void (*drop)(Node&) noexcept) {
  const std::size_t offset = lambda_offset(outputs.size(), inputs.size());
  const std::size_t bytes = offset + lambda_bytes;
  check(inputs.size() <= UINT16_MAX && bytes <= UINT32_MAX, "{}: {} inputs are too many for one op", name,
        inputs.size());
  for (const Tensor& y : outputs) {
    check(!y.impl().node && !y.impl().requires_grad,
          "{}: the result of shape {} already requires grad; record a new tensor", name, y.shape());
  }
  Node* node = new (memory::allocate(bytes)) Node;
  node->name = name;
  node->run = run;
  node->drop = drop;
  node->block_bytes = static_cast<std::uint32_t>(bytes);
  node->lambda_offset = static_cast<std::uint32_t>(offset);
  node->inputs = static_cast<std::uint16_t>(inputs.size());
  node->outputs = static_cast<std::uint16_t>(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    new (&node->output_slots()[i]) OutputSlot{outputs[i].shape(), outputs[i].dtype(), {}, nullptr};
  }
  std::uint64_t depth = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Edge* edge = new (&node->edges()[i]) Edge;
    if (!inputs[i].defined()) continue;
    const TensorImpl& input = inputs[i].impl();
    edge->dtype = input.dtype;
    if (input.node) {
      edge->node = input.node;
      edge->output = input.output;
      depth = std::max(depth, input.node->depth);
    } else if (inputs[i].requires_grad()) {
      edge->leaf = inputs[i].ref();
    }
  }
  node->depth = depth + 1;
  return node;
}

void attach(Ref<Node> node, std::span<Tensor> outputs) noexcept {
  node->released = false;
  for (std::size_t i = outputs.size(); i-- > 0;) {
    TensorImpl& y = *outputs[i].ref();
    y.node = i == 0 ? std::move(node) : node;
    y.output = static_cast<std::uint32_t>(i);
  }
}

void watch(const char* name, std::span<const Tensor> outputs, Inputs inputs) {
  if (observer && !outputs.empty() && outputs[0].impl().node) (*observer)(name);
  if (!thread_modes.anomaly) return;
  for (const Tensor& y : outputs) {
    // A view computes nothing, and ops take views of results that they have not filled yet.
    if (shares_storage(y, inputs)) continue;
    check(!has_nan(y), "{}: the result of shape {} contains NaN", name, y.shape());
  }
}

}  // namespace detail

// --- saved tensors

Saved::Saved(const Tensor& t, const char* op)
    : storage_(t.impl().storage),
      offset_(t.impl().offset),
      shape_(t.shape()),
      strides_(t.strides()),
      version_(storage_->version()),
      dtype_(t.dtype()),
      op_(op) {}

void Saved::stale() const {
  fail("{}: a tensor saved for backward was changed in place (saved at version {}, now {}); clone it first",
       op_, version_, storage_->version());
}

// --- hooks

namespace {
/// Calls a hook; throws if it modified the gradient, which may be shared.
Tensor call_hook(const std::function<Tensor(const Tensor&)>& hook, const Tensor& gradient) {
  const Ref<Storage> storage = gradient.impl().storage;
  const std::uint32_t version = storage->version();
  Tensor replacement = hook(gradient);
  check(storage->version() == version,
        "hook: the gradient of shape {} was changed in place (mutable_data() counts as a change), but may be "
        "shared; return a new tensor",
        gradient.shape());
  return replacement;
}
}  // namespace

void Hooks::add(std::function<Tensor(const Tensor&)> function) {
  hooks_.push_back({std::move(function), detail::passes_begun.load(std::memory_order_relaxed)});
}

bool Hooks::due(std::uint64_t pass) const noexcept {
  return !hooks_.empty() && hooks_.front().passes_begun < pass;
}

Tensor Hooks::apply(Tensor gradient, std::uint64_t pass) const {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {  // by index: a hook may add another
    const Hook& hook = hooks_[i];
    if (hook.passes_begun >= pass) break;
    const Tensor replacement = call_hook(hook.function, gradient);
    if (!replacement.defined()) continue;
    check(replacement.shape() == gradient.shape() && replacement.dtype() == gradient.dtype(),
          "hook: the gradient is {} {}, but its replacement is {} {}", name(gradient.dtype()),
          gradient.shape(), name(replacement.dtype()), replacement.shape());
    gradient = replacement;
  }
  return gradient;
}

void Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  check(requires_grad(), "register_hook: the tensor does not require grad; call set_requires_grad()");
  TensorImpl& target = impl();
  check(!target.node || !target.node->released,
        "register_hook: the graph of '{}' was freed by an earlier backward; register before it, or pass "
        "{{.retain_graph = true}} to it",
        op_name());
  Hooks*& hooks = target.node ? target.node->output_slots()[target.output].hooks : target.hooks;
  if (!hooks) hooks = new Hooks;
  hooks->add(std::move(hook));
}

}  // namespace rill
