#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <rill/core/core.h>

using rill::Tensor;

namespace {
Tensor leaf(std::initializer_list<double> values) { return rill::tensor(values).set_requires_grad(); }

/// The identity. Its backward requests an in-place slot and appends to `same` whether the slot is dy itself.
Tensor in_place(const Tensor& x, std::vector<bool>& same) {
  return rill::record("in_place", x.detach().clone(), {x}, [&same](const Tensor& dy, rill::Grads& d) {
    const double* from = dy.data<double>();
    rill::Slot slot = d[0].in_place_slot(dy);
    same.push_back(slot.to.data<double>() == from);
    if (slot.beta == 0) {
      slot.to.copy_(dy);
    } else {
      slot.to.add_(dy);
    }
  });
}
}  // namespace

TEST_CASE("autograd: a tensor used several times accumulates all its gradients") {
  Tensor x = leaf({2, 3});
  rill::sum(x * x + x).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{5, 7});
  rill::sum(x).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{6, 8});
}

TEST_CASE("autograd: consumers run before producers in a diamond of unequal arms") {
  Tensor x = leaf({0.5});
  Tensor u = rill::tanh(x);
  Tensor longer = rill::exp(rill::exp(u));
  rill::sum(u * longer).backward();
  const double t = std::tanh(0.5), e = std::exp(t), ee = std::exp(e);
  CHECK(x.grad().item() == doctest::Approx((1 - t * t) * (ee + t * ee * e)).epsilon(1e-12));
}

TEST_CASE("autograd: a second backward throws unless the first kept the graph") {
  Tensor x = leaf({1});
  Tensor y = rill::sum(rill::exp(x));
  rill::backward(y, {.retain_graph = true});
  rill::backward(y);
  CHECK(x.grad().item() == doctest::Approx(2 * std::exp(1.0)));
  CHECK_THROWS_WITH(y.backward(), doctest::Contains("was freed by an earlier backward"));
  CHECK(x.grad().item() == doctest::Approx(2 * std::exp(1.0)));
}

TEST_CASE("autograd: backward rejects a missing history and a gradient of another shape") {
  CHECK_THROWS_WITH(rill::ones({1}).backward(), doctest::Contains("has no history"));
  Tensor y = leaf({1, 2}) * 2.0;
  CHECK_THROWS_WITH(y.backward(), doctest::Contains("needs a gradient of that shape"));
  CHECK_THROWS_WITH(y.backward(rill::ones({3}, rill::float64)),
                    doctest::Contains("the gradient is float64 [3]"));
}

TEST_CASE("autograd: differentiating a gradient throws") {
  Tensor x = leaf({1, 2});
  rill::sum(x * x).backward();
  CHECK_THROWS_WITH(rill::sum(x.grad()).backward(), doctest::Contains("has no history"));
}

TEST_CASE("autograd: NoGrad records nothing and nests") {
  Tensor x = leaf({1});
  {
    const rill::NoGrad outer;
    { const rill::NoGrad inner; }
    CHECK_FALSE((x * 2.0).requires_grad());
    CHECK_FALSE(rill::grad_enabled());
  }
  CHECK((x * 2.0).requires_grad());
}

TEST_CASE("autograd: backward throws if a saved tensor was changed in place") {
  Tensor x = leaf({1, 2});
  Tensor factor = rill::tensor({3.0, 4.0});
  Tensor y = rill::sum(x * factor);
  factor.fill_(0);
  CHECK_THROWS_WITH(
      y.backward(),
      "mul: a tensor saved for backward was changed in place (saved at version 0, now 1); clone it first");
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("autograd: views share the version of their storage") {
  Tensor x = leaf({1, 2});
  Tensor data = rill::tensor({3.0, 4.0, 5.0});
  Tensor y = rill::sum(x * data.narrow(0, 1, 2));
  data.mutable_data<double>()[2] = 0;
  CHECK_THROWS_AS(y.backward(), rill::Error);
}

TEST_CASE("autograd: reading a saved tensor through any handle leaves backward valid") {
  Tensor x = leaf({1, 2}), data = rill::tensor({3.0, 4.0});
  const Tensor y = rill::sum(x * data);
  CHECK(data.data<double>()[1] + data.span<double>()[0] + x.data<double>()[0] == 8);
  y.backward();
  CHECK(x.grad().to_vector() == std::vector<double>{3, 4});
}

/// Whether `save(t, path)` compiles. Autograd's save would accept it and write no file.
template <class T>
concept HasSave = requires(const T& t) {
  save(t, "f.safetensors");
};
static_assert(!HasSave<Tensor>, "save(x, path) would compile and write nothing");

TEST_CASE("autograd: a backward that throws leaves no partial gradients") {
  Tensor x = leaf({1, 2}), z = leaf({1, 2});
  const auto faulty = [](const Tensor& t) {
    return rill::record("faulty", t.clone().detach(), {t},
                        [](const Tensor&, rill::Grads&) { throw rill::Error("faulty: no"); });
  };
  Tensor y = rill::sum(faulty(x) + z * z);
  CHECK_THROWS_WITH(y.backward(), "faulty: no");
  CHECK_FALSE(x.grad().defined());
  CHECK_FALSE(z.grad().defined());
  rill::sum(z).backward();
  CHECK(z.grad().to_vector() == std::vector<double>{1, 1});
}

TEST_CASE("autograd: a gradient of the wrong shape from an op is an error") {
  Tensor x = leaf({1, 2});
  Tensor y = rill::record("narrowed", rill::ones({1}, rill::float64), {x},
                          [](const Tensor& dy, rill::Grads& d) { d[0].give(dy); });
  CHECK_THROWS_WITH(y.backward(), doctest::Contains("the gradient of an input float64 [2] is float64 [1]"));
}

TEST_CASE("autograd: an input index out of range in a backward function is an error") {
  const auto run = [](int input) {
    const Tensor x = leaf({1, 1});
    const Tensor y = rill::record("mine", x.detach().clone(), {x}, [input](const Tensor& dy, rill::Grads& d) {
      if (auto dx = d[input]) dx.give(dy);
    });
    rill::sum(y).backward();
  };
  CHECK_THROWS_WITH(run(5), "mine: input 5 is out of range; the number of inputs is 1");
  CHECK_THROWS_WITH(run(-1), "mine: input -1 is out of range; the number of inputs is 1");
}

TEST_CASE("autograd: an op with two outputs receives the gradients that exist") {
  Tensor x = leaf({3});
  const auto both = [](const Tensor& t) {
    return rill::record("both", std::array{(t * 2.0).detach(), (t * 5.0).detach()}, {t},
                        [](rill::Outputs dy, rill::Grads& d) {
                          CHECK_FALSE(dy.has(0));
                          d[0].give(dy[0] * 2.0 + dy[1] * 5.0);
                        });
  };
  auto [a, b] = both(x);
  rill::sum(b * 1.0).backward();
  CHECK(x.grad().item() == 5);
}

TEST_CASE("autograd: anomaly mode names the op whose result or gradient is not finite") {
  Tensor x = leaf({0.0});
  {
    const rill::DetectAnomaly anomaly;
    CHECK_THROWS_WITH(rill::log(x - 1.0), "log: the result of shape [1] contains NaN");
    Tensor y = rill::sum(rill::sqrt(x));
    CHECK_THROWS_WITH(y.backward(), doctest::Contains("sqrt: the gradient of input 0"));
  }
  CHECK(std::isinf(rill::log(x).item()));
}

TEST_CASE("autograd: anomaly mode ignores inputs that do not require a gradient") {
  const rill::DetectAnomaly anomaly;
  Tensor x = leaf({2, 3});
  rill::sum(x * rill::tensor({4.0, 5.0})).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{4, 5});
}

TEST_CASE("autograd: anomaly mode does not look at memory that an op has yet to fill") {
  const rill::DetectAnomaly anomaly;
  Tensor x = leaf({1, 2, 3, 4}), w = leaf({1, 2});
  for (int round = 0; round < 3; ++round) {
    for (int size = 1; size <= 16; ++size) {  // blocks that hold NaN for the next results
      const rill::NoGrad no_grad;
      rill::empty({size}, rill::float64).fill_(std::numeric_limits<double>::quiet_NaN());
    }
    const Tensor m = x.reshape({2, 2});
    const Tensor y = rill::cat({rill::stack({m, m}, 1).reshape({4, 2}), rill::flip(m, {0})}, 0);
    const Tensor z = rill::matmul(y.reshape({3, 2, 2}), rill::repeat(w.reshape({2, 1}), {1, 3}));
    CHECK_NOTHROW(rill::sum(rill::index_add(z, 0, rill::tensor({0, 0}), z.narrow(0, 1, 2))).backward());
  }
}

TEST_CASE("autograd: anomaly mode accepts infinite results") {
  Tensor x = leaf({2, 3});
  const rill::DetectAnomaly anomaly;
  const Tensor masked =
      rill::masked_fill(x, rill::tensor({false, true}), -std::numeric_limits<double>::infinity());
  rill::sum(rill::softmax(masked, 0) * rill::tensor({4.0, 5.0})).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0});
  CHECK(rill::log(x * 0.0).to_vector() == std::vector<double>(2, -HUGE_VAL));
  CHECK_THROWS_WITH(rill::sum(rill::log(x * 0.0)).backward(),
                    "log: the gradient of input 0 of shape [2] has a non-finite value");
  CHECK_THROWS_WITH(rill::log(-x), "log: the result of shape [2] contains NaN");
}

TEST_CASE("autograd: a backward function whose copy throws leaks no node") {
  struct Throwing {
    Throwing() = default;
    Throwing(const Throwing&) { rill::fail("not copied"); }
    void operator()(const Tensor&, rill::Grads&) const {}
  };
  const Tensor x = leaf({1, 2});
  const Throwing backward;
  const auto record = [&] {
    CHECK_THROWS_WITH(rill::record("mine", x.detach().clone(), {x * 1.0, x}, backward), "not copied");
  };
  record();
  const std::int64_t before = rill::memory::stats().live_bytes;
  for (int i = 0; i < 10; ++i) record();
  CHECK(rill::memory::stats().live_bytes == before);
}

TEST_CASE("autograd: a failed backward frees the graph unless it is kept") {
  Tensor x = leaf({1, 2});
  const Tensor g = rill::tensor({1.0, 1.0});
  bool fails = true;
  const auto twice = [&] {
    return rill::record("twice", rill::tensor({2.0, 4.0}), {x}, [&](const Tensor& dy, rill::Grads& d) {
      if (fails) rill::fail("not yet");
      d[0].give(dy * 2.0);
    });
  };
  const Tensor once = twice();
  CHECK_THROWS_WITH(once.backward(g), "not yet");
  fails = false;
  CHECK_THROWS_WITH(once.backward(g), doctest::Contains("was freed by an earlier backward"));
  CHECK(!x.grad().defined());

  fails = true;
  const Tensor kept = twice();
  const auto run = [&] { rill::backward(std::span(&kept, 1), std::span(&g, 1), {.retain_graph = true}); };
  CHECK_THROWS_WITH(run(), "not yet");
  fails = false;
  run();
  CHECK(x.grad().to_vector() == std::vector<double>{2, 2});
  rill::sum(kept + x).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{5, 5});
}

TEST_CASE("autograd: recording a tensor that already has a gradient is an error") {
  Tensor x = leaf({1});
  const auto nothing = [](const Tensor&, rill::Grads&) {};
  CHECK_THROWS_WITH(rill::record("identity", x, {x}, nothing),
                    "identity: the result of shape [1] already requires grad; record a new tensor");
  Tensor y = x * 2.0;
  CHECK_THROWS_AS(rill::record("again", y, {x}, nothing), rill::Error);
  CHECK(x.is_leaf());
}

TEST_CASE("autograd: backward flushes denormal gradients to zero") {
  Tensor x = rill::tensor({1.0f}).set_requires_grad();
  (x * 1e-30 * 1e-10).backward();
  CHECK(x.grad().item() == 0);
  CHECK((rill::tensor({1e-30f}) * 1e-10).item() > 0);  // the forward pass keeps denormals
}

TEST_CASE("autograd: backward and destruction of a million-op chain do not recurse") {
  Tensor x = leaf({0.0}), one = leaf({1.0});
  {
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = y + one;
    y.backward();
    CHECK(x.grad().item() == 1);
    CHECK(one.grad().item() == 1000000);
  }
  Tensor y = x;
  for (int i = 0; i < 1000000; ++i) y = y + one;  // freed without a backward pass
}

TEST_CASE("autograd: a gradient shared by two inputs is copied before accumulation") {
  Tensor a = leaf({1}), b = leaf({1});
  Tensor s = a + b;      // one gradient tensor for both inputs
  Tensor t = s + s * s;  // accumulates into it
  rill::sum(t).backward();
  CHECK(a.grad().item() == 5);
  CHECK(b.grad().item() == 5);
  Tensor ga = a.grad();
  ga.fill_(0);
  CHECK(b.grad().item() == 5);
}

TEST_CASE("autograd: in_place_slot reuses a gradient that has no other owner") {
  std::vector<bool> same;
  Tensor x = leaf({1, 2});
  SUBCASE("sole owner") {
    rill::sum(in_place(rill::exp(x), same) * 3.0).backward();
    CHECK(same == std::vector<bool>{true});
    for (std::int64_t i : {0, 1})
      CHECK(x.grad().select(0, i).item() == doctest::Approx(3 * std::exp(x.select(0, i).item())));
  }
  SUBCASE("not for a leaf") {
    rill::sum(in_place(x, same) * 3.0).backward();
    CHECK(same == std::vector<bool>{false});
  }
  SUBCASE("not if a hook keeps it") {
    Tensor kept;
    Tensor y = in_place(x * 2.0, same);
    y.register_hook([&](const Tensor& dy) { return kept = dy, Tensor(); });
    rill::sum(rill::exp(y) * 3.0).backward();
    CHECK(same == std::vector<bool>{false});
  }
  SUBCASE("not if two inputs share it") {
    (in_place(x * 2.0, same) + in_place(x * 3.0, same)).backward(rill::tensor({1.0, 1.0}));
    CHECK(same == std::vector<bool>{false, false});
  }
}

TEST_CASE("autograd: in-place gradients never modify a tensor that is held elsewhere") {
  Tensor x = leaf({0.5});
  Tensor kept;
  Tensor y = rill::exp(x * 2.0);
  y.register_hook([&](const Tensor& dy) { return kept = dy, Tensor(); });
  Tensor z = y * 3.0;
  rill::backward(z, {.retain_graph = true});
  CHECK(kept.item() == 3);
  CHECK(x.grad().item() == doctest::Approx(6 * std::exp(1.0)));
  z.backward();
  CHECK(x.grad().item() == doctest::Approx(12 * std::exp(1.0)));
  x.zero_grad();
  (rill::exp(x * 2.0) + rill::exp(x * 3.0)).backward();
  CHECK(x.grad().item() == doctest::Approx(2 * std::exp(1.0) + 3 * std::exp(1.5)));
  Tensor g = rill::tensor({1.0});
  rill::exp(x * 2.0).backward(g);
  CHECK(g.item() == 1);
}

TEST_CASE("autograd: backward does not modify the gradient passed to it") {
  Tensor x = leaf({1, 2});
  Tensor y = x * 1.0;
  Tensor g = rill::tensor({1.0, 1.0});
  Tensor both = y + y * y;
  both.backward(g);
  CHECK(g.to_vector() == std::vector<double>{1, 1});
  CHECK(x.grad().to_vector() == std::vector<double>{3, 5});
}

TEST_CASE("gradcheck: wrong gradients, float32 inputs and nondeterministic functions are detected") {
  Tensor x = leaf({1, 2});
  const auto wrong = [](const std::vector<Tensor>& in) {
    return std::vector{rill::record("wrong", (in[0] * in[0]).detach(), {in[0]},
                                    [](const Tensor& dy, rill::Grads& d) { d[0].give(dy); })};
  };
  const rill::GradcheckReport report = rill::gradcheck(wrong, {x});
  CHECK_FALSE(report.ok);
  CHECK(report.worst > 0.5);
  CHECK(report.message.find("input 0 [1] (contiguous): analytic") == 0);
  CHECK(report.input == 0);
  CHECK(report.index == rill::Dims{1});
  CHECK(rill::gradcheck(wrong, {x}, {.names = {"a.weight"}}).message.find("a.weight [1] (contiguous)") == 0);
  const auto identity = [](const std::vector<Tensor>& in) { return std::vector{in[0] * 1.0}; };
  CHECK(rill::gradcheck(identity, {x}).worst < 1e-9);
  CHECK(rill::gradcheck(identity, {x}).elements == 6);
  CHECK_THROWS_WITH(rill::gradcheck(identity, {x.detach().to(rill::float32).set_requires_grad()}),
                    doctest::Contains("input 0 is float32"));
  CHECK_THROWS_WITH(rill::gradcheck(identity, {x.detach()}), doctest::Contains("no input requires grad"));
  double drift = 0;
  const auto nondeterministic = [&](const std::vector<Tensor>& in) {
    return std::vector{in[0] * (drift += 1)};
  };
  CHECK_THROWS_WITH(rill::gradcheck(nondeterministic, {x}), doctest::Contains("not deterministic"));
}
