#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <rill/core/core.h>
#include <support/expect.h>

using namespace rill;

TEST_CASE("gradcheck: element_name names the element in the report") {
  const Tensor x = ones({2, 3}, float64).set_requires_grad();
  const auto wrong = [](const std::vector<Tensor>& in) {
    return std::vector{record("wrong", in[0].detach().clone(), {in[0]},
                              [](const Tensor& dy, Grads& d) { d[0].give(dy * 2.0); })};
  };
  const auto name_element = [](std::size_t input, const Dims& index) {
    return fmt::format("element {} {} of {}", index[0], index[1], input);
  };
  const GradcheckReport report = gradcheck(wrong, {x}, {.layouts = false, .element_name = name_element});
  CHECK(!report);
  CHECK(report.message.starts_with(
      fmt::format("element {} {} of 0 (contiguous): analytic", report.index[0], report.index[1])));
}

TEST_CASE("gradcheck: reached_leaves lists each leaf of the graph once, with an op that reads it") {
  const Tensor a = ones({2}).set_requires_grad(), b = ones({3, 1}).set_requires_grad();
  const Tensor unused = ones({2}).set_requires_grad(), constant = ones({2});
  const Tensor y = mul(exp(a), constant), z = add(y, b);
  const std::vector<Tensor> roots{sum(z), sum(mul(y, a)), constant};
  std::vector<ReachedLeaf> reached = reached_leaves(roots);
  REQUIRE(reached.size() == 2);
  const std::size_t of_b = reached[0].leaf.ref() == b.ref() ? 0 : 1;
  CHECK(reached[of_b].leaf.ref() == b.ref());
  CHECK(reached[of_b].op == "add");
  CHECK(reached[1 - of_b].leaf.ref() == a.ref());
  CHECK((reached[1 - of_b].op == "mul" || reached[1 - of_b].op == "exp"));
  roots[0].backward();
  test::check_error([&] { reached_leaves(roots); }, "was freed by an earlier backward; call this before it");
}
