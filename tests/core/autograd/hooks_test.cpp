#include <doctest/doctest.h>

#include <memory>

#include <rill/core/core.h>

using rill::Tensor;

namespace {
Tensor leaf(std::initializer_list<double> values) { return rill::tensor(values).set_requires_grad(); }
}  // namespace

TEST_CASE("hooks: a hook sees and may replace the gradient of an intermediate or a leaf") {
  Tensor x = leaf({1, 2});
  Tensor y = x * 3.0;
  std::vector<double> seen;
  y.register_hook([&](const Tensor& g) {
    seen = g.to_vector();
    return g * 10.0;
  });
  int calls = 0;
  x.register_hook([&](const Tensor& g) {
    ++calls;
    return g + 1.0;
  });
  rill::sum(y + x).backward();
  CHECK(seen == std::vector<double>{1, 1});
  CHECK(calls == 1);
  CHECK(x.grad().to_vector() == std::vector<double>{32, 32});
}

TEST_CASE("hooks: a hook keeps its state between passes") {
  Tensor x = leaf({1});
  x.register_hook([n = 0.0](const Tensor& g) mutable { return g * ++n; });
  for (int i = 0; i < 3; ++i) rill::sum(x).backward();
  CHECK(x.grad().item() == 6);
}

TEST_CASE("hooks: the first hook of a leaf, registered during a pass, runs from the next pass on") {
  Tensor a = leaf({1}), b = leaf({1});
  bool registered = false;
  const Tensor y = a * 2.0;
  y.register_hook([&](const Tensor&) {
    if (!registered) b.register_hook([](const Tensor& g) { return g * 100.0; });
    registered = true;
    return Tensor();
  });
  const auto loss = [&] { return rill::sum(rill::exp(y * 0.0) * b + y); };
  rill::backward(loss(), {.retain_graph = true});
  CHECK(b.grad().item() == 1);
  CHECK(a.grad().item() == 2);
  rill::backward(loss());
  CHECK(b.grad().item() == 101);
}

TEST_CASE("hooks: hooks registered by a hook run from the next pass on") {
  Tensor x = leaf({1});
  int calls = 0;
  x.register_hook([&](const Tensor&) {
    for (int i = 0; i < 9; ++i) {
      x.register_hook([&](const Tensor&) {
        ++calls;
        return Tensor();
      });
    }
    return Tensor();
  });
  rill::sum(x).backward();
  CHECK(calls == 0);
  rill::sum(x).backward();
  CHECK(calls == 9);
}

TEST_CASE("hooks: hooks registered by the hook of another tensor run from the next pass on") {
  Tensor x = leaf({1});
  const Tensor y = x * 2.0, z = y * 3.0;
  int early = 0, late = 0;
  const auto count = [](int& n) { return [&n](const Tensor&) { return ++n, Tensor(); }; };
  for (const Tensor& t : {x, y}) t.register_hook(count(early));
  z.register_hook([&](const Tensor&) {
    for (const Tensor& t : {x, y, z}) t.register_hook(count(late));
    return Tensor();
  });
  rill::backward(z, {.retain_graph = true});
  CHECK(early == 2);
  CHECK(late == 0);
  rill::backward(z);
  CHECK(early == 4);
  CHECK(late == 3);
}

TEST_CASE("hooks: a hook registered during a pass runs in a nested pass") {
  Tensor x = leaf({1}), other = leaf({1});
  const Tensor y = x * 2.0, inner = rill::sum(other);
  int calls = 0;
  y.register_hook([&](const Tensor&) {
    other.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
    inner.backward();
    return Tensor();
  });
  rill::sum(y).backward();
  CHECK(calls == 1);
}

TEST_CASE(
    "hooks: backward frees the hooks of intermediates with the graph, even a hook that captures its own "
    "tensor") {
  Tensor x = leaf({1, 2});
  const auto token = std::make_shared<int>(0);
  const auto step = [&] {
    const Tensor y = x * 2.0;
    y.register_hook([y, token](const Tensor& g) { return g * y.detach(); });
    rill::sum(y).backward();
  };
  step();
  CHECK(x.grad().to_vector() == std::vector<double>{4, 8});
  const std::int64_t before = rill::memory::stats().live_bytes;
  for (int i = 0; i < 10; ++i) step();
  CHECK(rill::memory::stats().live_bytes == before);
  CHECK(token.use_count() == 1);

  const Tensor y = rill::exp(x);
  rill::sum(y).backward();
  CHECK_THROWS_WITH(y.register_hook([](const Tensor& g) { return g; }),
                    "register_hook: the graph of 'exp' was freed by an earlier backward; register before "
                    "it, or pass {.retain_graph = true} to it");
}

TEST_CASE("hooks: a hook that captures the data of its leaf is freed with the leaf") {
  const auto token = std::make_shared<int>(0);
  {
    const Tensor x = leaf({1});
    x.register_hook([data = x.detach(), token](const Tensor& g) { return g + data; });
    rill::sum(x).backward();
    CHECK(x.grad().item() == 2);
  }
  CHECK(token.use_count() == 1);
}

TEST_CASE("hooks: running backward on the graph that called the hook is an error") {
  Tensor x = leaf({1});
  const Tensor y = rill::exp(x), z = rill::sum(y), again = rill::sum(y);
  y.register_hook([&](const Tensor&) {
    again.backward();
    return Tensor();
  });
  CHECK_THROWS_WITH(z.backward(),
                    "backward: 'exp' is running; its hooks and its backward function must not run it again");
}

TEST_CASE("hooks: modifying the gradient in place is an error, since it may be shared") {
  Tensor a = leaf({1, 2}), b = leaf({3, 4});
  const Tensor p = a * 1.0, q = b * 1.0;
  p.register_hook([](const Tensor& g) {
    Tensor mine = g;
    mine.mul_(10);
    return Tensor();
  });
  CHECK_THROWS_WITH((p + q).backward(rill::ones({2}, rill::float64)),
                    doctest::Contains("hook: the gradient of shape [2] was changed in place"));
}

TEST_CASE("hooks: a kept graph can run again after a hook throws") {
  Tensor x = leaf({1, 2});
  bool fails = true;
  const Tensor y = x * 3.0;
  y.register_hook([&](const Tensor&) -> Tensor {
    if (fails) rill::fail("not now");
    return {};
  });
  const Tensor loss = rill::sum(y);
  CHECK_THROWS_WITH(rill::backward(loss, {.retain_graph = true}), "not now");
  fails = false;
  rill::backward(loss, {.retain_graph = true});
  CHECK(x.grad().to_vector() == std::vector<double>{3, 3});
}
